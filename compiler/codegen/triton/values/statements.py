"""Statements of a kernel program as lines of Triton: loads and stores with addresses and masks, values with shapes."""

from __future__ import annotations

import json
from collections.abc import Iterable

import torch

from compiler.codegen.naming import identifier
from compiler.codegen.triton.values.accesses import computed_indices, constancy, evicted_first
from compiler.codegen.triton.values.float8 import loaded
from compiler.codegen.triton.values.float8 import stored as to_byte
from compiler.codegen.triton.values.ops import DTYPES, Operand, constant_operand, convert, expression
from compiler.codegen.triton.values.random import GENERATORS, SUFFIXES, drawn_together
from compiler.codegen.triton.writer import store_text
from compiler.ir.float8 import FLOAT8
from compiler.ir.index import Dim, Index, Indirect
from compiler.ir.ops import NAMED, compute_dtype
from compiler.ir.size import known, text_of
from compiler.schedule.program.program import Program, Statement
from compiler.schedule.tiles.plan import Axis, CooperativePlan, Plan, ProductPlan
from compiler.schedule.vectors import VECTOR_BYTES, is_walk

#: Updates of floats by the larger or the smaller one, and the helpers that make them.
_EXTREMES_IN_PLACE = {"max": "raise_in_place", "min": "lower_in_place"}


