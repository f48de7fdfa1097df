"""A named function as text: what its C++ and its Triton printer share.

The record of a function becomes one assignment a line. A product or quotient that only one sum reads stands inside that
sum, as does the left part of a longer sum, so that Horner's rule reads `p = p * x + 0.5`. A value takes the variable of
the one it is called after where it is that one's only reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compiler.ir.body import Instruction
from compiler.ir.functions import Loop, Record

#: An expression that is longer gets a variable of its own.
_LONGEST_INSIDE = 72


class FunctionPrinter:
    """Prints one record. A subclass says how expressions, assignments and loops look in its language."""

    def __init__(self, record: Record, reserved: frozenset[str]) -> None:
        self.record = record
        self.lines: list[str] = []
        self.depth = 1
        self.inside: dict[int, str] = {}
        self.readers = _readers(record)
        self.block_of = _blocks(record)
        self.declared: set[str] = set()
        self.variables: dict[int, str] = {}
        self.taken = set(reserved)
        for number in record.parameters:
            self.variables[number] = self._new_name(record.names[number])
        self.reassigned: set[str] = set()
        self._name_block(record.block)

    # What a language says

    def expression(self, instruction: Instruction, number: int) -> str:
        raise NotImplementedError

    def assign(self, number: int, text: str, is_first: bool) -> None:
        raise NotImplementedError

    def loop(self, loop: Loop) -> None:
        raise NotImplementedError

    # Lines

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def print_block(self, block: Sequence[int]) -> None:
        for number in block:
            if number in self.record.loops:
                self.loop(self.record.loops[number])
                continue
            instruction = self.record.instructions[number]
            if instruction.op == "constant":
                continue
            text = self.expression(instruction, number)
            if self._stands_inside(number) and len(text) <= _LONGEST_INSIDE:
                self.inside[number] = text
            else:
                variable = self.variables[number]
                is_first = variable not in self.declared
                self.declared.add(variable)
                self.assign(number, text, is_first)

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

    def _name_block(self, block: Sequence[int]) -> None:
        for number in block:
            loop = self.record.loops.get(number)
            if loop is not None:
                for carried in loop.carried:
                    self.variables[carried] = self._new_name(self.record.names[carried])
                self._name_block(loop.body)
                continue
            if self.op(number) == "constant":
                continue
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
            is_near = self.block_of.get(operand) == self.block_of[number] and self.op(operand) != "constant"
            if is_same and is_near and len(self.readers[operand]) == 1:
                return operand
        return None

    def _operands_seen_through(self, number: int) -> Iterator[int]:
        for operand in self.record.instructions[number].operands:
            yield operand
            if self._stands_inside(operand):
                yield from self._operands_seen_through(operand)

    def _stands_inside(self, number: int) -> bool:
        if len(self.readers[number]) != 1 or self.record.names.get(number):
            return False
        if self.block_of.get(number) != self.block_of.get(self.readers[number][0]):
            return False
        reader = self.record.instructions[self.readers[number][0]]
        if reader.op not in ("add", "sub") or not reader.dtype.is_floating_point:
            return False
        if self.op(number) in ("mul", "truediv"):
            return True
        return self.op(number) in ("add", "sub") and reader.operands[0] == number


def _readers(record: Record) -> dict[int, list[int]]:
    """Who reads each value; a loop that starts or goes on with it, and the function's result, count as -1."""
    readers: dict[int, list[int]] = {number: [] for number in range(len(record.instructions))}

    def visit(block: Sequence[int]) -> None:
        for number in block:
            for operand in record.instructions[number].operands:
                readers[operand].append(number)
            loop = record.loops.get(number)
            if loop is not None:
                for other in (*loop.initial, loop.condition, *loop.following):
                    readers[other] += [-1, -1]
                visit(loop.test)
                visit(loop.body)

    visit(record.block)
    readers[record.result] += [-1, -1]
    return readers


def _blocks(record: Record) -> dict[int, int]:
    """The loop in whose body each instruction stands, -1 for none; what a block does not compute is not in it."""
    blocks = dict.fromkeys(record.block, -1)
    for number, loop in record.loops.items():
        blocks |= dict.fromkeys((*loop.test, *loop.body), number)
    return blocks


def in_order(carried: Sequence[int], following: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs (variable, its next value) such that no variable changes before another that becomes its old value.

    Raises ValueError where two exchange their values, which no order can do."""
    pairs = [(old, new) for old, new in zip(carried, following, strict=True) if old != new]
    ordered: list[tuple[int, int]] = []
    while pairs:
        free = next((pair for pair in pairs if all(pair[0] != new for old, new in pairs if old != pair[0])), None)
        if free is None:
            raise ValueError("two values of a loop exchange their places")
        ordered.append(free)
        pairs.remove(free)
    return ordered
