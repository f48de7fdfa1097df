"""Running a sweep: every size is explored on its own, as if it had been written in the snippet.

First each size is compiled, which is quick and tells all verdicts and predictions; then each is compiled again, run and
measured, as long as the sweep's time lasts. So a sweep that is too long loses measurements and no verdict, and only one
size is in memory at a time. What goes wrong at a size is told in its row.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from compiler import report as rep
from compiler.matched_kernels import total
from compiler.options import Options, Sweep, Timing
from compiler.sweep.flips import Attempt, attempt_of, result_of
from compiler.sweep.sizes import with_size

#: A sweep has many sizes to measure, so each gets less time than the snippet itself.
_SECONDS_PER_SIZE = 0.5


@dataclass(frozen=True)
class Explored:
    """What one size came to: its report, and how each kernel of a graph goes through its loops, by their names.
    `forget` lets go of its tensors."""

    report: rep.Report
    plans: dict[str, str]
    forget: Callable[[], None]


#: Explores a snippet with options; with times or without.
Explore = Callable[[str, Options, bool], Explored]
#: Takes the result so far, the name of the step that has ended, and the seconds that it took.
Publish = Callable[[rep.SweepResult, str, float], None]


@dataclass
class Run:
    """One sweep under way. `publish` is told after each size what is known so far; the time of the sweep counts from
    `began`, on `clock`."""

    source: str
    options: Options
    sweep: Sweep
    explore: Explore
    publish: Publish
    began: float
    clock: Callable[[], float]
    attempts: list[Attempt] = field(default_factory=list)
    #: What it took to compile each size.
    seconds: list[float] = field(default_factory=list)

    def compile_all(self) -> None:
        """Raises `UnknownSize` before the first size is tried."""
        with_size(self.source, self.options, self.sweep.name, self.sweep.values[0])
        for value in self.sweep.values:
            started = self.clock()
            with self._explored(value, with_times=False) as explored:
                self.attempts.append(_attempt(value, explored))
            self.seconds.append(self.clock() - started)
            self.publish(self.result(), f"sweep {value}", self.seconds[-1])

    def measure_all(self) -> str | None:
        """Why some sizes were not measured, or None. What a size will take is told from the size before it: both run
        the snippet, so the one is to the other as it was when they were compiled."""
        rate = 1.0
        for position, attempt in enumerate(self.attempts):
            if attempt.size.error is not None or not attempt.has_kernels:
                continue
            started = self.clock()
            if started + rate * self.seconds[position] - self.began > self.sweep.max_seconds:
                left = ", ".join(str(other.size.value) for other in self.attempts[position:])
                return f"Not measured, as it would take longer than {self.sweep.max_seconds:g} seconds: {left}."
            with self._explored(attempt.size.value, with_times=True) as explored:
                _add_times(attempt.size, explored.report)
            took = self.clock() - started
            rate = took / self.seconds[position]
            self.publish(self.result(), f"measure {attempt.size.value}", took)
        return None

    def result(self) -> rep.SweepResult:
        return result_of(self.sweep.name, self.attempts)

    @contextmanager
    def _explored(self, value: int, with_times: bool) -> Iterator[Explored]:
        """One size, whose tensors are gone when the block ends."""
        timing = self.options.timing
        short = Timing.model_validate(
            timing.model_dump() | {"max_seconds": min(timing.max_seconds, _SECONDS_PER_SIZE), "enabled": with_times}
        )
        # The sweep's own time bounds what is measured: what is compiled has the time of the whole exploration.
        whole = math.inf if self.options.max_seconds is None else self.options.max_seconds
        until = self.began + (min(whole, self.sweep.max_seconds) if with_times else whole)
        left = None if math.isinf(until) else max(until - self.clock(), _SECONDS_PER_SIZE)
        alone = self.options.model_copy(update={"sweep": None, "peer": False, "timing": short, "max_seconds": left})
        explored = self.explore(*with_size(self.source, alone, self.sweep.name, value), with_times)
        try:
            yield explored
        finally:
            explored.forget()
            gc.collect()


def sweep_sizes(
    source: str,
    options: Options,
    explore: Explore,
    publish: Publish,
    began: float,
    clock: Callable[[], float],
) -> rep.SweepResult:
    """The sweep that `options` ask for. Raises `UnknownSize` before it begins, SyntaxError if `source` is no Python."""
    assert options.sweep is not None
    run = Run(source, options, options.sweep, explore, publish, began, clock)
    run.compile_all()
    wants_times = options.timing.enabled and (options.produce is None or "measure" in options.produce)
    message = run.measure_all() if wants_times else "Nothing was measured: timing was turned off."
    return run.result().model_copy(update={"message": message})


def _attempt(value: int, explored: Explored) -> Attempt:
    report = explored.report
    graphs = report.graphs
    kernels = [kernel for graph in graphs for kernel in graph.kernels]
    size = rep.SweptSize(value=value, error=_sentence(report.error))
    if kernels:
        size.launches = len(kernels)
        size.kernels = sum(kernel.kind != "extern" for kernel in kernels)
        size.bytes = sum(kernel.bytes for kernel in kernels)
        size.floor_bytes = total(graph.floor_bytes for graph in graphs)
        size.predicted_us = total(graph.predicted_us for graph in graphs if graph.predicted_us is not None)
        size.plans = explored.plans
    return attempt_of(size, graphs)


def _add_times(size: rep.SweptSize, report: rep.Report) -> None:
    size.error = _sentence(report.error)
    size.wrong_results = report.wrong_results
    generated = [kernel for graph in report.graphs for kernel in graph.kernels if kernel.kind != "extern"]
    if not any(graph.disturbed for graph in report.graphs):
        size.measured_us = total(kernel.measured_us for kernel in generated)
    medians = {one.name: one.median_ms for one in report.timing.contestants} if report.timing is not None else {}
    size.eager_ms, size.compiled_ms = medians.get("eager"), medians.get("compiled")


def _sentence(error: rep.Error | None) -> str | None:
    if error is None:
        return None
    where = f" (line {error.line})" if error.line is not None else ""
    return f"{error.type}{where}: {error.message.splitlines()[0] if error.message else 'no message'}"
