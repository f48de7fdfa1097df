"""Two explorations side by side: counted, predicted and measured figures apart, and the kernels that are others."""

from __future__ import annotations

from typing import Any

import pytest

from compiler import report as rep
from compiler.comparison import Comparison, Figure, compare
from compiler.options import Options, StageName
from compiler.pipeline import explore

SOURCE = """import torch
@torch.compile
def f(x, w):
    y = torch.relu(x) * 2
    return torch.softmax(y, -1), torch.tanh(w)
f(torch.randn(64, 128), torch.randn(32, 32))
"""


def explored(source: str = SOURCE, **options: Any) -> rep.Report:
    stages: tuple[StageName, ...] = ("capture", "lower", "schedule", "codegen")
    report = explore(source, Options(device="cpu", target="sm_90", produce=stages, **options))
    assert report.error is None, report.error
    return report


def timed(report: rep.Report, median: float, spread: float | None = None) -> rep.Report:
    """The report with this time and this spread of the compiled function; eager takes 1 ms always."""
    contestants = [
        rep.Contestant(name="eager", samples_ms=[1.0] * 5, median_ms=1.0, low_ms=0.99, high_ms=1.01),
        rep.Contestant(
            name="compiled", samples_ms=[median] * 5, median_ms=median, low_ms=median, high_ms=median, spread_ms=spread
        ),
    ]
    timing = rep.TimingResult(method="", device="this machine", cold_l2=False, contestants=contestants)
    return report.model_copy(update={"timing": timing})


def figure(comparison: Comparison, kind: str, name: str) -> Figure:
    return next(one for one in comparison.figures if (one.kind, one.name) == (kind, name))


@pytest.fixture(scope="module")
def pair() -> tuple[rep.Report, rep.Report]:
    return explored(), explored(forbid=[("relu", "amax")], rules_off=["batch"])


def test_counted_figures_are_those_of_the_reports(pair: tuple[rep.Report, rep.Report]) -> None:
    found = compare(*pair)
    kernels, moved = figure(found, "counted", "generated kernels"), figure(found, "counted", "bytes moved")
    assert (kernels.before, kernels.after) == tuple(report.summary.kernels for report in pair)
    assert (moved.before, moved.after) == tuple(report.summary.bytes for report in pair)
    assert kernels.change is not None and kernels.change > 0 and moved.change is not None and moved.change > 0
    assert [told.option for told in found.what_if] == ["forbid", "rules_off"]
    assert {change.name for change in found.options} == {"forbid", "rules_off"}


def test_kernels_that_hold_the_same_nodes_in_both_are_left_out(pair: tuple[rep.Report, rep.Report]) -> None:
    before, after = pair
    found = compare(before, after)
    changed = {node for change in found.kernels for node in change.nodes}
    assert {"relu", "amax"} <= changed
    for change in found.kernels:
        for side, report in ((change.before, before), (change.after, after)):
            kernels = [kernel for kernel in report.graphs[0].kernels if kernel.name in side.names]
            assert {node for kernel in kernels for node in kernel.nodes} == set(change.nodes)
            assert side.bytes == sum(kernel.bytes for kernel in kernels)
    same = compare(before, before)
    assert same.kernels == [] and same.verdict.startswith(f"Still {before.summary.kernels} generated kernel")


def test_a_prediction_and_a_measurement_never_share_a_row(pair: tuple[rep.Report, rep.Report]) -> None:
    before, after = pair
    found = compare(timed(before, 0.5), timed(after, 1.0))
    predicted = figure(found, "predicted", "generated kernels in a row")
    measured = figure(found, "measured", "compiled")
    assert (predicted.unit, predicted.device) == ("us", "NVIDIA H200")
    assert (measured.unit, measured.device) == ("ms", "this machine")
    assert (measured.before, measured.after, measured.ratio, measured.is_noise) == (0.5, 1.0, 2.0, False)
    assert figure(found, "measured", "eager, unchanged").is_noise
    for verdict in (found.verdict, compare(before, before).verdict, compare(after, before).verdict):
        assert verdict[0] == verdict[0].upper() and verdict.endswith(".") and "-" not in verdict
    assert "100.0 % more measured time on this machine" in found.verdict
    assert "predicted time for NVIDIA H200" in found.verdict


def test_what_cannot_be_told_from_noise_is_called_so(pair: tuple[rep.Report, rep.Report]) -> None:
    before, after = pair
    found = compare(timed(before, 0.5, spread=0.2), timed(after, 0.6, spread=0.2))
    assert figure(found, "measured", "compiled").is_noise  # as far apart as runs of the same are
    assert "no measurable difference in time on this machine" in found.verdict
    assert not figure(compare(timed(before, 0.5, 0.09), timed(after, 0.6, 0.09)), "measured", "compiled").is_noise


def test_what_was_not_measured_has_no_figure(pair: tuple[rep.Report, rep.Report]) -> None:
    measured = figure(compare(*pair), "measured", "compiled")
    assert (measured.before, measured.after, measured.change, measured.is_noise) == (None, None, None, False)


