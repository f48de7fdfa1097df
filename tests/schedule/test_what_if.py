"""Fusions that are forced or forbidden, rules turned off, another limit or device: what was asked for is done, or
refused with the reason, and results stay right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from compiler import report as rep
from compiler.compile import Built, observed_compilations
from compiler.devices import GPUS, device_for
from compiler.options import DEVICE_MODELS, INPUT_DTYPES, RULES, TARGETS, Options, StageName
from compiler.pipeline import explore
from compiler.schedule.rules import Fuse
from compiler.what_if import outcomes
from compiler.why import why

HEAD = "import torch\n@torch.compile\n"
PROGRAM = """
def f(x, w):
    y = torch.relu(x @ w)
    s = y.sum(1)
    back = s * torch.flip(s, (0,))
    return back, torch.tanh(w), torch.exp(y).t(), torch.softmax(y, -1)
f(torch.randn(64, 32).double(), torch.randn(32, 32).double())
"""
TO_KERNELS: tuple[StageName, ...] = ("capture", "lower", "schedule", "codegen")
TO_RESULTS: tuple[StageName, ...] = (*TO_KERNELS, "run")


def explored(source: str, produce: tuple[StageName, ...] = TO_KERNELS, **options: Any) -> rep.Report:
    report = explore(HEAD + source, Options(device="cpu", target="sm_90", produce=produce, **options))
    assert report.error is None, report.error
    return report


def kernels_of(report: rep.Report) -> list[set[str]]:
    return [set(kernel.nodes) for graph in report.graphs for kernel in graph.kernels]


def are_together(report: rep.Report, a: str, b: str) -> bool:
    return any({a, b} <= nodes for nodes in kernels_of(report))


def is_right(report: rep.Report) -> bool:
    """Whether the results are as near to float64 as eager's, but for rounding."""
    eager, ours = report.summary.eager_error, report.summary.compiled_error
    return eager is not None and ours is not None and ours <= max(2 * eager, 1e-5)


@pytest.fixture(scope="module")
def plain() -> rep.Report:
    return explored(PROGRAM)


def test_a_forbidden_pair_stays_apart_and_says_why(plain: rep.Report) -> None:
    assert are_together(plain, "relu", "sum_1")
    report = explored(PROGRAM, TO_RESULTS, forbid=[("relu", "sum_1")])
    assert not are_together(report, "relu", "sum_1")
    assert is_right(report)
    (told,) = report.what_if
    assert (told.option, told.outcome, told.reason) == ("forbid", "done", "policy.forbidden")
    (answer,) = why(report, "relu", "sum_1")
    assert (answer.verdict, answer.reason) == ("refused", "policy.forbidden")
    # What fusing was expected to bring is in the record.
    refusals = [d for d in report.graphs[0].decisions if d.reason == "policy.forbidden"]
    scores = [(d.score.fused_us, d.score.unfused_us) for d in refusals if d.score is not None]
    assert any(fused is not None and apart is not None and fused < apart for fused, apart in scores)
    assert any(refusal.would_fuse_if for refusal in refusals)


def test_a_forbidden_value_is_not_computed_again_either() -> None:
    source = "def f(x):\n    y = torch.softmax(x, -1)\n    return y * torch.flip(y, (0,))\nf(torch.randn(64, 32))\n"
    assert "fused.recompute" in {d.reason for d in explored(source).graphs[0].decisions}
    report = explored(source, TO_RESULTS, forbid=[("exp", "mul")])
    reader = next(kernel for kernel in report.graphs[0].kernels if "mul" in kernel.nodes)
    assert "exp" in reader.reads and is_right(report)
    assert report.what_if[0].outcome == "done"


def test_a_value_does_not_come_to_a_forbidden_kernel_by_one_that_computes_it_again() -> None:
    """Chances of the transposed product are picked in a kernel that would compute the product again, and that joins the
    kernel of the transposed copy later."""
    source = """
def f(a, b, t):
    mul = a @ b.t() * t.exp()
    rows = torch.arange(24)
    return torch.nn.functional.cross_entropy(mul, rows) + torch.nn.functional.cross_entropy(mul.t(), rows)
f(torch.randn(24, 16, requires_grad=True), torch.randn(24, 16), torch.tensor(0.5, requires_grad=True)).backward()
"""
    report = explored(source, TO_RESULTS, device_model="H200", forbid=[("mul", "clone")])
    assert report.what_if[0].outcome == "done" and is_right(report)
    for kernel in report.graphs[0].kernels:
        assert not {"mul", "clone"} <= {*kernel.nodes, *kernel.computes_again}


