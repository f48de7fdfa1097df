"""A kernel is broken on purpose: every surface says first that the result is wrong, and none gives it a time."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from rich.console import Console

import compiler.compile as compiling
import compiler.runtime.checking.judge as judging
from compiler import pipeline
from compiler.capture.reference import reference_run
from compiler.codegen.rendered import RenderedKernel
from compiler.comparison import compare
from compiler.options import Options, Timing
from compiler.peer import compare as compare_stage
from compiler.peer.inductor import ExploredPeer
from compiler.report import Report
from server.beside import comparison_as_markdown
from server.printer import print_report
from server.summary import markdown
from server.wire.parts import SERVICE_FIELDS, Parts, as_object, split
from tests.command_line import Ended, run_here

ELEMENTS = 4096
SOURCE = f"""import torch
N = {ELEMENTS}
@torch.compile
def f(x):
    return x * 2 + 1
f(torch.randn(N))
"""
#: What a broken kernel does last to its output.
BROKEN = {
    "scaled": "for (int64_t i = 0; i < 2048; ++i) {out}[i] *= 1e27f;",
    "NaN": "{out}[7] = 0.0f / 0.0f;",
    "one element": "{out}[2000] += 0.5f;",
}
TIMED = {"min_runs": 3, "max_seconds": 0.1}


def with_fault(kernel: RenderedKernel, fault: str) -> RenderedKernel:
    """The kernel with a statement more at the end of its text."""
    (out,) = re.findall(r"[(,]\s*[\w:]+\* __restrict__ (\w+)", kernel.source)
    body, end = kernel.source.rstrip().removesuffix("}"), "}\n"
    return replace(kernel, source=f"{body}    {fault.format(out=out)}\n{end}")


@contextmanager
def broken(how: str) -> Iterator[None]:
    render = compiling.render_cpp
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "render_cpp", lambda *given, **named: with_fault(render(*given, **named), BROKEN[how]))
        yield


def explored(source: str = SOURCE, **options: Any) -> Report:
    return pipeline.explore(source, Options.model_validate({"device": "cpu", "timing": TIMED, **options}))


@cache
def report_of(how: str) -> Report:
    with broken(how):
        return explored()


@cache
def right() -> Report:
    return explored()


def printed(report: Report) -> str:
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=400, highlight=False))
    return stream.getvalue()


@pytest.mark.parametrize("how", BROKEN)
def test_the_report_names_the_output_and_by_how_much_it_is_wrong(how: str) -> None:
    report = report_of(how)
    assert report.status == "wrong_result" and report.error is None
    (wrong,) = report.wrong_results
    assert (wrong.contestant, wrong.graph, wrong.entry, wrong.output) == ("compiled", report.graphs[0].name, "f", "add")
    if how == "NaN":
        assert wrong.error is None and f"1 of {ELEMENTS:,} elements that are NaN" in wrong.message
    else:
        assert wrong.error is not None and wrong.tolerance is not None and wrong.eager_error is not None
        assert wrong.error > 100 * wrong.tolerance > 100 * wrong.eager_error
        for figure in (wrong.error, wrong.eager_error, wrong.tolerance):
            assert f"{figure:.1e}" in wrong.message


@pytest.mark.parametrize("how", BROKEN)
def test_nothing_that_was_measured_of_it_is_in_the_report(how: str) -> None:
    report = report_of(how)
    assert report.timing is not None and [one.name for one in report.timing.contestants] == ["eager"]
    summary = report.summary
    assert summary.eager_ms and summary.compiled_ms is None and summary.speedup is None
    for kernel in report.graphs[0].kernels:
        assert kernel.measured_us is None and kernel.gb_per_s is None and kernel.percent_of_peak is None
        assert kernel.predicted_us is not None


@pytest.mark.parametrize("how", BROKEN)
def test_the_verdict_says_it_first_and_no_speed(how: str) -> None:
    report = report_of(how)
    verdict = report.summary.verdict
    assert verdict.startswith(f"Wrong result, so no time is given: {report.wrong_results[0].message} ")
    assert "as fast as" not in verdict and "slower" not in verdict and "measurable" not in verdict
    assert verdict.endswith("2 eager kernels became 1 kernel.")


@pytest.mark.parametrize("how", BROKEN)
def test_both_texts_say_it_first_and_no_time(how: str) -> None:
    report = report_of(how)
    message = report.wrong_results[0].message
    text = printed(report)
    assert text.startswith(f"wrong result: {message}")
    assert "A wrong result has no speed, so no time is given of: compiled." in text
    head, _, told = markdown(report).partition("Status: ")
    assert not head.partition("\n")[2].strip()
    assert told.startswith(f"**wrong_result**\n\n- **wrong result: {message}**")
    assert re.search(r"\| Time \(ms\)[^|]* \| [\d.]+ \| wrong result \|", told)
    for one in (text, told):
        assert not re.search(r"^\| compiled \| \d|^compiled +\d", one, re.MULTILINE)
        assert "as fast as" not in one and "measured on" not in one


def taken_over(report: Report) -> Report:
    """The report as a service has it that was sent all parts of it."""
    sent, parts = split(report), Parts(Report(source=report.source, options=report.options), 1 << 25)
    parts.take(as_object(sent, [name for name in sent if name.removeprefix("/") not in SERVICE_FIELDS]))
    return parts.report()


@pytest.mark.parametrize("how", BROKEN)
def test_a_report_of_a_wrong_result_is_strict_json(how: str) -> None:
    """No NaN and no infinity: the service would refuse the whole report."""
    report = report_of(how)
    assert taken_over(report) == report


def test_a_comparison_with_a_wrong_result_says_it_first() -> None:
    wrong = report_of("one element")
    found = compare(right(), wrong)
    assert found.is_wrong and not compare(right(), right()).is_wrong
    assert found.verdict.startswith("Wrong result after the change, so no time is given: Output 1 (`add`) of ")
    assert compare(wrong, right()).verdict.startswith("Wrong result before the change, so no time is given: ")
    measured = next(figure for figure in found.figures if figure.name == "compiled")
    assert measured.before and measured.after is None and measured.change is None
    assert found.verdict in comparison_as_markdown(found)


def test_a_size_of_a_sweep_with_a_wrong_result_has_no_time() -> None:
    with broken("one element"):
        sweep = {"name": "N", "values": [2048, 4096], "max_seconds": 600}
        report = explored(sweep=sweep, timing={"min_runs": 3, "max_seconds": 0.05})
    assert report.sweep is not None and report.status == "wrong_result"
    assert report.sweep.verdict.startswith("Wrong results, so no times, at N = 2048 and 4096. ")
    for size in report.sweep.sizes:
        assert len(size.wrong_results) == 1 and size.compiled_ms is None and size.measured_us is None
        for text in (printed(report), markdown(report)):
            assert f"N = {size.value}: wrong result: {size.wrong_results[0].message}" in text


@contextmanager
def broken_but(name: str, how: str) -> Iterator[None]:
    """Every kernel but those with `name` in theirs."""
    render = compiling.render_cpp

    def spoil(*given: Any, **named: Any) -> RenderedKernel:
        kernel = render(*given, **named)
        return kernel if name in kernel.name else with_fault(kernel, BROKEN[how])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "render_cpp", spoil)
        yield


TWO_GRAPHS = SOURCE + "@torch.compile\ndef g(x):\n    return x.exp()\ng(torch.randn(64))\n"


def test_no_error_stands_for_all_outputs_where_one_of_them_is_nan() -> None:
    """The error of the other graph, which is small, would be taken for the largest."""
    with broken_but("exp", "NaN"):
        report = explored(TWO_GRAPHS, timing=Timing(enabled=False))
    assert report.summary.compiled_error is None and report.summary.eager_error is not None
    assert "| cannot be compared |" in markdown(report)


def test_only_the_graph_that_is_wrong_loses_the_times_of_its_kernels() -> None:
    with broken_but("exp", "one element"):
        report = explored(TWO_GRAPHS)
    first, second = report.graphs
    assert [one.graph for one in report.wrong_results] == [first.name]
    assert (
        first.kernels[0].measured_us is None
        and first.kernels[0].spread_us is None
        and second.kernels[0].measured_us is not None
    )
    assert report.summary.compiled_ms is None


@pytest.mark.parametrize("is_ours_wrong", [False, True])
def test_a_peer_that_is_wrong_has_no_time_and_ours_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch, is_ours_wrong: bool
) -> None:
    def wrong_peer(eager: Any, *_: object, **__: object) -> Any:
        return (lambda x: eager(x) * 3), ExploredPeer(message="one kernel")

    monkeypatch.setattr(compare_stage, "explore_peer", wrong_peer)
    with broken("one element") if is_ours_wrong else nullcontext():
        report = explored(peer=True, peer_seconds=600)
    summary, told = report.summary, markdown(report)
    assert [one.contestant for one in report.wrong_results] == ["compiled"] * is_ours_wrong + ["peer"]
    assert report.status == ("wrong_result" if is_ours_wrong else "ok")
    assert summary.peer_ms is None and summary.eager_ms and (summary.compiled_ms is None) == is_ours_wrong
    message = report.wrong_results[-1].message
    assert message.startswith("The result of f, compiled by TorchInductor, has an error of 2.0e+00 against float64")
    assert summary.verdict.endswith(f" Wrong result of TorchInductor, so no time is given: {message}")
    assert f"**wrong result of the peer: {message}**" in told and f"wrong result of the peer: {message}" in printed(
        report
    )
    assert re.search(r"\| Time \(ms\)[^|]* \|.*\| wrong result \|\n", told)
    assert taken_over(report) == report


def test_a_right_peer_is_raced_while_ours_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_stage, "explore_peer", lambda eager, *_, **__: (eager, ExploredPeer()))
    with broken("NaN"):
        report = explored(peer=True, peer_seconds=600)
    assert report.timing is not None and [one.name for one in report.timing.contestants] == ["eager", "peer"]
    assert report.summary.peer_ms and report.summary.compiled_ms is None and report.summary.speedup is None


def on_the_command_line(how: str, *arguments: str) -> Ended:
    with broken(how):
        return run_here("explore", "-", "--device", "cpu", *arguments, source=SOURCE, columns=400)


def test_the_command_line_says_it_first_and_exits_with_3() -> None:
    ended = on_the_command_line("NaN")
    assert ended.returncode == 3, ended.stderr
    assert ended.stdout.startswith("wrong result: Output 1 (`add`) of ")
    assert "\nWrong result, so no time is given: " in ended.stdout
    as_json = on_the_command_line("scaled", "--json")
    assert as_json.returncode == 3
    report = json.loads(as_json.stdout)
    assert report["status"] == "wrong_result" and report["wrong_results"][0]["error"] > 1e20
    assert report["summary"]["compiled_ms"] is None


def test_one_eager_kernel_is_not_told_in_the_plural() -> None:
    report = explored("import torch\ntorch.compile(lambda x: x.exp())(torch.randn(8))\n", timing=Timing(enabled=False))
    assert report.summary.verdict == "1 eager kernel became 1 kernel."


# --- what is right stays right

LEGITIMATE = {
    "a bfloat16 sum of many": ("x.sum()", "torch.randn(512, 1024, dtype=torch.bfloat16)"),
    "bfloat16 sums of rows": ("(x * x.mean(-1, keepdim=True)).sum(-1)", "torch.randn(64, 4096, dtype=torch.bfloat16)"),
    "a float16 softmax": ("torch.softmax(x * 30, -1)", "torch.randn(64, 1000, dtype=torch.float16)"),
    "a float16 softmax by hand": ("x.exp() / x.exp().sum(-1, keepdim=True)", "torch.randn(64, 99).half()"),
    "a float32 sum that cancels": ("x.sum()", "torch.randn(1000, 1001)"),
    "a mean of little": ("(x - x.mean()).mean()", "torch.randn(100_000)"),
    "a difference of near numbers": ("((x + 1) ** 2 - x ** 2 - 2 * x - 1).sum()", "torch.randn(10_000)"),
    "a variance far from zero": ("(x + 1000.0).var(-1)", "torch.randn(32, 1000)"),
    "a step": ("(x / 0.1).round() + x.floor()", "torch.randn(100_000)"),
    "a large sine": ("(x * 1e4).sin()", "torch.randn(10_000)"),
    "float16 that overflows": ("x * 60000", "torch.randn(1000).half()"),
    "infinities and NaN": ("x.log() / x", "torch.arange(-2.0, 30.0)"),
    "running sums": ("x.cumsum(0)", "torch.randn(100_000)"),
}


def test_rounding_is_not_called_wrong() -> None:
    """Results that are far from float64 by right, of as many functions in one snippet."""
    parts = ["import torch"]
    for place, (formula, inputs) in enumerate(LEGITIMATE.values()):
        parts += [f"@torch.compile\ndef f{place}(x):\n    return {formula}", f"f{place}({inputs})"]
    for seed in range(2):
        source = "\n".join([*parts[:1], f"torch.manual_seed({seed})", *parts[1:]])
        report = explored(source, timing=Timing(enabled=False))
        assert report.error is None, report.error
        assert report.wrong_results == [] and report.status == "ok"


def test_what_the_memory_held_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: Any) -> list[Any]:
        sine, held = reference_run(*arguments)
        return [sine, torch.full_like(held, math.nan)]

    monkeypatch.setattr("compiler.runtime.trial.reference_run", run)
    source = "import torch\n@torch.compile\ndef f(x):\n    return x.sin(), torch.empty_like(x)\nf(torch.randn(4096))"
    report = explored(source, timing=Timing(enabled=False))
    assert report.wrong_results == [] and report.status == "ok"
    assert report.summary.compiled_error is not None and report.summary.compiled_error < 1e-5


@pytest.mark.parametrize("given", ["n", "m[:2], m[1:]"])
def test_signs_that_tensors_only_note_are_not_called_wrong(given: str) -> None:
    """`z.conj().imag` has the other sign in memory than its reader gets."""
    source = f"""import torch
