"""Find what later kernels read again, which should stay in the cache."""

from __future__ import annotations

from compiler.schedule.group import Group
from compiler.schedule.scheduler import Schedule


def read_again(schedule: Schedule) -> dict[str, frozenset[str]]:
    """The buffers that are read after each group, by its name: by another unit, or by whoever gets the results, such as
    the backward graph."""
    found: dict[str, frozenset[str]] = {}
    later = set(schedule.graph.output_buffers)
    for unit in reversed(schedule.units):
        read = unit.needed
        if isinstance(unit, Group):
            found[unit.name] = read & later
        later |= read
    return found
