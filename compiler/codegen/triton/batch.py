"""Kernels that share a launch: each is a function of its own, and each program runs one of them.

    program = tl.program_id(0)
    if program < 12:
        part_1_exp(x_ptr, exp_ptr, program, X1BLOCK)
    else:
        part_2_sum(y_ptr, sum_ptr, program - 12, X2BLOCK, R2BLOCK)

They run with the same number of warps, that of the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.codegen.naming import identifier
from compiler.codegen.rendered import RenderedKernel, launch_config
from compiler.codegen.triton.module import module_head
from compiler.codegen.triton.printer import KernelPrinter
from compiler.codegen.triton.writer import Writer, function_head
from compiler.ir.size import Integer, spelt_out
from compiler.schedule.tiles.plan import Plan


def render_batch(name: str, plans: Sequence[Plan]) -> RenderedKernel:
    """One kernel of several plans, none of which needs scratch memory."""
    printers = [KernelPrinter(_numbered(plan, number), "program") for number, plan in enumerate(plans, start=1)]
    for printer in printers:
        printer.print_body()
    parameters = tuple(dict.fromkeys(buffer for printer in printers for buffer in printer.program.parameters))
    reads = frozenset(buffer for printer in printers for buffer in printer.program.reads)
    parameters = (*(p for p in parameters if p in reads), *(p for p in parameters if p not in reads))
    functions = {function: None for printer in printers for function in printer.printer.functions}
    text = module_head("".join(printer.writer.text() for printer in printers), functions)
    lines: list[tuple[int, tuple[str, ...]]] = []
    for printer in printers:
        text += printer.definition(["program", *(size.name for size in printer.program.sizes)])
        lines += printer.writer.numbered(text.count("\n"))
        text += printer.writer.text() + "\n"
    blocks = {
        _block(block, number): size for number, p in enumerate(printers, start=1) for block, size in p.blocks.items()
    }
    sizes = tuple(dict.fromkeys(size for plan in plans for size in plan.program.sizes))
    arguments = [f"{identifier(buffer)}_ptr" for buffer in parameters]
    arguments += [*(f"{size.name}: tl.int64" for size in sizes), *(f"{block}: tl.constexpr" for block in blocks)]
    paragraph = f"{len(plans)} kernels in one launch, each with its share of the programs."
    text += function_head(name, arguments, paragraph, sizes=sizes)
    text += _shares(printers)
    grid = sum(plan.grid for plan in plans)
    warps, checks = max(plan.num_warps for plan in plans), any(plan.program.has_check for plan in plans)
    config = launch_config(blocks, warps, grid, "batch", checks=checks)
    return RenderedKernel(identifier(name), "triton", text, parameters, tuple(lines), config, sizes=sizes, grid=grid)


def _numbered(plan: Plan, number: int) -> Plan:
    return replace(plan, program=replace(plan.program, name=f"part_{number}_{plan.program.name}"))


def _block(name: str, number: int) -> str:
    """XBLOCK -> X2BLOCK for the second part."""
    return f"{name.removesuffix('BLOCK')}{number}BLOCK"


def _shares(printers: Sequence[KernelPrinter]) -> str:
    """Which programs run which function."""
    writer = Writer(indent=1)
    writer.line("program = tl.program_id(0)")
    first: Integer = 0
    for number, printer in enumerate(printers, start=1):
        arguments = [f"{identifier(buffer)}_ptr" for buffer in printer.program.parameters]
        arguments += ["program" if number == 1 else f"program - {_text(first, printers)}"]
        arguments += [size.name for size in printer.program.sizes]
        arguments += [_block(block, number) for block in printer.blocks]
        first += printer.plan.grid
        is_last = number == len(printers)
        test = f"{'if' if number == 1 else 'elif'} program < {_text(first, printers)}"
        with writer.block("else" if is_last else test):
            writer.line(f"{identifier(printer.program.name)}({', '.join(arguments)})")
    return writer.text()


def _text(count: Integer, printers: Sequence[KernelPrinter]) -> str:
    given = [size for printer in printers for size in printer.program.sizes]
    return str(count) if isinstance(count, int) else spelt_out(count, given)
