"""A snippet goes all the way: what people paste becomes a report that is complete, right, and plain JSON."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch

from compiler import environment
from compiler.devices import device_for
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.report import Report

SNIPPETS = Path(__file__).parents[1] / "snippets"
STAGES = ["capture", "lower", "schedule", "codegen", "run", "measure", "profile", "compare", "emulate"]
#: Snippets that end in an error, and the author's line that it points to.
FAILING = {"14_needs_the_network": 3, "15_syntax_error": 4, "16_raises": 6}
WORKING = sorted(path.stem for path in SNIPPETS.glob("*.py") if path.stem not in FAILING)
MATRIX = 1024 * 1024 * 4
#: Sizes that are not what is tested: such products in bfloat16 take minutes on a CPU without instructions for them.
SMALLER = {"02_dead_matmul": {"4096": "512", "2048": "256"}}


@cache
def report_of(name: str) -> Report:
    """Timed as little as possible: what is tested is that it is timed at all."""
    options = Options(device="cpu", timing=Timing(min_runs=3, max_seconds=0.1))
    source = (SNIPPETS / f"{name}.py").read_text()
    for size, smaller in SMALLER.get(name, {}).items():
        source = source.replace(size, smaller)
    return explore(source, options)


@pytest.mark.parametrize("name", WORKING)
def test_a_snippet_ends_well_and_is_as_good_as_eager(name: str) -> None:
    report = report_of(name)
    assert report.error is None and report.status == "ok"
    assert [stage.name for stage in report.stages] == STAGES
    assert {stage.status for stage in report.stages if stage.name != "compare"} == {"done"}
    summary = report.summary
    if summary.compiled_error is not None and summary.eager_error is not None:
        assert summary.compiled_error <= 3 * summary.eager_error + 4 * torch.finfo(torch.float32).eps
    assert report.timing is not None and {c.name for c in report.timing.contestants} == {"eager", "compiled"}


@pytest.mark.parametrize("name", WORKING)
def test_every_triton_twin_is_assembled_and_agrees_with_the_kernel_that_ran(name: str) -> None:
    for graph in report_of(name).graphs:
        for kernel in graph.kernels:
            twins = [also for also in kernel.also if also.language == "triton"]
            assert len(twins) == (kernel.kind != "extern")
            for twin in twins:
                assert twin.registers is not None and twin.spills == 0, twin.check
                assert twin.check is not None
                if not twin.check.startswith("not run"):
                    assert twin.max_error is not None and twin.max_error < 2e-2, twin.check


@pytest.mark.parametrize("name", WORKING)
def test_a_report_is_plain_json(name: str) -> None:
    report = report_of(name)
    assert Report.model_validate_json(report.model_dump_json()) == report


@pytest.mark.parametrize("name", WORKING)
def test_every_kernel_line_leads_back_to_the_snippet(name: str) -> None:
    report = report_of(name)
    last_line = len(report.source.splitlines())
    for graph in report.graphs:
        nodes = {node.name for node in graph.loops}
        for kernel in graph.kernels:
            assert set(kernel.nodes) <= nodes
            lines = kernel.source.splitlines()
            for line in kernel.lines:
                assert 1 <= line.line <= len(lines)
                assert all(1 <= user_line <= last_line for user_line in line.user_lines)
            if kernel.kind != "extern":
                assert any(line.user_lines for line in kernel.lines)


@pytest.mark.parametrize("name", FAILING)
def test_an_error_points_to_the_authors_line_and_loses_no_stage(name: str) -> None:
    report = report_of(name)
    assert report.status == "user_error" and report.error is not None
    assert report.error.line == FAILING[name]
    assert [stage.name for stage in report.stages] == STAGES
    assert report.stages[0].status == "failed"
    assert report.summary.verdict


def test_a_pointwise_chain_is_one_kernel_that_moves_three_tensors() -> None:
    summary = report_of("01_activation").summary
    assert (summary.eager_kernels, summary.kernels, summary.bytes) == (6, 1, 3 * MATRIX)
    assert summary.bytes == summary.floor_bytes


def test_softmax_by_hand_is_one_kernel_that_moves_two_tensors() -> None:
    summary = report_of("11_lone_function").summary
    assert (summary.kernels, summary.bytes) == (1, 2 * MATRIX)


def test_a_dead_matrix_product_is_not_run() -> None:
    (graph,) = report_of("02_dead_matmul").graphs
    # The first product has its ReLU in its own kernel, which C++ runs here.
    assert [(kernel.kind, kernel.name) for kernel in graph.kernels] == [("cpp", "fused_mm_relu"), ("extern", "aten.mm")]
    assert [node.target for node in graph.fx if node.dead and node.op == "call_function"] != []


def test_a_multilayer_perceptron_is_two_library_calls_and_two_kernels() -> None:
    """The last bias is a kernel: in float32 the library's call with a bias takes longer than one without and this."""
    (graph,) = report_of("06_gelu_module").graphs
    assert [kernel.kind for kernel in graph.kernels] == ["extern", "cpp", "extern", "cpp"]


