"""Every order of random small graphs is tried and every plan carried out: none takes more than the report says."""

from __future__ import annotations

import pytest

from compiler.devices import device_for
from compiler.options import Options
from compiler.schedule.memory.lifetimes import peak_bytes
from compiler.schedule.memory.order import as_written, in_order
from compiler.schedule.memory.peaks import peak_growths
from compiler.schedule.memory.plan import plan_memory
from compiler.schedule.scheduler import Schedule, schedule, without_fusion
from tests.schedule.random_memory import all_orders, peak_of_order, peak_of_plan, random_graph, singles

SEEDS = range(80)


@pytest.mark.parametrize("most_nodes", [6, 8])
def test_the_order_is_mostly_the_lowest_of_all_and_never_above_what_was_written(most_nodes: int) -> None:
    lowest = 0
    for seed in SEEDS:
        graph = random_graph(seed, most_nodes)
        units = singles(graph)
        orders = all_orders(units)
        peaks = [peak_of_order(order, graph) for order in orders]
        for order, peak in zip(orders[:8], peaks, strict=False):
            assert peak_bytes(order, graph.buffers, graph.output_buffers) == peak, seed
        peak = peak_of_order(in_order(units, graph), graph)
        assert as_written(units, graph) == units, seed
        assert peak <= peak_of_order(units, graph), seed
        lowest += peak == min(peaks)
    assert lowest >= 0.9 * len(SEEDS)


def test_a_plan_holds_what_it_says_and_never_what_is_still_needed() -> None:
    reused = 0
    for seed in SEEDS:
        graph = random_graph(seed, 10)
        units = singles(graph)
        fused = schedule(graph, device_for("sm_90"), Options()).units
        for order in (units, in_order(units, graph), fused):
            plan = plan_memory(Schedule(graph, tuple(order), (), ()))
            assert peak_of_plan(order, graph, plan) == plan.peak_bytes <= peak_of_order(order, graph), seed
            reused += sum(buffer.takes_over is not None for buffer in plan.buffers.values())
    assert reused >= 30


def test_a_fusion_that_needs_more_memory_says_so() -> None:
    raised = 0
    for seed in SEEDS:
        graph = random_graph(seed)
        fused = schedule(graph, device_for("sm_90"), Options())
        plan = plan_memory(fused)
        growth = plan.peak_bytes - plan_memory(without_fusion(fused)).peak_bytes
        found = peak_growths(fused, plan)
        assert sum(found.values()) >= growth and bool(found) == (growth > 0), seed
        assert all(fused.decisions[place].reason.startswith("fused.") for place in found), seed
        raised += growth > 0
    assert raised >= 5
