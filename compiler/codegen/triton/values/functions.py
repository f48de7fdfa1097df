"""Named functions in Triton: one `@triton.jit` function each, above the kernel that calls it."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from compiler.codegen.functions import FunctionPrinter
from compiler.codegen.triton.values.float8 import has_own_conversion, nearest_either_way
from compiler.codegen.triton.values.ops import Operand, constant_operand, expression, function_name
from compiler.codegen.triton.writer import wrapped_call, wrapped_docstring
from compiler.ir.body import Instruction
from compiler.ir.float8 import FLOAT8
from compiler.ir.functions import Record, records_of

_KEYWORDS = frozenset("tl triton libdevice in is not and or if for while lambda return def".split())


def function_texts(functions: Iterable[tuple[str, torch.dtype]]) -> list[str]:
    return [_text_of(record) for record in records_of(functions)]


def _text_of(record: Record) -> str:
    printed = TritonFunction(record)
    form = _ROUNDINGS.get(record.name) if record.dtype == torch.float32 else None
    if form is None:
        return printed.text()
    name, printed.name = printed.name, f"{printed.name}_by_bits"
    return f"{printed.text()}\n\n{nearest_either_way(name, form)}"


#: Named functions of which a GPU has its own.
_ROUNDINGS = {form.rounding: form for form in FLOAT8.values() if has_own_conversion(form)}


class TritonFunction(FunctionPrinter):
    """A named function for values of one dtype, under `@triton.jit`."""

    def __init__(self, record: Record) -> None:
        self.name = function_name(record.name, record.dtype)
        super().__init__(record, _KEYWORDS | {self.name})

    def text(self) -> str:
        record = self.record
        parameters = [self.variables[number] for number in record.parameters]
        head = f"@triton.jit\ndef {self.name}({', '.join(parameters)}):\n"
        values = [*self.values(), f"    return {self._operand(record.result).tensor}"]
        lines = [part for line in values for part in _wrapped(line)]
        return head + wrapped_docstring(record.summary) + "\n".join(lines) + "\n"

    def _operand(self, number: int) -> Operand:
        instruction = self.record.instructions[number]
        if instruction.op == "constant":
            assert isinstance(instruction.value, bool | int | float)
            return constant_operand(instruction.value, instruction.dtype)
        return Operand.variable(self.variables[number], instruction.dtype)

    def expression(self, instruction: Instruction) -> str:
        operands = [self._operand(operand) for operand in instruction.operands]
        return expression(instruction.op, operands, instruction.dtype)

    def assignment(self, number: int, text: str) -> str:
        return f"{self.variables[number]} = {text}"


def _wrapped(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    return [indent + part for part in wrapped_call(line.strip(), 110 - len(indent)).split("\n")]