def test_attention_by_hand_is_one_library_call() -> None:
    report = report_of("12_attention_by_hand")
    (graph,) = report.graphs
    (rewrite,) = graph.rewrites
    assert [(kernel.kind, kernel.user_lines) for kernel in graph.kernels] == [("extern", [8, 10, 11])]
    assert (rewrite.verdict, rewrite.reason, rewrite.lines) == ("replaced", "attention.replaced", [8, 10, 11])
    assert {node.name for node in graph.fx} >= {"matmul", "softmax", *rewrite.nodes}
    assert report.summary.bytes is not None and report.summary.bytes < 5 * (2 * 8 * 256 * 64 * 4)
    assert report.summary.compiled_error is not None and report.summary.compiled_error < 1e-6


def test_a_training_step_has_a_forward_and_a_backward_graph() -> None:
    assert {graph.phase for graph in report_of("08_training_step").graphs} == {"forward", "backward"}


def test_inputs_that_were_chosen_are_stated() -> None:
    assert any("1024 x 1024" in note.message for note in report_of("11_lone_function").notes)


def test_a_reversed_read_is_refused_with_both_formulas() -> None:
    (graph,) = report_of("18_reverse_read").graphs
    (decision,) = graph.decisions
    assert (decision.verdict, decision.reason) == ("refused", "index.reversed")
    assert decision.would_fuse_if == "`mul` read `sum_1` forwards, at x0 instead of -x0 + 4095"
    assert "x0" in decision.message and "-x0 + 4095" in decision.message


def test_stages_that_were_not_asked_for_are_skipped() -> None:
    options = Options(device="cpu", produce=("capture", "lower", "schedule"))
    report = explore((SNIPPETS / "11_lone_function.py").read_text(), options)
    assert [s.name for s in report.stages if s.status == "done"] == ["capture", "lower", "schedule"]
    assert report.graphs[0].decisions and not report.graphs[0].kernels


def test_the_verdict_names_the_graphs_that_were_timed_where_there_are_others() -> None:
    """A later call with another number makes another graph, and `backward` runs one of its own: neither is timed,
    unless the call that is timed runs backward itself."""
    timing = Timing(min_runs=3, max_seconds=0.1)
    recompiled = """import torch
@torch.compile
def f(x, k):
    return (x + k).tanh() * x
for k in (2.5, 3, 4):
    f(torch.randn(16, 128), k)
"""
    trained = """import torch
w = torch.randn(8, 8, requires_grad=True)
torch.compile(lambda x: (x @ w).sin().sum())(torch.randn(8, 8)).backward()
"""
    whole = trained.replace(".backward()", "").replace(", requires_grad=True", "")
    itself = """import torch
w = torch.randn(8, 8, requires_grad=True)
@torch.compile
def step(x):
    (x @ w).sin().sum().backward()
step(torch.randn(8, 8))
"""
    for source in (recompiled, trained):
        report = explore(source, Options(device="cpu", timing=timing))
        assert len(report.graphs) == 2
        assert "became" in report.summary.verdict and ", timed in graph_0 alone: " in report.summary.verdict
    for source, graphs in ((whole, 1), (itself, 2)):
        report = explore(source, Options(device="cpu", timing=timing))
        assert len(report.graphs) == graphs
        assert report.timing and "timed in" not in report.summary.verdict


