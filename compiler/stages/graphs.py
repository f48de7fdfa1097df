"""What the stages hand on: the captured graphs, each with its compilation and its part of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from compiler import compile_phases
from compiler import report as rep
from compiler.capture.captured import Capture, CapturedGraph
from compiler.compile import Built, Generated, Target
from compiler.runtime.checking.wrong_results import graphs_without_times, withhold_times
from compiler.runtime.timing.kernel_times import KernelTimes

Made = TypeVar("Made", bound=Target, covariant=True)
Next = TypeVar("Next", bound=Target)


@dataclass(frozen=True)
class Work(Generic[Made]):
    """One graph on its way: what was captured, what the last stage made of it, its part of the report, which grows."""

    captured: CapturedGraph
    compilation: Made
    report: rep.Graph

    def after(self, made: Next) -> Work[Next]:
        """The same graph with what the next stage made of it."""
        return Work(self.captured, made, self.report)


@dataclass(frozen=True)
class Graphs(Generic[Made]):
    """The graphs of a snippet that came through the last stage."""

    capture: Capture
    work: tuple[Work[Made], ...] = ()
    #: What Dynamo and AOTAutograd took, by phase.
    dynamo_seconds: Mapping[str, float] = field(default_factory=dict)

    def after(self, work: Iterable[Work[Next]]) -> Graphs[Next]:
        """Those that came through the next stage as well."""
        return Graphs(self.capture, tuple(work), self.dynamo_seconds)

    @property
    def none(self) -> Graphs[Any]:
        """What a stage makes that is left out."""
        return self.after(())

    @property
    def are_whole(self) -> bool:
        return len(self.work) == len(self.capture.graphs)

    @property
    def has_backward(self) -> bool:
        return any(work.captured.phase == "backward" for work in self.work)

    @property
    def call_seconds(self) -> float:
        """What one call of each graph takes at least, operator by operator."""
        return sum(graph.least_seconds for graph in self.capture.graphs)

    @property
    def in_timed_calls(self) -> list[Work[Made]]:
        names = self.capture.timed_graphs
        return [work for work in self.work if work.report.name in names]

    def withhold_times(self, report: rep.Report) -> list[Work[Made]]:
        """Take what was measured from graphs whose results are wrong. Gives the others, which alone have times."""
        wrong = graphs_without_times(report.wrong_results, self.capture)
        for graph in report.graphs:
            if graph.name in wrong:
                withhold_times(graph)
        return [work for work in self.work if work.report.name not in wrong]

    def compile_phases(self, peer: Mapping[rep.CompilePhaseName, float] | None = None) -> list[rep.CompilePhase]:
        """What compiling took, beside the peer."""
        compiled = compile_phases.ours(self.dynamo_seconds, [work.compilation.seconds for work in self.work])
        return compile_phases.side_by_side(compiled, peer or {})


def plans_of(graphs: Graphs[Generated]) -> dict[str, str]:
    """How each Triton kernel goes through its loops, by the kernel's name, or by its graph's and its own."""
    is_one = len(graphs.capture.graphs) == 1
    return {
        name if is_one else f"{work.report.name}: {name}": str(kernel.config["plan"])
        for work in graphs.work
        for name, kernel in work.compilation.triton.items()
    }


@dataclass(frozen=True)
class Timed:
    """Graphs with the times of their kernels, by the graphs' names, as far as they were measured."""

    graphs: Graphs[Built]
    kernels: Mapping[str, KernelTimes] = field(default_factory=dict)
