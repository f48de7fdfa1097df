"""Reduction strategies: how a group that reduces is run, and what was decided on that.

    single pass   for r: m = max x;  for r: s += exp(x - m)      ->   for r: m, s = max x, the sum relative to it
    cooperative   one program goes through a row again and again ->   several hold it, and exchange what they reduce

A strategy fuses nothing: it says how one unit runs. Each verdict on two units takes the best one into account
(`Context.reduction_strategies`). A single pass costs some arithmetic for each element, a cooperative reduction some
waiting, so that where a row stays in the registers of one program neither gains anything. The records are made here,
for the groups that are left in the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from compiler.decisions import Refuse
from compiler.schedule.group import Group
from compiler.schedule.records.choices import Choice, weighed
from compiler.schedule.rules import Context, Fuse, Score
from compiler.schedule.tiles.cooperative import reads_of_rows


def verdicts_on_strategies(unit: Group, context: Context) -> Iterator[Fuse | Refuse]:
    """What became of each sum that need not wait for another reduction, and of rows that several programs could
    hold."""
    if "single_pass" not in context.disabled:
        yield from _on_single_pass(unit, context)
    if "team" not in context.disabled:
        yield from _on_cooperation(unit, context)


def _on_single_pass(unit: Group, context: Context) -> Iterator[Fuse | Refuse]:
    members = context.relative_members(unit)
    if members:
        plain, joined = (replace(unit, single_pass=frozenset(names)) for names in ((), members))
        for reader, writer in members.items():
            names = {"shared": writer, "writer": writer, "reader": reader}
            yield _verdict("single_pass", plain, joined, bool(unit.single_pass), names, context)


def _on_cooperation(unit: Group, context: Context) -> Iterator[Fuse | Refuse]:
    alone, shared = replace(unit, is_cooperative=False), replace(unit, is_cooperative=True)
    strategies = context.reduction_strategies(replace(alone, single_pass=frozenset()))
    if not any(strategy.is_cooperative for strategy in strategies):
        return
    if context.cost(shared).passes > 1:  # several programs do not hold it either
        return
    largest = max(reads_of_rows(unit), key=lambda access: context.graph.layouts[access.buffer].bytes)
    reductions = [member.name for member in unit.members if member.body.reduction is not None]
    names: dict[str, Any] = {"shared": largest.buffer, "writer": reductions[-1], "reader": unit.members[-1].name}
    names["row"] = unit.space.reduction_numel
    yield _verdict("team", alone, shared, unit.is_cooperative, names, context)


def _verdict(
    kind: str, before: Group, after: Group, is_taken: bool, names: dict[str, Any], context: Context
) -> Fuse | Refuse:
    apart, together = context.cost(before).microseconds, context.cost(after).microseconds
    if together != apart:
        weighed(Choice(kind, (before,), (after,), apart, together, is_taken))
    numbers = {**names, "fused_us": together, "unfused_us": apart}
    if is_taken:
        return Fuse.into(f"fused.{kind}", after, Score(kind, 0, 0, together, apart), numbers)
    return Refuse(f"profit.{kind}", numbers)