def test_each_stage_is_published_when_it_ends() -> None:
    seen: list[int] = []
    options = Options(device="cpu", timing=Timing(enabled=False))
    explore((SNIPPETS / "03_trig_cuda.py").read_text(), options, lambda report: seen.append(len(report.stages)))
    assert seen[: len(STAGES)] == list(range(1, len(STAGES) + 1))


def test_the_threads_are_those_that_the_snippet_has_chosen() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        chosen = "import torch\ntorch.set_num_threads(1)\ndef f(x):\n    return x.relu()\nf(torch.ones(8))"
        report = explore(chosen, Options(device="cpu", timing=Timing(enabled=False)))
    finally:
        torch.set_num_threads(before)
    assert report.environment.threads == 1


def test_a_process_asks_for_the_driver_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, asked = tmp_path / "nvidia-smi", tmp_path / "asked"
    program.write_text(f"#!/bin/sh\necho asked >> {asked}\necho 570.1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA H100")
    environment._driver.cache_clear()
    try:
        told = [environment.describe_environment(torch.device("cuda"), device_for("cpu"), Options()) for _ in range(2)]
    finally:
        environment._driver.cache_clear()
    assert [one.driver for one in told] == ["570.1", "570.1"]
    assert asked.read_text() == "asked\n"


def test_an_input_that_a_call_changes_is_written_where_it_lies_as_by_torch_compile() -> None:
    """The rows that are written are what moves, and the twin in Triton's interpreter starts from the old values."""
    source = """import torch
@torch.compile
def f(x, y, cache, place, new):
    x.mul_(0.9).add_(y)
    cache.index_copy_(0, place, new)
    return x * y
f(torch.randn(64, 64), torch.randn(64, 64), torch.randn(1000, 64), torch.tensor([3, 7]), torch.randn(2, 64))
"""
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok", report.error
    (graph,) = report.graphs
    assert graph.memory is not None and {reuse.takes_over for reuse in graph.memory.reuses} == {"x", "cache"}
    of_cache = next(kernel for kernel in graph.kernels if kernel.updates)
    assert of_cache.bytes == 2 * 8 + 2 * 2 * 64 * 4  # two places, two rows read and written
    twins = [also for kernel in graph.kernels for also in kernel.also if also.language == "triton"]
    assert len(twins) == len(graph.kernels)
    assert all(twin.max_error is not None and twin.max_error < 1e-6 for twin in twins), [twin.check for twin in twins]


def test_a_number_that_a_call_changes_is_what_it_is_in_eager_mode() -> None:
    source = """import torch
@torch.compile
def count(seen, x):
    seen.add_(5)
    return x - seen
seen = torch.zeros((), dtype=torch.float64)
for _ in range(2):
    print(count(seen, torch.zeros(2)).tolist(), seen.item())
"""
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.output == "[-5.0, -5.0] 5.0\n[-10.0, -10.0] 10.0\n"


def test_a_kernel_that_only_checks_values_runs_in_the_interpreter_too() -> None:
    source = """import torch
@torch.compile
def f(x):
    torch._assert_async((x.abs() < 9).all(), "large")
    return x @ x
f(torch.rand(8, 8))
"""
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok", report.error
    kernels = [kernel for graph in report.graphs for kernel in graph.kernels]
    checks = [also.check for kernel in kernels for also in kernel.also if also.language == "triton"]
    assert any(check is not None and check.endswith("writes nothing") for check in checks), checks


def test_no_compiler_must_move_the_rows_of_an_input_that_nobody_changes() -> None:
    source = """import torch
@torch.compile
def f(cache, place, new, x):
    cache.index_copy_(0, place, new)
    cache[5] = x
f(torch.randn(1000, 64), torch.tensor([3, 7]), torch.randn(2, 64), torch.randn(64))
@torch.compile
def g(total, place, more):
    total.index_add_(0, place, more)
g(torch.zeros(1000, 64), torch.tensor([3, 7]), torch.randn(2, 64))
"""
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok", report.error
    for graph in report.graphs:
        assert graph.floor_bytes is not None
        assert graph.floor_bytes <= sum(kernel.bytes for kernel in graph.kernels)
    row = 64 * 4
    assert report.graphs[1].floor_bytes == 2 * 8 + 2 * row + 2 * (
        row + row
    )  # places, what is added, rows read and written
