"""Computing a stored value again in its readers, where that is cheaper than to write it and read it back.

    kernel 1   m = max over r of x;  d = x - m;  s = sum of exp(d);  store d, s
    kernel 2   ... load d[target] ...
becomes
    kernel 1   m = max over r of x;  d = x - m;  s = sum of exp(d);  store m, s
    kernel 2   ... (load x[target] - load m) ...

This is no fusion of two units: both stay, but a buffer between them does not reach memory any more. It is tried after
fusion, when it is known which buffers are left.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.schedule.group import Group
from compiler.schedule.inline import compose, inline_into
from compiler.schedule.products.loops import Product
from compiler.schedule.records.choices import Choice, weighed
from compiler.schedule.records.reasons import Refuse
from compiler.schedule.rules import Context, Fuse, Score
from compiler.schedule.units import Unit

REASON = "fused.recompute"
REFUSAL = "profit.recompute"
#: Two predictions that differ by less than the model errs in the median are even.
EVEN = 0.05


def _groups_alike(maker: Unit, readers: list[Unit], buffer: str) -> list[Group]:
    """The readers of a buffer, if each of them is a group that could have the arithmetic of its maker; else none."""
    groups = [unit for unit in readers if isinstance(unit, Group) and buffer not in unit.updated]
    apart = any(isinstance(unit, Product) or unit.stream != maker.stream for unit in (maker, *readers))
    return groups if len(groups) == len(readers) and not apart else []


def _without_store(maker: Group, readers: list[Group], buffer: str) -> tuple[Group, ...] | None:
    """The maker of `buffer` without the store, then the readers with its arithmetic; None where it is not possible."""
    arithmetic = compose(maker, buffer)
    if arithmetic is None:
        return None
    needed = {access.buffer for access in arithmetic.reads} & maker.produced
    smaller = replace(maker, stored=(maker.stored - {buffer}) | needed)
    if not smaller.stored and not smaller.has_check:
        return None
    dims = (*maker.space.x, *maker.space.r)
    changed: list[Group] = []
    for group in readers:
        members = inline_into(group, arithmetic, buffer, dims)
        if members is None:
            return None
        changed.append(replace(group, members=members))
    return smaller, *changed


def recompute_in_readers(
    a: int, buffer: str, context: Context
) -> tuple[Group, dict[int, tuple[Group, Fuse]]] | Refuse | None:
    """The maker of `buffer` without the store, and each reader with the arithmetic instead of the load.

    A refusal where it does not pay; None where it is not possible (an output, a reduction, a library call, a matrix
    product, a scatter or another stream among the readers)."""
    maker = context.graph.units[a]
    readers = sorted(context.graph.readers[buffer] - {a})
    groups = _groups_alike(maker, [context.graph.units[number] for number in readers], buffer)
    if not isinstance(maker, Group) or buffer in context.graph.outputs or not groups:
        return None
    made = _without_store(maker, groups, buffer)
    if made is None:
        return None
    smaller, *changed = map(context.in_best_way, made)
    before = sum(context.cost(g).microseconds for g in (maker, *groups))
    after = sum(context.cost(g).microseconds for g in (smaller, *changed))
    saved = sum(context.cost(g).bytes for g in (maker, *groups)) - sum(
        context.cost(g).bytes for g in (smaller, *changed)
    )
    numbers = {"shared": buffer, "bytes_saved": saved, "fused_us": after, "unfused_us": before}
    # What is not stored may let units fuse, which is not in these figures: saved bytes win where times are even.
    pays = after < before or (saved > 0 and after < before * (1 + EVEN))
    weighed(Choice("recompute", (maker, *groups), (smaller, *changed), before, after, pays))
    if not pays:
        return Refuse(REFUSAL, numbers)
    # Computed again, it would be in the kernel of its reader after all.
    forbidden = next((pair for group in groups if (pair := context.wishes.forbidden_between(maker, group))), None)
    if forbidden is not None:
        return Refuse("policy.forbidden", numbers | {"forbidden_a": forbidden[0], "forbidden_b": forbidden[1]})
    score = Score("recompute", saved, 0, after, before)
    return smaller, {
        number: (group, Fuse(REASON, group, score, numbers)) for number, group in zip(readers, changed, strict=True)
    }
