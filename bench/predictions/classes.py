"""The classes by which errors of predictions are told apart."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.ir.nodes import Layout
from compiler.schedule.group import Group
from compiler.schedule.work import Work, lane_dim, work_of

#: In the order in which they are asked for: the first that fits names the kernel.
CLASSES = (
    "scatter",
    "scan",
    "tiny",
    "inner reduction",
    "outer reduction",
    "gather",
    "strided",
    "broadcast",
    "pointwise",
)

#: Below this many bytes what a kernel moves takes less time than its launch.
TINY_BYTES = 1 << 18
#: Share of the bytes that must be walked otherwise to make a class of a kernel.
SHARE = 0.1


def class_of(group: Group, layouts: Mapping[str, Layout]) -> str:
    """One of `CLASSES`."""
    work = work_of(group, layouts)
    total = sum(work.bytes.values())
    if any(member.node.is_scatter for member in group.members):
        return "scatter"
    if group.has_scan:
        return "scan"
    if total < TINY_BYTES:
        return "tiny"
    if group.space.r:
        return "inner reduction" if lane_dim(group, layouts) in group.space.r else "outer reduction"
    return _class_of_pointwise(group, work, total, layouts)


def _class_of_pointwise(group: Group, work: Work, total: int, layouts: Mapping[str, Layout]) -> str:
    if work.bytes.get("gathered", 0) > SHARE * total:
        return "gather"
    if work.bytes.get("strided", 0) > SHARE * total:
        return "strided"
    written = sum(layouts[name].bytes for name in group.stored)
    is_broadcast = work.bytes.get("broadcast", 0) > SHARE * total or 2 * (total - written) < SHARE * written
    return "broadcast" if is_broadcast else "pointwise"
