"""A named function as text: what its C++ and its Triton printer share.

The record of a function becomes one assignment a line. What only one other value reads stands inside of that one's
expression where neither language needs brackets for it, so that Horner's rule reads `p = p * x + 0.5`. A value takes
the variable of the one it is called after where it is that one's only reader.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.ir.body import Instruction
from compiler.ir.functions import Record
from compiler.ir.ops import NAMED

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

#: An expression that is longer gets a variable of its own; the left part of a sum may be as long as a line.
_LONGEST_INSIDE = 44
_LONGEST_SUM = 72

#: Ops of floats that both languages write as calls.
_CALLS = frozenset(
    """sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh erf erfc lgamma floor ceil
    trunc round pow fmod copysign abs""".split()
)
_SUMS, _PRODUCTS = frozenset(("add", "sub")), frozenset(("mul", "truediv"))
#: Whose operands are arguments, or stand between signs that bind less than a sum's.
_LOOSE = _CALLS | frozenset(COMPARISONS) | {"where"}


class FunctionPrinter:
    """Prints one record. A subclass says how expressions and assignments look in its language."""

    def __init__(self, record: Record, reserved: frozenset[str]) -> None:
        self.record = record
        self.lines: list[str] = []
        self.inside: dict[int, str] = {}
        self.readers = _readers(record)
        self.declared: set[str] = set()
        self.variables: dict[int, str] = {}
        self.taken = set(reserved)
        for number in record.parameters:
            self.variables[number] = self._new_name(record.names[number])
        self.reassigned: set[str] = set()
        self._name_values()

    # What a language says

    def expression(self, instruction: Instruction, number: int) -> str:
        raise NotImplementedError

    def assign(self, number: int, text: str, is_first: bool) -> None:
        raise NotImplementedError

    # Lines

    def line(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def print_values(self) -> None:
        for number in self._computed():
            text = self.expression(self.record.instructions[number], number)
            if self._stands_inside(number) and len(text) <= self._longest(number):
                self.inside[number] = text
            else:
                variable = self.variables[number]
                is_first = variable not in self.declared
                self.declared.add(variable)
                self.assign(number, text, is_first)

    def _computed(self) -> Iterator[int]:
        """Arguments and constants are not."""
        first = len(self.record.parameters)
        return (number for number in range(first, len(self.record.instructions)) if self.op(number) != "constant")

    def op(self, number: int) -> str:
        return self.record.instructions[number].op

    def dtype(self, number: int) -> object:
        return self.record.instructions[number].dtype

    # Names

    def _new_name(self, base: str) -> str:
        candidate, count = base, 1
        while candidate in self.taken:
            count += 1
            candidate = f"{base}_{count}"
        self.taken.add(candidate)
        return candidate

    def _name_values(self) -> None:
        for number in self._computed():
            older = self._predecessor(number)
            if older is not None:
                self.variables[number] = self.variables[older]
                self.reassigned.add(self.variables[older])
            else:
                self.variables[number] = self._new_name(self.record.names.get(number, self.op(number)))

    def _predecessor(self, number: int) -> int | None:
        """A value of the same name whose only reader is this one, perhaps through what stands inside of it."""
        name = self.record.names.get(number)
        if name is None:
            return None
        for operand in self._operands_seen_through(number):
            is_same = self.record.names.get(operand) == name and self.dtype(operand) == self.dtype(number)
            is_computed = self.op(operand) not in ("argument", "constant")
            if is_same and is_computed and len(self.readers[operand]) == 1 and number != self.record.result:
                return operand
        return None

    def _operands_seen_through(self, number: int) -> Iterator[int]:
        for operand in self.record.instructions[number].operands:
            yield operand
            if self._stands_inside(operand):
                yield from self._operands_seen_through(operand)

    def _longest(self, number: int) -> int:
        is_short = self.readers[number][0] >= 0 and self.op(self.readers[number][0]) not in _SUMS
        return _LONGEST_INSIDE if is_short else _LONGEST_SUM

    def _stands_inside(self, number: int) -> bool:
        readers = self.readers[number]
        if len(readers) != 1 or self.record.names.get(number):
            return False
        if readers[0] < 0:
            return True
        reader = self.record.instructions[readers[0]]
        return needs_no_brackets(self.record.instructions[number], reader, reader.operands.index(number))


def needs_no_brackets(value: Instruction, reader: Instruction, place: int) -> bool:
    """Whether `value` may be written as the operand number `place` of its reader as it is."""
    if value.op in COMPARISONS:
        return reader.op == "where" and place == 0
    if not value.dtype.is_floating_point or reader.op == "to_dtype":
        return False
    if value.op in _CALLS or value.op in NAMED:
        return reader.op in _LOOSE | _SUMS | _PRODUCTS or reader.op in NAMED
    if value.op == "where":
        return reader.op == "where" and place == 2
    if reader.op in _LOOSE or reader.op in NAMED:
        return value.op in _SUMS | _PRODUCTS | {"neg"}
    if reader.op in _SUMS:
        return value.op in _PRODUCTS or (value.op in _SUMS and place == 0)
    return reader.op in _PRODUCTS and value.op in _PRODUCTS and place == 0


#: The reader of the function's result, which is no instruction.
_RESULT = -1


def _readers(record: Record) -> list[list[int]]:
    """Who reads each value."""
    readers: list[list[int]] = [[] for _ in record.instructions]
    for number, instruction in enumerate(record.instructions):
        for operand in instruction.operands:
            readers[operand].append(number)
    readers[record.result].append(_RESULT)
    return readers
