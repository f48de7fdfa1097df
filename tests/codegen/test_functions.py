"""Named functions as C++ and as Triton give what the interpreter of the loop IR gives."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import compiler.functions  # noqa: F401
from compiler.codegen.cpp.render import render_cpp
from compiler.codegen.triton.render import render_triton
from compiler.devices import H200
from compiler.ir.index import Dim, Index
from compiler.ir.interpret import call_function
from compiler.ir.ops import NAMED, ops
from compiler.runtime.cpp.library import compile_kernels
from compiler.runtime.interpreter.interpreter import interpret
from compiler.runtime.triton.offline import compile_offline
from compiler.schedule.group import Group
from tests.codegen.cpp import harness
from tests.compile_program import compile_program

FLOATS = (torch.float32, torch.float64)
CALLS = [(name, dtype) for name in NAMED for dtype in FLOATS]
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, 8.0, 1e-40, 1e5, 1e30, float("inf"), -float("inf"), float("nan")]


def arguments(name: str, dtype: torch.dtype) -> list[Tensor]:
    """Numbers of all kinds for each argument; pairs meet one another in changing ways."""
    numbers = torch.cat([torch.linspace(-12.0, 12.0, 97), torch.linspace(0.0, 1.0, 33), torch.tensor(EDGES)]).to(dtype)
    return [numbers.roll(17 * place).contiguous() for place in range(NAMED[name].arity)]


def calling(name: str, dtype: torch.dtype, count: int) -> tuple[Group, dict[str, torch.dtype]]:
    """A kernel that calls the function on each element."""
    dim = Dim("x0", count)
    buffers = [f"argument_{place}" for place in range(NAMED[name].arity)]
    result = f"{name}_of_{str(dtype).removeprefix('torch.')}"

    def body() -> None:
        loaded = [ops.load(buffer, Index.of(dim), dtype) for buffer in buffers]
        ops.store(result, Index.of(dim), ops.call(name, *loaded))

    made = harness.group(f"kernel_of_{result}", (dim,), (), harness.node(result, (count,), dtype, (dim,), (), body))
    return made, dict.fromkeys([*buffers, result], dtype)


def assert_same(result: Tensor, expected: Tensor, name: str) -> None:
    """Up to what a sum rounded once instead of twice changes, and what one library's sine differs from another's."""
    precision = torch.finfo(result.dtype).eps
    close = torch.isclose(result, expected, rtol=2000 * precision, atol=20 * precision, equal_nan=True)
    assert bool(close.all()), f"{name}: {result[~close]}, not {expected[~close]}"


def test_functions_in_cpp_are_those_of_the_interpreter() -> None:
    kernels, inputs = {}, {}
    for name, dtype in CALLS:
        values = arguments(name, dtype)
        kernels[name, dtype] = render_cpp(*calling(name, dtype, len(values[0])))
        inputs[name, dtype] = values
    launchers = compile_kernels(list(kernels.values()))
    for (name, dtype), values in inputs.items():
        result = torch.empty_like(values[0])
        launchers[kernels[name, dtype].name](*values, result)
        assert_same(result, call_function(name, values), f"{name} of {dtype}")


@pytest.mark.parametrize("name, dtype", CALLS)
def test_function_in_triton_is_that_of_the_interpreter(name: str, dtype: torch.dtype) -> None:
    values = arguments(name, dtype)
    kernel = render_triton(*calling(name, dtype, len(values[0])), H200)
    result = torch.empty_like(values[0])
    interpret(kernel, [*values, result])
    assert_same(result, call_function(name, values), f"{name} of {dtype}")


@pytest.mark.parametrize("name", ["psi", "inverse_normal", "scaled_erfc", "nearest_float8_e4m3fn"])
def test_function_is_assembled_for_an_h200(name: str) -> None:
    for dtype in FLOATS:
        made, storage = calling(name, dtype, 4096)
        result = compile_offline(render_triton(made, storage, H200), storage, "sm_90")
        assert result.error is None, result.error
        # The longest ones hold a few more float64 than there are registers.
        assert result.spills is not None
        assert result.spills <= (0 if dtype == torch.float32 else 64)


def test_kernels_of_one_library_may_call_the_same_function() -> None:
    first, second = (calling("scaled_erfc", dtype, 8) for dtype in FLOATS)
    again = calling("scaled_erfc", torch.float32, 16)
    kernels = [render_cpp(*made) for made in (first, second)]
    other = render_cpp(Group("another", again[0].space, again[0].members, again[0].stored), again[1])
    assert set(compile_kernels([*kernels, other])) == {*(kernel.name for kernel in kernels), "another"}


def test_parts_of_a_launch_have_names_that_no_other_kernel_has() -> None:
    """Names that are taken are numbered: the second `fused_sin_cos` of a graph is `fused_sin_cos_2`."""
    made = compile_program(lambda x, y: (torch.sin(x), torch.cos(y)), torch.randn(8, 8), torch.randn(5), target="cpu")
    (batch,) = made.cpp.values()
    single, storage = calling("scaled_erfc", torch.float32, 8)
    second = render_cpp(replace(single, name=f"{batch.name}_2"), storage)
    assert set(compile_kernels([batch, second])) == {batch.name, second.name}
