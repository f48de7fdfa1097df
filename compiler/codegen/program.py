"""The kernel program: a fused group as phases over one tile, between the scheduler and the printers.

All bodies of a group become one list of statements; a store that feeds a load becomes a value. The statements fall
into sections that alternate between two levels:

    x level   once for each point of the group's independent loops
    r level   for each point of the reduction loops besides; a section at this level is one pass over `r`

A reduction ends a pass: its result is an x-level value that the next sections may use. Softmax is three passes:

    x: (nothing)
    r: x = load;                         maximum = reduce max x
    r: x = load; e = exp(x - maximum);   total = reduce sum e
    r: x = load; e = exp(x - maximum);   store e / total

In a *looped* program each pass loads and computes again what it needs, since registers do not outlive a loop. In a
*persistent* one the whole of `r` is held in registers, so every statement stands once and later passes only go on.
A scan is a value of the r level that depends on the points before: each pass that needs it carries it along again.
What a group reduces across x (see `Member.is_across`) is gathered by statements `across` among the others, for each r
or for all of them; the `tail` computes with the results, once, when every point of x is done.
Triton and C++ printers render the same program.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import torch

from compiler.ir.body import Instruction, operands_of
from compiler.ir.index import Index
from compiler.ir.ops import NAMED, compute_dtype
from compiler.ir.size import Atom, Integer, atoms_of
from compiler.schedule.group import Group, Space

Level = Literal["x", "r", "tail"]

#: Names that a variable in a kernel must not take: those of the generated code itself.
RESERVED = frozenset(
    """tl triton libdevice tl_math pid x_block r_block x_index r_index x_mask r_mask mask offset offsets acc accumulator
    result main int float double char bool void auto const static struct union switch case default register signed
    unsigned short long volatile inline namespace template typename this new delete operator true false std omp
    range philox y_index y_mask r_start part parts first last arrived workspace_ptr counters_ptr maximum_of_two
    minimum_of_two every_bit product_of_two latest_larger_at latest_smaller_at log_of_sum last_lane larger_at smaller_at
    floor_divide_integers remainder_of_integers floor_divide_floats remainder_of_floats power_of_integers
    any_lane uniform uniform_by_fours program x_start x_first x_last team arrived_teams other
    place counter left m_mask n_mask k_mask m_block n_block first_block band_rows tile_number k_start""".split()
)


@dataclass(frozen=True)
class Statement:
    """`target = op(operands)`; operands are numbers of statements. A store has no target.

    `node` is the loop node that it computes for; a statement that several nodes share lists all of them in `nodes`.
    A `field` is one of the values (named by `value`) that a reduction of several values has made.
    """

    number: int
    target: str
    op: str
    operands: tuple[int, ...]
    dtype: torch.dtype
    level: Level
    nodes: tuple[str, ...]
    buffer: str | None = None
    index: Index | None = None
    value: bool | int | float | str | None = None

    @property
    def is_scatter(self) -> bool:
        """Whether it updates memory at a place that other points may update too; `value` says how."""
        return self.op == "store" and self.value is not None

    @property
    def needs(self) -> set[int]:
        return operands_of(self._instruction)

    @property
    def _instruction(self) -> Instruction:
        return Instruction(self.op, self.operands, self.dtype, self.buffer, self.index, self.value)


@dataclass(frozen=True)
class Section:
    """Straight-line statements of one level; at level r, one pass over the reduction loops."""

    level: Level
    statements: tuple[Statement, ...]

    @property
    def reductions(self) -> tuple[Statement, ...]:
        return tuple(s for s in self.statements if s.op == "reduce")

    @property
    def scans(self) -> tuple[Statement, ...]:
        return tuple(s for s in self.statements if s.op == "scan")


@dataclass(frozen=True)
class Program:
    """A kernel before it is text. `reads` and `writes` are buffers in the order of the kernel's parameters; `sizes`
    follow them, what it needs of the sizes that differ from call to call."""

    name: str
    space: Space
    sections: tuple[Section, ...]
    statements: tuple[Statement, ...]
    tail: tuple[Statement, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    storage: dict[str, torch.dtype] = field(hash=False)
    is_persistent: bool = False
    sizes: tuple[Atom, ...] = ()

    @property
    def scatters(self) -> tuple[Statement, ...]:
        """Stores that several points may share a place of."""
        return tuple(s for s in self.statements if s.is_scatter)

    @property
    def scans(self) -> tuple[Statement, ...]:
        return tuple(s for s in self.statements if s.op == "scan")

    @property
    def across(self) -> tuple[Statement, ...]:
        """Reductions over x: of level r for each r, of level x for all of them together."""
        return tuple(s for s in self.statements if s.op == "across")

    def names(self) -> dict[int, str]:
        """Variable names by statement number, for indices that contain loaded values."""
        return {statement.number: statement.target for statement in self.statements}


def build_program(
    group: Group,
    storage: dict[str, torch.dtype],
    is_persistent: bool = False,
    rewrite: Callable[[list[Statement]], list[Statement]] | None = None,
) -> Program:
    """The program of `group`; `storage` gives the dtype of every buffer that it touches. `rewrite` may put other
    statements, in an order in which each follows its operands, in the place of the group's own."""
    statements = inlined(group, storage)
    statements = _name(statements if rewrite is None else rewrite(statements), group)
    sections = _sections(statements, passes_before(statements), is_persistent)
    tail = _tail(statements)
    used = {s.number for section in sections for s in section.statements} | {s.number for s in tail}
    statements = [s for s in statements if s.number in used]
    reads = tuple(dict.fromkeys(s.buffer for s in statements if s.op == "load" and s.buffer is not None))
    writes = tuple(dict.fromkeys(s.buffer for s in statements if s.op == "store" and s.buffer is not None))
    touched = {name: storage[name] for name in (*reads, *writes)}
    sizes = _sizes(group.space, statements)
    return Program(
        group.name, group.space, sections, tuple(statements), tail, reads, writes, touched, is_persistent, sizes
    )


