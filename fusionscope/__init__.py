"""Fusionscope in a Python program: what the compiler makes of a function, without a service.

import fusionscope

report = fusionscope.explain(function)(x, y)        # or a module; the call is explored as it is
fusionscope.show(report)                            # the answer on one screen
report.graphs[0].decisions                          # everything else; see compiler/report

fast = torch.compile(function, backend="fusionscope")
"""

from __future__ import annotations

from compiler.explaining import explain
from compiler.options import Options
from compiler.pipeline import explore
from compiler.report import Report

__all__ = ["Options", "Report", "explain", "explore", "show"]


def show(report: Report) -> None:
    """Print the answer: what is wrong, the verdict, kernels with their times, and the costliest refusals."""
    from rich.console import Console

    from server.answer import print_answer

    print_answer(report, Console(highlight=False))
