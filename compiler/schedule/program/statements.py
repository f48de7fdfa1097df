"""From the bodies of a group to statements: joined, and put into sections.

Each value is computed by one statement, however many members of the group need it: a load of what another member stores
is the value itself. Which passes over `r` a statement belongs to follows from the reductions that it needs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

import torch

from compiler.devices import WARP
from compiler.ir.body import Instruction, key_of, operands_of, renumbered
from compiler.ir.choices import known_values, masks_that_hold
from compiler.ir.index import Index
from compiler.ir.masked_indices import simpler_indices
from compiler.ir.nodes import LoopNode
from compiler.ir.ops import compute_dtype, zero_of
from compiler.ir.size import hint
from compiler.schedule.group import Group
from compiler.schedule.program.program import EFFECTS, Level, Section, Statement, closure


def without_known_conditions(statements: list[Statement]) -> list[Statement]:
    """The statements, which are numbered in order, without conditions and bounds that are kept wherever they stand, and
    with the indices of loads as simple as their masks let them be."""
    if not any(s.op == "index_value" or (s.index is not None and s.index.indirections) for s in statements):
        return statements
    indices = simpler_indices(statements, lambda mask, load: _is_known_for(statements[mask], statements[load]))
    statements = [
        replace(s, index=access.index, operands=access.masks) if (access := indices.get(s.number)) else s
        for s in statements
    ]
    statements = _with_known_values(statements)
    masks = _coarse_masks(statements) if any(s.op == "where" for s in statements) else {}
    # A choice by the mask of what is loaded under it is the load, which gives zero elsewhere.
    masked = [replace(s, operands=(masks[s.number],)) if s.number in masks else s for s in statements]
    return _with_known_values(masked) if masks else statements


def _with_known_values(statements: list[Statement]) -> list[Statement]:
    known = known_values(statements)
    return [_at(s, known.operands_of(s.number, s), known.index_of(s)) for s in statements]


def _at(s: Statement, operands: tuple[int, ...], index: Index | None) -> Statement:
    return s if operands == s.operands and index is s.index else replace(s, operands=operands, index=index)


def _coarse_masks(statements: list[Statement]) -> dict[int, int]:
    """Masks for loads, by their numbers, whose value counts only where those hold, if they are the same for whole
    warps, which then load nothing elsewhere: planes of a stack are, and its innermost elements not, of which a warp
    needs all. What several parts of a stack need is loaded once for all of them.

    Each load takes the narrowest: all planes of a stack but the last lie below a bound as well, under which nine of
    them would load four times their bytes."""
    stores = [s.index for s in statements if s.op == "store" and s.index is not None]
    loads = [s for s in statements if s.op == "load" and not s.operands and s.index is not None and s.index.terms]
    if not stores or not loads:
        return {}
    by_number = {s.number: s for s in statements}

    def is_coarse(mask: int) -> bool:
        needed = [by_number[n] for n in closure([mask], by_number)]
        dims = {dim for s in needed if s.index is not None for dim in s.index.dims if dim.size != 1}
        steps = [index.stride(dim) for index in stores for dim in dims]
        return bool(dims) and all(step is not None and abs(hint(step)) >= WARP for step in steps)

    masks: dict[int, int] = {}
    holds = masks_that_hold(statements)
    for load in loads:
        before = [m for m in sorted(holds[load.number]) if m < load.number and _is_known_for(by_number[m], load)]
        coarse = [mask for mask in before if is_coarse(mask)]
        if coarse:
            masks[load.number] = max(coarse, key=lambda mask: len(_all_of(mask, by_number)))
    return masks


def _is_known_for(mask: Statement, load: Statement) -> bool:
    """Whether a load can have this mask: what a whole row shares is loaded before its elements are gone through."""
    return mask.level in ("x", load.level)


def _all_of(mask: int, by_number: Mapping[int, Statement]) -> set[int]:
    """A mask and those that hold wherever it does, as it is made of them."""
    statement = by_number[mask]
    parts = statement.operands if statement.op == "logical_and" else ()
    return {mask}.union(*(_all_of(part, by_number) for part in parts))


class _Inliner:
    """Joins the members' bodies into one list in which equal instructions stand once."""

    def __init__(self, group: Group) -> None:
        self.r_dims = frozenset(group.space.r)
        # A scatter happens once for each of its sources, whether or not its index and value depend on all loops.
        inside = [m for m in group.members if m.node.is_scatter and m.node.numel != group.space.numel]
        self.runs_inside = {member.name for member in inside} if self.r_dims else set()
        self.is_flat = not self.r_dims and not group.across
        self.statements: list[Statement] = []
        self.known: dict[Hashable, int] = {}
        self.stored_value: dict[str, int] = {}

    def add(self, instruction: Instruction, node: str) -> int:
        key = key_of(instruction)
        number = self.known.get(key)
        # Two scatters of one value to one element are two additions.
        is_scatter = instruction.op == "store" and instruction.value is not None
        if number is not None and not is_scatter:
            statement = self.statements[number]
            if node not in statement.nodes:
                self.statements[number] = replace(statement, nodes=(*statement.nodes, node))
            return number
        number = self.known[key] = len(self.statements)
        self.statements.append(
            Statement(
                number,
                "",
                instruction.op,
                instruction.operands,
                instruction.dtype,
                self.level(instruction),
                (node,),
                instruction.buffer,
                instruction.index,
                instruction.value,
            )
        )
        return number

    def level(self, instruction: Instruction) -> Level:
        if self.is_flat:
            return "x"
        operands = [self.statements[number] for number in operands_of(instruction)]
        if any(operand.op == "across" or operand.level == "tail" for operand in operands):
            return "tail"
        if instruction.op == "reduce":
            return "x"
        if instruction.op == "scan" or (instruction.op == "store" and instruction.buffer in self.runs_inside):
            return "r"
        if instruction.index is not None and not self.r_dims.isdisjoint(instruction.index.dims):
            return "r"
        return "r" if any(operand.level == "r" for operand in operands) else "x"

    def load(self, instruction: Instruction, node: str) -> int:
        """A load; of a buffer made in this group it is the value itself, or zero where it is masked off."""
        value = self.stored_value.get(instruction.buffer or "")
        if value is None:
            return self.add(instruction, node)
        if not instruction.operands:
            return value
        zero = self.add(Instruction("constant", (), instruction.dtype, value=zero_of(instruction.dtype)), node)
        return self.add(Instruction("where", (instruction.operands[0], value, zero), instruction.dtype), node)


