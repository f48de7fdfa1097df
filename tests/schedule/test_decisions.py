"""Every pair that the scheduler asks about leaves a record, and the records alone tell how it got to its kernels."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch

from compiler import report as rep
from compiler.compile import Generated, build
from compiler.decisions import REASONS, Refuse
from compiler.devices import device_for
from compiler.ir.body import trace
from compiler.ir.index import Dim, Index
from compiler.ir.nodes import GraphOutput, Layout, LoopGraph, LoopNode
from compiler.ir.ops import ops
from compiler.options import Options
from compiler.present import present_kernels, present_schedule
from compiler.rounds import every_unit, units_after
from compiler.runtime.checking.verify import relative_error
from compiler.schedule import search
from compiler.schedule.describe import decisions as describe_decisions
from compiler.schedule.records.alike import not_asked
from compiler.schedule.rules import Fuse
from compiler.schedule.scheduler import schedule
from tests.compile_program import compile_program


def softmax_and_more(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    hidden = torch.relu(x @ weight)
    chances = torch.softmax(hidden, -1)
    return chances * 2 + hidden.t().contiguous().sum(0)[:, None], torch.flip(chances, (0,)) * chances


def reversed_read(x: torch.Tensor) -> torch.Tensor:
    y = x.sum(1)
    return y * torch.flip(y, (0,))


def looked_up(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return torch.zeros(64, 32).index_add(0, rows, x * 2)[rows] + 1


def statistics(x: torch.Tensor) -> torch.Tensor:
    """The parts of a stack, and what is added to them."""
    return torch.stack([x.mean(-1), x.amax(-1)]) + x[:2, 0, None]


def parts_of_parts(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """One kernel writes all parts of the first concatenation, which no fusion of two parts made."""
    whole = torch.cat([x + 1, y.sin(), x * y], 1)
    left, _, right = whole.chunk(3, 1)
    shifted = torch.cat([left.exp(), whole[:, 16:80]], 1)
    return whole, shifted.sum(1), right.softmax(-1), torch.stack([left, right], -1).view(32, -1)


PROGRAMS: list[tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = [
    (softmax_and_more, (torch.randn(32, 16), torch.randn(16, 32))),
    (reversed_read, (torch.randn(64, 32),)),
    (looked_up, (torch.randn(48, 32), torch.randint(0, 64, (48,)))),
    (statistics, (torch.randn(64, 32),)),
    (parts_of_parts, (torch.randn(32, 32), torch.randn(32, 32))),
]
every_program = pytest.mark.parametrize(
    ("function", "inputs"), PROGRAMS, ids=lambda value: getattr(value, "__name__", "")
)


def presented(compilation: Generated) -> rep.Graph:
    graph = rep.Graph(name="g")
    present_schedule(compilation, graph)
    graph.kernels = present_kernels(compilation)
    return graph


@every_program
def test_rounds_replayed_end_in_the_kernels(function: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> None:
    graph = presented(compile_program(function, *inputs))
    last = units_after(graph)
    assert {frozenset(nodes) for nodes in last.values()} == {frozenset(kernel.nodes) for kernel in graph.kernels}
    assert len(units_after(graph, 0)) == sum(not loop.dead for loop in graph.loops)
    for step in graph.rounds:
        assert len(units_after(graph, step.number)) == step.units
    assert sum(step.refused for step in graph.rounds) == sum(d.verdict == "refused" for d in graph.decisions)
    units = every_unit(graph)
    for decision in graph.decisions:
        for node, side in zip((decision.a, decision.b), decision.sides, strict=True):
            assert node in units[side.unit]


@every_program
def test_what_must_run_between_two_is_a_node_of_neither(
    function: Callable[..., Any], inputs: tuple[torch.Tensor, ...]
) -> None:
    graph = presented(compile_program(function, *inputs))
    nodes, units = {loop.name for loop in graph.loops}, every_unit(graph)
    for decision in graph.decisions:
        if decision.reason == "dependency.intermediate":
            between = decision.numbers["between"]
            assert between in nodes and decision.message.startswith(f"{between} must run")
            assert not any(between in units[side.unit] for side in decision.sides)


def refusals_without_a_record(
    function: Callable[..., Any], inputs: tuple[torch.Tensor, ...], monkeypatch: pytest.MonkeyPatch
) -> list[Refuse]:
    """What the rules refused while the program was scheduled, as far as no decision tells of it."""
    refusals: list[Refuse] = []

    def remembered(ask: Callable[..., Any]) -> Callable[..., Any]:
        def remembering(*arguments: Any) -> Any:
            answer = ask(*arguments)
            if isinstance(answer, Refuse):
                refusals.append(answer)
            return answer

        return remembering

    for module, name in ASKED:
        monkeypatch.setattr(module, name, remembered(getattr(module, name)))
    made = compile_program(function, *inputs).schedule
    assert made is not None and refusals
    recorded = {id(decision.verdict) for decision in made.decisions}
    return [refusal for refusal in refusals if id(refusal) not in recorded]


#: Every question that is put to the rules, where it is put.
batches = import_module("compiler.schedule.rules.batch")
ASKED = ((search, "can_fuse"), (search, "third_between"), (search, "recompute_in_readers"), (batches, "batch"))


@every_program
def test_every_answer_of_the_rules_leaves_a_record(
    function: Callable[..., Any], inputs: tuple[torch.Tensor, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not refusals_without_a_record(function, inputs, monkeypatch)


@every_program
def test_a_lost_record_would_be_found(
    function: Callable[..., Any], inputs: tuple[torch.Tensor, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above can fail: it does where the search keeps its fusions alone."""
    record = search.Search.record

    def fusions_alone(self: search.Search, a: int, b: int, verdict: Fuse | Refuse, about: str | None = None) -> None:
        if isinstance(verdict, Fuse):
            record(self, a, b, verdict, about)

    monkeypatch.setattr(search.Search, "record", fusions_alone)
    assert refusals_without_a_record(function, inputs, monkeypatch)