def test_two_devices_are_both_named() -> None:
    found = compare(explored(), explored(device_model="T4"))
    predicted = figure(found, "predicted", "generated kernels in a row")
    assert predicted.device == "NVIDIA H200, then T4"


def test_times_of_generated_kernels_are_not_compared_where_a_library_call_does_part_of_the_work() -> None:
    """Apart, the product is a library call, whose time is not in the sum: the sum is smaller, the call no faster."""
    source = """import torch
@torch.compile
def f(a, b, c):
    return torch.relu(a @ b + c)
f(torch.randn(200, 300), torch.randn(300, 100), torch.randn(100))
"""
    found = compare(explored(source), explored(source, forbid=[("mm", "add")]))
    predicted = figure(found, "predicted", "generated kernels in a row")
    assert predicted.before is not None and predicted.after is not None and predicted.after < predicted.before
    assert (predicted.change, predicted.ratio) == (None, None)
    assert "0 library calls became 1" in found.verdict and "time" not in found.verdict
    assert any("different library calls" in told for told in found.differences)


def test_what_failed_is_said_and_lends_no_device_to_times(pair: tuple[rep.Report, rep.Report]) -> None:
    before, _ = pair
    failed = explore("import torch\nx = (\n", Options(device="cpu"))
    found = compare(timed(before, 0.5), failed)
    assert any(told.startswith("The second ended with SyntaxError in line 2: ") for told in found.differences)
    assert figure(found, "measured", "compiled").device == "this machine"


def test_what_is_still_explored_is_said_and_lends_no_device(pair: tuple[rep.Report, rep.Report]) -> None:
    _, after = pair
    found = compare(rep.Report(source=SOURCE), after)
    assert found.differences[0] == "The first is still explored: compare again when it is done."
    assert figure(found, "predicted", "generated kernels in a row").device == "NVIDIA H200"


def test_a_prediction_of_a_directive_is_of_the_fusion_and_not_of_a_kernel(pair: tuple[rep.Report, rep.Report]) -> None:
    _, after = pair
    (forbidden,) = (told for told in after.what_if if told.option == "forbid")
    *_, decision = (one for one in after.graphs[0].decisions if one.reason == "policy.forbidden")
    assert decision.score is not None and decision.score.fused_us is not None
    assert forbidden.message == (
        "relu and amax stay apart; the fusion that would have joined them was predicted to take "
        f"{decision.score.fused_us:.1f} us instead of {decision.score.unfused_us:.1f} us"
    )


def test_kernels_with_one_operation_in_common_did_not_become_each_other() -> None:
    softmax = """import torch
@torch.compile
def f(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
f(torch.randn(64, 100))
"""
    joined = """import torch
@torch.compile
def f(x, y):
    c = torch.cat([x.sin(), y.cos(), x * y], dim=1)
    return c, c.sum(1)
f(torch.randn(64, 100), torch.randn(64, 100))
"""
    other = compare(explored(softmax), explored(joined))
    assert [change.relation for change in other.kernels] == ["only before", "only after"] and not other.unchanged
    longer = compare(explored(softmax), explored(softmax.replace("return e /", "return x.sin() + e /")))
    (changed,) = longer.kernels
    assert changed.before.names and changed.after.names


def test_without_the_options_is_what_a_what_if_is_compared_with() -> None:
    chosen = Options(seed=3, forbid=(("a", "b"),), largest_group=2, device_model="T4", rules_off=("batch",))
    plain = chosen.without_what_if()
    assert plain == Options(seed=3) and chosen.is_what_if and not plain.is_what_if


def test_a_kernel_that_is_divided_is_split_and_the_other_way_merged(pair: tuple[rep.Report, rep.Report]) -> None:
    before, after = pair
    forward, back = compare(before, after), compare(after, before)
    assert "split" in {change.relation for change in forward.kernels}
    assert "merged" in {change.relation for change in back.kernels}
    for found in (forward, back):
        told = [place for change in (*found.kernels, *found.unchanged) for place in change.before.places]
        assert sorted(told) == list(range(len((before if found is forward else after).graphs[0].kernels)))


def test_kernels_of_two_snippets_are_matched_by_what_they_compute(pair: tuple[rep.Report, rep.Report]) -> None:
    before, _ = pair
    other = explored(SOURCE.replace("64, 128", "32, 64").replace("torch.tanh(w)", "torch.tanh(w), w @ w"))
    found = compare(before, other)
    assert not found.is_same_source and "different snippets" in found.differences[0]
    covered = {node for change in (*found.kernels, *found.unchanged) for node in change.nodes if change.before.names}
    assert covered == {node for kernel in before.graphs[0].kernels for node in kernel.nodes}
    assert "only after" in {change.relation for change in found.kernels}
    assert "only before" not in {change.relation for change in found.kernels}
    assert figure(found, "counted", "library calls").after == 1


def test_another_device_is_told_before_any_time(pair: tuple[rep.Report, rep.Report]) -> None:
    one, two = (timed(report, 0.5) for report in pair)
    assert compare(one, two).differences == []
    assert two.timing is not None
    two.timing = two.timing.model_copy(update={"device": "another machine"})
    (told,) = compare(one, two).differences
    assert told.startswith("They ran on different devices")
