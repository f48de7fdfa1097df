"""Ask a Fusionscope service from Python, a notebook or a script.

    from fusionscope_client import Fusionscope

    fs = Fusionscope("http://127.0.0.1:8000")
    report = fs.explore(softmax, x)          # a function and its arguments, a file, or a text
    report.why("exp", "sum_1")
    report.force("exp", "sum_1")             # the same once more, with the two fused

`AsyncFusionscope` is the same with `await`. In a notebook, `%load_ext fusionscope_client` brings the cell magic
`%%fusion`.

client      what is asked and how: one file, for both ways of waiting
questions   the requests of each question, and what is made of the answers
events      the stream in which a service tells how far it is
sources     the text of a function, and of all that it needs
results     a report as one looks at it: kernels, decisions, whys
contract    the fields of a report, written from the service's own models; decoding fills them from JSON
display     the answer, tables and kernels as text and as HTML; picture has the map as SVG
progress    how far it is, where somebody watches
notebook    the cell magic
errors      what is raised
"""

from __future__ import annotations

from typing import Any

from fusionscope_client.client import AsyncFusionscope, Fusionscope
from fusionscope_client.errors import FusionscopeError, NotASource, ServiceProblem, Unreachable
from fusionscope_client.results import AsyncReport, Report
from fusionscope_client.sources import source_of

__all__ = [
    "AsyncFusionscope",
    "AsyncReport",
    "Fusionscope",
    "FusionscopeError",
    "NotASource",
    "Report",
    "ServiceProblem",
    "Unreachable",
    "load_ipython_extension",
    "source_of",
]


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext fusionscope_client` calls."""
    from fusionscope_client.notebook import FusionMagics

    ipython.register_magics(FusionMagics)
