"""Kernels that are one code but for names are found, compiled once, and nothing else is taken for equal."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest
import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.same_code import code_of, first_of_each_code
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.runtime.cpp import library as cpp_library
from compiler.runtime.cpp.library import compile_kernels

LAYERS = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(64))
        self.weight = nn.Parameter(torch.randn(64, 64) / 8)
    def forward(self, x):
        return torch.softmax(x @ self.weight, -1) * self.scale + x

model = torch.compile(nn.Sequential(*(Layer() for _ in range(6))))
with torch.no_grad():
    model(torch.randn(8, 64))
"""


def cpp(source: str, *parameters: str, name: str = "kernel") -> RenderedKernel:
    return RenderedKernel(name, "cpp", source.replace("NAME", name), parameters, ((1, parameters),), {})


def triton(body: str, *parameters: str, name: str = "kernel") -> RenderedKernel:
    arguments = ", ".join(f"{parameter}_ptr" for parameter in parameters)
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return RenderedKernel(name, "triton", f"def {name}({arguments}):\n{lines}\n", parameters, ((1, parameters),), {})


def scaled(x: str, y: str, name: str, factor: str = "2.0f") -> RenderedKernel:
    return cpp(
        f'#include "fusionscope.h"\n// {name} of {x}\nextern "C" void NAME(const float* {x}_ptr, float* {y}_ptr) {{\n'
        f"    for (int64_t i = 0; i < 4; ++i) {{ const float {y} = {x}_ptr[i] * {factor}; {y}_ptr[i] = {y}; }}\n}}\n",
        x,
        y,
        name=name,
    )


def test_names_and_remarks_do_not_count() -> None:
    assert code_of(scaled("addmm", "relu", "one")) == code_of(scaled("addmm_1", "relu_1", "two"))
    long = triton('"""Computes y."""\ny = tl.load(x_ptr)  # here\ntl.store(y_ptr, y)', "x", "y")
    broken = triton('"""Computes b."""\nb = tl.load(\n    a_ptr,\n)\ntl.store(b_ptr, b)', "a", "b")
    assert code_of(long) == code_of(broken)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (scaled("x", "y", "one"), scaled("x", "y", "one", "3.0f")),  # a number
        (cpp("float sin = std::sin(x)", "sin", "x"), cpp("float cos = std::cos(x)", "cos", "x")),  # what is called
        (cpp("float a = b - c", "a", "b", "c"), cpp("float a = b - b", "a", "b", "c")),  # which variable
        (cpp("a_ptr, b_ptr; a_ptr = b_ptr", "a", "b"), cpp("a_ptr, b_ptr; b_ptr = a_ptr", "a", "b")),  # which parameter
        (triton("for i in x:\n    a = i\n    b = a", "x"), triton("for i in x:\n    a = i\nb = a", "x")),  # nesting
        (triton("x = tl.sum(y, axis=1)", "axis"), triton("x = tl.sum(y, other=1)", "other")),  # which argument
        (triton("x = tl.sin", "sin"), triton("x = tl.cos", "cos")),
        (cpp('check("a failed")', "a"), cpp('check("b failed")', "b")),  # what is said
        (cpp("a_ptr; double b = 1", "double", "a"), cpp("a_ptr; float b = 1", "float", "a")),  # a type
    ],
)
def test_all_else_counts(one: RenderedKernel, two: RenderedKernel) -> None:
    assert code_of(one) != code_of(two)
    assert first_of_each_code({"one": one, "two": two}) == {"one": "one", "two": "two"}


def test_dtypes_and_launches_count_where_the_text_does_not_say_them() -> None:
    one = triton("y = tl.load(x_ptr)", "x")
    two = triton("y = tl.load(z_ptr)", "z", name="other")
    pair = {"one": one, "two": two}
    assert first_of_each_code(pair, storage={"x": torch.float32, "z": torch.float32})["two"] == "one"
    assert first_of_each_code(pair, storage={"x": torch.float32, "z": torch.float16})["two"] == "two"
    pair["two"] = replace(two, config={"num_warps": 8})
    assert first_of_each_code(pair)["two"] == "two"


def test_kernels_of_one_code_share_a_function_that_works_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    load = cpp_library.load_library

    def load_and_note(source: str) -> ctypes.CDLL:
        compiled.append(source)
        return load(source)

    monkeypatch.setattr(cpp_library, "load_library", load_and_note)
    kernels = compile_kernels([scaled("x", "y", "one"), scaled("b", "a", "two"), scaled("x", "y", "three", "3.0f")])
    assert "void two" not in "".join(compiled)
    for name, factor in (("one", 2), ("two", 2), ("three", 3)):
        given, result = torch.randn(4), torch.empty(4)
        kernels[name](given, result)
        torch.testing.assert_close(result, given * factor)


def test_equal_layers_are_told_as_repeats_and_are_right() -> None:
    report = explore(LAYERS, Options(timing=Timing(enabled=False)))
    (graph,) = report.graphs
    generated = [kernel for kernel in graph.kernels if kernel.kind == "cpp"]
    repeated = [kernel for kernel in generated if kernel.same_as is not None]
    assert len(generated) - len(repeated) <= 3  # the first layer and the last may be written in another way
    assert {kernel.same_as for kernel in repeated} <= {kernel.name for kernel in generated if kernel.same_as is None}
    for kernel in repeated:
        (twin,) = (artifact for artifact in kernel.also if artifact.language == "triton")
        assert twin.source
        assert f"the same code as {kernel.same_as}" in (twin.check or "")
    assert report.summary.compiled_error is not None
    assert report.summary.compiled_error < 1e-5
