"""What the text forms of a report say of times, and of how the code was captured."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from compiler.report import (
    Buffer,
    CallErrors,
    CallTimes,
    ContestantErrors,
    ContestantOutcome,
    Decision,
    ElementErrors,
    Environment,
    ExecutionTraffic,
    Flip,
    GradientCheck,
    Graph,
    GraphBreak,
    Guard,
    Kernel,
    KernelArtifact,
    KernelLevels,
    LaunchTraffic,
    Memory,
    Peer,
    Recompile,
    Replay,
    Report,
    Reuse,
    Rewrite,
    SavedTensor,
    Summary,
    SweepResult,
    SweptSize,
    Symbol,
    TensorLoads,
    TensorTraffic,
    Traffic,
)
from server.captured import MOST_GUARDS
from server.memory import level_sentences, memory_sentences, moved_sentence, traffic_sentences
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
    reason="`n` was -3, and the existing code needs `n == 6`",
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
        GradientCheck(entry="f", name="the gradient of x", eager_error=1e-7, compiled_error=2.5e-3, is_correct=False),
        GradientCheck(
            entry="f", name="the result", eager_error=0.0, compiled_error=0.25, allowed_error=1.6, is_correct=True
        ),
        GradientCheck(entry="f", name="the gradient of y", eager_error=0.0, compiled_error=None, is_correct=False),
    ],
    graphs=[
        Graph(name="graph_2", rewrites=[REWRITE]),
        Graph(name="graph_0", breaks=[BREAK], guards=GUARDS, phase="forward", partner="graph_0_backward"),
        Graph(name="graph_1", recompiles=[RECOMPILE], symbols=[Symbol(name="s0", source="n", range="any", value="-3")]),
        Graph(name="graph_0_backward", phase="backward", partner="graph_0", saved=[SAVED], recomputed=["tanh"]),
    ],
)
SENTENCES = [
    "attention (lines 3, 4) was kept as written: The scores are read twice. f reads softmax. Do not.",
    "control flow that depends on data at line 4, met 3 times: Detected data-dependent branching.",
    "Use torch.where.",
    "It ended graph_0 and went on in graph_1.",
    "f at line 7: `n` was -3, and the existing code needs `n == 6`; graph_1 was made, which leaves open `n`.",
    "line 2: `n0` other than 6",
    "and 2 more, which the JSON report has",
    "`n` is left open: any, -3 when traced",
    "saved for it by graph_0: 128 bytes in addmm (float32[8, 4])",
    "computed again and not saved: tanh",
    "f: the gradient of x is wrong: error 2.5e-03 against float64, eager's 1.0e-07",
    "f: the result is right: error 2.5e-01 against float64, eager's 0.0e+00, 1.6e+00 allowed",
    "f: the gradient of y is wrong: it cannot be compared with float64",
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_both_text_forms_say_how_the_code_was_captured(sentence: str) -> None:
    printed = io.StringIO()
    print_report(CAPTURED, Console(file=printed, width=400, highlight=False))
    for text in (markdown(CAPTURED), printed.getvalue()):
        assert text.count(sentence) == 1


def test_how_launches_reach_a_gpu_is_told_with_what_was_measured() -> None:
    times = CallTimes(measured_host_us=270.0, measured_elapsed_us=359.0)
    replay = Replay(
        verdict="one_by_one",
        reason="replay.unknown_call",
        message="not inverse",
        option="auto",
        lines=[7],
        launched=times,
    )
    text = markdown(Report(source="", graphs=[Graph(name="graph_0", replay=replay)]))
    assert "- launched one by one (line 7): not inverse (replay.unknown_call)" in text
    assert "- the host's share of a call, measured: launch by launch 270 µs" in text


def test_a_snippet_with_one_graph_has_no_section_on_breaks() -> None:
    assert "## Capture" not in markdown(Report(source="", graphs=[Graph(name="graph_0")]))


SOFTMAX = Kernel(
    name="softmax",
    kind="cpp",
    nodes=["amax", "sub", "div"],
    source="",
    levels=KernelLevels(
        target="sm_90",
        plan="looped",
        programs=512,
        threads=512,
        passes=3,
        loads=[
            TensorLoads(tensor="x", memory_bytes=1000, loaded_bytes=3000),
            TensorLoads(tensor="w", memory_bytes=8, loaded_bytes=8),
        ],
        missed_bytes=500,
        kept=["amax", "sub"],
        combined=["amax"],
    ),
    also=[KernelArtifact(language="triton", target="sm_90", source="", registers=32, spills=0, shared_bytes=16)],
)
X, W, RESULT = (
    TensorTraffic(tensor="x", read_bytes=1000),
    TensorTraffic(tensor="w", read_bytes=8),
    TensorTraffic(tensor="div", written_bytes=1000),
)
MOVING = Graph(
    name="graph_0",
    traffic=Traffic(
        eager=ExecutionTraffic(bytes=9000, launches=[LaunchTraffic(name="aten.softmax", bytes=9000)]),
        fused=ExecutionTraffic(
            bytes=2008, launches=[LaunchTraffic(name="softmax", bytes=2008, tensors=[X, W, RESULT])]
        ),
        floor_bytes=2008,
        floor=[X, W, RESULT],
        saved_written_bytes=1004,
        saved_read_bytes=2004,
        more_read_bytes=4,
    ),
    buffers=[Buffer(name="sub", shape=[250], dtype="float32", bytes=1000, fate="register")],
    memory=Memory(
        peak_bytes=1000,
        unordered_peak_bytes=1000,
        without_reuse_bytes=1000,
        unfused_peak_bytes=2000,
        unfused_without_reuse_bytes=3000,
        unfused_reuses=[Reuse(buffer="exp", takes_over="sub", bytes=1000, in_place=True)],
    ),
    kernels=[SOFTMAX],
)


def test_what_moves_is_told_tensor_by_tensor() -> None:
    assert traffic_sentences(MOVING) == [
        "eager moves 9,000 bytes in 1 call",
        "with fusion: 2,008 bytes in 1 kernel",
        "at least: 2,008 bytes (x read 1,000, w read 8, div written 1,000)",
        "fusion saves 1,004 bytes of writes and 2,004 of reads; it adds 4 bytes of reads to compute values again",
    ]
    assert moved_sentence(MOVING, 0) == "moves x read 1,000, w read 8, div written 1,000"
    assert traffic_sentences(Graph(name="graph_0", traffic=Traffic(floor_bytes=0))) == ["at least: 0 bytes"]
    assert traffic_sentences(Graph(name="graph_0")) == [] and moved_sentence(Graph(name="graph_0"), 0) == ""


def test_levels_tell_what_is_counted_predicted_and_assembled() -> None:
    assert level_sentences(SOFTMAX) == [
        "by its plan for sm_90, loaded more than once, then from caches: x 3 times; "
        "predicted to come from memory again: 500 bytes",
        "by its plan for sm_90, kept in registers: amax, sub",
        "by its plan for sm_90, combined by the threads of a program: amax",
        "assembled for sm_90: 16 bytes of shared memory a program, 32 registers a thread, 0 bytes of spills",
    ]
    unassembled = SOFTMAX.model_copy(update={"also": []})
    assert level_sentences(unassembled)[-1] == "registers and shared memory are not known: it was not assembled"
    assert level_sentences(Kernel(name="k", kind="extern", nodes=[], source="")) == []


def test_memory_is_told_with_the_reuse_that_fusion_made_needless() -> None:
    assert memory_sentences(MOVING) == [
        "alive at a time: at most 1,000 bytes, inputs not counted; without fusion 2,000",
        "never in memory: 1,000 bytes (sub)",
        "without fusion, memory would be used again: exp over sub in place",
    ]
    assert memory_sentences(Graph(name="graph_0")) == []


def test_both_texts_have_traffic_and_memory() -> None:
    report = Report(source="", graphs=[MOVING])
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=400))
    for text in (stream.getvalue(), markdown(report)):
        for sentence in (*traffic_sentences(MOVING), *memory_sentences(MOVING), *level_sentences(SOFTMAX)):
            assert sentence in text


def test_both_texts_say_how_everybody_fared() -> None:
    errors = ElementErrors(largest=2.4e-7, mean=1.9e-8, largest_ulp=1.6, mean_ulp=0.31)
    of = [ContestantErrors(contestant="peer", errors=errors), ContestantErrors(contestant="tvm", problem="is all NaN")]
    call = CallErrors(entry="f", output="the result", seed=1, dtype="float32", elements=8, of=of)
    row = ContestantOutcome(name="onnxrt", failure="onnxrt ends the process: Aborted.")
    report = Report(source="", peer=Peer(contestants=[row], errors=[call], seeds="Errors are of 1 seed."))
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=400))
    for text in (stream.getvalue(), markdown(report)):
        for words in (
            "the result of f, seed 1",
            "2.4e-07",
            "by tvm is all NaN.",
            "1 seed",
            "ends the process: Aborted",
        ):
            assert words in text


SWEEP = SweepResult(
    name="N",
    sizes=[
        SweptSize(value=64, launches=1, kernels=1, bytes=4096, predicted_us=3.14159, compiled_ms=0.5),
        SweptSize(
            value=1024,
            launches=2,
            kernels=2,
            bytes=65536,
            predicted_us=250.4,
            flips=[
                Flip(kind="kernels", about="launches", before="1", after="2"),
                Flip(kind="choice", about="fused_sum", before="persistent", after="split"),
                Flip(kind="verdict", graph="graph_0", about="mul + sum", before="fused: a", after="refused: b"),
            ],
            more_flips=4,
        ),
        SweptSize(value=4096, error="MemoryError (line 2): no room"),
    ],
    verdict="The compiler decides differently from the size before at N = 1024. 1 of 3 sizes failed.",
    message="Not measured, as it would take longer than 40 seconds: 1024.",
)


def test_the_peer_has_a_column_only_where_something_is_known_of_it() -> None:
    alone = Report(source="", summary=Summary(eager_kernels=3, kernels=1, eager_ms=0.5, compiled_ms=0.25))
    assert "|  | eager | compiled |\n|---|---|---|\n| Kernels | 3 | 1 |\n| Time (ms) | 0.5 | 0.25 |" in markdown(alone)
    beside = alone.model_copy(update={"summary": alone.summary.model_copy(update={"peer_kernels": 2})})
    assert "|  | eager | compiled | peer |\n|---|---|---|---|\n| Kernels | 3 | 1 | 2 |\n" in markdown(beside)
    assert "| Time (ms) | 0.5 | 0.25 | – |" in markdown(beside)


def test_a_sweep_is_a_table_with_the_sizes_that_flip_marked_and_a_sentence_for_each_flip() -> None:
    environment = Environment(device="cpu", target="sm_90")
    report = Report(source="x = 1", environment=environment, sweep=SWEEP)
    told = markdown(report)
    assert "| N | launches | bytes | predicted | compiled | flips |" in told
    assert "| 64 | 1 | 4,096 | 3.14 µs | 500 µs |  |" in told
    assert "| 1024 | 2 | 65,536 | 250 µs |  | ← |" in told
    assert "| 4096 |  |  |  |  | failed |" in told
    printed = io.StringIO()
    print_report(report, Console(file=printed, width=200))
    for text in (told, printed.getvalue()):
        assert "Predicted for sm_90: the generated kernels. Measured on cpu: the generated kernels, and" in text
        assert SWEEP.verdict in text and "N = 1024: mul + sum: fused: a → refused: b" in text
        assert "N = 1024: the loops of fused_sum: persistent → split" in text and "N = 1024: and 4 more." in text
        assert "N = 4096: MemoryError (line 2): no room" in text and "Not measured, as it would" in text


def test_facts_of_a_kernel_are_told_in_readable_numbers_and_once() -> None:
    loads = [TensorLoads(tensor="bias", memory_bytes=64, loaded_bytes=64 * 2048)]
    levels = SOFTMAX.levels.model_copy(update={"loads": loads}) if SOFTMAX.levels else None
    kernel = Kernel(name="k", kind="cpp", nodes=[], source="", bytes=1, user_lines=[3], levels=levels)
    refused = Decision(
        a="exp", b="div", round=1, kind="vertical", verdict="refused", reason="r", message="sum must run between"
    )
    again = refused.model_copy(update={"round": 2})
    text = markdown(Report(source="", graphs=[Graph(name="graph_0", kernels=[kernel], decisions=[refused, again])]))
    assert "cpp; 1 byte; line 3" in text
    assert "bias 2,048 times" in text
    assert text.count("sum must run between") == 1


def test_what_library_calls_move_is_said_of_the_bytes() -> None:
    moved = ExecutionTraffic(bytes=100, library_bytes=60, launches=[LaunchTraffic(name="mm", bytes=60, tensors=[])])
    graph = Graph(name="graph_0", traffic=Traffic(unfused=moved))
    assert traffic_sentences(graph)[0] == (
        "without fusion: 100 bytes in 1 kernel, one for each loop or library call; of these, library calls move at "
        "least 60 bytes"
    )
