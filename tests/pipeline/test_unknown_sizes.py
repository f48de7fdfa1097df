"""Sizes that only a run could tell are refused with the user's line and what to do instead."""

from __future__ import annotations

import pytest
import torch

from compiler.options import Options, Timing
from compiler.pipeline import explore

TAKEN_INTO_THE_GRAPH = """
import torch
import torch._dynamo

torch._dynamo.config.{setting} = True

@torch.compile(fullgraph=True)
def positive(x):
    scaled = x * 2
    return {body}

positive(torch.tensor([1.0, -2.0, 3.0]))
"""


@pytest.mark.parametrize(
    "setting, body",
    [
        ("capture_dynamic_output_shape_ops", "scaled.nonzero() + 1"),
        ("capture_dynamic_output_shape_ops", "torch.unique(scaled) + 1"),
        ("capture_scalar_outputs", "torch.zeros(scaled.argmax().item() + 2) + 1"),
    ],
)
def test_size_that_only_a_run_tells_is_refused_with_line_and_remedy(setting: str, body: str) -> None:
    with torch._dynamo.config.patch(setting, False):  # which the snippet changes
        report = explore(TAKEN_INTO_THE_GRAPH.format(setting=setting, body=body), Options(timing=Timing(enabled=False)))
    error = report.error
    assert error is not None and report.status == "user_error"
    assert error.type == "Unsupported" and error.line == 10 and error.traceback is None
    assert "known only when it has run" in error.message
    assert error.hint is not None and setting in error.hint
    assert report.graphs and report.graphs[0].aten, "the graph that was captured is still shown"


def test_outside_of_graphs_such_operators_run_as_they_are() -> None:
    source = TAKEN_INTO_THE_GRAPH.format(setting="capture_dynamic_output_shape_ops", body="scaled.nonzero() + 1")
    source = source.replace("_ops = True", "_ops = False").replace("fullgraph=True", "")
    report = explore(source, Options(timing=Timing(enabled=False)))
    assert report.status == "ok" and len(report.graphs) == 2 and len(report.breaks) == 1
