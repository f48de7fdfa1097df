"""The form of a kernel: what it is without the names of its buffers.

    relu = max(conv, 0)  over 3,211,264 floats   ->   #1 = max(#0, 0)  over 3,211,264 floats
    relu_1 = max(conv_1, 0)  over as many        ->   the same

The layers of a model repeat each other, and what a kernel is expected to take does not depend on names: it is worked
out for the first of equal kernels.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from compiler.ir.nodes import Layout
from compiler.schedule.group import Batch, Group
from compiler.schedule.products.loops import Product


def form_of(group: Group, layouts: Mapping[str, Layout]) -> tuple[Hashable, tuple[str, ...]]:
    """The form of a group, and the names that it leaves out, in the order in which they come up. Groups of one form
    have the same cost on a device."""
    if isinstance(group, Batch):
        parts = [form_of(part, layouts) for part in group.parts]
        return ("batch", *(form for form, _ in parts)), tuple(name for _, names in parts for name in names)
    numbers: dict[str, int] = {}
    number_of = numbers.setdefault
    members = []
    for member in group.members:
        number, names = member.body.form
        updates, name, whole = member.node.updates, member.node.name, member.node.part_of
        members.append(
            (
                number,
                tuple([number_of(used, len(numbers)) for used in names]),
                number_of(name, len(numbers)),
                None if updates is None else number_of(updates, len(numbers)),
                None if whole is None else number_of(whole, len(numbers)),
                name in group.stored,
                name in group.single_pass,
                member.is_across,
            )
        )
    extents = tuple(layouts[name].extent if name in layouts else None for name in numbers)
    product: Hashable = None
    if isinstance(group, Product):
        product = group.matrices, tuple([numbers[call.name] for call in group.calls]), group.library is not None
    return (group.space, group.is_cooperative, tuple(members), extents, product), tuple(numbers)