@torch.compile
def f(x, y=2.0):
    return x + 1, x * y, torch.complex(x, x).conj().imag
n, m = (torch.randn(3, 4, dtype=torch.complex64).conj().imag for _ in range(2))
f({given})
"""
    report = explored(source, timing=Timing(enabled=False))
    assert (report.status, report.error, report.wrong_results) == ("ok", None, [])


@pytest.mark.parametrize("rows, is_dynamic", [("4", False), ("-1", True)])
def test_what_eager_lays_out_otherwise_than_traced_is_not_called_wrong(rows: str, is_dynamic: bool) -> None:
    """Of a batch of one, torch traces a `cat` that is channels-last where eager's is contiguous: the backward graph,
    whose inputs eager makes, reads it."""
    source = f"""import torch
def f(x):
    y = x.transpose(-1, -2).reshape(1, x.shape[-1], {rows}, 4)
    z = torch.cat([y, y], 1)
    return z * z.sigmoid()
torch.compile(f, dynamic={is_dynamic})(torch.randn(1, 16, 8, requires_grad=True)).sum().backward()
"""
    report = explored(source, timing=Timing(enabled=False))
    assert report.error is None, report.error
    assert len(report.graphs) == 2 and all(check.is_correct for check in report.gradients)
    assert report.wrong_results == [] and report.status == "ok"


NOISY = {
    "float32": "x: torch.nn.functional.layer_norm(layer(x), (32,)).exp().sum()",
    "bfloat16": "x: torch.softmax(layer.bfloat16()(x.bfloat16()), -1).square().sum()",
    "complex": "x: torch.view_as_complex(layer(x).unflatten(-1, (16, 2))).square().abs().sum()",
}


@pytest.mark.parametrize("name", NOISY)
def test_noise_alone_explains_right_results_and_gradients(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """With nothing allowed for the dtype and for eager, every output of both passes is judged by noise."""
    monkeypatch.setattr(judging, "TIMES_EAGER", 0.0)
    monkeypatch.setattr(judging, "TOLERANCE", dict.fromkeys(judging.TOLERANCE, 0.0))
    made = f"torch.manual_seed(1)\nlayer = torch.nn.Linear(16, 32)\nf = torch.compile(lambda {NOISY[name]})\n"
    called = "f(torch.randn(8, 16, requires_grad=True)).backward()\n"
    report = explored(f"import torch\n{made}{called}", timing=Timing(enabled=False))
    assert report.error is None and len(report.gradients) >= 4
    assert report.wrong_results == []


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_half_type_that_is_scaled_is_wrong(dtype: torch.dtype) -> None:
    """What rounding may do to half types does not hide an error of a few percent."""
    source = SOURCE.replace("torch.randn(N)", f"torch.randn(N).to({dtype})").replace("x * 2 + 1", "(x * 2).exp()")
    render = compiling.render_cpp

    def spoil(*given: Any, **named: Any) -> RenderedKernel:
        kernel = render(*given, **named)
        assert "x * 2.0f" in kernel.source
        return replace(kernel, source=kernel.source.replace("x * 2.0f", "x * 2.1f"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "render_cpp", spoil)
        report = explored(source, timing=Timing(enabled=False))
    assert report.error is None and [one.output for one in report.wrong_results] == ["exp"]


NOTHING_BUT_ROUNDING = """
import torch

net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
torch.compile(net)(torch.randn(4, 3, 16, 16)).square().mean().backward()
"""


def test_a_gradient_that_is_nothing_but_rounding_does_not_stand_for_all() -> None:
    report = pipeline.explore(NOTHING_BUT_ROUNDING, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok"
    assert report.summary.eager_error is not None and report.summary.eager_error < 1e-4
    assert report.summary.compiled_error is not None and report.summary.compiled_error < 1e-4


def test_the_text_of_a_report_tells_what_was_allowed_of_a_sum_that_cancels() -> None:
    source = """import torch
def f(x):
    return torch.sin(torch.cat([x, -x.flip(0)])).sum()
f(torch.randn(4096, dtype=torch.float64))
"""
    report = pipeline.explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    summary = report.summary
    assert report.status == "ok" and summary.eager_error == 0.0
    assert summary.compiled_error is not None and summary.allowed_error is not None
    assert summary.compiled_error < summary.allowed_error
    assert f"Error against float64, {summary.allowed_error:.1e} allowed" in markdown(report)
