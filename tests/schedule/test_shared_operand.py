"""Matrix products of one left operand: which become one kernel, by which numbers, and which do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler import report as rep
from compiler.decisions import Refuse
from compiler.devices import H200
from compiler.present import present_schedule
from compiler.schedule.group import Group
from compiler.schedule.products.best_tile import tile_of
from compiler.schedule.products.tiles import TILES
from compiler.schedule.records.decisions import Decision
from compiler.schedule.rules import Fuse
from tests.schedule.test_products import products, scheduled, verdict_on

Tensor = torch.Tensor


def gate(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """SwiGLU."""
    sums = x @ w
    return sums * torch.sigmoid(sums) * (x @ v)


def three(x: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch.addmm(bias, x, w) for w, bias in zip(weights[:3], weights[3:], strict=True))


def both(x: Tensor, w: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return x @ w, x @ v


THREE = (*[(768, 768)] * 3, *[(768,)] * 3)


def test_a_gate_is_one_kernel_that_stores_neither_product() -> None:
    compilation = scheduled(gate, (512, 512), (512, 512), (512, 512), dtype=torch.bfloat16)
    (product,) = products(compilation)
    assert compilation.schedule.units == (product,)
    assert product.stored == {"mul_1"} and [call.name for call in product.calls] == ["mm", "mm_1"]
    verdict = verdict_on(compilation, "mm", "mm_1")
    assert isinstance(verdict, Fuse) and verdict.reason == "fused.shared_operand"
    # x once less, and each product neither written nor read.
    assert verdict.numbers["bytes_apart"] - verdict.numbers["bytes_fused"] == 5 * 512 * 512 * 2


def test_three_products_are_one_kernel_with_their_biases() -> None:
    compilation = scheduled(three, (512, 768), *THREE, dtype=torch.bfloat16)
    (product,) = products(compilation)
    assert product.stored == {"addmm", "addmm_1", "addmm_2"} and product.matrices.count == 3
    tile = tile_of(product, H200)
    assert tile.shared_bytes(2, (1, 3)) <= H200.shared_per_block
    assert 3 * tile.sums_of_a_thread < H200.registers_per_thread


def test_large_products_stay_with_the_library_and_say_by_how_much() -> None:
    compilation = scheduled(gate, (1024, 4096), (4096, 11008), (4096, 11008), dtype=torch.bfloat16)
    verdict = verdict_on(compilation, "mm", "mm_1")
    assert isinstance(verdict, Refuse) and verdict.reason == "profit.library"
    numbers = verdict.numbers
    assert numbers["fused_us"] > numbers["unfused_us"] * (1 - numbers["least_gain"])
    assert 0 < numbers["library_us"] < numbers["unfused_us"]
    assert not products(compilation)


@pytest.mark.parametrize(("rows", "is_taken"), [(197, True), (512, True), (1024, True), (6304, False), (16384, False)])
def test_few_rows_are_one_kernel_and_many_are_not(rows: int, is_taken: bool) -> None:
    """As measured on an H200; docs/performance/archive/README.md has the table."""
    compilation = scheduled(three, (rows, 768), *THREE, dtype=torch.bfloat16)
    assert bool(products(compilation)) == is_taken


@pytest.mark.parametrize(
    ("rows", "is_taken"),
    [(32, True), (128, True), (256, False), (512, True), (1024, False), (2048, True), (4096, True)],
)
def test_a_gate_is_one_kernel_where_that_was_measured_to_gain(rows: int, is_taken: bool) -> None:
    """Descriptors bring its tiles; where the last wave has few of them, the library is ahead."""
    compilation = scheduled(gate, (rows, 4096), (4096, 11008), (4096, 11008), dtype=torch.bfloat16)
    taken = products(compilation)
    assert bool(taken) == is_taken
    assert all(tile_of(product, H200).by_descriptors for product in taken)


def needs_the_other(x: Tensor, w: Tensor) -> Tensor:
    return x @ (x @ w)


def far_apart(x: Tensor, w: Tensor, v: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    first = x @ w
    for _ in range(20):
        y = torch.cumsum(y, 0)
    return first, (x @ v) + y.sum()


SQUARE = ((64, 64),) * 3


@pytest.mark.parametrize(
    ("function", "shapes", "options", "reason"),
    [
        (both, SQUARE, {"rules_off": ["shared_operand"]}, "policy.disabled"),
        (both, SQUARE, {"forbid": [["mm", "mm_1"]]}, "policy.forbidden"),
        (both, SQUARE, {"largest_group": 1}, "policy.group_size"),
        (both, ((64, 64), (64, 64), (64, 32)), {}, "kind.extern"),
        (needs_the_other, SQUARE[:2], {}, "kind.extern"),
        (far_apart, ((4096, 64), (64, 256), (64, 256), (64,)), {"force": [["mm", "mm_1"]]}, "profit.kept_longer"),
    ],
)
def test_what_stays_apart(
    function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], options: dict[str, Any], reason: str
) -> None:
    compilation = scheduled(function, *shapes, **options)
    verdict = verdict_on(compilation, "mm", "mm_1")
    assert isinstance(verdict, Refuse) and verdict.reason == reason
    graph = rep.Graph(name="graph")
    present_schedule(compilation, graph)
    assert reason in {decision.reason for decision in graph.decisions}
    assert all(product.matrices.count == 1 for product in products(compilation))


def test_products_of_two_operands_are_not_asked_about() -> None:
    compilation = scheduled(lambda x, y, w: (x @ w, y @ w), *SQUARE)
    assert not compilation.schedule.decisions


def test_a_kernel_has_at_most_four() -> None:
    compilation = scheduled(lambda x, *weights: [x @ w for w in weights], *[(64, 64)] * 7)
    assert sorted(product.matrices.count for product in products(compilation)) == [2, 4]
    decisions: tuple[Decision, ...] = compilation.schedule.decisions
    assert "policy.group_size" in {decision.reason for decision in decisions}


def test_a_forced_pair_skips_the_profit_test_alone() -> None:
    compilation = scheduled(both, (4096, 4096), (4096, 4096), (4096, 4096), force=[["mm", "mm_1"]])
    (product,) = products(compilation)
    assert product.matrices.count == 2


def test_what_reads_one_of_the_products_may_follow_in_the_kernel() -> None:
    def function(x: Tensor, w: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return torch.relu(x @ w), x @ v

    compilation = scheduled(function, *SQUARE)
    (unit,) = compilation.schedule.units
    assert isinstance(unit, Group) and unit.stored == {"relu", "mm_1"}


def test_every_tile_fits_some_number_of_sums() -> None:
    """The smallest tiles are what remains for many sums, so they must fit for as many as there may be."""
    for tiles in TILES.values():
        itemsize = 2 if tiles is TILES["half"] else 4
        assert tiles[-1].shared_bytes(itemsize, (1, 4)) <= H200.shared_per_block
