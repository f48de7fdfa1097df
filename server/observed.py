"""What the service saw of a job, and what of its report cannot be so.

A report is the word of the snippet's own process, and a snippet may forge it. The service does not know what is true,
but it knows how long the process ran and on what: claims that contradict this are named. So are figures that do not
follow from the samples which they claim to sum up, and times that no call can take.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from compiler.report import Environment, Graph, Observed, Report
from server.wire.messages import Ended, WorkerIdentity

SHORTEST_CALL_MS = 1e-4
"""A tenth of a microsecond: calling a Python function that does nothing takes about as long."""

HIGHEST_RATE_GB_PER_S = 1e6
"""10^15 bytes a second: more than the caches of any one machine give together."""

_SLACK = 1.02
_SLACK_SECONDS = 0.25
"""How much later or earlier than the process itself the worker may look at its clock."""


@dataclass
class Contradictions:
    """Sentences, and whether they concern times: those are then left out of the report."""

    sentences: list[str] = field(default_factory=list)
    are_of_times: bool = False

    def add(self, sentence: str, is_of_times: bool = False) -> None:
        self.sentences.append(sentence)
        self.are_of_times = self.are_of_times or is_of_times


def observed_running(attempt: int, started_at: float, wall_limit: float) -> Observed:
    """What is told under `observed` of a job that runs since `started_at`, by the clock of the web that leased it."""
    ran_seconds = round(max(0.0, time.time() - started_at), 3)
    return Observed(attempt=attempt, wall_seconds=ran_seconds, wall_limit_seconds=wall_limit)


def observed(
    ended: Ended, profile: WorkerIdentity, attempt: int, wall_limit: float, contradictions: list[str]
) -> Observed:
    """What is told under `observed` of a job that ended so on a worker of this profile."""
    seen = ended.model_dump(include=set(Observed.model_fields) & set(Ended.model_fields))
    of_worker = profile.model_dump(include={"python", "torch", "triton"})
    device = {"device": ended.device or profile.device, "device_name": ended.device_name or profile.device_name}
    return Observed.model_validate(
        {
            **seen,
            **of_worker,
            **device,
            "attempt": attempt,
            "wall_limit_seconds": wall_limit,
            "contradictions": contradictions,
        }
    )


def observed_sentences(seen: Observed) -> list[str]:
    """The same for people: how it ended, what it used, where it ran, and what of the report cannot be."""
    end = f"exit code {seen.exit_code}" if seen.exit_code is not None else f"signal {seen.signal}"
    ended = end if seen.ending == "exited" else seen.ending.replace("_", " ")
    used = [f"{seen.wall_seconds:.2f} s"]
    if seen.waited_seconds:
        used.append(f"{seen.waited_seconds:.2f} s of these waiting for the device")
    if seen.processor_seconds is not None:
        used.append(f"{seen.processor_seconds:.2f} s of processor time")
    if seen.peak_memory_bytes is not None:
        used.append(f"at most {seen.peak_memory_bytes / 2**20:.0f} MiB of memory")
    confined = "not confined" if seen.tier == "trusted" else f"confined in tier {seen.tier}"
    ran = f"On {seen.device_name or seen.device}, {confined}, attempt {seen.attempt}."
    return [f"It ended by {ended} after {', '.join(used)}.", ran, *_slowed(seen), *seen.contradictions]


def _slowed(seen: Observed) -> Iterator[str]:
    gpu = seen.gpu_while_timed
    if gpu is not None and gpu.slowed_by:
        heat = "" if gpu.temperature_c_most is None else f", at up to {gpu.temperature_c_most:.0f} °C"
        of = "" if gpu.sm_mhz_possible is None else f" of {gpu.sm_mhz_possible:.0f}"
        clock = f"Its clock was as low as {gpu.sm_mhz_least:.0f}{of} MHz{heat}."
        yield f"While it was timed the GPU was slowed ({', '.join(gpu.slowed_by)}): its times are too long. {clock}"


def contradictions(claimed: Report, ended: Ended, profile: WorkerIdentity) -> Contradictions:
    """What `claimed` says and cannot be."""
    found = Contradictions()
    _check_machine(claimed.environment, ended, profile, found)
    if ended.ending != "worker_lost":
        limit = ended.wall_seconds * _SLACK + _SLACK_SECONDS
        for what, seconds in _spent(claimed):
            if not 0 <= seconds <= limit:
                found.add(
                    f"{what} add up to {seconds:.3g} s, and the whole process ran for {ended.wall_seconds:.3g} s.", True
                )
    # On a GPU, calls that launch nothing take no time of the device.
    has_shortest = (ended.device or profile.device) == "cpu" or any(graph.kernels for graph in claimed.graphs)
    for sentence in _impossible(claimed, SHORTEST_CALL_MS if has_shortest else 0.0):
        found.add(sentence, True)
    return found


def _check_machine(claimed: Environment, ended: Ended, profile: WorkerIdentity, found: Contradictions) -> None:
    device = ended.device or profile.device
    # The processor is always there, also beside a GPU; its name is known only of a worker without one.
    is_processor = claimed.device == "cpu" and device != "cpu"
    if claimed.device and claimed.device.partition(":")[0] != device and not is_processor:
        found.add(f"The report names the device {claimed.device!r}, and the worker's is {device!r}.")
    name = ended.device_name or profile.device_name
    if claimed.device_name and claimed.device_name != name and not is_processor:
        found.add(f"The report names the device {claimed.device_name[:100]!r}, and the worker's is {name!r}.")
    for library in ("python", "torch", "triton"):
        said, known = getattr(claimed, library), getattr(profile, library)
        # A package may leave out what its build is called, as in 2.11.0 of 2.11.0+cu130.
        if said and said != known and said.partition("+")[0] != known:
            found.add(f"The report names {library} {said[:100]!r}, and the worker has {known!r}.")


def _spent(claimed: Report) -> Iterator[tuple[str, float]]:
    """Times that passed one after another while the process ran, in seconds."""
    yield "The times of the stages", sum(stage.ms for stage in claimed.stages) / 1000
    if claimed.timing is not None:
        samples = (sample for one in claimed.timing.contestants for sample in one.samples_ms)
        yield "The samples of the times", sum(samples) / 1000
        yield "The times of compiling", sum(one.compile_s or 0.0 for one in claimed.timing.contestants)
    phases = ((one.compiled_seconds or 0.0) + (one.peer_seconds or 0.0) for one in claimed.compile_phases)
    yield "The phases of compiling", sum(phases)
    kernels = [kernel.measured_us or 0.0 for graph in claimed.graphs for kernel in graph.kernels]
    calls = [graph.call_us or 0.0 for graph in claimed.graphs]
    yield "The measured times of the kernels", (sum(kernels) + sum(calls)) / 1e6
    if claimed.sweep is not None:
        sizes = claimed.sweep.sizes
        yield "The times of the sizes", sum((size.eager_ms or 0) + (size.compiled_ms or 0) for size in sizes) / 1000


def _impossible(claimed: Report, shortest_ms: float) -> Iterator[str]:
    """Of the times by themselves: what cannot be on any machine."""
    if any(stage.ms < 0 for stage in claimed.stages):
        yield "A stage took less than no time."
    contestants = {one.name: one for one in claimed.timing.contestants} if claimed.timing is not None else {}
    for name, one in contestants.items():
        if not one.samples_ms or min(one.samples_ms) < shortest_ms:
            yield f"A call of {name!r} took less than {shortest_ms * 1000:g} microseconds, which no call does."
        elif not math.isclose(one.median_ms, median(one.samples_ms), rel_tol=1e-3):
            yield f"The median of {name!r}, {one.median_ms:.4g} ms, is not that of its samples."
    yield from _impossible_sums(claimed, {name: one.median_ms for name, one in contestants.items()})
    for graph in claimed.graphs:
        yield from _impossible_kernels(graph)


def _impossible_sums(claimed: Report, medians: dict[str, float]) -> Iterator[str]:
    summary = claimed.summary
    for name in ("eager", "compiled", "peer"):
        said = getattr(summary, f"{name}_ms")
        if said is not None and not math.isclose(said, medians.get(name, math.nan), rel_tol=1e-3):
            yield f"The summary's time of {name!r}, {said:.4g} ms, is not what was sampled."
    if summary.speedup is not None:
        eager, compiled = summary.eager_ms, summary.compiled_ms
        if not eager or not compiled or not math.isclose(summary.speedup, eager / compiled, rel_tol=1e-2):
            yield f"The summary's speedup, {summary.speedup:.4g}, is not the quotient of its times."


def _impossible_kernels(graph: Graph) -> Iterator[str]:
    for kernel in graph.kernels:
        if kernel.measured_us is not None and kernel.measured_us <= 0:
            yield f"The kernel {kernel.name[:100]!r} took no time."
        if kernel.gb_per_s is not None and not 0 <= kernel.gb_per_s <= HIGHEST_RATE_GB_PER_S:
            yield f"The kernel {kernel.name[:100]!r} moved {kernel.gb_per_s:.3g} GB in a second."
