"""Any two nodes of a graph have an answer: the decision on them, or why there was none."""

from __future__ import annotations

import pytest

from compiler import report as rep
from compiler.decisions import REASONS
from compiler.options import Options, StageName
from compiler.pipeline import explore
from compiler.rounds import every_unit
from compiler.schedule.describe import decisions as describe_decisions
from compiler.why import UnknownNode, why

HEAD = "import torch\nx, w = torch.randn(64, 32).double(), torch.randn(32, 32).double()\n@torch.compile\ndef f(x, w):\n"
PROGRAM = """
    y = torch.relu(x @ w)
    s = y.sum(1)
    back = s * torch.flip(s, (0,))
    dead = torch.cos(w)
    return back, torch.tanh(w), torch.exp(y).t(), torch.softmax(y, -1)
f(x, w)
"""


def explored(source: str) -> rep.Report:
    stages: tuple[StageName, ...] = ("capture", "lower", "schedule", "codegen")
    report = explore(source, Options(device="cpu", target="sm_90", produce=stages, knobs={"disable": ["batch"]}))
    assert report.error is None
    return report


@pytest.fixture(scope="module")
def report() -> rep.Report:
    return explored(HEAD + PROGRAM)


@pytest.mark.parametrize(
    ("a", "b", "verdict", "reason"),
    [
        ("mm", "relu", "refused", "kind.extern"),
        ("sum_1", "mul", "refused", "index.reversed"),
        ("mul", "sum_1", "refused", "index.reversed"),
        ("tanh", "mul", "never considered", "policy.nothing_shared"),
        ("relu", "relu", "fused", "fused.one_node"),
        ("amax", "div", "fused", None),
        ("relu", "sum_1", "fused", None),
        ("mul", "sum", "refused", "index.reversed"),
        ("w", "mul", "never considered", "policy.no_loop"),
    ],
)
def test_any_two_nodes_have_an_answer(report: rep.Report, a: str, b: str, verdict: str, reason: str | None) -> None:
    answers = why(report, a, b)
    assert answers[0].verdict == verdict
    assert reason is None or answers[0].reason == reason
    assert all(answer.reason in REASONS and answer.message for answer in answers)


def test_every_pair_of_loops_has_one_answer(report: rep.Report) -> None:
    names = [loop.name for loop in report.graphs[0].loops]
    kernel_of = {node: kernel.name for kernel in report.graphs[0].kernels for node in kernel.nodes}
    for a in names:
        for b in names:
            (answer,) = why(report, a, b)
            assert (answer.a, answer.b) == (a, b) and answer.reason in REASONS
            is_together = a in kernel_of and kernel_of[a] == kernel_of.get(b)
            assert (answer.verdict == "fused") == is_together


APART = """
    d = torch.sin(x) * torch.cos(x) + torch.tanh(x)
    t = d.t()
    s = torch.exp(-t) + torch.sigmoid(t) * torch.relu(t)
    return d.cumsum(0), s.argmax(0), d.argmax(1), s.flip(0).cumsum(1)
f(x, w)
"""


@pytest.fixture(scope="module")
def apart() -> rep.Graph:
    """Kernels of several nodes each, of which many pairs were refused."""
    (graph,) = explored(HEAD + APART).graphs
    assert len(graph.kernels) > 2
    return graph


def test_each_two_kernels_have_one_row_with_every_refused_pair_of_their_nodes(apart: rep.Graph) -> None:
    home = {node: place for place, kernel in enumerate(apart.kernels) for node in kernel.nodes}
    refused: dict[tuple[int, ...], set[frozenset[str]]] = {}
    for decision in apart.decisions:
        kernels = tuple(sorted({home[decision.a], home[decision.b]}))
        if decision.verdict == "refused" and len(kernels) == 2:
            refused.setdefault(kernels, set()).add(frozenset((decision.a, decision.b)))
    told = {refusal.kernels: [apart.decisions[number] for number in refusal.decisions] for refusal in apart.refusals}
    assert {pair: {frozenset((one.a, one.b)) for one in decisions} for pair, decisions in told.items()} == refused
    assert all(len(decisions) == len(refused[pair]) for pair, decisions in told.items())
    assert max(map(len, told.values())) > 4
    assert [refusal.bytes for refusal in apart.refusals] == sorted((r.bytes for r in apart.refusals), reverse=True)


def test_what_decided_of_two_kernels_is_about_the_whole_of_both(apart: rep.Graph) -> None:
    units = every_unit(apart)
    for refusal in apart.refusals:
        decided = apart.decisions[refusal.decisions[0]]
        wholes = {frozenset(apart.kernels[place].nodes) for place in refusal.kernels}
        assert {frozenset(units[side.unit]) for side in decided.sides} == wholes
        assert decided.reason not in ("policy.outscored", "profit.recompute")


def test_a_kernel_that_is_said_to_come_between_two_does() -> None:
    """Also where one of them reads less than it did, since it computes a value again."""
    large = HEAD.replace("torch.randn(64, 32).double()", "torch.randn(1024, 768)")
    (graph,) = explored(large + APART).graphs
    assert any(decision.reason == "fused.recompute" for decision in graph.decisions)
    waits = [
        {place for place, one in enumerate(graph.kernels) if {*one.writes} & {*two.reads}} for two in graph.kernels
    ]
    for _ in graph.kernels:
        waits = [found.union(*(waits[place] for place in found)) for found in waits]
    for refusal in graph.refusals:
        first, second = refusal.kernels
        between = {place for place in waits[second] if first in waits[place]}
        if graph.decisions[refusal.decisions[0]].reason == "dependency.intermediate":
            assert between, (first, second)


