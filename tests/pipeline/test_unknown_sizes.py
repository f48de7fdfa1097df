"""What stays out of graphs by default runs as it is; what no kernel can be made for is refused with line and remedy."""

from __future__ import annotations

import pytest
import torch

from compiler.options import Options, Timing
from compiler.pipeline import explore

PROGRAM = """
import torch
import torch._dynamo

torch._dynamo.config.{setting} = True

@torch.compile(fullgraph=True)
def positive(x):
    scaled = x * 2
    return {body}

positive(torch.tensor([1.0, -2.0, 3.0]))
"""


@pytest.mark.parametrize("body", ["scaled * (scaled.sum() > 0).item()", "(scaled, scaled.sum().item())"])
def test_number_that_no_formula_tells_is_refused_with_line_and_remedy(body: str) -> None:
    source = PROGRAM.format(setting="capture_scalar_outputs", body=body)
    with torch._dynamo.config.patch("capture_scalar_outputs", False):  # which the snippet changes
        report = explore(source, Options(timing=Timing(enabled=False)))
    error = report.error
    assert error is not None and report.status == "user_error"
    assert error.type == "Unsupported" and error.line == 10 and error.traceback is None
    assert error.hint is not None and "capture_scalar_outputs" in error.hint
    assert report.graphs and report.graphs[0].aten, "the graph that was captured is still shown"


def test_outside_of_graphs_such_operators_run_as_they_are() -> None:
    source = PROGRAM.format(setting="capture_dynamic_output_shape_ops", body="scaled.nonzero() + 1")
    source = source.replace("_ops = True", "_ops = False").replace("fullgraph=True", "")
    report = explore(source, Options(timing=Timing(enabled=False)))
    assert report.status == "ok" and len(report.graphs) == 2 and len(report.breaks) == 1
