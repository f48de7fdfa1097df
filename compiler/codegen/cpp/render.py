"""The C++ printer: a kernel program, laid out by its plan, as one function."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod

import torch

from compiler.codegen.cpp.functions import function_lines
from compiler.codegen.cpp.ops import storage_type, value_type
from compiler.codegen.cpp.passes import PassPrinter
from compiler.codegen.cpp.places import DECLARATION
from compiler.codegen.cpp.plan import ENOUGH_PIECES, make_plan
from compiler.codegen.cpp.statements import over, over_blocks, within
from compiler.codegen.loops import simplify_loops
from compiler.codegen.program import RenderedKernel, build_program, identifier
from compiler.ir.index import Dim
from compiler.ir.ops import NAMED
from compiler.ir.size import hint, is_multiple, text_of
from compiler.schedule.group import Group


def render_cpp(group: Group, storage: dict[str, torch.dtype]) -> RenderedKernel:
    """The kernel of `group` as C++; `storage` gives the dtype of every buffer that it touches.

    `extern "C" void NAME(const T* a_ptr, ..., T* out_ptr, int64_t s0, ...)`: the parameters are the buffers that it
    reads, then those that it writes, as in `RenderedKernel.parameters`, then the sizes that differ from call to call.
    """
    plan = make_plan(build_program(simplify_loops(group), storage))
    printer = _KernelPrinter(plan)
    printer.print()
    program = plan.program
    parameters = tuple(dict.fromkeys((*program.reads, *program.writes)))
    config: dict[str, int | str | tuple[int, ...]] = {"shape": plan.shape, "parallel": plan.parallel}
    config |= {name: size for name, size in (("block", plan.block), ("chunk", plan.chunk)) if size}
    updates = tuple(s.buffer for s in program.scatters if s.buffer is not None)
    source, origins = printer.writer.text, printer.writer.origins
    return RenderedKernel(program.name, "cpp", source, parameters, origins, config, updates, program.sizes)


class _KernelPrinter(PassPrinter):
    """The function, and its loops over x."""

    def print(self) -> None:
        writer, program = self.writer, self.program
        writer.line('#include "fusionscope.h"')
        writer.line()
        for line in function_lines((s.op, s.dtype) for s in program.statements if s.op in NAMED):
            writer.line(line)
        for line in self._description():
            writer.comment(line)
        written = set(program.writes)
        parameters = [
            f"{'' if name in written else 'const '}{storage_type(program.storage[name])}* __restrict__ "
            f"{self.pointers[name]}"
            for name in dict.fromkeys((*program.reads, *program.writes))
        ]
        parameters += [f"const int64_t {atom.name}" for atom in program.sizes]
        writer.signature(f'extern "C" void {identifier(program.name)}', parameters)
        with writer.indented():
            if self.of_conditions:
                writer.line(DECLARATION)
            printers = {
                "pointwise": self._pointwise,
                "rows": self._rows,
                "columns": self._columns,
                "scatter": self._scatter,
            }
            printers[self.plan.shape]()
        writer.line("}")

    def _description(self) -> list[str]:
        plan, space = self.plan, self.program.space
        loops = {"pointwise": "vectors along {}", "rows": "vectors along the reduction", "columns": "vectors along {}"}
        if self.program.scans and not any(section.reductions for section in self.program.sections):
            loops["rows"] = "step by step along the scan"
        loops["scatter"] = loops["pointwise"] if plan.inner else "one after the other"
        text = loops[plan.shape].format(plan.inner.name if plan.inner else "one point")
        parallel = {"no": "one thread", "x": "threads over x", "chunks": "threads over chunks of the reduction"}
        return [f"{self.program.name} over {space}: {text}, {parallel[plan.parallel]}."]

    def _pointwise(self) -> None:
        plan = self.plan
        if plan.inner is None:
            self._sections_at_x()
            return
        with ExitStack() as loops:
            outer = [over(dim) for dim in plan.outer]
            if plan.across is not None:
                outer.append(over_blocks(plan.across, plan.block))
            if plan.block:
                outer.append(over_blocks(plan.inner, plan.block))
            sizes = [hint(dim.size) for dim in plan.outer]
            sizes += [-(-hint(dim.size) // plan.block) for dim in (plan.across, plan.inner) if dim and plan.block]
            if not outer and plan.parallel == "x":
                self.writer.line(f"#pragma omp parallel for simd schedule(static){plan.worth_threads}")
            else:
                self._nest(loops, outer, sizes)
                for dim in (plan.across, plan.inner) if plan.block else ():
                    if dim is not None:
                        self._block_end(dim)
                if plan.across is not None:
                    loops.enter_context(self.writer.block(within(plan.across)))
                self.writer.line("#pragma omp simd")
            loops.enter_context(self.writer.block(within(plan.inner) if plan.block else over(plan.inner)))
            self._sections_at_x()

    def _scatter(self) -> None:
        plan = self.plan
        with ExitStack() as loops:
            outer, sizes = [over(dim) for dim in plan.outer], [hint(dim.size) for dim in plan.outer]
            if plan.inner is not None and plan.block:
                outer.append(over_blocks(plan.inner, plan.block))
                sizes.append(-(-hint(plan.inner.size) // plan.block))
            self._nest(loops, outer, sizes)
            if plan.inner is not None and plan.block:
                self._block_end(plan.inner)
            for dim in plan.in_order:
                loops.enter_context(self.writer.block(over(dim)))
            if plan.inner is not None:
                self.writer.line("#pragma omp simd")
                loops.enter_context(self.writer.block(within(plan.inner) if plan.block else over(plan.inner)))
            self._sections_at_x()

    def _sections_at_x(self) -> None:
        for section in self.program.sections:
            for statement in section.statements:
                self.statement(statement)

    def _rows(self) -> None:
        with ExitStack() as loops:
            self._nest(loops, [over(dim) for dim in self.plan.outer], [hint(dim.size) for dim in self.plan.outer])
            for section in self.program.sections:
                if section.level == "x":
                    for statement in section.statements:
                        self.statement(statement)
                else:
                    self.run_pass(section)

    def _columns(self) -> None:
        plan = self.plan
        assert plan.inner is not None
        blocks = -(-hint(plan.inner.size) // plan.block) if plan.block else 1
        with ExitStack() as loops:
            self._nest(
                loops,
                [*map(over, plan.outer), over_blocks(plan.inner, max(plan.block, 1))],
                [*(hint(dim.size) for dim in plan.outer), blocks],
            )
            self._block_end(plan.inner)
            for section in self.program.sections:
                if section.level == "r":
                    self.run_pass(section)
                    continue
                computed = [s for s in section.statements if s.op != "constant"]
                for statement in computed:
                    if statement.number in self.shared:
                        self.writer.line(f"{value_type(statement.dtype)} {statement.target}[{plan.block}];")
                        self.names[statement.number] = f"{statement.target}{self.lane}"
                if computed:
                    self.simd(computed, plan.inner)
                    with self.writer.block(within(plan.inner)):
                        for statement in computed:
                            self.statement(statement)

    def _nest(self, loops: ExitStack, heads: list[str], sizes: list[int]) -> None:
        """Enter the loops, as many of the outer ones together in parallel as are worth it."""
        if self.plan.parallel == "x" and heads:
            together = next((n for n in range(1, len(sizes)) if prod(sizes[:n]) >= ENOUGH_PIECES), len(sizes))
            collapse = f" collapse({together})" if together > 1 else ""
            self.writer.line(f"#pragma omp parallel for{collapse} schedule(static){self.plan.worth_threads}")
        for head in heads:
            loops.enter_context(self.writer.block(head))

    def _block_end(self, dim: Dim) -> None:
        name, block = dim.name, self.plan.block
        if is_multiple(dim.size, max(block, 1)):
            self.writer.line(f"const int64_t {name}_end = {name}_start + {block};")
        else:
            last = f"fs::minimum<int64_t>({name}_start + {block}, {text_of(dim.size)})"
            self.writer.line(f"const int64_t {name}_end = {last};")