class StatementPrinter:
    """Prints the statements of one plan, in order.

    `axes_of` holds, for each statement seen by `note_axes`, the tile axes along which its value varies: the value lacks
    the other axes (their size is 1) until an operation broadcasts it. `functions` collects the named functions that
    the lines call, in order."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.program = plan.program
        self.vectors = plan.vectors
        self.axis_of_dim = {dim: axis for axis in plan.axes for dim in axis.dims}
        self.by_number = self.program.by_number
        self.functions: dict[tuple[str, torch.dtype], None] = {}
        self.axes_of: dict[int, frozenset[str]] = {}
        #: What stands in the place of some statements' own text, and those that nobody reads.
        self.instead: dict[int, str] = {}
        self.unread: frozenset[int] = frozenset()
        self.evicted_first = evicted_first(plan)
        self.together = self._drawn_together()
        self.computed_indices = computed_indices(self.program)

    @property
    def all_axes(self) -> frozenset[str]:
        return frozenset(axis.name for axis in self.vectors)

    def shape(self, axes: Iterable[str]) -> str:
        wanted = set(axes)
        return f"[{', '.join(axis.block_name if axis.name in wanted else '1' for axis in self.vectors)}]"

    def spread(self, text: str, axes: frozenset[str], wanted: frozenset[str]) -> str:
        """A value that varies along `axes`, with an element for each point along the `wanted` ones."""
        return text if axes == wanted else f"tl.broadcast_to({text}, {self.shape(wanted)})"

    def masks(self, axes: frozenset[str]) -> list[str]:
        return [f"{axis.name}_mask" for axis in self.vectors if axis.name in axes and not axis.is_exact]

    def load_masks(self, statement: Statement, axes: frozenset[str]) -> list[str]:
        """Those of a load, which may also read from the gap behind a row: what lanes outside hold does not matter."""
        return self._masks_of_rows(statement, axes)

    def store_masks(self, statement: Statement, axes: frozenset[str]) -> list[str]:
        """Those of a store, which may also write into a gap that is this buffer's own."""
        has_gaps = statement.buffer in self.program.with_gaps
        return self._masks_of_rows(statement, axes) if has_gaps else self.masks(axes)

    def _masks_of_rows(self, statement: Statement, axes: frozenset[str]) -> list[str]:
        """Masks that all lanes of an access of 16 bytes share, so that it can be one, where a row's gap allows it."""
        masks = self.masks(axes)
        for axis in self.vectors:
            end = _end_of_rows(statement, axis, self.program) if f"{axis.name}_mask" in masks else None
            if end is not None:
                masks[masks.index(f"{axis.name}_mask")] = f"({axis.dims[0].name} < {end})"
        return masks

    def pointer(self, buffer: str) -> str:
        return f"{identifier(buffer)}_ptr"

    def note_axes(self, statement: Statement) -> None:
        axes: set[str] = set()
        for number in statement.needs:
            axes |= self.axes_of[number]
        if statement.index is not None:
            axes |= {self.axis_of_dim[dim].name for dim in statement.index.dims}
        if statement.op == "reduce":
            axes = {"x"}
        if statement.op == "scan":
            axes = set(self.all_axes)
        if statement.is_scatter:
            # Once for each point, also along axes that neither its index nor its value depends on.
            axes = {axis.name for axis in self.vectors if axis.name != "r" or statement.level == "r"}
        self.axes_of[statement.number] = frozenset(axes) & self.all_axes

    def line(self, statement: Statement) -> str | None:
        """The line of a statement that is no reduction; None for a constant, which stands where it is used, for a value
        that a reduction has made beside others, and for what is not read."""
        if statement.op in ("constant", "field") or statement.number in self.unread:
            return None
        if statement.op == "store":
            return self._scatter(statement) if statement.is_scatter else self._store(statement)
        if statement.op == "check":
            return self._check(statement)
        text = self._value(statement)
        if statement.number in self.computed_indices:
            alike = constancy(statement.number, self.program, self.vectors, self.axes_of[statement.number])
            text = f"tl.max_constancy({text}, {alike})" if max(alike, default=1) > 1 else text
        return f"{statement.target} = {text}"

    def operand(self, number: int) -> Operand:
        statement = self.by_number[number]
        if statement.op == "constant":
            assert isinstance(statement.value, bool | int | float)
            return constant_operand(statement.value, statement.dtype)
        if statement.op == "field":
            name = f"{self.by_number[statement.operands[0]].target}_{statement.value}"
            return Operand.variable(name, statement.dtype)
        return Operand.variable(statement.target, statement.dtype)

    def _value(self, statement: Statement) -> str:
        if statement.number in self.instead:
            return self.instead[statement.number]
        operands = [self.operand(number) for number in statement.operands]
        if statement.op == "load":
            return self._load(statement)
        if statement.op == "index_value":
            return self._index_value(statement)
        if statement.op in GENERATORS:
            return self._random(statement, operands[0])
        if statement.op in NAMED:
            self.functions[statement.op, statement.dtype] = None
        return expression(statement.op, operands, statement.dtype)

    def _drawn_together(self) -> dict[int, int]:
        """The random statements of which one draw serves several lanes in a row, and how many."""
        axis = next((axis for axis in reversed(self.vectors) if axis.block > 1), None)
        if axis is None or isinstance(self.plan, ProductPlan):
            return {}
        indices = {s.number: (s.op, s.index) for s in self.program.statements if s.index is not None}
        many = {number: drawn_together(op, index, axis) for number, (op, index) in indices.items()}
        return {number: lanes for number, lanes in many.items() if lanes}

    def _random(self, statement: Statement, seed: Operand) -> str:
        assert statement.index is not None
        generator = GENERATORS[statement.op]
        names = self._name
        if statement.number in self.together:
            suffix = SUFFIXES[self.together[statement.number]]
            generator += suffix
            last = next(axis for axis in reversed(self.vectors) if axis.block > 1)
            firsts: dict[Dim | Indirect, str] = {dim: f"{dim.name}{suffix}" for dim in last.dims}
            names = lambda atom: firsts.get(atom) or self._name(atom)  # noqa: E731
        offset = statement.index.render(names)
        offset = f"tl.full([], {offset}, tl.int32)" if not statement.index.terms else offset
        return f"{generator}({seed.tensor}, {offset})"

    def _index_value(self, statement: Statement) -> str:
        assert statement.index is not None
        if not statement.index.terms:
            if isinstance(statement.index.offset, int):
                return constant_operand(statement.index.offset, statement.dtype).typed
            return f"{statement.index.offset}.to({DTYPES[statement.dtype]})"
        text = self.offset(statement.index)
        if statement.dtype == torch.int32 and not self.plan.needs_wide_offsets and not statement.index.indirections:
            return text
        return f"({text}).to({DTYPES[statement.dtype]})" if " " in text else f"{text}.to({DTYPES[statement.dtype]})"

    def _name(self, atom: Dim | Indirect) -> str:
        if isinstance(atom, Dim):
            return atom.name
        operand = self.operand(atom.value)
        if not self.plan.needs_wide_offsets and operand.dtype == torch.int32:
            return operand.tensor
        if not self.plan.needs_wide_offsets and atom.value in self.computed_indices:
            return f"{operand.tensor}.to(tl.int32)"
        # Loaded positions of a small type would overflow when they are multiplied by a stride.
        return operand.typed if operand.dtype == torch.int64 else f"{operand.tensor}.to(tl.int64)"

    def offset(self, index: Index) -> str:
        """The text of an index."""
        for axis in self.plan.axes:
            walk = self._walk_of(index, axis)
            if walk is not None:
                flat, index = walk
                rest = index.render(self._name)
                return flat if rest == "0" else f"{flat} - {rest[1:]}" if rest[0] == "-" else f"{flat} + {rest}"
        return index.render(self._name)

    def _walk_of(self, index: Index, axis: Axis) -> tuple[str, Index] | None:
        """An index that goes through all loops of an axis one after another, as a multiple of its flat index and the
        rest: Triton sees that lanes read neighbours then, also where a row ends between them."""
        if len(axis.dims) < 2 or axis.is_scalar or isinstance(self.plan, ProductPlan):
            return None
        step = index.coefficient(axis.dims[-1])
        if step == 0 or not is_walk(index, axis.dims):
            return None
        others = tuple((atom, factor) for atom, factor in index.terms if atom not in axis.dims)
        flat = f"{axis.name}_index"
        return flat if step == 1 else f"{text_of(step)} * {flat}", Index(index.offset, others)

    def _address(self, statement: Statement, axes: frozenset[str]) -> str:
        """The pointers of a load or store; they must have all of `axes`, which the index alone may not bring."""
        assert statement.index is not None
        assert statement.buffer is not None
        index = statement.index
        brought: set[str] = {self.axis_of_dim[dim].name for dim in index.dims}
        for indirect in index.indirections:
            brought |= self.axes_of[indirect.value]
        pointer, offset = self.pointer(statement.buffer), self.offset(index)
        offset = f"({offset})" if " " in offset else offset
        if axes - brought:
            return f"{pointer} + ({offset} + tl.zeros({self.shape(axes)}, tl.int32))"
        return pointer if offset == "0" else f"{pointer} + {offset}"

    def _load(self, statement: Statement) -> str:
        stored = self.program.dtype_of(statement)
        text = self.loaded(statement, self.axes_of[statement.number])
        computed = compute_dtype(stored)
        if stored in FLOAT8:
            return loaded(text, stored)
        return text if computed == stored else f"{text}.to({DTYPES[computed]})"

    def loaded(self, statement: Statement, axes: frozenset[str]) -> str:
        """The text of a load along `axes`, whose value has the dtype of the buffer."""
        masks = [self.operand(number).typed for number in statement.operands] + self.load_masks(statement, axes)
        arguments = [self._address(statement, axes)]
        if masks:
            arguments.append(" & ".join(masks))
            # What a lane outside reads matters only where a mask of the model put it there, or as an address.
            arguments.append("other=0")
        if statement.number in self.evicted_first:
            arguments.append('eviction_policy="evict_first"')
        return f"tl.load({', '.join(arguments)})"

    def _store(self, statement: Statement) -> str:
        axes = self.axes_of[statement.number]
        masks = [self.operand(number).typed for number in statement.operands[1:]] + self.store_masks(statement, axes)
        if isinstance(self.plan, CooperativePlan) and statement.level == "x":
            # Every program of the team has the value; one stores it.
            masks = [*(f"({mask})" if " " in mask else mask for mask in masks), "(part == 0)"]
        return store_text(self._address(statement, axes), self._as_stored(statement), masks)

    def _check(self, statement: Statement) -> str:
        """An assertion on the device, which stops the program and every later call as eager's does."""
        masks = self.masks(self.axes_of[statement.number])
        arguments = [self.operand(statement.operands[0]).typed, json.dumps(statement.value), *masks]
        return f"tl.device_assert({', '.join(arguments)})"

    def _as_stored(self, store: Statement) -> str:
        """A value as a store takes it: in the dtype that bodies compute in; to half types it converts by itself."""
        value, storage = self.operand(store.operands[0]), self.program.dtype_of(store)
        computed = compute_dtype(storage)
        if storage not in FLOAT8:
            return convert(value, computed)
        return to_byte(value.tensor if value.dtype == computed else convert(value, computed), storage)

    def _scatter(self, statement: Statement) -> str:
        """An update of elements that other lanes and programs may update too."""
        axes = self.axes_of[statement.number]
        stored, value = compute_dtype(self.program.dtype_of(statement)), self._as_stored(statement)
        masks = [self.operand(number).typed for number in statement.operands[1:]] + self.masks(axes)
        arguments = [self._address(statement, axes), value]
        if masks:
            arguments.append(f"mask={' & '.join(masks)}")
        if statement.value == "set":
            return f"tl.store({', '.join(arguments)})"
        if statement.value == "mul":
            return self._product_in_place(statement, stored, masks)
        if statement.value in _EXTREMES_IN_PLACE and stored.is_floating_point:
            mask = " & ".join(masks) or "tl.full([], True, tl.int1)"
            return f"{_EXTREMES_IN_PLACE[statement.value]}({arguments[0]}, {value}, {mask})"
        # What was written before the kernel is there already, and nothing waits for these updates inside of it.
        return f'tl.atomic_{statement.value}({", ".join(arguments)}, sem="relaxed")'

    def _product_in_place(self, statement: Statement, stored: torch.dtype, masks: list[str]) -> str:
        """An update by a product, for which GPUs have no atomic operation."""
        assert statement.buffer is not None
        axes = self.axes_of[statement.number]
        value = self.operand(statement.operands[0])
        factor = f"tl.full([], {value.typed}, {DTYPES[stored]})" if value.is_constant else convert(value, stored)
        bits = "tl.int64" if stored.itemsize == 8 else "tl.int32"
        mask = " & ".join([*masks, f"tl.full({self.shape(axes)}, True, tl.int1)"])
        address = self._address(statement, axes)
        return f"multiply_in_turns({address}, {self.pointer(statement.buffer)}, {factor}, {mask}, {bits})"


def _end_of_rows(statement: Statement, axis: Axis, program: Program) -> int | None:
    """Where the last of the vectors of 16 bytes ends that hold the elements of a row along `axis`; None where rows are
    not the elements along it, do not begin at such a vector, or have no gap up to there between them."""
    index, (dim, *others) = statement.index, axis.dims
    assert index is not None
    if others or not isinstance(dim.size, int) or not isinstance(index.offset, int) or dim not in index.dims:
        return None
    elements = max(1, VECTOR_BYTES // program.dtype_of(statement).itemsize)
    end = -(-dim.size // elements) * elements
    steps = [coefficient for atom, coefficient in index.terms if atom != dim]
    is_row = index.is_affine and index.coefficient(dim) == 1 and not index.indirections and bool(steps)
    if end == dim.size or not is_row or not all(isinstance(step, int) for step in steps):
        return None
    begins_well = (
        all(known(step) % elements == 0 and known(step) >= end for step in steps) and index.offset % elements == 0
    )
    return end if begins_well else None
