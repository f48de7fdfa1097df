"""Write outputs that the caller copies into an input directly to that input.

    def step(p, g):          graph(p, g) -> new_p, and then the caller's p.copy_(new_p)
        p.sub_(g)

A functional graph gives the changed input as an output, which costs a second pass over it and a launch for each. Where
the kernel that makes such an output is the last to read the input, and reads it at no other point than the one that it
writes, or does not read it, the output takes the input's memory and the copy finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.ir.nodes import Layout
from compiler.schedule.group import Group, parts_of
from compiler.schedule.units import Unit


def may_write_input(
    unit: Unit, position: int, name: str, given: str, layouts: Mapping[str, Layout], last_use: Mapping[str, int]
) -> bool:
    """Whether `unit`, at `position`, may write the buffer `name` to the memory of the input `given`."""
    layout = layouts[name]
    if not isinstance(unit, Group) or layout != layouts[given] or layout.storage_numel != layout.numel:
        return False
    if last_use.get(given, -1) > position:
        return False
    if given not in unit.needed:
        return True
    readers = [part for part in parts_of(unit) if given in part.needed]
    return len(readers) == 1 and name in readers[0].stored and reads_where_it_writes(readers[0], name, given)


def reads_where_it_writes(group: Group, name: str, old: str) -> bool:
    """Whether a kernel without reductions reads each element of `old` only at the point that writes the element of
    `name` in its place, and first no later than that."""
    if group.space.r:
        return False
    places = {member.name: place for place, member in enumerate(group.members)}
    written = group.members[places[name]].body.writes
    reads = [
        (place, i)
        for place, member in enumerate(group.members)
        for i in member.body.instructions if i.op == "load" and i.buffer == old
    ]  # fmt: skip
    # An element is loaded once, where it is needed first: what needs it after the write has it in a register.
    is_loaded_before = not reads or reads[0][0] <= places[name]
    return (
        len(written) == 1
        and is_loaded_before
        and all(not i.operands and i.dtype == reads[0][1].dtype and i.index == written[0].index for _, i in reads)
    )
