"""A snippet whose capture ends in an error still shows everything that came before the error."""

from __future__ import annotations

import pytest

from compiler.options import Options
from compiler.pipeline import explore
from compiler.report import Report

_WORKS = """import torch

@torch.compile
def f(x, w):
    y = (x @ w).relu()
    return y.sum()

f(torch.randn(4, 8), torch.randn(8, 2))
"""
_RAISES = "@torch.compile\ndef g(x):\n    z = x.cos()\n    raise ValueError('no')\n\ng(torch.ones(3))\n"
_MAY_NOT_BREAK = """@torch.compile(fullgraph=True)
def g(x):
    print('x')
    return x.cos()

g(torch.ones(3))
"""
#: What follows the first call, and the error that it ends in, with its line.
_ENDINGS = {
    "a second call with shapes that do not fit": ("f(torch.randn(4, 8), torch.randn(9, 2))\n", "RuntimeError", 5),
    "a second function that raises": (_RAISES, "ValueError", 12),
    "a second function that may not break": (_MAY_NOT_BREAK, "Unsupported", 11),
    "an exit": ("raise SystemExit(3)\n", "SystemExit", 9),
}


def explored(source: str) -> Report:
    return explore(source, Options.model_validate({"timing": {"min_runs": 3}}))


@pytest.mark.parametrize("ending", _ENDINGS)
def test_what_the_first_call_gave_is_compiled_checked_and_timed(ending: str) -> None:
    text, kind, line = _ENDINGS[ending]
    report = explored(_WORKS + text)
    assert report.status == "user_error" and report.error is not None
    assert (report.error.type, report.error.line) == (kind, line)
    graph = report.graphs[0]
    assert graph.kernels and graph.guards and graph.calls == 1
    assert report.compilations[0].graphs == [graph.name]
    assert {stage.name: stage.status for stage in report.stages}["measure"] == "done"
    assert report.summary.compiled_error is not None and report.timing is not None


def test_an_error_after_a_break_keeps_the_graph_before_it_and_times_nothing() -> None:
    source = (
        "import torch\n\n@torch.compile\ndef f(x):\n    y = x.sin()\n    print('half way')\n"
        "    return y + torch.ones(7)\n\nf(torch.ones(3))\n"
    )
    report = explored(source)
    assert report.error is not None and report.error.line == 7
    (graph,) = report.graphs
    assert [found.category for found in report.breaks] == ["print"] and graph.breaks == report.breaks
    assert graph.kernels and report.timing is None
    measure = next(stage for stage in report.stages if stage.name == "measure")
    assert measure.status == "done" and measure.message == "no compiled call returned, so there is nothing to time"


def test_what_cannot_be_told_of_a_capture_loses_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("changed")

    monkeypatch.setattr("compiler.capture.recording.ledger.read_guards", fail)
    monkeypatch.setattr("compiler.capture.recording.ledger.report_break", fail)
    report = explored(_WORKS.replace("y = (x @ w)", "torch._dynamo.graph_break()\n    y = (x @ w)"))
    assert report.status == "ok" and report.graphs[0].kernels
    assert report.graphs[0].guards == [] and report.breaks == []
    assert any("could not be read: KeyError" in note.message for note in report.notes)
