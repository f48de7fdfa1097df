"""Named functions in C++: one inline function each, above the kernel that calls it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import torch

from compiler.codegen.cpp.ops import expression, literal, value_type
from compiler.codegen.functions import FunctionPrinter
from compiler.ir.body import Instruction
from compiler.ir.functions import Record, records_of

_KEYWORDS = frozenset("float double int bool char short long auto const static fs std".split())


def function_lines(functions: Iterable[tuple[str, torch.dtype]]) -> list[str]:
    """The functions, each behind a guard: kernels of one file may share them."""
    lines: list[str] = []
    for record in records_of(functions):
        guard = f"FS_{record.name.upper()}_{value_type(record.dtype).upper()}"
        lines += [f"#ifndef {guard}", f"#define {guard}", *CppFunction(record).text(), "#endif", ""]
    return lines


class CppFunction(FunctionPrinter):
    """A named function for values of one dtype, as an inline function."""

    def __init__(self, record: Record) -> None:
        super().__init__(record, _KEYWORDS | {record.name})

    def text(self) -> list[str]:
        record = self.record
        kind = value_type(record.dtype)
        parameters = ", ".join(f"{kind} {self.variables[number]}" for number in record.parameters)
        comment = textwrap.wrap(record.summary, 107, initial_indent="// ", subsequent_indent="// ")
        lines = [*self.values(), f"    return {self.operand(record.result)};"]
        return [*comment, f"inline {kind} {record.name}({parameters}) {{", *lines, "}"]

    def operand(self, number: int) -> str:
        instruction = self.record.instructions[number]
        if instruction.op == "constant":
            text = literal(instruction.value, instruction.dtype)
            return f"({text})" if text.startswith("-") else text
        return self.variables[number]

    def expression(self, instruction: Instruction) -> str:
        operands = [self.operand(operand) for operand in instruction.operands]
        source = self.record.instructions[instruction.operands[0]].dtype
        return expression(instruction, operands, source)

    def assignment(self, number: int, text: str) -> str:
        return f"const {value_type(self.record.instructions[number].dtype)} {self.variables[number]} = {text};"
