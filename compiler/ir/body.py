"""A loop body, traced once into an immutable list of instructions.

    v0 = load x[512 * x0 + r0]
    v1 = sin v0
    store buf0[512 * x0 + r0] = v1

`trace` runs a define-by-run body under a `Recorder`. Equal instructions become one, dead ones are dropped, so bodies
that compute the same thing in the same way are equal and hash alike. Fusion, costs and code generators interpret the
record; nothing runs the Python function again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from math import prod
from operator import is_
from typing import Any

import torch

from compiler.ir.index import MOST_KEPT, Dim, Index, Indirect, Mod
from compiler.ir.index_formulas import LARGEST_INDEX, Step, formula_of_index
from compiler.ir.lazy import lazy
from compiler.ir.ops import RANDOM, cost_of, handled_by
from compiler.ir.size import Integer, hint
from compiler.ir.value import Value


@dataclass(frozen=True, slots=True)
class Instruction:
    """One op. `operands` number earlier instructions; `buffer`, `index` belong to load and store (`index` also to
    index_value, rand, randn); `value` is a constant, a reduction's or scan's kind, the mode of a scattering store, or
    the size of an indirect index. `node` is the loop node that it was written for, where that is not the one whose body
    it stands in; it is no part of what the instruction computes, so it does not count when two are compared."""

    op: str
    operands: tuple[int, ...]
    dtype: torch.dtype
    buffer: str | None = None
    index: Index | None = None
    value: bool | int | float | str | None = None
    node: str | None = field(default=None, compare=False)


def moved(i: Instruction, operands: tuple[int, ...], index: Index | None, node: str | None) -> Instruction:
    """The instruction with other operands, at another index, written for another node.

    `dataclasses.replace` takes several times as long, for every instruction of every fusion that is tried."""
    if index is i.index and operands == i.operands and node == i.node:
        return i
    return Instruction(i.op, operands, i.dtype, i.buffer, index, i.value, node)


def renumbered(i: Instruction, numbers: Mapping[int, int] | Sequence[int], point: Mapping[Dim, Index]) -> Instruction:
    """The instruction where those that it needs have other numbers, at a point of its loops."""
    # A point may itself hold loaded values, by their new numbers.
    index = None if i.index is None else i.index.renumber(numbers).substitute(point)
    return moved(i, tuple([numbers[operand] for operand in i.operands]), index, i.node)


@dataclass(frozen=True)
class Access:
    """One load or store: the offset in elements, whether it happens only where a mask holds, and whether a store reads
    what it changes. `recipes` stand for how the values in the offset are computed: numbers tell them apart in one body,
    not from those of another; `most` is how many elements there are at most at an offset with such values."""

    buffer: str
    index: Index
    is_masked: bool = False
    is_update: bool = False
    recipes: tuple[int, ...] = ()
    most: int | None = field(default=None, compare=False)

    # Costs ask every access of every group that is weighed.
    @lazy
    def _hash(self) -> int:
        return hash((self.buffer, self.index, self.is_masked, self.is_update, self.recipes))

    def __hash__(self) -> int:
        return self._hash

    @lazy
    def fast_dims(self) -> frozenset[Dim]:
        """The loop variables along which neighbouring iterations touch neighbouring elements: r0 of `512*x0 + r0`, and
        (but for each 512th) x0 of `x0 % 512`."""
        return frozenset(dim for atom in self._unit_atoms for dim in _unit_dims(atom))

    @lazy
    def run(self) -> int:
        """How many elements lie one after another where the rest of the index stays: of `512*v0 + x0 % 512`, 512."""
        return prod(hint(atom.divisor if isinstance(atom, Mod) else atom.size) for atom in self._unit_atoms)

    @lazy
    def _unit_atoms(self) -> tuple[Dim | Mod, ...]:
        return tuple(atom for atom, step in self.index.terms if step in (1, -1) and isinstance(atom, Dim | Mod))

    @lazy
    def elements(self) -> int:
        """Elements that it touches at most."""
        return self.index.most_values

    @lazy
    def least_stride(self) -> int:
        """The smallest step between elements, along any loop; 1 where there is none."""
        if self.fast_dims:
            return 1
        strides = [hint(stride) for dim in self.index.dims if (stride := self.index.stride(dim)) is not None]
        return min((abs(stride) for stride in strides if stride), default=1)


def _unit_dims(atom: Dim | Mod) -> tuple[Dim, ...]:
    if isinstance(atom, Dim):
        return (atom,)
    return tuple(inner for inner, step in atom.numerator.terms if step in (1, -1) and isinstance(inner, Dim))


@dataclass(frozen=True)
class Body:
    """Instructions in order; the only stores are the last one or more."""

    instructions: tuple[Instruction, ...]

    @lazy
    def _hash(self) -> int:
        return hash(self.instructions)

    def __hash__(self) -> int:
        return self._hash

    @lazy
    def form(self) -> tuple[int, tuple[str, ...]]:
        """What it is but for the names of buffers and nodes, as a number, and these names in the order in which they
        come up: bodies of one number differ in names alone."""
        numbers: dict[str | None, int | None] = {None: None}
        number_of = numbers.setdefault
        # 0.0 == -0.0 and True == 1: constants are told apart by their text.
        record = tuple(
            (
                i.op, i.operands, i.dtype, number_of(i.buffer, len(numbers)), i.index,
                repr(i.value) if i.op == "constant" else i.value, number_of(i.node, len(numbers)),
            )
            for i in self.instructions
        )  # fmt: skip
        del numbers[None]
        return _form_number(record), tuple(name for name in numbers if name is not None)

    @lazy
    def reads(self) -> tuple[Access, ...]:
        """Every distinct read, in order."""
        found = [
            Access(
                i.buffer or "", i.index or Index.number(0), bool(i.operands),
                recipes=self._indices_in(i), most=self._most_offsets(i),
            )
            for i in self.instructions
            if i.op == "load"
        ]  # fmt: skip
        return tuple(dict.fromkeys(found))

    def _most_offsets(self, i: Instruction) -> int | None:
        """How many different offsets a load with loaded values in its own has at most: as many as there are values of
        the loop variables in it, and in the indices that the loaded values come from. None for any other instruction,
        or where loop variables and loaded values are divided together."""
        if i.index is None or not i.index.indirections:
            return None
        sources = frozenset[int]().union(*(self._sources[atom.value] for atom in i.index.indirections))
        indices = [i.index, *(index for source in sources if (index := self.instructions[source].index) is not None)]
        plain = [Index(0, tuple(term for term in one.terms if not isinstance(term[0], Indirect))) for one in indices]
        return None if any(one.indirections for one in plain) else prod(one.most_values for one in plain)

    @lazy
    def _sources(self) -> tuple[frozenset[int], ...]:
        """For each instruction those with an index that its value is computed from."""
        found: list[frozenset[int]] = []
        for number, i in enumerate(self.instructions):
            needed = i.operands if i.index is None else (atom.value for atom in i.index.indirections)
            found.append(frozenset(() if i.index is None else (number,)).union(*(found[one] for one in needed)))
        return tuple(found)

    def _indices_in(self, i: Instruction) -> tuple[int, ...]:
        if i.index is None or not i.index.indirections:
            return ()
        return tuple(self.recipes[number] for number in sorted(atom.value for atom in i.index.indirections))

    @lazy
    def recipes(self) -> tuple[int, ...]:
        """A number for each instruction by what it computes, the same in every body."""
        found: list[int] = []
        for i in self.instructions:
            needed = (*i.operands, *sorted(operands_of(i) - set(i.operands)))
            parts = tuple([found[operand] for operand in needed])
            found.append(hash((i.op, i.dtype, i.buffer, i.index, repr(i.value), parts)))
        return tuple(found)

    @lazy
    def loads(self) -> Mapping[str, int]:
        """How many loads of each buffer it has."""
        return Counter(i.buffer for i in self.instructions if i.op == "load" and i.buffer is not None)

    @lazy
    def is_copy(self) -> bool:
        """Whether it computes nothing."""
        return all(i.op in ("load", "store") for i in self.instructions)

    @lazy
    def writes(self) -> tuple[Access, ...]:
        return tuple(
            Access(i.buffer or "", i.index or Index.number(0), len(i.operands) > 1, i.value not in (None, "set"))
            for i in self.instructions
            if i.op == "store"
        )

    @lazy
    def depends_on_loads(self) -> frozenset[int]:
        """The instructions whose value is told by memory, and not by the point of the loops alone."""
        found: set[int] = set()
        for number, instruction in enumerate(self.instructions):
            if instruction.op == "load" or instruction.op in RANDOM or not found.isdisjoint(operands_of(instruction)):
                found.add(number)
        return frozenset(found)

    @lazy
    def dims(self) -> frozenset[Dim]:
        """The loop variables that its accesses depend on."""
        return frozenset(dim for access in (*self.reads, *self.writes) for dim in access.index.dims)

    @lazy
    def is_scatter(self) -> bool:
        """Whether it stores at elements that several points may share."""
        return any(i.op == "store" and i.value is not None for i in self.instructions)

    @lazy
    def reduction(self) -> Instruction | None:
        """Its reduction, of which a body has at most one."""
        return next((i for i in self.instructions if i.op == "reduce"), None)

    @lazy
    def scan(self) -> Instruction | None:
        """Its scan, of which a body has at most one."""
        return next((i for i in self.instructions if i.op == "scan"), None)

    @property
    def is_collective(self) -> bool:
        """Whether a value of one point depends on other points: it cannot be computed again for one point alone."""
        return self.reduction is not None or self.scan is not None

    @lazy
    def operations(self) -> int:
        """Weighted arithmetic operations of one iteration; see `OpInfo.cost`."""
        return sum(self._weights)

    @lazy
    def most_expensive(self) -> int:
        """The weight of the one operation that takes most; 0 without any."""
        return max(self._weights, default=0)

    @property
    def _weights(self) -> Iterator[int]:
        for i in self.instructions:
            if i.op not in ("load", "store", "constant", "index_value", "indirect"):
                yield 12 if i.op in RANDOM else cost_of(i.op)

    @lazy
    def is_random(self) -> bool:
        return any(i.op in RANDOM for i in self.instructions)

    def substitute(self, values: Mapping[Dim, Index]) -> Body:
        """The body over other loop variables: each of `values` is replaced by its formula of the new ones."""
        return self.map_indices(lambda index: index.substitute(values))

    def map_indices(self, change: Callable[[Index], Index]) -> Body:
        instructions = tuple(
            [i if i.index is None else moved(i, i.operands, change(i.index), i.node) for i in self.instructions]
        )
        return self if all(map(is_, instructions, self.instructions)) else Body(instructions)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The record as text, one instruction a line."""
        return [_render(number, instruction) for number, instruction in enumerate(self.instructions)]