@every_program
def test_a_record_has_both_sides(function: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> None:
    graph = presented(compile_program(function, *inputs))
    units = every_unit(graph)
    for decision in graph.decisions:
        one, two = decision.sides
        assert decision.a in units[one.unit] and decision.b in units[two.unit]
        assert decision.reason in REASONS and decision.message
        assert decision.shared is None or decision.shared_bytes is not None
        if decision.verdict == "fused":
            assert decision.score is not None
        if decision.makes is not None:
            assert set(units[decision.makes]) == {*units[one.unit], *units[two.unit]}


def test_a_reversed_read_shows_both_formulas_and_marks_what_differs() -> None:
    (decision,) = presented(compile_program(reversed_read, torch.randn(64, 32))).decisions
    one, two = decision.sides
    assert (one.does, two.does, decision.same_loops) == ("writes", "reads", True)
    assert [(term.text, term.differs) for term in one.index] == [("x0", True)]
    assert [(term.text, term.differs) for term in two.index] == [("-x0", True), (" + 63", True)]
    assert (decision.shared, decision.shared_bytes) == ("sum_1", 64 * 4)


def test_a_long_list_of_decisions_keeps_every_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    function, inputs = PROGRAMS[0]
    compilation = compile_program(function, *inputs)
    whole = presented(compilation)
    monkeypatch.setattr(describe_decisions, "MOST_DECISIONS", 4)
    short = presented(compilation)
    assert len(short.decisions) <= 4 and len(whole.decisions) == len(short.decisions) + len(short.more_decisions)
    reasons = sorted([d.reason for d in short.decisions] + [reason for *_, reason in short.more_decisions])
    assert reasons == sorted(decision.reason for decision in whole.decisions)
    assert units_after(short) == units_after(whole)


def shifted_in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.sum(1)
    y[1:] = y[1:] + y[:-1]
    return y


def two_scatters(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return torch.zeros(10, 32, dtype=x.dtype).index_add(0, rows, x).index_add(0, rows, x * 2)


@pytest.mark.parametrize(
    ("function", "inputs", "expected"),
    [
        (shifted_in_place, (torch.randn(64, 32),), {("sum_1", "slice_scatter", "index.shifted")}),
        (
            two_scatters,
            (torch.randn(64, 32), torch.randint(0, 10, (64,))),
            {
                ("index_put_start", "index_put", "dependency.mutation"),
                ("index_put", "index_put_1_start", "dependency.scatter"),
                ("index_put_1_start", "index_put_1", "dependency.mutation"),
            },
        ),
    ],
)
def test_memory_that_changes_in_place_keeps_its_order(
    function: Callable[..., Any], inputs: tuple[torch.Tensor, ...], expected: set[tuple[str, str, str]]
) -> None:
    compilation = compile_program(function, *inputs)
    decisions = presented(compilation).decisions
    assert {(d.a, d.b, d.reason) for d in decisions if d.verdict == "refused"} >= expected
    (result,) = build(compilation).executable.call([tensor.clone() for tensor in inputs])
    assert relative_error(result, function(*(t.double() if t.is_floating_point() else t for t in inputs))) < 1e-5


def turned_round(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    both = torch.cat([x.sin(), y * 2], 1)
    return both, torch.roll(both, 3, 1) + both


def test_rows_that_are_turned_round_are_not_called_transposed() -> None:
    decisions = presented(compile_program(turned_round, torch.randn(64, 32), torch.randn(64, 16))).decisions
    reasons = {d.reason for d in decisions if d.a == "cat" and d.verdict == "refused"}
    assert "index.different_positions" in reasons and "index.transposed" not in reasons


def both_ways(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.relu()
    return y.view(-1, 16).amax(1), y.mean(0)


def test_a_node_beside_a_reduction_is_not_said_to_reduce() -> None:
    """It runs in the loops of the reduction that it was fused with."""
    decisions = presented(compile_program(both_ways, torch.randn(64, 64))).decisions
    messages = {d.message for d in decisions if d.reason == "shape.reduction_axes" and d.a == "relu"}
    assert messages == {
        "the loops of relu reduce over [x0 < 256 | r0 < 16], those of mean over [x0 < 64 | r0 < 64]: the reduced axes "
        "differ"
    }


def many_alike(count: int) -> LoopGraph:
    """Nodes over the same loops, each of which reads and makes a tensor of its own: too large to share launches for."""
    graph = LoopGraph()
    for number in range(count):
        one, layout = f"n{number}", Layout((1 << 20,), (1,), torch.float32)
        dim = Dim("x0", 1 << 20)

        def body(one: str = one, dim: Dim = dim) -> None:
            ops.store(one, Index.of(dim), ops.load(f"in_{one}", Index.of(dim), torch.float32))

        graph.nodes.append(LoopNode(one, layout, (dim,), (), trace(body)))
        graph.buffers |= {one: layout, f"in_{one}": layout}
        graph.inputs.append(f"in_{one}")
        graph.outputs.append(GraphOutput(one, layout))
    return graph


def test_pairs_over_the_same_loops_are_asked_about_with_the_nearest_and_the_others_counted() -> None:
    count = 60
    made = schedule(many_alike(count), device_for("sm_90"), Options())
    kernels = len(made.units)
    # Sixteen share a launch; the launches cannot share one more, and each pair of them has its record.
    assert kernels == 4
    assert not_asked(made.units, made.decisions) == 0
    apart = schedule(many_alike(count), device_for("sm_90"), Options(knobs={"disable": ["batch"]}))
    assert len(apart.units) == count
    told = {frozenset((d.one.name, d.two.name)) for d in apart.decisions}
    assert len(told) == len(apart.decisions) == sum(min(number, 8) for number in range(count))
    assert {d.reason for d in apart.decisions} == {"policy.disabled"}
    assert not_asked(apart.units, apart.decisions) == count * (count - 1) // 2 - len(told)


@every_program
def test_every_refusal_has_a_score(function: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> None:
    graph = presented(compile_program(function, *inputs))
    size = {buffer.name: buffer.bytes for buffer in graph.buffers}
    for decision in graph.decisions:
        score = decision.score
        assert score is not None and score.distance >= 0
        if all(side.space for side in decision.sides):
            assert score.unfused_us is not None and score.unfused_us > 0
        if score.fused_us is None and decision.shared is not None:
            # The most that could be saved is a read of what both touch, or a write and a read of what one makes.
            assert 0 < score.bytes_saved <= 2 * sum(size.values())


def test_what_one_kernel_could_save_is_counted_by_hand() -> None:
    """`y` is made by the one and read by the other alone: neither written nor read would save twice its 64 floats."""
    (decision,) = presented(compile_program(reversed_read, torch.randn(64, 32))).decisions
    assert decision.score is not None
    assert (decision.score.bytes_saved, decision.score.fused_us, decision.score.distance) == (2 * 64 * 4, None, 1)


def test_what_is_passed_over_is_told_only_where_the_two_end_apart() -> None:
    def program(x: torch.Tensor) -> Any:
        return torch.log_softmax(x, 0), torch.log_softmax(x, 1)

    compilation = compile_program(program, torch.randn(2048, 1024))
    graph = presented(compilation)
    kernel_of = {node: kernel.name for kernel in graph.kernels for node in kernel.nodes}
    units = every_unit(graph)
    passed = [decision for decision in graph.decisions if decision.reason == "policy.outscored"]
    assert passed
    for decision in passed:
        one, two = (units[side.unit] for side in decision.sides)
        assert kernel_of[one[0]] != kernel_of[two[0]]
        assert decision.score is not None and decision.score.fused_us is not None
        assert decision.score.unfused_us is not None and decision.score.fused_us < decision.score.unfused_us
