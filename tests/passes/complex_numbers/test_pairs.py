"""A graph with complex numbers as pairs computes what it did, and no library call is left that pairs stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from compiler.devices import H200
from compiler.options import Options
from compiler.passes.complex_numbers.write import in_real_numbers
from tests.compile_program import capture_graph

Tensor = torch.Tensor


def changed(graph: GraphModule) -> GraphModule:
    return in_real_numbers(graph, H200, Options())[0]


def rotary(x: Tensor, angles: Tensor) -> Tensor:
    z = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    turns = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(z * turns[:, None]).flatten(-2)


def given_turns(x: Tensor, turns: Tensor) -> Tensor:
    z = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(z * turns[:, None].conj()).flatten(-2).type_as(x)


def sizes_and_angles(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    z = torch.complex(a, b)
    w = torch.exp(z / 3) - 2j * z + z.mean(0, keepdim=True)
    return w.abs(), w.angle(), torch.cat([w, z], -1)[..., 1:].imag, w


def moved_and_divided(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    z, w = torch.complex(a, b), torch.complex(b * 3, a)
    half_plane = (z - 1j) / (z + (3 + 1j)) + 0.5
    return torch.view_as_real(half_plane), torch.view_as_real(2 / w), torch.view_as_real(w / 2j), (z / w).abs()


def waves(a: Tensor) -> Tensor:
    return torch.fft.fft(torch.view_as_complex(a) * 2).abs()


def views_of_a_product(a: Tensor, b: Tensor) -> list[Tensor]:
    z = torch.complex(a, b)
    w = z * z
    alone = z.exp() * 2
    views = [w, w.imag, w.real[1:], w.t(), w.conj()[1:], torch.view_as_real(w), w.view(-1), *w.unbind()]
    return [*views, w.imag.cos(), alone.conj()]


def views_of_real_memory(a: Tensor, b: Tensor) -> list[Tensor]:
    y, z = a + b, torch.view_as_complex(a.unflatten(-1, (-1, 2)))
    w = torch.view_as_complex(y.unflatten(-1, (-1, 2))).t()
    return [y, w, w.imag, torch.view_as_real(w), z.real, torch.view_as_real(z * w.t())]


TURNS = torch.polar(torch.ones(5, 4), torch.randn(5, 4))

CASES: list[tuple[Callable[..., Any], tuple[Tensor, ...], set[str]]] = [
    (rotary, (torch.randn(2, 5, 3, 8), torch.randn(5, 4)), set()),
    (given_turns, (torch.randn(2, 5, 6, 8).half(), TURNS), {"view_as_real"}),
    (given_turns, (torch.randn(2, 5, 6, 8), TURNS.conj()), {"_conj", "view_as_real"}),
    (sizes_and_angles, (torch.randn(3, 4), torch.randn(3, 4)), {"view_as_complex"}),
    (moved_and_divided, (torch.randn(50, 4), torch.randn(50, 4)), set()),
    (waves, (torch.randn(4, 8, 2),), {"view_as_complex", "mul", "_fft_c2c", "abs"}),
]


@pytest.mark.parametrize(("program", "inputs", "left"), CASES, ids=[case[0].__name__ for case in CASES])
def test_pairs_give_what_complex_numbers_give(
    program: Callable[..., Any], inputs: tuple[Tensor, ...], left: set[str]
) -> None:
    graph = changed(capture_graph(program, *inputs))
    expected = program(*inputs)
    for mine, wanted in zip(graph(*inputs), expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert (mine.shape, mine.dtype) == (wanted.shape, wanted.dtype)
        tolerance = max(1e-4, torch.finfo(wanted.dtype).eps)
        torch.testing.assert_close(mine.resolve_conj(), wanted.resolve_conj(), rtol=tolerance, atol=1e-5)
    calls = [node for node in graph.graph.nodes if node.op == "call_function" and touches_complex(node)]
    assert {str(node.target).split(".")[1] for node in calls} == left


def test_a_conjugate_that_the_backward_graph_is_given_has_parts() -> None:
    torch._dynamo.reset()
    x, angles = torch.randn(2, 5, 3, 8, requires_grad=True), torch.randn(5, 4)
    gradients = [
        torch.autograd.grad(program(x, angles).square().sum(), x)
        for program in (torch.compile(rotary, backend="fusionscope"), rotary)
    ]
    torch.testing.assert_close(*gradients)


def test_quotients_neither_overflow_between_nor_are_finite_over_zero() -> None:
    tiny, huge = 1e-30, 1e30
    above = torch.tensor([[1.0, 2.0], [huge, huge], [tiny, -tiny], [1.0, -1.0]])
    below = torch.tensor([[0.0, -3.0], [huge, tiny], [tiny, tiny], [0.0, 0.0]])

    def program(x: Tensor, y: Tensor) -> Tensor:
        return torch.view_as_real(torch.view_as_complex(x) / torch.view_as_complex(y))

    (mine,) = changed(capture_graph(program, above, below))(above, below)
    torch.testing.assert_close(mine, program(above, below))


@pytest.mark.parametrize("program", [views_of_a_product, views_of_real_memory])
def test_results_share_the_memory_that_eager_s_share(program: Callable[..., list[Tensor]]) -> None:
    inputs = torch.randn(4, 6), torch.randn(4, 6)
    graph = capture_graph(program, *inputs)
    in_pairs = changed(graph)
    assert in_pairs is not graph
    mine, wanted = list(in_pairs(*inputs)), program(*inputs)
    assert sharing(mine) == sharing(wanted)
    for ours, eager in zip(mine, wanted, strict=True):
        assert (ours.stride(), ours.storage_offset()) == (eager.stride(), eager.storage_offset())
        assert ours.is_conj() == eager.is_conj()
        torch.testing.assert_close(ours.resolve_conj(), eager.resolve_conj(), rtol=1e-4, atol=1e-5)


def sharing(tensors: list[Tensor]) -> list[int]:
    """For each tensor, which is the first in the same memory."""
    memory = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    return [memory.index(where) for where in memory]


def touches_complex(node: torch.fx.Node) -> bool:
    values = [source.meta["val"] for source in (node, *node.all_input_nodes)]
    return any(isinstance(value, torch.Tensor) and value.is_complex() for value in values)


def test_a_graph_without_complex_numbers_stays_as_it_is() -> None:
    graph = capture_graph(lambda x: x.sin(), torch.randn(4))
    assert changed(graph) is graph
