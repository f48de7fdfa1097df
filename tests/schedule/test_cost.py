"""The model of the device predicts a kernel as the tile plans make it, and knows when a GPU would be idle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.compile import Generated
from compiler.devices import GPUS, H200, cpu_device
from compiler.ir.nodes import Layout
from compiler.schedule.cost.kernel import cost_parts, group_cost, sequence_us, work_and_shape
from compiler.schedule.cost.shape import Shape
from compiler.schedule.cost.touches import touches_of
from compiler.schedule.cost.work import Work
from compiler.schedule.group import Group
from compiler.schedule.program.single_pass import relative_members
from tests.compile_program import compile_program, kernel_count


def layouts_of(compilation: Generated) -> dict[str, Layout]:
    return compilation.schedule.graph.buffers


def predicted(group: Group, layouts: dict[str, Layout]) -> tuple[Work, Shape]:
    return work_and_shape(group, layouts, H200)


def only_group(function: Callable[..., Any], *inputs: Tensor) -> tuple[Group, dict[str, Layout]]:
    compilation = compile_program(function, *inputs)
    (group,) = compilation.groups
    return group, layouts_of(compilation)


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def normalised(x: Tensor) -> Tensor:
    return x / x.abs().sum()


def test_passes_that_find_nothing_in_registers_read_again() -> None:
    group, layouts = only_group(softmax, torch.empty(64, 50000))
    one_after_another = replace(group, single_pass=frozenset(), is_cooperative=False)
    in_one = replace(one_after_another, single_pass=frozenset(relative_members(one_after_another)))
    for strategy, passes in ((one_after_another, 3), (in_one, 2), (replace(in_one, is_cooperative=True), 1)):
        work, shape = predicted(strategy, layouts)
        assert shape.passes == passes
        assert work.again == (passes - 1) * 64 * 50000 * 4
    group, layouts = only_group(softmax, torch.empty(64, 1000))
    work, shape = predicted(group, layouts)
    assert shape.passes == 1
    assert work.again == 0


def test_gaps_between_neighbours_move_whole_sectors() -> None:
    group, layouts = only_group(lambda x: x[:, ::8] + 1, torch.empty(512, 4096))
    work, _ = predicted(group, layouts)
    assert work.read == pytest.approx(512 * 4096 * 4, rel=0.01)
    assert work.written == 512 * 512 * 4


def test_random_places_move_whole_granules_but_no_more_than_the_table() -> None:
    few = torch.randint(0, 1 << 22, (1024,))
    group, layouts = only_group(lambda table, places: table[places] + 1, torch.empty(1 << 22), few)
    work, _ = predicted(group, layouts)
    assert 1024 * 100 < work.read < 1024 * (128 + 8) + 1
    many = torch.randint(0, 1 << 10, (1 << 18,))
    group, layouts = only_group(lambda table, places: table[places] + 1, torch.empty(1 << 10), many)
    work, _ = predicted(group, layouts)
    assert work.read == pytest.approx((1 << 18) * 8 + (1 << 10) * 4, rel=0.01)


def test_a_sum_over_everything_and_its_use_are_one_kernel_only_where_one_program_is_enough() -> None:
    assert kernel_count(compile_program(normalised, torch.empty(1 << 10))) == (1, 0)
    assert kernel_count(compile_program(normalised, torch.empty(1 << 22))) == (2, 0)


def test_a_reduction_does_not_store_across_its_lanes_what_a_kernel_of_its_own_stores_in_tiles() -> None:
    def sum_and_transposed(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sum(-1), (x + 1).t().contiguous()

    def centred_and_turned(x: Tensor) -> Tensor:
        return (x - x.mean((1, 3), keepdim=True)).permute(0, 2, 3, 1).contiguous()

    # A loop over blocks has tiles of whole lines both ways, a row that is held in registers has not.
    (kernel,) = compile_program(sum_and_transposed, torch.empty(4096, 4096)).triton.values()
    assert kernel.config["XBLOCK"] == 32 and kernel.config["RBLOCK"] == 64
    assert kernel_count(compile_program(centred_and_turned, torch.empty(16, 4096, 8, 32))) == (2, 0)


@pytest.mark.parametrize("device", [*GPUS, cpu_device(2)], ids=lambda device: device.name)
def test_more_bytes_and_more_arithmetic_never_take_less(device: Any) -> None:
    def microseconds(function: Callable[..., Any], elements: int) -> float:
        group, layouts = only_group(function, torch.empty(elements))
        return group_cost(group, layouts, device).microseconds

    sizes = [microseconds(lambda x: x + 1, 1 << exponent) for exponent in (8, 18, 22, 26)]
    assert sizes == sorted(sizes) and sizes[0] > 0
    assert microseconds(lambda x: x.sin().sin().sin().sin(), 1 << 24) > microseconds(lambda x: x + 1, 1 << 24)


def test_kernels_in_a_row_pay_once_for_being_timed_alone() -> None:
    group, layouts = only_group(lambda x: x + 1, torch.empty(64))
    cost = group_cost(group, layouts, H200)
    assert sequence_us([cost], H200) == cost.microseconds
    assert sequence_us([cost, cost], H200) == pytest.approx(2 * cost.microseconds - H200.alone_us)


def test_the_parts_are_those_of_the_prediction() -> None:
    group, layouts = only_group(lambda x: x + 1, torch.empty(1 << 24))
    parts = cost_parts(group, layouts, H200)
    least = parts["alone_us"] + parts["launch_us"] + parts["latency_us"]
    terms = [parts[f"{name}_us"] for name in ("memory", "cache", "arithmetic", "few")]
    predicted = group_cost(group, layouts, H200).microseconds
    assert least + max(terms) <= predicted <= least + sum(terms) + parts["ends_us"]
    assert parts["bytes"] == {"contiguous": 2 * 4 << 24}
    faster = replace(H200, bandwidth=2 * H200.bandwidth)
    assert group_cost(group, layouts, faster).microseconds < 0.6 * predicted


def test_places_that_are_computed_are_near_each_other_and_those_that_are_loaded_are_not() -> None:
    """On the H200 an interpolation inside of the concatenation that reads it takes 30 us, apart 42 us."""

    def interpolated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat((torch.nn.functional.interpolate(x, scale_factor=2), y), 1)

    compilation = compile_program(interpolated, torch.randn(1, 2, 14, 14), torch.randn(1, 2, 28, 28))
    assert len(compilation.groups) == 1
    picked = compile_program(lambda x, i: x[i] * 2, torch.randn(1 << 12, 3), torch.randint(0, 1 << 12, (1 << 12,)))
    computed = compile_program(lambda x: x[torch.arange(1 << 12) // 2] * 2, torch.randn(1 << 12, 3))
    anywhere, near = (
        [t.is_anywhere for g in c.groups for t in touches_of(g, c.schedule.graph.buffers) if t.access.buffer == "x"]
        for c in (picked, computed)
    )
    assert anywhere == [True] and near == [False]


def test_steps_that_depend_on_quotients_of_sizes_have_a_cost() -> None:
    """Whether such a step is zero cannot be shown for every call: a cost is of one call's sizes."""

    def halves(x: Tensor) -> Tensor:
        pairs = x.view(x.shape[0], -1, 2)
        return pairs[..., 0] * pairs[..., 1].sin()

    assert compile_program(halves, torch.randn(4, 6), dynamic=True).groups