def test_of_two_kernels_the_answer_that_decided_comes_first(apart: rep.Graph) -> None:
    report = rep.Report(source="", graphs=[apart])
    for refusal in apart.refusals:
        decided = apart.decisions[refusal.decisions[0]]
        one, two = refusal.kernels
        for names in ((f"K{one + 1}", f"K{two + 1}"), (apart.kernels[two].name, apart.kernels[one].name)):
            answer = why(report, *names)[0]
            assert {answer.a, answer.b} == {decided.a, decided.b}
            assert (answer.verdict, answer.reason, answer.message) == ("refused", decided.reason, decided.message)


def test_the_chain_of_fusions_ends_where_the_two_meet(report: rep.Report) -> None:
    (answer,) = why(report, "amax", "div")
    chain = answer.decisions
    assert chain and all(decision.verdict == "fused" for decision in chain)
    assert [decision.makes for decision in chain] == sorted(decision.makes or 0 for decision in chain)
    assert answer.kernels == [kernel.name for kernel in report.graphs[0].kernels if "amax" in kernel.nodes]


def test_a_refusal_names_what_would_have_to_change(report: rep.Report) -> None:
    (answer,) = why(report, "sum_1", "mul")
    assert answer.would_fuse_if == "`mul` read `sum_1` forwards, at x0 instead of -x0 + 63"
    assert answer.lines == [7, 8]


def test_a_kernel_stands_for_its_nodes(report: rep.Report) -> None:
    kernel = next(kernel for kernel in report.graphs[0].kernels if kernel.nodes == ["mul"])
    assert {(answer.a, answer.reason) for answer in why(report, kernel.name, "sum_1")} == {("mul", "index.reversed")}


def test_an_unknown_name_has_its_nearest(report: rep.Report) -> None:
    with pytest.raises(UnknownNode, match=r"The nearest are .*sum_1") as unknown:
        why(report, "sum_11", "mul")
    assert unknown.value.name == "sum_11" and "sum_1" in unknown.value.nearest
    assert str(UnknownNode("amx", ["amax"])).endswith(" The nearest is amax.")


def test_nodes_of_two_graphs_are_told_apart() -> None:
    source = HEAD + "    y = torch.sin(x)\n    print('stop')\n    return torch.cos(y @ w)\nf(x, w)\n"
    report = explored(source)
    (answer,) = why(report, "sin", "cos")
    assert (answer.verdict, answer.reason) == ("never considered", "policy.other_graph")


def test_of_many_readers_of_one_tensor_only_the_nearest_are_asked() -> None:
    sums = [f"x[:{n}].sum()" for n in range(2, 40)]
    report = explored(HEAD + f"    return {', '.join(sums)}\nf(x, w)\n")
    names = [loop.name for loop in report.graphs[0].loops]
    (near,), (far,) = why(report, names[0], names[1]), why(report, names[0], names[-1])
    assert (near.verdict, near.reason) == ("refused", "shape.numel")
    assert (far.verdict, far.reason) == ("never considered", "policy.far_apart")
    assert "x has 38 readers" in far.message


def test_a_pair_that_is_told_in_figures_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_decisions, "MOST_DECISIONS", 2)
    report = explored(HEAD + PROGRAM)
    assert report.graphs[0].more_decisions
    for a, b, reason in (("mm", "relu", "kind.extern"), ("sum_1", "mul", "index.reversed")):
        (answer,) = why(report, a, b)
        assert (answer.verdict, answer.reason) == ("refused", reason)
    (answer,) = why(report, "amax", "div")
    assert answer.verdict == "fused" and answer.decisions


def test_what_leads_to_a_part_of_a_concatenation_is_in_the_kernel_of_that_part() -> None:
    """The scheduler knew it by the whole, which was fused with the softmax as its last part."""
    report = explored("""import torch
@torch.compile
def f(x, weight, y):
    return torch.cat([(x @ weight).t()[3:].clone().sin(), y.softmax(1)])
f(torch.randn(32, 32), torch.randn(32, 32), torch.randn(64, 32))
""")
    (kernel,) = [kernel for kernel in report.graphs[0].kernels if "sin" in kernel.nodes]
    (apart,) = why(report, "sin", "amax")
    assert apart.verdict == "refused" and apart.reason == "shape.numel"
    (together,) = why(report, "sin", "cat_part_0")
    assert together.verdict == "fused" and together.kernels == [kernel.name]
    inline = "sin is computed inside cat_part_0 at each point that reads it; sin never reaches memory"
    assert together.message == f"sin and cat_part_0 are in the same kernel: {inline}"


def test_parts_that_one_kernel_was_made_to_write_say_so() -> None:
    """No fusion brought them together: the chain was empty, or ended with a fusion that is about neither."""
    report = explored("""import torch
@torch.compile
def f(x, y):
    return torch.stack([x + y, x - y, x * y], -1)
f(torch.randn(64, 32), torch.randn(64, 32))
""")
    told = "are in the same kernel: it was made to write several parts of stack, each at its place"
    for a, b in (("stack_part_0", "stack_part_1"), ("sub", "stack_part_0")):
        (answer,) = why(report, a, b)
        assert (answer.reason, answer.message) == ("fused.parts", f"{a} and {b} {told}")
    (answer,) = why(report, "add", "stack")
    assert answer.reason == "fused.inline" and answer.message.endswith("add never reaches memory")