@lru_cache(maxsize=MOST_KEPT)
def _form_number(record: tuple[Any, ...]) -> int:
    """A number of its own for each record without names; one that is forgotten gets another when it comes up again."""
    return next(_form_numbers)


_form_numbers = count()


#: How the record shows ops that are not just a name before operands.
_TEXTS: Mapping[str, str] = {
    "constant": "{i.value!r}: {dtype}",
    "index_value": "index {i.index}: {dtype}",
    "indirect": "index variable {values} < {i.value}",
    "to_dtype": "{dtype}({values})",
    "bitcast": "bits of {values} as {dtype}",
    **dict.fromkeys(("reduce", "scan"), "{i.op} {i.value} {values}"),
    **dict.fromkeys(RANDOM, "{i.op}(seed {values}, {i.index})"),
}


def _render(number: int, i: Instruction) -> str:
    values = ", ".join(f"v{operand}" for operand in i.operands)
    dtype = str(i.dtype).removeprefix("torch.")
    if i.op == "load":
        return f"v{number} = load {i.buffer}[{i.index}]" + (f" where {values}" if values else "")
    if i.op == "store" and i.value is not None:
        mask = f" where v{i.operands[1]}" if len(i.operands) > 1 else ""
        return f"scatter {i.value} {i.buffer}[{i.index}] = v{i.operands[0]}{mask}"
    if i.op == "store":
        return f"store {i.buffer}[{i.index}] = {values}"
    text = _TEXTS.get(i.op, "{i.op} {values}")
    return f"v{number} = {text.format(i=i, values=values, dtype=dtype)}"