def test_forbidding_what_would_not_be_fused_has_no_effect_and_says_so(plain: rep.Report) -> None:
    report = explored(PROGRAM, forbid=[("sum_1", "mul")])
    assert kernels_of(report) == kernels_of(plain)
    (told,) = report.what_if
    assert (told.outcome, told.reason) == ("no effect", "index.reversed")


def many_sines(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """The model expects that the sines are better computed once for each row than for each element of z."""
    y = x
    for _ in range(24):
        y = torch.sin(y)
    return y[:, None] * z


def sums_of_columns(x: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The model expects that the sums are slower beside another kernel, where no programs share a column."""
    return z.sum(0), x.sin()


@pytest.mark.parametrize(
    ("function", "shape", "pair"),
    [(many_sines, (256, 1024), ("sin", "mul")), (sums_of_columns, (4096, 48), ("sum_1", "sin"))],
)
def test_a_forced_fusion_skips_the_profit_test(
    function: Callable[..., Any], shape: tuple[int, int], pair: tuple[str, str]
) -> None:
    inputs = (torch.randn(256), torch.randn(shape))
    made: list[Built] = []
    with observed_compilations(made.append):
        for force in ([], [list(pair)]):
            torch._dynamo.reset()
            options: dict[str, Any] = {"device_model": "H200", "force": force}
            result = torch.compile(function, backend="fusionscope", options=options)(*inputs)
            torch.testing.assert_close(result, function(*inputs), atol=1e-4, rtol=1e-5)
    plain, forced = made
    assert [len(c.groups) for c in made] == [2, 1]
    assert "profit.slower" in {decision.reason for decision in plain.schedule.decisions}
    fusions = [d.verdict for d in forced.schedule.decisions if isinstance(d.verdict, Fuse)]
    assert any(fusion.numbers.get("is_forced") and fusion.score.benefit_us < 0 for fusion in fusions)


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (("sum_1", "mul"), "index.reversed"),
        (("mul", "sum_1"), "index.reversed"),
        (("mm", "relu"), "kind.extern"),
        (("amax", "mul"), None),
        (("w", "mul"), "policy.no_loop"),
    ],
)
def test_an_illegal_force_is_refused_with_its_reason(pair: tuple[str, str], reason: str | None) -> None:
    report = explored(PROGRAM, force=[pair])
    (told,) = report.what_if
    assert told.outcome == "refused" and told.message
    assert reason is None or told.reason == reason
    if told.reason and not told.reason.startswith("policy"):
        assert told.reason in {d.reason for d in report.graphs[0].decisions if d.verdict == "refused"}


def test_nodes_that_share_nothing_are_forced_into_one_launch(plain: rep.Report) -> None:
    assert not are_together(plain, "relu", "tanh")
    report = explored(PROGRAM, TO_RESULTS, force=[("relu", "tanh")])
    assert are_together(report, "relu", "tanh") and is_right(report)
    assert report.what_if[0].reason == "fused.batch"


def test_a_force_of_what_is_fused_anyway_is_done(plain: rep.Report) -> None:
    report = explored(PROGRAM, force=[("relu", "sum_1")])
    assert report.what_if[0].outcome == "done"
    assert kernels_of(report) == kernels_of(plain)


def test_readers_that_stand_far_apart_are_forced_together() -> None:
    source = "def f(x):\n    return [x + n for n in range(1, 40)]\nf(torch.randn(64, 32))\n"
    options: dict[str, Any] = {"produce": TO_KERNELS[:3], "rules_off": ["batch"], "largest_group": 2}
    plain = explored(source, **options)
    first, last = plain.graphs[0].loops[0].name, plain.graphs[0].loops[-1].name
    assert why(plain, first, last)[0].verdict != "fused"
    report = explored(source, force=[(first, last)], **options)
    assert report.what_if[0].outcome == "done" and why(report, first, last)[0].verdict == "fused"


def test_a_kernel_and_a_node_of_either_graph_may_be_named(plain: rep.Report) -> None:
    kernel = next(kernel for kernel in plain.graphs[0].kernels if "sum_1" in kernel.nodes)
    report = explored(PROGRAM, forbid=[(kernel.name, "mul")], force=[(kernel.name, "tanh")])
    assert all(are_together(report, node, "tanh") for node in kernel.nodes)
    dynamo = next(node.name for node in plain.graphs[0].fx if node.lines == [6] and not node.dead)
    assert dynamo not in {loop.name for loop in plain.graphs[0].loops}
    report = explored(PROGRAM, forbid=[(dynamo, "exp")])
    assert report.what_if[0].outcome in ("done", "no effect")


def test_of_a_kernel_any_of_its_nodes_counts() -> None:
    source = "def f(x):\n    y = x\n" + "    y = torch.sin(y)\n" * 12 + "    return y.sum(1)\nf(torch.randn(64, 32))\n"
    report = explored(source, forbid=[("sin_11", "sum_1")])
    first = next(kernel for kernel in report.graphs[0].kernels if "sin" in kernel.nodes)
    assert len(first.nodes) == 12
    asked = Options(forbid=(("a kernel of another exploration", "sum_1"),))
    (told,) = outcomes(report, asked, [{"a kernel of another exploration": first.nodes}])
    assert (told.outcome, told.reason) == ("done", "policy.forbidden")


def test_a_program_that_fails_has_its_error_and_no_outcomes() -> None:
    source = "import torch\n@torch.compile\ndef f(x):\n    return x + y\nf(torch.randn(4))\n"
    report = explore(source, Options(device="cpu", produce=TO_KERNELS, force=(("a", "b"),)))
    assert report.error is not None and report.what_if == []


def test_an_unknown_name_has_the_names_that_there_are() -> None:
    report = explored(PROGRAM, force=[("relu_7", "sum_1")], forbid=[("?", "sum_1")])
    near, none = report.what_if
    assert near.outcome == none.outcome == "unknown name"
    assert "'relu_7'" in near.message and "The nearest are" in near.message and "relu" in near.message
    assert "There are the loops mm, relu, sum_1" in none.message


def test_rules_and_limits_are_told_with_what_they_refused(plain: rep.Report) -> None:
    report = explored(PROGRAM, TO_RESULTS, rules_off=["fused.vertical", "inline"], largest_group=2)
    vertical, inline, limit = report.what_if
    assert (vertical.asked, vertical.outcome) == (["vertical"], "done") and "might have fused" in vertical.message
    assert inline.asked == ["inline"]
    assert limit.reason == "policy.group_size" and max(map(len, kernels_of(report))) == 2
    assert is_right(report)


def test_another_device_decides_and_predicts(plain: rep.Report) -> None:
    report = explored(PROGRAM, device_model="t4")
    assert report.environment.decides_for == "T4" and report.environment.target == plain.environment.target
    one, two = (r.graphs[0].predicted_us for r in (plain, report))
    assert one is not None and two is not None and two > one


def test_every_device_model_is_known_by_its_name() -> None:
    named = [device_for(name) for name in DEVICE_MODELS]
    assert named[:-1] == list(GPUS) and named[-1].kind == "cpu"
    assert set(TARGETS) == {device.target for device in GPUS}


def test_every_dtype_of_an_input_is_one_of_torch() -> None:
    assert all(isinstance(getattr(torch, name), torch.dtype) for name in INPUT_DTYPES)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rules_off": ["vertcal"]}, "the rules are vertical, inline"),
        ({"device_model": "H900"}, "there are H200, H100"),
        ({"largest_group": 0}, "greater than or equal to 1"),
        ({"device": "tpu"}, "there are cpu and cuda"),
        ({"target": "sm_10"}, "there are sm_75, sm_80"),
        ({"inputs": [{"shape": [4], "dtype": "floot32"}]}, "none of float16, bfloat16"),
        ({"inputs": [{"shape": [4]}, {"shape": [-4]}]}, "input 1 has a size that is not from 0 up"),
        ({"inputs": [{"shape": [2**70]}]}, "input 0 has a size that is not from 0 up"),
        ({"inputs": [{"shape": [4], "high": 2**70}]}, "less than 9223372036854775808"),
        ({"seed": 2**64}, "less than 18446744073709551616"),
        ({"inputs": [{"shape": [4], "low": 5, "high": 5}]}, "must be below high, 5"),
        ({"force": [["a", "a"]]}, "a pair is two nodes"),
        ({"force": [["a", "b"]], "forbid": [["b", "a"]]}, "kept apart by `forbid`"),
        ({"force": [["a"]]}, "b|1|Field required"),
    ],
)
def test_an_option_that_cannot_be_meant_says_what_may_be_asked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Options.model_validate(options)


def test_every_rule_is_told_among_the_knobs() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "knobs.md").read_text()
    assert [rule for rule in RULES if f'`"{rule}"`' not in text] == []


def test_every_rule_can_be_turned_off() -> None:
    report = explored(PROGRAM, rules_off=RULES)
    assert all(len(nodes) == 1 for nodes in kernels_of(report))


def test_a_kernel_that_is_written_part_by_part_can_be_told_to_take_more() -> None:
    """The parts are one kernel from the start. What it takes later is joined to the unit that the whole was in."""
    source = """
def f(x, y):
    c = torch.cat([x + 1, y.sin(), x * y], 1)
    l, m, r = c.chunk(3, 1)
    q = torch.cat([l.exp(), c[:, 16:80]], 1)
    return c, q.sum(1), r.softmax(-1), torch.stack([l, r], -1).view(32, -1)
f(torch.randn(32, 32), torch.randn(32, 32))
"""
    report = explored(source, device_model="H200", force=[("stack", "cat_1")])
    assert report.what_if[0].outcome == "done" and are_together(report, "stack", "cat_1")
    assert any({"cat_part_0", "clone"} <= nodes for nodes in kernels_of(report))
    (answer,) = why(report, "mul", "clone")
    assert answer.verdict == "fused"


@pytest.mark.parametrize("part", ["cat", "cat_part_0"])
def test_what_is_forbidden_of_a_concatenation_is_told_as_it_would_be_without_the_option(part: str) -> None:
    """Without it one kernel writes the values and both parts. A part is named by the report alone."""
    source = "def f(x):\n    y = torch.relu(x)\n    return y, torch.cat([y, y], 0)\nf(torch.randn(4, 6))\n"
    plain = explored(source, device_model="H200")
    assert are_together(plain, "relu", part)
    report = explored(source, TO_RESULTS, device_model="H200", forbid=[("relu", part)])
    assert not are_together(report, "relu", "cat") and is_right(report)
    told = report.what_if[0]
    assert (told.outcome, told.reason) == ("done", "policy.forbidden")
    assert told.message == f"relu and {part} stay apart; without the option one kernel has both"


def test_a_part_is_told_of_by_its_own_kernel() -> None:
    """Parts of one whole are in two kernels: the last one waits for the sum of the others."""
    source = """
def f(x, y):
    h = torch.exp(x) + y
    a = torch.cat([h, h.flip(0), h[:, :8]], dim=1)
    b = torch.cat([torch.cos(h), a.sum(1, keepdim=True)], 1)
    return a.view(-1)[::2] + 1, b, h.t()
f(torch.randn(64, 64), torch.randn(64))
"""
    plain = explored(source, device_model="H200")
    assert are_together(plain, "add", "cat_1_part_0") and not are_together(plain, "add", "cat_1")
    told = explored(source, device_model="H200", forbid=[("add", "cat_1_part_0")]).what_if[0]
    assert (told.outcome, told.reason) == ("done", "policy.forbidden")


def test_no_part_of_a_concatenation_is_advised_to_be_forced() -> None:
    """A whole that is named is not written part by part, so the pair would not be there."""
    source = """
def f(xs, h, w):
    steps = []
    for x in xs:
        h = torch.sigmoid(h @ w) * x + h
        steps.append(h)
    return torch.cat(steps, 1)
f(torch.randn(3, 4, 16), torch.randn(4, 16), torch.randn(16, 16))
"""
    decisions = explored(source, device_model="H200").graphs[0].decisions
    passed_over = [d for d in decisions if d.reason == "policy.outscored" and "_part_" in d.a + d.b]
    assert passed_over and not any(d.would_fuse_if for d in passed_over)
