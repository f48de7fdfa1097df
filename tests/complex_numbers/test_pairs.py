"""A graph with complex numbers as pairs computes what it did, and no library call is left that pairs stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.complex_numbers.write import in_real_numbers
from tests.compile_program import capture_graph

Tensor = torch.Tensor


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


def waves(a: Tensor) -> Tensor:
    return torch.fft.fft(torch.view_as_complex(a) * 2).abs()


CASES: list[tuple[Callable[..., Any], tuple[Tensor, ...], set[str]]] = [
    (rotary, (torch.randn(2, 5, 3, 8), torch.randn(5, 4)), set()),
    (given_turns, (torch.randn(2, 5, 6, 8).half(), torch.polar(torch.ones(5, 4), torch.randn(5, 4))), {"view_as_real"}),
    (sizes_and_angles, (torch.randn(3, 4), torch.randn(3, 4)), {"view_as_complex"}),
    (waves, (torch.randn(4, 8, 2),), {"view_as_complex", "mul", "_fft_c2c", "abs"}),
]


@pytest.mark.parametrize(("program", "inputs", "left"), CASES, ids=[case[0].__name__ for case in CASES])
def test_pairs_give_what_complex_numbers_give(
    program: Callable[..., Any], inputs: tuple[Tensor, ...], left: set[str]
) -> None:
    graph = in_real_numbers(capture_graph(program, *inputs))
    expected = program(*inputs)
    for mine, wanted in zip(graph(*inputs), expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert (mine.shape, mine.dtype) == (wanted.shape, wanted.dtype)
        torch.testing.assert_close(mine.resolve_conj(), wanted.resolve_conj(), rtol=1e-4, atol=1e-5)
    calls = [node for node in graph.graph.nodes if node.op == "call_function" and touches_complex(node)]
    assert {str(node.target).split(".")[1] for node in calls} == left


def touches_complex(node: torch.fx.Node) -> bool:
    values = [source.meta["val"] for source in (node, *node.all_input_nodes)]
    return any(isinstance(value, torch.Tensor) and value.is_complex() for value in values)


def test_a_graph_without_complex_numbers_stays_as_it_is() -> None:
    graph = capture_graph(lambda x: x.sin(), torch.randn(4))
    assert in_real_numbers(graph) is graph