def key_of(instruction: Instruction) -> Hashable:
    """What tells it from others. 0.0 == -0.0 and True == 1: constants are told apart by their text as well."""
    return (instruction, repr(instruction.value)) if instruction.op == "constant" else instruction


class Written:
    """Instructions in order, each of them once."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self._numbers: dict[Hashable, int] = {}

    def add(self, instruction: Instruction) -> int:
        """Its number; it is the next one unless it stands there already."""
        number = self._numbers.setdefault(key_of(instruction), len(self.instructions))
        if number == len(self.instructions):
            self.instructions.append(instruction)
        return number


class Recorder(Written):
    """The handler that writes the record."""

    def emit(self, op: str, operands: tuple[Any, ...], dtype: torch.dtype, **attributes: Any) -> Any:
        if op == "indirect":
            return self._indirect(operands[0], attributes["value"])
        for operand in operands:
            if not isinstance(operand, Value):
                raise TypeError(f"ops.{op}: {operand!r} is not a value of this body; make it one by ops.constant")
        return Value(self.add(Instruction(op, tuple(v.number for v in operands), dtype, **attributes)), dtype)

    def _indirect(self, value: Value, size: Integer) -> Index:
        formula = formula_of_index(value.number, size, self.instructions)
        return Index.of(Indirect(value.number, size)) if formula is None else formula


def trace(body: Callable[[], Any]) -> Body:
    """Run `body` (which calls `ops`, and stores at its end) under a recorder and return the record."""
    recorder = Recorder()
    with handled_by(recorder):
        body()
    return drop_dead(Body(tuple(recorder.instructions)))


def formula_of(value: Callable[[], Value]) -> Index | None:
    """The integer that `value` computes as a formula of loop variables, or None where it is none."""
    recorder = Recorder()
    with handled_by(recorder):
        number = value().number
    return formula_of_index(number, LARGEST_INDEX, recorder.instructions)


def operands_of(instruction: Step) -> set[int]:
    """All instructions that it needs: operands, and loaded values inside its index."""
    needed = set(instruction.operands)
    if instruction.index is not None:
        needed |= {indirect.value for indirect in instruction.index.indirections}
    return needed


def drop_dead(body: Body) -> Body:
    """Without the instructions that no store needs, numbered anew."""
    needed: set[int] = set()
    for number in reversed(range(len(body.instructions))):
        instruction = body.instructions[number]
        if instruction.op == "store" or number in needed:
            needed |= {number, *operands_of(instruction)}
    if len(needed) == len(body.instructions):
        return body
    kept = sorted(needed)
    numbers = {old: new for new, old in enumerate(kept)}
    return Body(tuple([renumbered(body.instructions[old], numbers, {}) for old in kept]))