def _sizes(space: Space, statements: list[Statement]) -> tuple[Atom, ...]:
    """The sizes that loops and addresses depend on, by name."""
    found = {atom.name: atom for dim in (*space.x, *space.r) for atom in atoms_of(dim.size)}
    for statement in statements:
        if statement.index is not None:
            found |= {atom.name: atom for size in statement.index.sizes for atom in atoms_of(size)}
    return tuple(found[name] for name in sorted(found))


class _Inliner:
    """Joins the members' bodies into one list in which equal instructions stand once."""

    def __init__(self, group: Group) -> None:
        self.r_dims = frozenset(group.space.r)
        # A scatter happens once for each of its sources, whether or not its place and value depend on all loops.
        self.runs_inside = {m.name for m in group.members if m.node.is_scatter and m.node.numel != group.space.numel}
        self.statements: list[Statement] = []
        self.known: dict[Instruction, int] = {}
        self.stored_value: dict[str, int] = {}

    def add(self, instruction: Instruction, node: str) -> int:
        key = replace(instruction, buffer=repr(instruction.value)) if instruction.op == "constant" else instruction
        number = self.known.get(key)
        if number is not None:
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
        zero = self.add(Instruction("constant", (), instruction.dtype, value=_zero(instruction.dtype)), node)
        return self.add(Instruction("where", (instruction.operands[0], value, zero), instruction.dtype), node)


def _zero(dtype: torch.dtype) -> bool | int | float:
    return 0.0 if dtype.is_floating_point else False if dtype == torch.bool else 0


def inlined(group: Group, storage: dict[str, torch.dtype]) -> list[Statement]:
    """The bodies of all members as one list, each value once, without names."""
    inliner = _Inliner(group)
    for member in group.members:
        numbers: dict[int, int] = {}
        for old, instruction in enumerate(member.body.instructions):
            index = None if instruction.index is None else instruction.index.renumber(numbers)
            operands = tuple(numbers[operand] for operand in instruction.operands)
            moved = replace(instruction, operands=operands, index=index)
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
                    inliner.stored_value[moved.buffer] = _as_stored(inliner, moved, member.name, storage)
                if moved.buffer in group.stored:
                    numbers[old] = inliner.add(moved, node)
            else:
                numbers[old] = inliner.add(moved, node)
    return inliner.statements


def _as_stored(inliner: _Inliner, store: Instruction, node: str, storage: dict[str, torch.dtype]) -> int:
    """The value that a reader of the buffer gets: converted as a store and a load would, except that half types keep
    the float32 value (rounding twice would only lose accuracy)."""
    assert store.buffer is not None
    value = store.operands[0]
    wanted = compute_dtype(storage[store.buffer])
    if inliner.statements[value].dtype == wanted:
        return value
    return inliner.add(Instruction("to_dtype", (value,), wanted), node)


