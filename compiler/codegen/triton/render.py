"""A fused group as the text of one Triton kernel.

The text is a complete module: imports, the helpers that the kernel calls, and one `@triton.jit` function. Shapes are
literals in it; block sizes are `constexpr` parameters, so that a tuner may vary them.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from compiler.codegen.program import Program, RenderedKernel, Section, Statement, identifier
from compiler.codegen.triton.ops import (
    DTYPES,
    HELPERS,
    Operand,
    Reduction,
    constant_operand,
    convert,
    pointwise,
    reduction_of,
)
from compiler.codegen.triton.plan import Axis, Plan, next_power_of_two, plan_tile
from compiler.codegen.triton.writer import Writer, wrapped_docstring
from compiler.devices import Device
from compiler.ir.index import Dim, Index, Indirect
from compiler.ir.ops import compute_dtype
from compiler.schedule.group import Group

_IMPORTS = """import triton
import triton.language as tl
from triton.language.extra import libdevice
"""


def render_triton(group: Group, storage: dict[str, torch.dtype], device: Device) -> RenderedKernel:
    """The kernel of `group` for `device`; `storage` gives the dtype of every buffer that it touches."""
    return render_plan(plan_tile(group, storage, device))


def render_plan(plan: Plan) -> RenderedKernel:
    """The kernel of a plan, whose blocks need not be the ones that `plan_tile` would choose."""
    return _Renderer(plan).kernel()


class _Renderer:
    """Prints one plan. `axes_of` holds, for each statement, the tile axes along which its value varies: a value lacks
    the other axes (their size is 1) until an operation broadcasts it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.program: Program = plan.program
        self.vectors = plan.vectors
        self.axis_of_dim = {dim: axis for axis in plan.axes for dim in axis.dims}
        self.by_number = {s.number: s for s in self.program.statements}
        self.helpers: set[str] = set()
        self.writer = Writer(indent=1)
        self.axes_of: dict[int, frozenset[str]] = {}
        self.is_wide = plan.needs_wide_offsets
        self.last_loads = self._last_loads()

    # The whole -----------------------------------------------------------------------------------------------

    def kernel(self) -> RenderedKernel:
        program, plan = self.program, self.plan
        parameters = tuple(dict.fromkeys((*program.reads, *program.writes)))
        self._indices()
        if plan.kind == "split":
            self._split_sections()
        else:
            self._sections(program.sections)
        blocks = {axis.block_name: axis.block for axis in self.vectors}
        arguments = [self._pointer(name) for name in parameters]
        arguments += ["workspace_ptr", "counters_ptr"] if plan.kind == "split" else []
        arguments += [f"{name}: tl.constexpr" for name in blocks]
        head = [_IMPORTS, *(f"\n{HELPERS[name]}" for name in HELPERS if name in self.helpers)]
        head += [f"\n@triton.jit\ndef {identifier(program.name)}({', '.join(arguments)}):\n", self._docstring()]
        text = "\n".join(head[:-2]) + "\n" + "".join(head[-2:])
        lines = self.writer.numbered(text.count("\n"))
        config: dict[str, int | str | tuple[int, ...]] = {
            **blocks, "num_warps": plan.num_warps, "num_stages": 1, "grid": (plan.grid,), "plan": plan.kind}
        if plan.kind == "split":
            config |= {"workspace_bytes": self._workspace()[1], "counters": plan.axes[0].blocks, "splits": plan.splits}
        return RenderedKernel(identifier(program.name), "triton", text + self.writer.text(), parameters, lines, config)

    def _docstring(self) -> str:
        names = list(dict.fromkeys(node for s in self.program.statements for node in s.nodes))
        how = {"pointwise": "", "persistent": ", all of r in registers", "looped": ", r in blocks",
               "split": f", r shared among {self.plan.splits} programs"}[self.plan.kind]
        return wrapped_docstring(f"{self.program.space}{how}.", f"Computes {', '.join(names)}.")

    def _pointer(self, buffer: str) -> str:
        return f"{identifier(buffer)}_ptr"

    # Index variables -----------------------------------------------------------------------------------------

    def _indices(self) -> None:
        """Start of the kernel: which point of the loops each lane works on."""
        outer = [axis for axis in self.plan.axes if axis.name != "r"]
        place = "tl.program_id(0)" + (".to(tl.int64)" if self.is_wide else "")
        if self.plan.kind == "split":
            self.writer.line(f"x_block = {place} // {self.plan.splits}")
            self.writer.line(f"part = tl.program_id(0) % {self.plan.splits}")
            self._axis(outer[0], "x_block")
        elif len(outer) == 2:
            self.writer.line(f"pid = {place}")
            self._axis(outer[0], f"(pid // {outer[1].blocks})")
            self._axis(outer[1], f"(pid % {outer[1].blocks})")
        elif outer[0].dims:
            self._axis(outer[0], place)
        r_axis = next((axis for axis in self.plan.axes if axis.name == "r"), None)
        if r_axis is not None and self.plan.kind == "persistent":
            self._axis(r_axis, "")

    def _axis(self, axis: Axis, block: str) -> None:
        """The flat index along an axis, its mask, and its loop variables."""
        lanes = f"tl.arange(0, {axis.block_name}){self._spread(axis)}"
        if axis.is_scalar:
            start = block
        elif axis.name == "r":
            start = f"r_start + {lanes}" if block else lanes
            start = f"({start}).to(tl.int64)" if self.is_wide else start
        else:
            start = f"{block} * {axis.block_name} + {lanes}"
        is_single = len(axis.dims) == 1 and self.plan.kind != "split"
        flat = axis.dims[0].name if is_single else f"{axis.name}_index"
        self.writer.line(f"{flat} = {start}")
        if not axis.is_exact and not axis.is_scalar:
            self.writer.line(f"{axis.name}_mask = {flat} < {axis.numel}")
        if not is_single:
            self._unflatten(axis, flat)

    def _unflatten(self, axis: Axis, flat: str) -> None:
        inner = axis.numel
        for place, dim in enumerate(axis.dims):
            inner = inner // dim.size if dim.size else 1
            text = f"{flat} // {inner}" if inner > 1 else flat
            if place:
                text = f"({text}) % {dim.size}" if inner > 1 else f"{text} % {dim.size}"
            self.writer.line(f"{dim.name} = {text}")

    def _spread(self, axis: Axis) -> str:
        """The subscript that puts a vector along its axis of the tile."""
        if len(self.vectors) == 1:
            return ""
        return f"[{', '.join(':' if other == axis else 'None' for other in self.vectors)}]"

    def _shape(self, axes: Iterable[str]) -> str:
        wanted = set(axes)
        return f"[{', '.join(axis.block_name if axis.name in wanted else '1' for axis in self.vectors)}]"

    @property
    def all_axes(self) -> frozenset[str]:
        return frozenset(axis.name for axis in self.vectors)

    def _masks(self, axes: frozenset[str]) -> list[str]:
        return [f"{axis.name}_mask" for axis in self.vectors if axis.name in axes and not axis.is_exact]

    # Sections ------------------------------------------------------------------------------------------------

    def _sections(self, sections: Iterable[Section]) -> None:
        number = 0
        for section in sections:
            if section.level == "x":
                self._statements(section)
                continue
            number += 1
            if self.plan.kind == "persistent":
                self._comment_pass(section, number)
                self._statements(section)
            else:
                self._comment_pass(section, number)
                self._looped_pass(section, number)

    def _comment_pass(self, section: Section, number: int) -> None:
        made = [s.target for s in section.reductions]
        made += [identifier(s.buffer or "") for s in section.statements if s.op == "store"]
        self.writer.blank()
        self.writer.line(f"# Pass {number} over r: {', '.join(made)}")

    def _statements(self, section: Section) -> None:
        for statement in section.statements:
            self._note_axes(statement)
            if statement.op == "reduce":
                self._reduce_at_once(statement)
            else:
                self._statement(statement, 0)

    def _looped_pass(self, section: Section, number: int) -> None:
        for statement in section.reductions:
            self._accumulators(statement)
        r_axis = self.plan.axes[-1]
        first, last = "0", str(r_axis.numel)
        if self.plan.kind == "split":
            self.writer.line(f"first = part * {self.plan.chunk}")
            first, last = "first", f"tl.minimum(first + {self.plan.chunk}, {r_axis.numel})"
        self.writer.line(f"for r_start in range({first}, {last}, {r_axis.block_name}):")
        with self.writer.indented():
            self._axis(r_axis, "r_start")
            for statement in section.statements:
                self._note_axes(statement)
                if statement.op == "reduce":
                    self._accumulate(statement)
                else:
                    self._statement(statement, number)
        for statement in section.reductions:
            self._collapse(statement, statement.target)

    # Reductions ----------------------------------------------------------------------------------------------

    def _reduction(self, statement: Statement) -> Reduction:
        reduction = reduction_of(str(statement.value), self.by_number[statement.operands[0]].dtype)
        if reduction.helper:
            self.helpers.add(reduction.helper)
        return reduction

    def _lanes(self, statement: Statement, reduction: Reduction, is_whole: bool) -> list[str]:
        """The operands of a reduction with lanes outside of r filled by its identity; `is_whole` asks for the shape of
        the whole tile."""
        fills = [reduction.identity, str(torch.iinfo(torch.int64).max)]
        texts: list[str] = []
        for number, fill in zip(statement.operands, fills, strict=False):
            operand = self._operand(number)
            text = f"{operand.tensor}.to(tl.int32)" if operand.dtype == torch.bool else operand.typed
            axes = self.axes_of[number]
            if self._masks(frozenset("r")):
                text = f"tl.where(r_mask, {text}, {fill})"
                axes = axes | {"r"}
            if is_whole and axes != self.all_axes:
                text = f"tl.broadcast_to({text}, {self._shape(self.all_axes)})"
            texts.append(text)
        return texts

    def _reduce_at_once(self, statement: Statement) -> None:
        reduction = self._reduction(statement)
        lanes = self._lanes(statement, reduction, is_whole=True)
        value = f"({', '.join(lanes)})" if reduction.is_position else lanes[0]
        self._emit_collapsed(statement, statement.target, reduction, value)

    def _accumulators(self, statement: Statement) -> None:
        reduction = self._reduction(statement)
        shape, name = self._shape(self.all_axes), f"{statement.target}_acc"
        self.writer.line(f"{name} = tl.full({shape}, {reduction.identity}, {DTYPES[reduction.dtype]})", statement.nodes)
        if reduction.is_position:
            last = torch.iinfo(torch.int64).max
            self.writer.line(f"{name}_at = tl.full({shape}, {last}, tl.int64)", statement.nodes)

    def _accumulate(self, statement: Statement) -> None:
        reduction = self._reduction(statement)
        lanes, name = self._lanes(statement, reduction, is_whole=False), f"{statement.target}_acc"
        if reduction.is_position:
            call = f"{reduction.helper}({name}, {name}_at, {lanes[0]}, {lanes[1]})"
            self.writer.line(f"{name}, {name}_at = {call}", statement.nodes)
        elif reduction.kind in ("sum", "prod"):
            self.writer.line(f"{name} {'+' if reduction.kind == 'sum' else '*'}= {lanes[0]}", statement.nodes)
        else:
            self.writer.line(f"{name} = {reduction.join(name, lanes[0])}", statement.nodes)

    def _collapse(self, statement: Statement, target: str) -> None:
        reduction, name = self._reduction(statement), f"{statement.target}_acc"
        self._emit_collapsed(statement, target, reduction, f"({name}, {name}_at)" if reduction.is_position else name)

    def _emit_collapsed(self, statement: Statement, target: str, reduction: Reduction, value: str,
                        is_final: bool = True) -> None:
        axis = len(self.vectors) - 1
        text = reduction.collapse(value, axis)
        spread = "[:, None]" if axis else ""
        if reduction.is_position:
            text = f"{text}[1]"
        text += spread
        if is_final and statement.dtype == torch.bool:
            text = f"{text} != 0"
        self.writer.line(f"{target} = {text}", statement.nodes)

    # Split reductions ----------------------------------------------------------------------------------------

    def _workspace(self) -> tuple[dict[tuple[int, int], tuple[int, torch.dtype]], int]:
        """Where the parts of each reduction lie in the workspace (in bytes, by statement and operand), and its size."""
        places: dict[tuple[int, int], tuple[int, torch.dtype]] = {}
        size = 0
        for section in self.program.sections:
            for statement in section.reductions:
                reduction = self._reduction(statement)
                for which, dtype in enumerate([reduction.dtype, torch.int64][: 1 + reduction.is_position]):
                    places[statement.number, which] = size, dtype
                    size += -(-self.plan.splits * self.plan.axes[0].numel * dtype.itemsize // 16) * 16
        return places, size

    def _split_sections(self) -> None:
        """Each program reduces its part of r; the last one to finish combines the parts, in their order."""
        sections = self.program.sections
        place = next(number for number, section in enumerate(sections) if section.level == "r")
        before, reducing, after = sections[:place], sections[place], sections[place + 1:]
        self._sections(before)
        self._comment_pass(reducing, 1)
        self._part(reducing)
        self.writer.blank()
        self.writer.line("# The last program to arrive combines the parts, always in the same order.")
        self.writer.line("tl.debug_barrier()")
        self.writer.line("arrived = tl.atomic_add(counters_ptr + x_block, 1)")
        self.writer.line(f"if arrived == {self.plan.splits - 1}:")
        with self.writer.indented():
            self._combine(reducing)
            self._sections(after)
            self.writer.line("# The counter is left as it was found: zero.")
            self.writer.line("tl.store(counters_ptr + x_block, 0)")

    def _part(self, section: Section) -> None:
        places, _ = self._workspace()
        rows = self.plan.axes[0].numel
        masks = self._masks(frozenset("x"))
        self._looped_body(section)
        for statement in section.reductions:
            reduction = self._reduction(statement)
            name = f"{statement.target}_acc"
            spread = "[:, None]" if len(self.vectors) > 1 else ""
            if reduction.is_position:
                call = reduction.collapse(f"({name}, {name}_at)", len(self.vectors) - 1)
                self.writer.line(f"{name}, {name}_at = {call}", statement.nodes)
            else:
                self.writer.line(f"{name} = {reduction.collapse(name, len(self.vectors) - 1)}", statement.nodes)
            for which, suffix in enumerate(["", "_at"][: 1 + reduction.is_position]):
                start, dtype = places[statement.number, which]
                self.writer.line(f"{name}{suffix}_ptr = {_typed_pointer(start, dtype)}", statement.nodes)
                where = f"{name}{suffix}_ptr + (part * {rows} + x_index)"
                mask = f", {masks[0]}" if masks else ""
                self.writer.line(f"tl.store({where}, {name}{suffix}{spread}{mask})", statement.nodes)

    def _looped_body(self, section: Section) -> None:
        """The loop of a part, without the collapse at its end."""
        for statement in section.reductions:
            self._accumulators(statement)
        r_axis = self.plan.axes[-1]
        self.writer.line(f"first = part * {self.plan.chunk}")
        self.writer.line(f"last = tl.minimum(first + {self.plan.chunk}, {r_axis.numel})")
        self.writer.line(f"for r_start in range(first, last, {r_axis.block_name}):")
        with self.writer.indented():
            self._axis(r_axis, "r_start")
            for statement in section.statements:
                self._note_axes(statement)
                if statement.op == "reduce":
                    self._accumulate(statement)
                else:
                    self._statement(statement, 1)

    def _combine(self, section: Section) -> None:
        rows, splits = self.plan.axes[0].numel, self.plan.splits
        spread = "[None, :]" if len(self.vectors) > 1 else ""
        self.writer.line(f"parts = tl.arange(0, {next_power_of_two(splits)}){spread}")
        masks = [f"(parts < {splits})", *self._masks(frozenset("x"))]
        for statement in section.reductions:
            reduction, name = self._reduction(statement), f"{statement.target}_acc"
            fills = [reduction.identity, str(torch.iinfo(torch.int64).max)]
            loads = [f"tl.load({name}{suffix}_ptr + (parts * {rows} + x_index), {' & '.join(masks)}, other={fill}, "
                     'cache_modifier=".cg")'
                     for suffix, fill in zip(["", "_at"][: 1 + reduction.is_position], fills, strict=False)]
            for suffix, load in zip(["", "_at"], loads, strict=False):
                self.writer.line(f"{statement.target}_parts{suffix} = {load}", statement.nodes)
            name = f"{statement.target}_parts"
            value = f"({name}, {name}_at)" if reduction.is_position else name
            self._emit_collapsed(statement, statement.target, reduction, value)

    # Statements ----------------------------------------------------------------------------------------------

    def _note_axes(self, statement: Statement) -> None:
        axes: set[str] = set()
        for number in statement.needs:
            axes |= self.axes_of[number]
        if statement.index is not None:
            axes |= {self.axis_of_dim[dim].name for dim in statement.index.dims}
        if statement.op == "reduce":
            axes = {"x"}
        self.axes_of[statement.number] = frozenset(axes) & self.all_axes

    def _statement(self, statement: Statement, pass_number: int) -> None:
        if statement.op == "constant":
            return
        if statement.op == "store":
            self.writer.line(self._store(statement), statement.nodes)
        else:
            self.writer.line(f"{statement.target} = {self._value(statement, pass_number)}", statement.nodes)

    def _operand(self, number: int) -> Operand:
        statement = self.by_number[number]
        if statement.op == "constant":
            assert isinstance(statement.value, bool | int | float)
            return constant_operand(statement.value, statement.dtype)
        return Operand.variable(statement.target, statement.dtype)

    def _value(self, statement: Statement, pass_number: int) -> str:
        operands = [self._operand(number) for number in statement.operands]
        if statement.op == "load":
            return self._load(statement, pass_number)
        if statement.op == "index_value":
            return self._index_value(statement)
        if statement.op == "to_dtype":
            return convert(operands[0], statement.dtype)
        if statement.op == "where":
            yes, no = operands[1], operands[2]
            if yes.is_constant and no.is_constant:
                return f"tl.where({operands[0].typed}, {yes.typed}, {no.typed})"
            return f"tl.where({operands[0].typed}, {yes.infix}, {no.infix})"
        if statement.op in ("rand", "randn"):
            assert statement.index is not None
            offset = self._offset(statement.index)
            offset = f"tl.full([], {offset}, tl.int32)" if not statement.index.terms else offset
            return f"tl.{statement.op}({operands[0].tensor}, {offset})"
        return pointwise(statement.op, operands, self.helpers)

    def _index_value(self, statement: Statement) -> str:
        assert statement.index is not None
        if not statement.index.terms:
            return constant_operand(statement.index.offset, statement.dtype).typed
        text = self._offset(statement.index)
        return f"({text}).to({DTYPES[statement.dtype]})" if " " in text else f"{text}.to({DTYPES[statement.dtype]})"

    def _name(self, atom: Dim | Indirect) -> str:
        if isinstance(atom, Dim):
            return atom.name
        operand = self._operand(atom.value)
        # Loaded positions of a small type would overflow when they are multiplied by a stride.
        return operand.typed if operand.dtype == torch.int64 else f"{operand.tensor}.to(tl.int64)"

    def _offset(self, index: Index) -> str:
        return index.render(self._name)

    def _address(self, statement: Statement, axes: frozenset[str]) -> str:
        """The pointers of a load or store; they must have all of `axes`, which the index alone may not bring."""
        assert statement.index is not None
        assert statement.buffer is not None
        index = statement.index
        brought: set[str] = {self.axis_of_dim[dim].name for dim in index.dims}
        for indirect in index.indirections:
            brought |= self.axes_of[indirect.value]
        pointer, offset = self._pointer(statement.buffer), self._offset(index)
        offset = f"({offset})" if " " in offset else offset
        if axes - brought:
            return f"{pointer} + ({offset} + tl.zeros({self._shape(axes)}, tl.int32))"
        return pointer if offset == "0" else f"{pointer} + {offset}"

    def _load(self, statement: Statement, pass_number: int) -> str:
        assert statement.buffer is not None
        stored = self.program.storage[statement.buffer]
        axes = self.axes_of[statement.number]
        masks = [self._operand(number).typed for number in statement.operands] + self._masks(axes)
        arguments = [self._address(statement, axes)]
        if masks:
            arguments.append(" & ".join(masks))
            # What a lane outside reads matters only where a mask of the model put it there, or as an address.
            arguments.append("other=0")
        if self.last_loads.get((statement.buffer, statement.index), 0) > 1:
            is_last = pass_number == self.last_loads[statement.buffer, statement.index]
            arguments.append(f'eviction_policy="{"evict_first" if is_last else "evict_last"}"')
        text = f"tl.load({', '.join(arguments)})"
        computed = compute_dtype(stored)
        return text if computed == stored else f"{text}.to({DTYPES[computed]})"

    def _store(self, statement: Statement) -> str:
        assert statement.buffer is not None
        assert statement.index is not None
        value = self._operand(statement.operands[0])
        axes = self.axes_of[statement.number]
        stored = compute_dtype(self.program.storage[statement.buffer])
        masks = self._masks(axes)
        arguments = [self._address(statement, axes), convert(value, stored), *([" & ".join(masks)] if masks else [])]
        return f"tl.store({', '.join(arguments)})"

    def _last_loads(self) -> dict[tuple[str, Index | None], int]:
        """The last pass that loads a place, where a looped program loads it in more than one."""
        if self.plan.kind != "looped":
            return {}
        passes: dict[tuple[str, Index | None], list[int]] = {}
        loops = [section for section in self.program.sections if section.level == "r"]
        for number, section in enumerate(loops, start=1):
            for s in section.statements:
                if s.op == "load" and s.buffer is not None:
                    passes.setdefault((s.buffer, s.index), []).append(number)
        return {place: numbers[-1] for place, numbers in passes.items() if len(numbers) > 1}


def _typed_pointer(start: int, dtype: torch.dtype) -> str:
    base = f"(workspace_ptr + {start})" if start else "workspace_ptr"
    return f"{base}.to(tl.pointer_type({DTYPES[dtype]}))"