def statements_of(group: Group) -> list[Statement]:
    """The bodies of all members as one list without names, each value once, without the conditions that are known."""
    return without_known_conditions(inlined(group))


def inlined(group: Group) -> list[Statement]:
    """The same with all conditions."""
    inliner = _Inliner(group)
    for member in group.members:
        numbers: dict[int, int] = {}
        for old, instruction in enumerate(member.body.instructions):
            moved = renumbered(instruction, numbers, {})
            node = moved.node or member.name
            if moved.op == "reduce" and member.is_across:
                if member.node.reduction_numel != group.space.numel:
                    # It goes over r too: each row first.
                    moved = replace(moved, operands=(inliner.add(moved, node),))
                moved = replace(moved, op="across")
            if moved.op == "load":
                numbers[old] = inliner.load(moved, node)
            elif moved.op == "store":
                assert moved.buffer is not None
                if moved.value is None:
                    inliner.stored_value[moved.buffer] = _as_stored(inliner, moved, member.node)
                if moved.buffer in group.stored:
                    numbers[old] = inliner.add(moved, node)
                if member.node.check is not None:
                    inliner.add(Instruction("check", moved.operands, torch.bool, value=member.node.check), node)
            else:
                numbers[old] = inliner.add(moved, node)
    return inliner.statements


def _as_stored(inliner: _Inliner, store: Instruction, node: LoopNode) -> int:
    """The value that a reader of the buffer gets: converted as a store and a load would, except that half types keep
    the float32 value (rounding twice would only lose accuracy)."""
    value = store.operands[0]
    wanted = compute_dtype(node.layout.dtype)
    if inliner.statements[value].dtype == wanted:
        return value
    return inliner.add(Instruction("to_dtype", (value,), wanted), node.name)


def passes_before(statements: list[Statement]) -> dict[int, int]:
    """How many passes must be done before each value can be known; for a reduction one more than for its operands. The
    tail comes after all passes, and what it needs is gathered along with its operands."""
    earliest: dict[int, int] = {}
    for statement in statements:
        ready = max((earliest[number] for number in statement.needs), default=0)
        earliest[statement.number] = ready + 1 if statement.op == "reduce" else ready
    return earliest


def sections_of(statements: list[Statement], is_persistent: bool) -> tuple[Section, ...]:
    """The statements that stores and checks need, pass by pass."""
    by_number, earliest = {s.number: s for s in statements}, passes_before(statements)
    wanted = closure({s.number for s in statements if s.op in EFFECTS}, by_number)
    last = max((earliest[number] for number in wanted), default=0)
    sections: list[Section] = []
    emitted: set[int] = set()
    for turn in range(last + 1):
        at_x = [
            s
            for s in statements
            if s.number in wanted and s.level == "x" and s.op != "reduce" and earliest[s.number] == turn
        ]
        sections.append(Section("x", tuple(at_x)))
        roots = {
            s.number
            for s in statements
            if s.number in wanted
            and (
                (s.op == "reduce" and earliest[s.number] == turn + 1)
                or (s.op in (*EFFECTS, "across") and s.level == "r" and earliest[s.number] == turn)
            )
        }
        needed = {number for number in closure(roots, by_number) if number in roots or by_number[number].level == "r"}
        if is_persistent:
            needed -= emitted
            emitted |= needed
        sections.append(Section("r", tuple(s for s in statements if s.number in needed)))
    return tuple(section for section in sections if section.statements)


def tail_of(statements: list[Statement]) -> tuple[Statement, ...]:
    """What is stored or checked when every point of x is done, with all that it takes besides the reductions across
    x."""
    by_number = {s.number: s for s in statements}
    across = {s.number for s in statements if s.op == "across"}
    roots = (s.number for s in statements if s.op in EFFECTS and s.level == "tail")
    needed = closure(roots, by_number, across) - across
    return tuple(s for s in statements if s.number in needed)