def passes_before(statements: list[Statement]) -> dict[int, int]:
    """How many passes must be done before each value can be known; for a reduction one more than for its operands. The
    tail comes after all passes, and what it needs is gathered along with its operands."""
    earliest: dict[int, int] = {}
    for statement in statements:
        ready = max((earliest[number] for number in statement.needs), default=0)
        earliest[statement.number] = ready + 1 if statement.op == "reduce" else ready
    return earliest


def _sections(statements: list[Statement], earliest: dict[int, int], is_persistent: bool) -> tuple[Section, ...]:
    by_number = {s.number: s for s in statements}
    wanted = _closure({s.number for s in statements if s.op == "store"}, by_number)
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
                or (s.op in ("store", "across") and s.level == "r" and earliest[s.number] == turn)
            )
        }
        needed = {number for number in _closure(roots, by_number) if number in roots or by_number[number].level == "r"}
        if is_persistent:
            needed -= emitted
            emitted |= needed
        sections.append(Section("r", tuple(s for s in statements if s.number in needed)))
    return tuple(section for section in sections if section.statements)


def _tail(statements: list[Statement]) -> tuple[Statement, ...]:
    """What is stored when every point of x is done, with all that it takes besides the reductions across x."""
    by_number = {s.number: s for s in statements}
    needed: set[int] = set()
    open_ = [s.number for s in statements if s.op == "store" and s.level == "tail"]
    while open_:
        number = open_.pop()
        if number not in needed and by_number[number].op != "across":
            needed.add(number)
            open_ += by_number[number].needs
    return tuple(s for s in statements if s.number in needed)


def _closure(roots: Iterable[int], by_number: dict[int, Statement]) -> set[int]:
    seen: set[int] = set()
    open_ = list(roots)
    while open_:
        number = open_.pop()
        if number not in seen:
            seen.add(number)
            open_ += by_number[number].needs
    return seen


def _name(statements: list[Statement], group: Group) -> list[Statement]:
    """Give values names that a reader of the model knows: a load is called after its buffer, the value that a node
    stores after that node, anything else after its op."""
    buffer_of_value: dict[int, str] = {}
    for member in group.members:
        store = next((s for s in statements if s.op == "store" and s.buffer == member.name), None)
        if store is not None:
            buffer_of_value.setdefault(store.operands[0], member.name)
    last_of_node: dict[str, int] = {}
    for statement in statements:
        if statement.op not in ("store", "constant"):
            last_of_node[statement.nodes[0]] = statement.number
    for node, number in last_of_node.items():
        buffer_of_value.setdefault(number, node)
    taken = set(RESERVED) | NAMED.keys() | {dim.name for dim in (*group.space.x, *group.space.r)}
    named: list[Statement] = []
    for statement in statements:
        base = (
            ""
            if statement.op == "store"
            else statement.buffer
            or buffer_of_value.get(statement.number)
            or (f"{statement.value}" if statement.op in ("reduce", "scan") else statement.op)
        )
        named.append(replace(statement, target=_unique(identifier(base), taken) if base else ""))
    return named


def identifier(text: str) -> str:
    """`text` as a legal name in Python and C++."""
    name = re.sub(r"\W", "_", text)
    return f"_{name}" if not name or name[0].isdigit() or keyword.iskeyword(name) else name


def _unique(name: str, taken: set[str]) -> str:
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate)
    return candidate


@dataclass(frozen=True)
class RenderedKernel:
    """A kernel as text.

    `parameters` are buffers in the order in which the launcher passes them (reads, then writes), `sizes` the integers
    that it passes after them; `lines` gives, for each line of `source` that computes something (counted from 1), the
    loop nodes that it computes for; `config` is what the launch needs besides (grid, block sizes, warps), plain values
    only. `grid` is how many programs a launch has.
    """

    name: str
    language: Literal["triton", "cpp"]
    source: str
    parameters: tuple[str, ...]
    lines: tuple[tuple[int, tuple[str, ...]], ...]
    config: dict[str, int | str | tuple[int, ...]] = field(hash=False)
    #: Parameters that it changes in place: what they hold before matters.
    updates: tuple[str, ...] = ()
    sizes: tuple[Atom, ...] = ()
    grid: Integer = 1
    #: Kernels of C++ that run before and after a library call, where all of them together are this one.
    steps: tuple[RenderedKernel, ...] = ()
