"""What the command line says of an exploration on one screen, of a file that is checked, and of two that differ."""

from __future__ import annotations

import io
import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from compiler.expectations import Expected, findings
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.report import ContestantOutcome, Error, GraphBreak, Note, Peer, Report, TimingResult, WrongResult
from compiler.wording import beside_eager, byte_count, line_list
from server.answer import print_answer
from server.captured import break_sentences
from server.cli import app
from server.figures import milliseconds

SOFTMAX = """import torch


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


softmax(torch.randn(64, 256))
"""
SPLIT = SOFTMAX.replace("    return", "    print('stop')\n    return")


def explored(source: str, **options: object) -> Report:
    chosen = {"device": "cpu", "target": "sm_90", "timing": Timing(enabled=False), **options}
    report = explore(source, Options.model_validate(chosen))
    assert report.error is None
    return report


@pytest.fixture(scope="module")
def whole() -> Report:
    return explored(SOFTMAX)


@pytest.fixture(scope="module")
def apart() -> Report:
    return explored(SOFTMAX, forbid=[("exp", "sum_1")])


@pytest.fixture(scope="module")
def broken() -> Report:
    return explored(SPLIT, produce=("capture", "lower", "schedule", "codegen"))


def screen(report: Report, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_answer(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_verdict_is_first_and_everything_fits_on_a_screen(apart: Report) -> None:
    lines = screen(apart).splitlines()
    assert lines[0] == "5 eager kernels became 2 kernels."
    assert len(lines) < 40
    text = "\n".join(lines)
    assert all(kernel.name in text for kernel in apart.graphs[0].kernels)
    assert "µs predicted for NVIDIA H200" in text
    assert "Not fused: K1 and K2, at exp and sum_1" in text and "exp and sum_1 are to stay apart" in text
    assert "--all prints everything" in lines[-1]


def test_what_was_not_run_as_written_is_said_and_many_notes_are_counted(whole: Report) -> None:
    noted = whole.model_copy(update={"notes": [Note(message=f"Note {number}.", line=number) for number in range(1, 6)]})
    text = screen(noted)
    assert "note (line 1): Note 1." in text and "Note 3." in text and "Note 4." not in text
    assert "graphs, 2 more notes" in text
    assert "note" not in screen(whole)


def test_kernels_of_one_code_are_one_row(apart: Report) -> None:
    (graph,) = apart.graphs
    first, other = graph.kernels
    repeated = [
        first,
        *(other.model_copy(update={"name": f"layer_{n}", "same_as": first.name}) for n in range(20)),
        other,
    ]
    text = screen(apart.model_copy(update={"graphs": [graph.model_copy(update={"kernels": repeated})]}))
    assert f"21 times {first.name}" in text and f"K22  {other.name}" in text
    assert "layer_" not in text and "other kernel" not in text


def test_library_calls_share_a_row_where_they_move_as_many_bytes() -> None:
    wide = "import torch\ndef f(x, w, v):\n    y = x @ w\n    z = y @ w\n    return z @ v\n"
    report = explored(wide + "f(torch.ones(8, 8), torch.ones(8, 8), torch.ones(8, 4))\n")
    rows = [line.split() for line in screen(report).splitlines() if "aten.mm" in line]
    assert [row[:-2] for row in rows] == [["K1", "2", "times", "aten.mm", "3,", "4"], ["K3", "aten.mm", "5"]]


@pytest.mark.parametrize("predicted", [7.0, None])
def test_kernels_that_are_left_out_are_said_to_take_less_time_where_that_is_known(
    apart: Report, predicted: float | None
) -> None:
    graph = apart.graphs[0]
    many = [graph.kernels[0].model_copy(update={"name": f"k{number}", "predicted_us": 9.0}) for number in range(12)]
    last = many[0].model_copy(update={"name": "last", "predicted_us": predicted})
    text = screen(apart.model_copy(update={"graphs": [graph.model_copy(update={"kernels": [*many, last]})]}))
    assert f"and 1 other kernel{', which takes less time' if predicted else ''}." in text


def test_a_break_has_its_line_and_its_remedy(broken: Report) -> None:
    text = screen(broken)
    assert "at line 6" in text and "Print after the compiled function" in text


def test_the_sentences_of_a_break_end(broken: Report) -> None:
    (found,) = broken.breaks
    for reason in ("It has no end", "It has one."):
        text = " ".join(break_sentences(found.model_copy(update={"reason": reason})))
        assert f"{reason.removesuffix('.')}. Print after" in text


def test_a_narrow_screen_shortens_names_and_no_figures(whole: Report) -> None:
    (graph,) = whole.graphs
    (kernel,) = graph.kernels
    times = {"measured_us": 7.2, "spread_us": 2.2, "gb_per_s": 0.13, "user_lines": list(range(1, 40))}
    long = kernel.model_copy(update={"name": "fused_" + "mul_" * 30, **times})
    text = screen(whole.model_copy(update={"graphs": [graph.model_copy(update={"kernels": [long]})]}), width=80)
    assert "K1  fused_mul_" in text and "131 kB" in text and "7.2 µs ± 31 %, 0.13 GB/s" in text


def test_a_contestant_that_was_not_timed_is_told_with_the_reason(whole: Report) -> None:
    timing = TimingResult(method="", device="cpu", cold_l2=False)
    failed = ContestantOutcome(name="foo", failure="There is no contestant foo; there is tvm.")
    peer = Peer(name="TorchInductor", contestants=[failed])
    text = screen(whole.model_copy(update={"timing": timing, "peer": peer}))
    assert "foo was not timed: There is no contestant foo; there is tvm." in text


def test_what_is_wrong_comes_before_the_verdict(whole: Report) -> None:
    wrong = WrongResult(contestant="compiled", output="div", message="div is off by 3.")
    text = screen(whole.model_copy(update={"wrong_results": [wrong], "status": "wrong_result"}))
    assert text.startswith("wrong result: div is off by 3.")
    failed = whole.model_copy(update={"error": Error(type="ValueError", message="\x1b[2Jno", line=5)})
    assert "ValueError at line 5: " in screen(failed) and "\x1b[2J" not in screen(failed)


def test_expectations_that_are_met(whole: Report) -> None:
    found = findings(whole, Expected(most_kernels=1, most_bytes=1 << 20, no_breaks=True, baseline=whole))
    assert [one.check for one in found] == ["right", "max-kernels", "max-bytes", "no-breaks", "baseline"]
    assert all(one.is_met for one in found)


def test_a_lost_fusion_is_told_with_its_reason(whole: Report, apart: Report) -> None:
    (lost,) = (one for one in findings(apart, Expected(baseline=whole)) if one.check == "baseline")
    assert not lost.is_met and lost.line in (5, 6)
    assert "1 kernel became 2" in lost.message and "were not fused, since" in lost.message
    (gained,) = (one for one in findings(whole, Expected(baseline=apart)) if one.check == "baseline")
    assert gained.is_met


def test_a_break_that_is_new_is_told_at_its_line(whole: Report, broken: Report) -> None:
    found = [one for one in findings(broken, Expected(no_breaks=True, baseline=whole)) if not one.is_met]
    assert {one.check for one in found} >= {"no-breaks", "baseline"}
    assert all(". " in one.message and ".." not in one.message for one in found if one.check == "no-breaks"), found
    assert all(one.line == 6 for one in found if "break" in one.message)
    known = GraphBreak.model_validate(broken.breaks[0].model_dump())
    before = whole.model_copy(update={"breaks": [known], "graphs": []})
    assert all(one.is_met for one in findings(broken, Expected(baseline=before)))


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory, whole: Report) -> dict[str, tuple[int, str]]:
    """What `check` and `diff` print, by the form, and how they exit; without exploring again."""
    folder = tmp_path_factory.mktemp("check")
    (folder / "model.py").write_text(SOFTMAX)
    (folder / "before.json").write_text(whole.model_dump_json())
    (folder / "older.json").write_text(whole.model_copy(update={"version": whole.version - 1}).model_dump_json())
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("compiler.pipeline.explore", lambda *_: whole)
        for form in ("text", "json", "junit", "github"):
            arguments = ["check", "model.py", "--max-kernels", "0", "--format", form, "--baseline", "before.json"]
            found[form] = run(arguments, folder)
        found["met"] = run(["check", "model.py", "--no-breaks"], folder)
        found["diff"] = run(["diff", "before.json", "model.py"], folder)
        found["no report"] = run(["check", "model.py", "--baseline", "model.py"], folder)
        found["an older baseline"] = run(["check", "model.py", "--baseline", "older.json"], folder)
        found["diff with an older one"] = run(["diff", "before.json", "older.json"], folder)
    return found


def run(arguments: list[str], folder: Path) -> tuple[int, str]:
    """The exit code, and what was written to the descriptor of standard output."""
    kept, path = os.dup(1), folder / "stdout"
    with path.open("w") as file:
        os.dup2(file.fileno(), 1)
        try:
            code = CliRunner().invoke(app, arguments).exit_code
        finally:
            os.dup2(kept, 1)
            os.close(kept)
    return code, path.read_text()


def test_the_findings_are_written_as_asked(outputs: dict[str, tuple[int, str]]) -> None:
    told = "1 kernel, and at most 0 may be."
    assert all(outputs[form][0] == 1 for form in ("text", "json", "junit", "github"))
    assert f"failed max-kernels: {told}" in outputs["text"][1]
    assert {"check": "max-kernels", "met": False, "message": told, "line": None} in json.loads(outputs["json"][1])
    suite = ElementTree.fromstring(outputs["junit"][1])
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert outputs["github"][1] == f"::error file=model.py,title=Fusionscope max-kernels::{told}\n"


def test_how_they_exit(outputs: dict[str, tuple[int, str]]) -> None:
    assert outputs["met"][0] == 0 and "no-breaks: No graph breaks." in outputs["met"][1]
    code, told = outputs["diff"]
    assert code == 0 and "bytes" in told and told.startswith("before.json, then model.py")
    assert [outputs[case][0] for case in ("no report", "an older baseline", "diff with an older one")] == [2, 2, 2]


def test_numbers_have_three_digits_and_their_unit() -> None:
    assert [byte_count(n) for n in (0, 999, 1024, 3 << 20)] == ["0 B", "999 B", "1.02 kB", "3.15 MB"]
    assert [milliseconds(n) for n in (0.5, 12.34, 1500)] == ["500 µs", "12.3 ms", "1,500 ms"]


def test_one_line_is_no_lines() -> None:
    assert [line_list(lines) for lines in ((), (8,), (8, 9))] == ["", "line 8", "lines 8, 9"]


@pytest.mark.parametrize(
    ("eager_ms", "factor", "said"),
    [
        (103.4, 1.02, "1.03 times as fast as eager (± 2.0 %)"),
        (337.9, 1.54, "3.4 times as fast as eager (± 54 %)"),
        (47.6, 1.36, "2.1 times as slow as eager (± 36 %)"),
        (2243.0, 3.09, "22 times as fast as eager (within a factor of 3.1)"),
    ],
)
def test_a_ratio_is_as_exact_as_another_run_and_never_reaches_below_zero(
    eager_ms: float, factor: float, said: str
) -> None:
    assert beside_eager(eager_ms, 100.0, factor, is_clear=True) == said
