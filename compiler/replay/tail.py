"""Leave the last launches of a graph out of its recording, so that their outputs need no copy.

    recorded    n launches                     the outputs are copied for the caller
    with tail   n - 1 launches, then the last  it writes to new memory, which is the caller's

The tail reads what the replay left in the recording's memory. It is launched on the stream of the replay, as is every
later replay that writes there, so that none overtakes it. While the device is busy with the replay, the host launches
the tail; what it costs is a call of a launch instead of a call of a copy.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from compiler.ir.nodes import ExternNode
from compiler.schedule.memory.plan import MemoryPlan
from compiler.schedule.scheduler import Schedule

#: The longest tail, and the fewest launches before one.
MOST_LAUNCHES = 8
FEWEST_BEFORE = 4


@dataclass(frozen=True)
class Tail:
    """The launches from unit `start` on, with the places of the outputs whose memory they make."""

    start: int
    launches: int
    outputs: frozenset[int]


def tails_of(schedule: Schedule, memory: MemoryPlan, held: Collection[int] = ()) -> tuple[Tail, ...]:
    """All that begin with a launch which makes an output, the shortest first. None of them makes one at a place of
    `held`, which must lie in the recording's memory."""
    units = schedule.units
    if any(isinstance(unit, ExternNode) and unit.sizes for unit in units):
        return ()
    made: dict[int, set[int]] = {}
    for place, output in enumerate(schedule.graph.outputs):
        if output.buffer is not None and (first := _made_at(output.buffer, memory)) >= 0:
            made.setdefault(first, set()).add(place)
    found: list[Tail] = []
    outputs: frozenset[int] = frozenset()
    for start in range(len(units) - 1, max(FEWEST_BEFORE, len(units) - MOST_LAUNCHES) - 1, -1):
        if start not in made:
            continue
        if made[start] & set(held):
            break
        outputs |= made[start]
        found.append(Tail(start, len(units) - start, outputs))
    return tuple(found)


def _made_at(name: str, memory: MemoryPlan) -> int:
    """The position of the unit that makes a buffer's memory; -1 for an input's."""
    while (source := memory.buffers[name].takes_over) is not None:
        name = source
    first = memory.buffers[name].first
    return -1 if first is None else first
