"""What the stages hand on: the captured graphs, each with its compilation and its part of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler import compile_phases
from compiler import report as rep
from compiler.capture.captured import Capture, CapturedGraph
from compiler.compile import GraphCompilation
from compiler.runtime.checking.wrong_results import graphs_without_times, withhold_times
from compiler.runtime.timing.kernel_times import KernelTimes


@dataclass
class Work:
    """One graph on its way: what was captured, what the compiler made of it, its part of the report."""

    captured: CapturedGraph
    compilation: GraphCompilation
    report: rep.Graph
    failed: bool = False


@dataclass(frozen=True)
class Graphs:
    """All graphs of a snippet, those that failed at a stage among them."""

    capture: Capture
    work: tuple[Work, ...] = ()
    #: What Dynamo and AOTAutograd took, by phase.
    dynamo_seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def alive(self) -> list[Work]:
        return [work for work in self.work if not work.failed]

    @property
    def are_whole(self) -> bool:
        return len(self.alive) == len(self.work)

    @property
    def has_backward(self) -> bool:
        return any(work.captured.phase == "backward" for work in self.work)

    @property
    def call_seconds(self) -> float:
        """What one call of each graph takes at least, operator by operator."""
        return sum(work.captured.least_seconds for work in self.work)

    @property
    def in_timed_calls(self) -> list[Work]:
        """The graphs that the timed calls run. Those calls make no gradients."""
        names = {name for entry in self.capture.timed_entries for name in entry.graphs}
        return [work for work in self.alive if work.report.name in names and work.captured.phase != "backward"]

    def withhold_times(self, report: rep.Report) -> list[Work]:
        """Take what was measured from graphs whose results are wrong. Gives the others, which alone have times."""
        wrong = graphs_without_times(report.wrong_results, self.capture)
        for graph in report.graphs:
            if graph.name in wrong:
                withhold_times(graph)
        return [work for work in self.alive if work.report.name not in wrong]

    def compile_phases(self, peer: Mapping[rep.CompilePhaseName, float] | None = None) -> list[rep.CompilePhase]:
        """What compiling took, beside the peer."""
        compiled = compile_phases.ours(self.dynamo_seconds, [work.compilation.seconds for work in self.work])
        return compile_phases.side_by_side(compiled, peer or {})

    def plans(self) -> dict[str, str]:
        """How each Triton kernel goes through its loops, by the kernel's name, or by its graph's and its own."""
        is_one = len(self.work) == 1
        return {
            name if is_one else f"{work.report.name}: {name}": str(kernel.config["plan"])
            for work in self.work
            for name, kernel in work.compilation.triton.items()
        }


@dataclass(frozen=True)
class Timed:
    """Graphs with the times of their kernels, by the graphs' names, as far as they were measured."""

    graphs: Graphs
    kernels: Mapping[str, KernelTimes] = field(default_factory=dict)
