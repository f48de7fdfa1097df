"""The classes by which errors of predictions are told apart."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.ir.nodes import Layout
from compiler.schedule.cost.touches import Traffic, pattern_of, touches_of, traffic_by
from compiler.schedule.group import Group
from compiler.schedule.products.loops import Product

#: In the order in which they are asked for: the first that fits names the kernel.
CLASSES = (
    "product",
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
    if isinstance(group, Product):
        return "product"
    traffic = traffic_by(group, touches_of(group, layouts))
    total = sum(touch.bytes for touch in traffic.touches)
    if any(member.node.is_scatter for member in group.members):
        return "scatter"
    if group.has_scan:
        return "scan"
    if total < TINY_BYTES:
        return "tiny"
    if group.space.r:
        return "inner reduction" if traffic.lane in group.space.r else "outer reduction"
    return _class_of_pointwise(traffic, total)


def _class_of_pointwise(traffic: Traffic, total: int) -> str:
    by_walk = dict.fromkeys(("gathered", "strided", "broadcast", "contiguous"), 0)
    for touch in traffic.touches:
        by_walk[pattern_of(touch.access, traffic.lane)] += touch.bytes
    for walk, name in (("gathered", "gather"), ("strided", "strided"), ("broadcast", "broadcast")):
        if by_walk[walk] > SHARE * total:
            return name
    written = sum(touch.bytes for touch in traffic.stores)
    return "broadcast" if 2 * (total - written) < SHARE * written else "pointwise"
