"""What a graph gives in another shape than it computes it in: a tensor of its own, or one that shares what it must."""

from __future__ import annotations

import torch
from torch import Tensor

from compiler.codegen.wrapper import render_wrapper
from compiler.compile import GraphCompilation
from compiler.devices import device_for
from compiler.options import Options
from compiler.runtime.executable import build_executable
from tests.compile_program import capture_graph

CPU = torch.device("cpu")


def outputs_of(function: object, *inputs: Tensor) -> list[Tensor]:
    """Of library calls alone, which need no kernel to be compiled."""
    compilation = GraphCompilation(CPU, device_for(CPU), Options())
    compilation.lower(capture_graph(function, *inputs))  # type: ignore[arg-type]
    compilation.plan()
    assert compilation.schedule is not None and compilation.memory is not None and not compilation.groups
    wrapper = render_wrapper(compilation.schedule, compilation.memory, {})
    return build_executable(compilation.schedule, wrapper, {}, CPU).call(list(inputs))


def test_what_nobody_else_has_is_no_view() -> None:
    x = torch.randn(4, 4)
    (flat,) = outputs_of(lambda x: (x @ x).reshape(2, 8), x)
    torch.testing.assert_close(flat, (x @ x).reshape(2, 8))
    assert not flat._is_view()


def test_what_is_given_twice_knows_of_changes() -> None:
    x = torch.randn(4, 4)
    whole, flat = outputs_of(lambda x: ((product := x @ x), product.reshape(2, 8)), x)
    before = whole._version
    flat.zero_()
    assert not whole.any() and whole._version > before


def test_a_view_of_an_input_knows_of_changes() -> None:
    x = torch.randn(4, 4)
    (turned,) = outputs_of(lambda x: x.t(), x)
    before = x._version
    turned.zero_()
    assert not x.any() and x._version > before


def test_what_nobody_reads_may_lie_as_it_likes() -> None:
    """Of a call's results, only those that are read are looked at."""
    x = torch.randn(4, 4)
    (values,) = outputs_of(lambda x: x.topk(2).values, x)
    torch.testing.assert_close(values, x.topk(2).values)