def softmaxes(x: Tensor) -> Tensor:
    for _ in range(3):
        x = torch.softmax(x * 1.01 + 1, -1)
    return x


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_what_each_pass_computes_again_is_priced(target: str) -> None:
    """Rows that nothing keeps: softmaxes in a row would be computed anew for each pass over the last of them."""
    compilation = compile_program(softmaxes, torch.empty(2048, 30000), target=target, dynamic=True)
    refused = [d for d in compilation.schedule.decisions if d.reason == "profit.slower"]
    assert len(compilation.groups) > 1
    assert any(d.verdict.numbers["operations_fused"] > d.verdict.numbers["operations_apart"] for d in refused)


def test_rows_of_open_sizes_are_kept_by_a_cpu_and_priced_so() -> None:
    compilation = compile_program(softmaxes, torch.empty(2048, 512), target="cpu", dynamic=True)
    (group,) = compilation.groups
    (kernel,) = compilation.cpp.values()
    assert kernel.source.count("fs::exp(") == 2 * 3, "the vector loop and what is left over, of each softmax"
    fixed, layouts = only_group(softmaxes, torch.empty(2048, 512))
    cpu = cpu_device(2)
    assert group_cost(group, layouts_of(compilation), cpu).operations == group_cost(fixed, layouts, cpu).operations


def test_what_the_vector_loop_of_a_cpu_does_not_change_costs_nothing_inside_of_it() -> None:
    norm = torch.nn.GroupNorm(8, 16).requires_grad_(False)
    assert kernel_count(compile_program(norm, torch.empty(4, 16, 64, 64), target="cpu")) == (1, 0)


def test_parts_of_a_launch_wait_at_the_same_time() -> None:
    """Two sums of few columns take little longer than one of them beside a small kernel; on a CPU, as long as both."""
    x, y, z = torch.empty(197, 768), torch.empty(197, 768), torch.empty(100)
    one, layouts_of_one = only_group(lambda x, z: (x.sum(0), z.sin()), x, z)
    two, layouts_of_two = only_group(lambda x, y: (x.sum(0), y.sum(0)), x, y)
    for device, least, most in ((H200, 1.0, 1.1), (cpu_device(2), 1.8, 2.2)):
        of_one = group_cost(one, layouts_of_one, device).microseconds - device.overhead_us
        of_two = group_cost(two, layouts_of_two, device).microseconds - device.overhead_us
        assert least <= of_two / of_one <= most
