"""The program in the compiler's place tells the parts of a graph in the compiler's order."""

from __future__ import annotations

from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.report import Graph, Report
from tests.browser.programs import STAGE_OF_PART
from tests.browser.steps import SOURCE


def test_each_part_arrives_with_the_stage_that_it_arrives_with_in_the_compiler() -> None:
    arrived: dict[str, int] = {}
    nothing = Graph(name="")

    def note(report: Report) -> None:
        for graph in report.graphs:
            for name in Graph.model_fields:
                if getattr(graph, name) != getattr(nothing, name):
                    arrived.setdefault(name, len(report.stages))

    explore(SOURCE, Options(timing=Timing(enabled=False)), on_stage=note)
    assert {"fx", "loops", "rounds", "kernels", "wrapper"} <= arrived.keys()
    assert {name: STAGE_OF_PART.get(name, 1) for name in arrived} == arrived
