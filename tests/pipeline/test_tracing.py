"""A call as torch's profiler records it: kernels are named as on the page, and the file is one that Perfetto opens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.report import Report
from server.chrome_trace import chrome_trace

ROOT = Path(__file__).parents[2]
SOURCE = """import torch
w = torch.randn(64, 64)
def f(x):
    return torch.softmax(torch.relu(x @ w), -1)
f(torch.randn(32, 64))
"""


@pytest.fixture(scope="module")
def report() -> Report:
    found = explore(SOURCE, Options(device="cpu", trace=True, timing=Timing(min_runs=3, max_seconds=0.1)))
    assert found.error is None
    return found


def test_eager_and_our_kernels_are_recorded_by_their_names(report: Report) -> None:
    names: dict[str, list[str]] = {one.contestant: [] for one in report.trace}
    for one in report.trace:
        names[one.contestant].append(one.name)
    assert set(names) == {"eager", "graph_0"}
    assert "aten::softmax" in names["eager"] and "aten::mm" in " ".join(names["eager"])
    generated = [(place, kernel) for place, kernel in enumerate(report.graphs[0].kernels) if kernel.kind != "extern"]
    assert generated and all(f"K{place + 1} {kernel.name}" in names["graph_0"] for place, kernel in generated)
    assert all(one.start_us >= 0 and one.duration_us > 0 for one in report.trace)


def test_kernels_lie_within_the_call_of_their_graph(report: Report) -> None:
    ours = [one for one in report.trace if one.contestant == "graph_0"]
    (call,) = (one for one in ours if one.name == "graph_0")
    for one in ours:
        if one.name.startswith("K"):
            assert call.start_us <= one.start_us and one.start_us + one.duration_us <= call.start_us + call.duration_us


def test_the_file_is_a_chrome_trace(report: Report) -> None:
    trace = json.loads(chrome_trace(report).model_dump_json())
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    named = {(event["pid"], event["tid"]) for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert len(complete) == len(report.trace)
    assert {(event["pid"], event["tid"]) for event in complete} == named
    assert {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"} == {
        "eager",
        "graph_0",
    }
    with pytest.raises(LookupError):
        chrome_trace(report.model_copy(update={"trace": []}))


def test_the_profiler_says_nothing_on_standard_error() -> None:
    """In a process of its own: what the library was told when it first ran in this one stays so."""
    call = "from compiler.runtime.timing.tracing import recorded, torch\n"
    call += "assert recorded(lambda: torch.ones(2) + 1, 'eager', torch.device('cpu'))"
    done = subprocess.run([sys.executable, "-c", call], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
