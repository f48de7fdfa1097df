"""A concatenation is written by the kernels that make its parts, each into its slice of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.compile import build
from compiler.decisions import Refuse
from compiler.runtime.checking.verify import relative_error
from compiler.schedule.group import Group
from compiler.schedule.memory.peaks import is_merge, units_after
from tests.compile_program import bytes_moved, call_interpreted, compile_program, kernel_count

Function = Callable[..., Any]


def recurrence(gates: Tensor, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Each step is stacked, and read by the next one."""
    steps = []
    for gate, new in zip(gates, x, strict=True):
        h = torch.sigmoid(gate) * h + new
        steps.append(h)
    return torch.stack(steps), h


def scan_of_states(decay: Tensor, h: Tensor, read: Tensor) -> Tensor:
    """Each step reduces its state; the results of the steps lie next to each other, and something is added to them."""
    results = []
    for step in range(4):
        h = torch.exp(decay[step])[:, None] * h
        results.append((h * read[step]).sum(-1))
    return torch.stack(results, 1) + decay.t()


def norms_beside_each_other(a: Tensor, b: Tensor) -> Tensor:
    """Parts of different widths, by kernels of their own."""
    return torch.cat([F.layer_norm(a, a.shape[-1:]), F.layer_norm(b, b.shape[-1:])], -1)


def statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """The whole is read on, by a library call that has to wait for all of its parts."""
    found = torch.stack([x.mean(-1), x.amax(-1), x.var(-1)])
    return found, found.sort(-1).values


def shifted_products(a: Tensor, b: Tensor) -> Tensor:
    wide = F.pad(a, (1, 1))
    return torch.stack([(b * wide[..., d : d + b.shape[-1]]).mean(1) for d in range(3)], 1)


def beside_an_input(x: Tensor, y: Tensor) -> Tensor:
    """One part is copied, the other one is what a kernel makes."""
    return torch.cat([x.sin(), y.softmax(-1)], -1)


