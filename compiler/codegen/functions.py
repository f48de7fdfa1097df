"""A named function as text: what its C++ and its Triton printer share. Each value of its record is one assignment."""

from __future__ import annotations

from compiler.codegen.naming import unique_name
from compiler.ir.body import Instruction
from compiler.ir.functions import Record

#: Operators that both languages write alike.
ARITHMETIC = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}

COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class FunctionPrinter:
    """Prints one record. A subclass says how expressions and assignments look in its language."""

    def __init__(self, record: Record, reserved: frozenset[str]) -> None:
        self.record = record
        taken = set(reserved)
        #: The names of arguments and of what is computed; constants stand where they are used.
        self.variables = {
            number: unique_name(record.names.get(number, instruction.op), taken)
            for number, instruction in enumerate(record.instructions)
            if instruction.op != "constant"
        }

    def values(self) -> list[str]:
        """The lines that compute the values."""
        computed = [number for number in self.variables if number not in self.record.parameters]
        return [
            f"    {self.assignment(number, self.expression(self.record.instructions[number]))}" for number in computed
        ]

    def expression(self, instruction: Instruction) -> str:
        raise NotImplementedError

    def assignment(self, number: int, text: str) -> str:
        raise NotImplementedError
