"""Whether the times of the kernels of a call add up to the time of the call.

Each kernel is timed alone, in a moment of its own, so a machine that is busy for a moment makes one of them too long:
a kernel of 100 ms in a call of 6 ms. Such times belong to different machines, and no figure is derived from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.runtime.timing.measure import Samples

#: How much longer kernels alone may be than the call that they are part of. On a GPU each of them is timed with a cold
#: cache, where in the call it finds what the one before it has left.
MOST_ABOVE = {"cpu": 1.3, "cuda": 3.0}
#: How much longer the call may be, where nothing but these kernels is launched: what one of them leaves, the next one
#: may find in memory only, while alone it finds its own data in the cache.
MOST_BELOW = 4.0
#: Launches, allocations and the resolution of the clocks, in milliseconds for each kernel.
BESIDE_MS = 0.02


def disturbance(kernels: Sequence[Samples], call: Samples, is_whole: bool, device_type: str) -> str | None:
    """Why the times are no times of one call, as a sentence; None where they add up.

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
        f"The kernels took {total:.3g} ms one by one, the call that launches them {call.median_ms:.3g} ms: the machine "
        "was busy meanwhile, so no bandwidth is computed from these times."
    )
