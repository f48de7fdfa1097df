"""Rows of few numbers beside zeros: what is computed instead of their sums, and of additions at their places."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from compiler.ir.nodes import LoopNode
from compiler.options import Options
from compiler.pipeline import explore

INDEX = torch.tensor([[1], [0], [6], [3]])


def one_a_row(scale: Tensor) -> Tensor:
    one = torch.zeros(4, 7).scatter(1, INDEX, -1.5)
    return (one * scale).sum(1, keepdim=True) * 2


def dropped(scale: Tensor) -> Tensor:
    return (scale * torch.zeros(4, 7).scatter(-1, INDEX, 2.0)).sum(-1)


def two_a_row(scale: Tensor) -> Tensor:
    return (torch.zeros(4, 7).scatter(1, torch.cat([INDEX, INDEX], 1), 2.0) * scale).sum(1)


def some_rows(scale: Tensor) -> Tensor:
    return (torch.zeros(4, 7).scatter(1, INDEX[:2], 2.0) * scale).sum(1)


def of_columns(scale: Tensor) -> Tensor:
    return (torch.zeros(4, 7).scatter(1, INDEX, 2.0) * scale).sum(0)


def of_ones(scale: Tensor) -> Tensor:
    return (torch.ones(4, 7).scatter(1, INDEX, 2.0) * scale).sum(1)


def of_everything(scale: Tensor) -> Tensor:
    return (torch.zeros(4, 7).scatter(1, INDEX, 2.0) * scale).sum(None, keepdim=True)


def of_one_element(scale: Tensor) -> Tensor:
    return (scale.sum() * scale.amax()).sum(0)


@pytest.mark.parametrize(
    ("function", "is_replaced"),
    [
        (one_a_row, True),
        (dropped, True),
        (two_a_row, False),
        (some_rows, False),
        (of_columns, False),
        (of_ones, False),
        (of_everything, False),
        (of_one_element, False),
    ],
)
def test_the_sum_of_one_number_is_that_number(function: object, is_replaced: bool) -> None:
    assert callable(function)
    scale = torch.tensor([[1.0], [-2.5], [math.inf], [math.nan]], requires_grad=True)
    graphs: list[Built] = []
    torch._dynamo.reset()
    with observed_compilations(graphs.append):
        result = torch.compile(function, backend=fusionscope)(scale)
    torch.testing.assert_close(result, function(scale), equal_nan=True, rtol=0, atol=0)
    loops = graphs[0].loops
    sums = [node for node in loops.nodes if isinstance(node, LoopNode) and node.r_dims]
    assert (not sums) == is_replaced


WORDS = torch.tensor([3, -1, 0, 3, -7])


def gathered(x: Tensor) -> Tensor:
    return x.log_softmax(-1).gather(1, WORDS[:, None] % 7)


def gathered_thrice(x: Tensor) -> Tensor:
    return x.softmax(-1).gather(1, torch.stack([WORDS, WORDS, WORDS + 1], 1) % 7)


def gathered_from_columns(x: Tensor) -> Tensor:
    return (x * x).gather(0, torch.tensor([[4, 0, 0, 2, 1, 1, 3]]))


def indexed(x: Tensor) -> Tensor:
    return x.log_softmax(-1)[torch.arange(5), WORDS]


def indexed_in_two(x: Tensor) -> Tensor:
    rows = x.exp().view(5, 1, 7)
    return rows[torch.arange(5)[:, None], torch.arange(1), WORDS[:, None].to(torch.int32)]


def best_two(x: Tensor) -> Tensor:
    return x.exp().topk(2, -1).values


def last_states(x: Tensor) -> Tensor:
    return (x[:, :, None] * torch.arange(1.0, 4)).tanh()[torch.arange(5), WORDS]


def gathered_from_some(x: Tensor) -> Tensor:
    return x.softmax(-1).gather(1, WORDS[:3, None] % 7)


def indexed_with_rows_that_meet(x: Tensor) -> Tensor:
    return x.log_softmax(-1)[torch.arange(5) // 2, WORDS]


def indexed_from_a_later_row(x: Tensor) -> Tensor:
    return x.softmax(-1)[torch.arange(1, 4), WORDS[:3]]


@pytest.mark.parametrize(
    ("function", "is_asked_of_every_element"),
    [
        (gathered, True),
        (gathered_thrice, True),
        (gathered_from_columns, True),
        (indexed, True),
        (indexed_in_two, True),
        (best_two, True),
        (gathered_from_some, False),
        (indexed_with_rows_that_meet, False),
        (indexed_from_a_later_row, False),
        (last_states, False),
    ],
)
def test_the_gradient_of_few_numbers_of_each_row_needs_no_scatter(
    function: Callable[[Tensor], Tensor], is_asked_of_every_element: bool
) -> None:
    x = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), requires_grad=True)
    graphs: list[Built] = []
    torch._dynamo.reset()
    with observed_compilations(graphs.append):
        result = torch.compile(function, backend=fusionscope)(x)
        given = torch.arange(result.numel(), dtype=result.dtype).view_as(result) - 2.5
        (gradient,) = torch.autograd.grad(result, x, given)
    torch.testing.assert_close(gradient, torch.autograd.grad(function(x), x, given)[0])
    backward = graphs[-1].loops
    assert backward is not None
    scatters = [node for node in backward.nodes if isinstance(node, LoopNode) and node.updates is not None]
    assert (not scatters) == is_asked_of_every_element
    assert len(graphs[-1].groups) == 1 or not is_asked_of_every_element


def test_numbers_picked_from_as_many_rows_as_the_run_finds_have_gradients() -> None:
    def picked(x: Tensor, words: Tensor, wanted: Tensor) -> Tensor:
        rows = wanted.nonzero()[:, 0]
        return x.log_softmax(-1)[rows, words[rows]].sum()

    x = torch.randn(5, 7, requires_grad=True)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(picked, backend=fusionscope, fullgraph=True)
        for wanted in (WORDS > 2, WORDS > -2):
            gradients = [torch.autograd.grad(program(x, WORDS, wanted), x) for program in (compiled, picked)]
            torch.testing.assert_close(*gradients)


TRAINING = """
import torch
import torch.nn.functional as F

@torch.compile
def loss(x, table):
    pooled = F.max_pool2d(x, 2).flatten(1)
    return F.cross_entropy(pooled @ table, torch.arange(4))

x, table = torch.randn(4, 2, 8, 8, requires_grad=True), torch.randn(32, 7, requires_grad=True)
loss(x, table).backward()
"""


def test_what_is_replaced_in_a_training_step_has_a_record_with_its_line() -> None:
    report = explore(TRAINING, Options(device="cpu", produce=("capture",)))
    (backward,) = (graph for graph in report.graphs if graph.phase == "backward")
    assert sorted((one.what, one.reason, one.lines) for one in backward.rewrites) == [
        ("one-hot sum", "one_hot.sum", [8]),
        ("pooling places", "pooling.bytes", [7]),
    ]
    names = {node.name for node in backward.aten}
    assert all(one.detail.removesuffix(" came of it") in names for one in backward.rewrites)