def rotations(q: Tensor) -> Tensor:
    """Nine results for each short row, which lie side by side."""
    w, x, y, z = F.normalize(q, dim=-1).unbind(-1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([value for row in rows for value in row], -1).reshape(-1, 3, 3)


def polynomials(x: Tensor) -> Tensor:
    """Results of half types for each point, one of which is a constant."""
    x = torch.tanh(x)
    terms = [torch.ones_like(x), x]
    for _ in range(4):
        terms.append(2 * x * terms[-1] - terms[-2])
    return torch.stack(terms, -1).bfloat16()


PROGRAMS: list[tuple[Function, list[Tensor], int]] = [
    (recurrence, [torch.randn(5, 3, 37), torch.randn(5, 3, 37), torch.randn(3, 37)], 1),
    (scan_of_states, [torch.randn(4, 19), torch.randn(19, 16), torch.randn(4, 19, 16)], 1),
    (norms_beside_each_other, [torch.randn(65, 40), torch.randn(65, 72)], 2),
    (statistics, [torch.randn(33, 50)], 2),
    (shifted_products, [torch.randn(2, 8, 3, 20), torch.randn(2, 8, 3, 20)], 1),
    (rotations, [torch.randn(1000, 4)], 1),
    (polynomials, [torch.randn(1 << 18)], 1),
    (beside_an_input, [torch.randn(128, 96), torch.randn(128, 4000)], 2),
]
every_program = pytest.mark.parametrize(
    ("function", "inputs", "kernels"), PROGRAMS, ids=[program[0].__name__ for program in PROGRAMS]
)


def flat(results: Any) -> list[Tensor]:
    return list(results) if isinstance(results, tuple | list) else [results]


@every_program
def test_parts_are_written_by_the_kernels_that_make_them(
    function: Function, inputs: list[Tensor], kernels: int
) -> None:
    compilation = compile_program(function, *inputs)
    # Nor computed for each element of the result, which what costs little may be.
    apart = compile_program(function, *inputs, disable=["parts", "inline"])
    assert sum(kernel_count(compilation)) == kernels
    assert sum(kernel_count(apart)) >= kernels
    assert bytes_moved(compilation) < bytes_moved(apart)
    expected = flat(function(*(one.double() for one in inputs)))
    for results in (build(compilation).executable.call(list(inputs)), call_interpreted(compilation, inputs)):
        for result, right in zip(results, expected, strict=True):
            assert result.shape == right.shape
            assert relative_error(result, right) < (1e-5 if result.dtype == torch.float32 else 1e-2)


def test_what_a_part_is_made_from_is_of_the_kernel_that_makes_it() -> None:
    def sines_beside_softmax(x: Tensor, weight: Tensor, y: Tensor) -> Tensor:
        return torch.cat([(x @ weight).t()[3:].clone().sin(), y.softmax(1)])

    inputs = torch.randn(32, 32), torch.randn(32, 32), torch.randn(64, 32)
    compilation = compile_program(sines_beside_softmax, *inputs)
    sines, softmax = (unit for unit in compilation.schedule.units if isinstance(unit, Group))
    assert {member.name for member in sines.members} == {"clone", "sin", "cat_part_0"}
    assert not {"clone", "sin"}.intersection(member.name for member in softmax.members)


def test_results_of_a_point_that_lie_side_by_side_are_stored_together() -> None:
    for function, inputs in ((rotations, [torch.randn(1 << 16, 4)]), (polynomials, [torch.randn(1 << 18)])):
        (kernel,) = compile_program(function, *inputs).triton.values()
        assert kernel.source.count("tl.store(") == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_parts_that_move_one_small_element_at_a_time_are_expected_to_take_longer(dtype: torch.dtype) -> None:
    """The gradient of padded logits is such a matrix: rows of whole vectors of sixteen bytes, of which all but the last
    few elements need what another kernel makes. By loops of 4025 columns neighbours do not begin where vectors do."""

    def expected_us(padding: int) -> float:
        def padded_rows(shift: Tensor, wide: Tensor) -> tuple[Tensor, Tensor]:
            scale = torch.tanh(shift)
            return F.pad(wide[:, :-padding] * scale[:, None], (0, padding)), scale

        compilation = compile_program(padded_rows, torch.randn(1024, dtype=dtype), torch.randn(1024, 4032, dtype=dtype))
        (refusal,) = (one.verdict for one in compilation.schedule.decisions if one.reason == "profit.parts")
        assert isinstance(refusal, Refuse)
        return float(refusal.numbers["fused_us"])

    odd, even = expected_us(7), expected_us(8)
    assert odd > even + 2 if dtype == torch.bfloat16 else odd == pytest.approx(even, rel=0.01)


def average(x: Tensor) -> Tensor:
    """Steps of an input, each with what came before."""
    state, seen = x[0], [x[0]]
    for step in range(1, 4):
        state = 0.9 * state + 0.1 * x[step]
        seen.append(state)
    return torch.stack(seen)


def rotation_of_a_third(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Parts of 16, 16 and 64 columns: six of 16."""
    first, second, rest = x.split((16, 16, 64), -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), -1)


def boxes(distances: Tensor, centres: Tensor) -> Tensor:
    """Parts of two columns, which lie side by side: four of one."""
    before, after = distances.sigmoid().chunk(2, -1)
    low, high = centres - before, centres + after
    return torch.cat(((low + high) / 2, high - low), -1)


EQUAL_PARTS: list[tuple[Function, list[Tensor], int, int]] = [
    (average, [torch.randn(4, 1 << 16)], 4, 4),
    (rotation_of_a_third, [torch.randn(4096, 96), torch.randn(4096, 16), torch.randn(4096, 16)], 8, 6),
    (boxes, [torch.randn(1 << 18, 4), torch.randn(1 << 18, 2)], 6, 1),
]


@pytest.mark.parametrize(
    ("function", "inputs", "loads", "stores"), EQUAL_PARTS, ids=[program[0].__name__ for program in EQUAL_PARTS]
)
def test_equal_parts_of_one_tensor_load_each_element_once(
    function: Function, inputs: list[Tensor], loads: int, stores: int
) -> None:
    compilation = compile_program(function, *inputs)
    (kernel,) = compilation.triton.values()
    assert (kernel.source.count("tl.load("), kernel.source.count("tl.store(")) == (loads, stores)
    expected = function(*(one.double() for one in inputs))
    for (result,) in (build(compilation).executable.call(list(inputs)), call_interpreted(compilation, inputs)):
        assert relative_error(result, expected) < 1e-5


def test_what_shares_no_tensor_is_not_parted() -> None:
    """One after another, as they lie: each element of the result takes one load of one of them already."""
    a, b = torch.randn(1 << 16), torch.randn(1 << 16)
    (kernel,) = compile_program(lambda a, b: torch.stack((a, b)), a, b).triton.values()
    assert kernel.source.count("tl.store(") == 1


def test_the_units_after_a_fusion_of_equal_parts_are_known() -> None:
    """The parts are one kernel that no fusion made; the next fusion takes it."""

    def gradients_of_a_gate(h: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = h.chunk(2, -1)
        share = torch.sigmoid(gate)
        of_gate = gradient * up * share * (1 + gate * (1 - share))
        return torch.cat([of_gate, gradient * gate * share], -1), gate * share * up

    schedule = compile_program(gradients_of_a_gate, torch.randn(4096, 64), torch.randn(4096, 32)).schedule
    (whole,) = schedule.units
    (last,) = units_after(schedule, max(place for place, one in enumerate(schedule.decisions) if is_merge(one)))
    assert isinstance(whole, Group) and isinstance(last, Group)
    assert last.stored == whole.stored and last.names == whole.names
