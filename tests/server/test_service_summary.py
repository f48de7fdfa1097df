"""What the text forms of a report say of times, and of how the code was captured."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from compiler.report import (
    Environment,
    GradientCheck,
    Graph,
    GraphBreak,
    Guard,
    Kernel,
    Recompile,
    Report,
    Rewrite,
    SavedTensor,
    Symbol,
)
from server.captured import MOST_GUARDS
from server.printer import print_report
from server.summary import kernel_times, markdown


def test_a_prediction_and_a_measurement_each_name_their_device() -> None:
    kernel = Kernel(name="k", kind="cpp", nodes=[], source="", predicted_us=4.1, measured_us=800.0)
    times = kernel_times(kernel, Environment(device="cpu", target="sm_90"))
    assert times == ["predicted for sm_90 4.1 µs", "measured on cpu 800 µs"]


def test_a_time_that_is_not_known_is_not_said() -> None:
    assert kernel_times(Kernel(name="k", kind="extern", nodes=[], source=""), Environment()) == []


BREAK = GraphBreak(
    reason="Detected data-dependent branching.",
    line=4,
    title="control flow that depends on data",
    remedy="Use torch.where.",
    before=["graph_0"],
    after=["graph_1"],
    count=3,
)
RECOMPILE = Recompile(
    function="f",
    reason="`n` was -3, and the code there was needs `n == 6`",
    line=7,
    graph="graph_1",
    symbolic=["n"],
)
SAVED = SavedTensor(node="addmm", input="addmm", kind="activation", shape=[8, 4], dtype="float32", bytes=128)
GUARDS = [
    Guard(kind="", name=f"n{place}", expression="", lines=[2], fails_when=f"`n{place}` other than 6")
    for place in range(MOST_GUARDS + 2)
]
REWRITE = Rewrite(
    verdict="kept",
    reason="scores.read_elsewhere",
    message="The scores are read twice.",
    detail="f reads softmax",
    remedy="Do not.",
    lines=[3, 4],
)
CAPTURED = Report(
    source="",
    breaks=[BREAK],
    gradients=[
        GradientCheck(entry="f", name="the gradient of x", eager_error=1e-7, compiled_error=2.5e-3, is_correct=False)
    ],
    graphs=[
        Graph(name="graph_2", rewrites=[REWRITE]),
        Graph(name="graph_0", breaks=[BREAK], guards=GUARDS, phase="forward", partner="graph_0_backward"),
        Graph(name="graph_1", recompiles=[RECOMPILE], symbols=[Symbol(name="s0", source="n", range="any", value="-3")]),
        Graph(name="graph_0_backward", phase="backward", partner="graph_0", saved=[SAVED], recomputed=["tanh"]),
    ],
)
SENTENCES = [
    "attention (lines 3, 4) was kept as it is written: The scores are read twice. f reads softmax. Do not.",
    "control flow that depends on data at line 4, met 3 times: Detected data-dependent branching.",
    "Use torch.where.",
    "It ended graph_0 and went on in graph_1.",
    "f at line 7: `n` was -3, and the code there was needs `n == 6`; graph_1 was made, which leaves open `n`.",
    "line 2: `n0` other than 6",
    "and 2 more, which the report has as JSON",
    "`n` is left open: any, -3 when traced",
    "saved for it by graph_0: 128 bytes in addmm (float32[8, 4])",
    "computed again and not saved: tanh",
    "f: the gradient of x is wrong: error 2.5e-03 against float64, eager's 1.0e-07",
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_both_text_forms_say_how_the_code_was_captured(sentence: str) -> None:
    printed = io.StringIO()
    print_report(CAPTURED, Console(file=printed, width=400, highlight=False))
    for text in (markdown(CAPTURED), printed.getvalue()):
        assert text.count(sentence) == 1


def test_a_snippet_with_one_graph_has_no_section_on_breaks() -> None:
    assert "## Capture" not in markdown(Report(source="", graphs=[Graph(name="graph_0")]))
