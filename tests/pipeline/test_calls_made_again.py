"""The calls that are timed are those of the snippet made again: what they run is what the report says of them."""

from __future__ import annotations

import pytest
import torch

from compiler.capture.capture import capture
from compiler.options import Options
from compiler.pipeline import explore


def test_the_verdict_names_the_graph_that_was_timed_where_a_later_call_made_it() -> None:
    """With open sizes once they changed, Dynamo runs the newest graph that fits: the first call's too."""
    report = explore("""import torch

@torch.compile
def f(x):
    return torch.sin(x) * 2

f(torch.randn(8, 8))
f(torch.randn(16, 8))
""")
    assert [graph.name for graph in report.graphs] == ["graph_0", "graph_1"]
    assert report.summary.speedup is not None and "timed in graph_1 alone" in report.summary.verdict


def test_calls_of_which_each_is_compiled_anew_have_no_time() -> None:
    report = explore("""import torch

class Steps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        self.step += 1
        return torch.sin(x) * self.step

model = torch.compile(Steps())
model(torch.randn(8, 8, requires_grad=True)).sum().backward()
""")
    assert report.status == "ok", report.error
    assert report.timing is None and report.summary.speedup is None
    assert any("compiled anew" in note.message for note in report.notes)


STEPS = """import torch

class Steps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step, self.kept = 0, None

    def forward(self, x):
        {body}

model = torch.compile(Steps())
for _ in range({calls}):
    model(torch.randn(8, 8))
"""
COUNTS = "self.step += 1; return x.sin() * self.step"
FILLS_A_CACHE = "self.kept = x.new_ones(8).cumsum(0) if self.kept is None else self.kept; return x * self.kept"
STOPS = "self.step += 1; return x.sin() if self.step == 1 else None"
ALTERNATES = "self.step = 1 - self.step; return x.sin() if self.step else x.cos() + 1"


@pytest.mark.parametrize(
    ("body", "calls", "why"),
    [
        pytest.param(COUNTS, 1, "compiled anew", id="each call is compiled anew"),
        pytest.param(COUNTS, 12, "none of its graphs", id="Dynamo has reached its limit"),
        pytest.param(FILLS_A_CACHE, 1, "compiled anew", id="the first call fills a cache"),
        pytest.param(STOPS, 3, "none of its graphs", id="later calls do nothing"),
        pytest.param(ALTERNATES, 4, "not all run the same graphs", id="calls alternate"),
    ],
)
def test_calls_that_do_not_run_the_graphs_have_no_time(body: str, calls: int, why: str) -> None:
    report = explore(STEPS.format(body=body, calls=calls))
    assert report.status == "ok", report.error
    assert report.timing is None and report.summary.speedup is None
    assert any("not timed" in note.message and why in note.message for note in report.notes)


def test_a_cache_that_is_filled_does_not_take_the_times_of_later_calls() -> None:
    report = explore(STEPS.format(body=FILLS_A_CACHE, calls=2))
    assert report.summary.speedup is not None and "timed in graph_1 alone" in report.summary.verdict


@pytest.mark.parametrize("made", ["in inference mode", "before"])
def test_a_call_in_inference_mode_is_timed_with_the_graph_that_it_made(made: str) -> None:
    """Dynamo guards on whether a tensor was made in that mode, which a copy made in another mode was not."""
    tensor = "torch.randn(8, 8)"
    report = explore(f"""import torch

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
{"x = " + tensor if made == "before" else ""}
with torch.inference_mode():
    model({"x" if made == "before" else tensor})
""")
    assert report.status == "ok", report.error
    assert report.summary.speedup is not None and report.notes == []


def test_a_call_that_cannot_be_made_again_has_no_time() -> None:
    report = explore("""import torch

batches = [torch.randn(8, 8)]

@torch.compile
def f(x):
    return x.sin() + batches.pop()

f(torch.randn(8, 8))
""")
    assert report.status == "ok" and report.timing is None and report.error is None
    assert any("pop from empty list" in note.message for note in report.notes)


def test_an_eager_call_runs_no_compiled_function() -> None:
    """Else eager's time has our kernels in it, and compiled results are checked against themselves."""
    captured = capture(
        """import torch

inner = torch.compile(torch.nn.Linear(8, 8))
again = torch.compile(lambda x: inner(x).sin())

@torch.compile
def outer(x):
    y = again(x)
    print(y.shape)
    return inner(y)

outer(torch.randn(8, 8))
inner(torch.randn(8, 8))
""",
        Options(),
        torch.device("cpu"),
    )
    assert captured.error is None and captured.graphs
    before = [graph.runner.calls for graph in captured.graphs]
    for entry in captured.timed_entries:
        entry.eager(*entry.args, **entry.kwargs)
    assert [graph.runner.calls for graph in captured.graphs] == before
    assert not captured.made_later


def test_layers_that_are_compiled_alike_run_one_graph() -> None:
    """As with PyTorch: of each `torch.compile` with the same settings, Dynamo takes the same backend."""
    report = explore(
        """import torch

layers = [torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())) for _ in range(3)]
x = torch.randn(8, 8)
with torch.no_grad():
    for layer in layers:
        x = layer(x)
""",
        Options(peer=True),
    )
    (graph,) = report.graphs
    assert graph.calls == 3 and report.summary.recompiles == 0
    assert report.summary.speedup is not None and "alone" not in report.summary.verdict
    assert report.peer is not None and report.summary.peer_kernels == len(report.peer.kernels) == 2
