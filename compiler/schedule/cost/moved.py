"""How many bytes of each buffer a kernel or a library call reads from memory and writes to it: counted, not predicted.

Every figure of bytes moved (of the cost model, of a kernel, of a graph) comes from here, so that they agree:

    an element that a kernel reads at several points of its text, or in several passes, is read once
    an element that is updated in place is read and written
    the parts of a batch run side by side, so each reads for itself
    a library call reads each of its arguments once, and writes each of its results once
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from compiler.ir.body import Access
from compiler.ir.index import Index
from compiler.ir.nodes import ExternNode, Layout
from compiler.ir.overlap import Part, bytes_together, part
from compiler.ir.size import hint
from compiler.schedule.cost.touches import Touch, touched_part, touches_of
from compiler.schedule.group import Batch, Group
from compiler.schedule.units import Unit


class Moved(NamedTuple):
    """Bytes read and written, by buffer."""

    read: Mapping[str, int]
    written: Mapping[str, int]

    @property
    def bytes(self) -> int:
        return sum(self.read.values()) + sum(self.written.values())


def moved_by(unit: Unit, layouts: Mapping[str, Layout]) -> Moved:
    """What one unit of a schedule moves."""
    return moved_by_group(unit, layouts) if isinstance(unit, Group) else moved_by_call(unit, layouts)


def moved_by_group(group: Group, layouts: Mapping[str, Layout]) -> Moved:
    """What the kernel of `group` moves.

    Reads of one buffer at different indices (two halves of it) add up, as far as they do not overlap."""
    if isinstance(group, Batch):
        read, written = Counter[str](), Counter[str]()
        for part in group.parts:
            moved = moved_by_group(part, layouts)
            read.update(moved.read)
            written.update(moved.written)
        return Moved(read, written)
    return moved_by_touches(touches_of(group, layouts), layouts)


def moved_by_touches(touches: Iterable[Touch], layouts: Mapping[str, Layout]) -> Moved:
    """What a kernel that is no batch moves, by its `touches_of`."""
    by_index: dict[str, dict[tuple[Index, tuple[int, ...]], tuple[Access, int]]] = {}
    updated: dict[str, int] = {}
    stored: dict[str, int] = {}
    for access, size, _, is_store, _, _ in touches:
        if is_store:
            stored[access.buffer] = size
            if access.is_update:
                updated[access.buffer] = size
        else:
            parts = by_index.setdefault(access.buffer, {})
            key = access.index, access.recipes
            known = parts.get(key)
            if known is None or known[1] < size:
                parts[key] = access, size
    loaded = {buffer: _bytes_of([*parts.values()], layouts[buffer]) for buffer, parts in by_index.items()}
    return Moved(loaded | updated, stored)


def _bytes_of(parts: Sequence[tuple[Access, int]], layout: Layout) -> int:
    if len(parts) == 1:
        return parts[0][1]
    return min(bytes_together(touched_part(access, size, layout) for access, size in parts), layout.bytes)


def moved_by_call(node: ExternNode, layouts: Mapping[str, Layout]) -> Moved:
    """What a library call moves. Different views of one buffer add up, as far as they do not overlap."""
    views: dict[str, set[Layout]] = {}
    for argument in node.tensor_arguments:
        views.setdefault(argument.buffer, set()).add(argument.layout)
    read = {name: min(bytes_together(map(part_of_memory, of)), layouts[name].bytes) for name, of in views.items()}
    return Moved(read, {name: layouts[name].bytes for name in node.write_buffers})


def part_of_memory(view: Layout) -> Part:
    """The part of its buffer that a view has."""
    size = view.dtype.itemsize
    loops = zip(map(hint, view.stride), map(hint, view.shape), strict=True)
    return part(hint(view.offset) * size, hint(view.storage_numel) * size, view.bytes, loops, size)
