"""The times of a graph's kernels, each alone, and whether they add up to those of the calls that launch them.

Each kernel is timed alone, in a moment of its own, so a machine that is busy for a moment makes one of them too long:
a kernel of 100 ms in a call of 6 ms. Such times belong to different machines, and no figure is derived from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from compiler import report as rep
from compiler.budget import Budget
from compiler.capture.captured import CapturedGraph, copy_values
from compiler.devices import Device
from compiler.options import Timing
from compiler.runtime.executable import CompiledGraph
from compiler.runtime.timing.measure import Samples, measure_each
from compiler.runtime.trial import record_arguments, users_launches

#: How often times that do not add up are taken anew.
TRIES_AGAIN = 2
#: How much longer kernels alone may be than the call that they are part of. On a GPU each of them is timed with a cold
#: cache, where in the call it finds what the one before it has left.
MOST_ABOVE = {"cpu": 1.3, "cuda": 3.0}
#: How much longer the call may be, where nothing but these kernels is launched: what one of them leaves, the next one
#: may find in memory only, while alone it finds its own data in the cache.
MOST_BELOW = 4.0
#: Launches, allocations and the resolution of the clocks, in milliseconds for each kernel.
BESIDE_MS = 0.02


@dataclass(frozen=True)
class KernelTimes:
    """What was measured of one graph: each kernel alone, by name, those of the snippet's own by their loop nodes; one
    call of all of them; and why these do not add up, if they do not."""

    kernels: Mapping[str, Samples]
    call: Samples
    disturbed: str | None = None


def measure_kernels(
    graph: CapturedGraph, compilation: CompiledGraph, timing: Timing, budget: Budget
) -> KernelTimes | None:
    """Time each kernel alone on the tensors that the graph gives it, and a call of the whole graph beside them. A
    scatter updates its tensor at every run: its values are no result then, its accesses stay the same.

    Times that do not add up to the call's are taken again; if they still do not, `disturbed` says so. Kernels for which
    there was no time are not in it. None where nothing was measured."""
    executable, inputs = compilation.executable, graph.inputs
    if inputs is None or not budget.fits(graph.least_seconds):
        return None
    arguments = record_arguments(compilation, inputs) if executable.kernels else {}
    copies = copy_values(inputs)

    def whole() -> object:
        with torch.no_grad():
            return executable.call(list(copies))

    calls: dict[str, Callable[[], None]] = {
        name: partial(executable.kernels[name], *given) for name, given in arguments.items()
    }
    if compilation.runs_on.type == "cuda":
        calls |= users_launches(compilation, inputs)
    if not calls:
        return None
    half = timing.model_copy(update={"max_seconds": timing.max_seconds / 2})
    found = None
    for left in range(TRIES_AGAIN, -1, -1):
        part, began = budget.share(1 / (left + 1)), budget.clock()
        call = measure_each({"call": whole}, compilation.runs_on, half, part.share(0.5)).get("call")
        if call is None:
            break
        times = measure_each(calls, compilation.runs_on, half, part)
        is_whole = len(times) == len(arguments) == len(compilation.schedule.units)
        told = disturbance(list(times.values()), call, is_whole, compilation.runs_on.type)
        found = KernelTimes(times, call, told)
        if told is None or not budget.fits(budget.clock() - began):
            break
    return found


def disturbance(
    kernels: Sequence[Samples], call: Samples, is_whole: bool, device_type: str, what: str = "kernels"
) -> str | None:
    """Why the times are no times of one call, as a sentence; None where they add up. `what` they are the times of.

    Medians are what a reader sees beside each other, so the kernels' must not be longer than the call's: a wide spread
    of either is no excuse, but one more sign that the machine was busy. `is_whole` says that the call launches nothing
    but these kernels: only then must it not be much longer than they are, its shorter quarter held against the sum of
    their longer ones."""
    if not kernels:
        return None
    total = sum(kernel.median_ms for kernel in kernels)
    high = sum(kernel.quartiles_ms[1] for kernel in kernels)
    beside = BESIDE_MS * len(kernels)
    is_above = total > MOST_ABOVE[device_type] * call.median_ms + beside
    is_below = is_whole and call.quartiles_ms[0] > MOST_BELOW * high + beside
    if not is_above and not is_below:
        return None
    return (
        f"The {what} took {total:.3g} ms one by one, the call that runs them {call.median_ms:.3g} ms: the machine "
        "was busy meanwhile, so no bandwidth is computed from these times."
    )


def beside_calls(measured: Mapping[str, KernelTimes], timing: rep.TimingResult | None, device_type: str) -> str | None:
    """Why the kernels' times are no parts of the time that the compiled calls took when they were raced; None where
    they may be. `measured` has the graphs that those calls run, by name."""
    raced = timing.of("compiled") if timing is not None else None
    if raced is None:
        return None
    compiled = Samples(tuple(raced.samples_ms))
    kernels = [samples for times in measured.values() for samples in times.kernels.values()]
    calls = [times.call for times in measured.values()]
    # The calls do more than to launch these kernels, so only kernels that take longer contradict them.
    told = disturbance(kernels, compiled, is_whole=False, device_type=device_type)
    return told or disturbance(calls, compiled, is_whole=False, device_type=device_type, what="graphs")


def note_times(report: rep.Graph, found: KernelTimes, beside: str | None, peak_of: Device | None) -> None:
    """Fill measured_us, spread_us, gb_per_s, percent_of_peak, call_us and `disturbed`. `beside` is why the times are
    none of the calls that were raced last. Nothing is derived from times that nobody is to rely on."""
    report.call_us = round(1e3 * found.call.median_ms, 3)
    report.disturbed = found.disturbed or beside
    for kernel in report.kernels:
        times = found.kernels.get(kernel.nodes[-1] if kernel.own is not None else kernel.name)
        if times is None:
            continue
        kernel.measured_us, kernel.spread_us = round(1e3 * times.median_ms, 3), round(1e3 * times.spread_ms, 3)
        kernel.gb_per_s = kernel.percent_of_peak = None
        # The bytes are those of the call of a kernel of the user's own, and of a product's kernel on a GPU: where the
        # library makes the product, its result passes through memory too.
        if report.disturbed is None and kernel.own is None and not kernel.steps:
            kernel.gb_per_s = round(kernel.bytes / max(kernel.measured_us, 1e-6) / 1e3, 3)
            if peak_of is not None:
                kernel.percent_of_peak = round(100 * kernel.gb_per_s * 1e9 / peak_of.bandwidth, 2)
