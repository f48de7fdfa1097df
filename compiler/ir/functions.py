"""Named functions: formulas too long to stand in the body of a loop, written once for every backend.

    @function
    def inverse_erf(y):                              v3 = inverse_erf v2
        "The number whose error function is y."  ->
        ...formulas of `Value`s...                   in a kernel: value = inverse_erf(x)

A body calls one like an op, by its name. Its definition is traced once for each dtype into a `Record`, which is what
the interpreter evaluates and what the printers write above a kernel as a function of that name. A definition computes
without branches, choosing by `where`, so that a loop over it becomes vector instructions. What must iterate does it by
`repeat`, the only loop inside a body's arithmetic: each lane goes on for as long as its own condition holds.

Definitions are in `compiler/functions/`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import torch

from compiler.ir.body import Instruction, Recorder
from compiler.ir.ops import NAMED, POINTWISE, current_handler, handled_by, ops
from compiler.ir.value import Value


@dataclass(frozen=True)
class Loop:
    """While `condition` (computed by the instructions `test`) holds, do `body`, then `carried` becomes `following`.

    All numbers are those of instructions of the record. `carried` starts as `initial`; after the loop it holds the last
    state. `trips` is how often a usual argument goes round, for the cost model."""

    carried: tuple[int, ...]
    initial: tuple[int, ...]
    test: tuple[int, ...]
    condition: int
    body: tuple[int, ...]
    following: tuple[int, ...]
    trips: int


@dataclass(frozen=True)
class Record:
    """A function traced for one dtype: straight-line instructions, and loops among them.

    `block` numbers the instructions in order, without those inside of loops. Three ops occur only here: "argument",
    "carried" (a value that a loop changes), and "loop", which `loops` describes. `names` is what definitions call some
    of their values."""

    name: str
    summary: str
    dtype: torch.dtype
    parameters: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    block: tuple[int, ...]
    result: int
    loops: Mapping[int, Loop] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def calls(self) -> tuple[str, ...]:
        """The named functions that it calls itself."""
        return tuple(dict.fromkeys(i.op for i in self.instructions if i.op in NAMED))

    @cached_property
    def cost(self) -> int:
        return self._cost_of(self.block)

    def _cost_of(self, block: Iterable[int]) -> int:
        total = 0
        for number in block:
            instruction = self.instructions[number]
            loop = self.loops.get(number)
            if loop is not None:
                total += loop.trips * self._cost_of((*loop.test, *loop.body))
            elif instruction.op != "constant":
                total += cost_of(instruction.op) if instruction.op in POINTWISE or instruction.op in NAMED else 1
        return total


@dataclass(frozen=True)
class Function:
    """A named function. `cost` is measured like that of an op; see `OpInfo`."""

    name: str
    arity: int
    define: Callable[..., Value]
    result: str = "same"

    @property
    def summary(self) -> str:
        """What it computes, in one line."""
        return (inspect.getdoc(self.define) or "").split("\n\n")[0].replace("\n", " ")

    @cached_property
    def cost(self) -> int:
        dtype = torch.int64 if self.name in ON_INTEGERS else torch.float32
        return traced(self.name, dtype).cost


#: Functions whose arguments are integers; those of all others are floats.
ON_INTEGERS: set[str] = set()


def function(definition: Callable[..., Value]) -> Callable[..., Value]:
    """Register a definition under its name; what is returned calls it from another definition by that name. Raises
    ValueError where an op or a function has the name."""
    name = definition.__name__
    if name in POINTWISE or name in NAMED:
        raise ValueError(f"there is an op or function {name!r} already")
    NAMED[name] = Function(name, len(inspect.signature(definition).parameters), definition)

    def call(*arguments: Any) -> Value:
        return ops.call(name, *arguments)

    call.__name__, call.__doc__ = name, definition.__doc__
    return call


def integer_function(definition: Callable[..., Value]) -> Callable[..., Value]:
    """`function` for one of integers."""
    ON_INTEGERS.add(definition.__name__)
    return function(definition)


def cost_of(op: str) -> int:
    """Weighted operations of an op or a named function."""
    return POINTWISE[op].cost if op in POINTWISE else NAMED[op].cost


@cache
def traced(name: str, dtype: torch.dtype) -> Record:
    """The record of a named function for arguments of `dtype`."""
    known = NAMED[name]
    assert isinstance(known, Function)
    recorder = _FunctionRecorder()
    names = list(inspect.signature(known.define).parameters)
    parameters = [recorder.unknown("argument", parameter, dtype) for parameter in names]
    with handled_by(recorder):
        result = known.define(*parameters)
    record = Record(
        name,
        known.summary,
        dtype,
        tuple(parameter.number for parameter in parameters),
        tuple(recorder.instructions),
        tuple(recorder.block),
        result.number,
        recorder.loops,
        {**dict(zip(range(len(names)), names, strict=True)), **recorder.names},
    )
    return _without_dead(record)


def repeat(
    state: Mapping[str, Any], condition: Callable[..., Value], step: Callable[..., Mapping[str, Any]], trips: int
) -> dict[str, Value]:
    """The state after `step` was applied to it for as long as `condition` held, in each lane for itself.

    Both take the state by its names; `step` gives the new values of the names that change. A definition must see to it
    that the condition fails at some time whatever the arguments are, NaN included. `trips` is how often a usual
    argument goes round, for the cost model. Raises TypeError outside of a named function's definition."""
    recorder = current_handler()
    if not isinstance(recorder, _FunctionRecorder):
        raise TypeError("only a named function repeats; the body of a loop does not")
    return recorder.repeat(state, condition, step, trips)


def named(name: str, value: Value) -> Value:
    """`value`, which generated code shall call `name`."""
    recorder = current_handler()
    if isinstance(recorder, _FunctionRecorder):
        recorder.names.setdefault(value.number, name)
    return value


class _FunctionRecorder(Recorder):
    """Writes a record: a recorder that knows blocks and loops."""

    def __init__(self) -> None:
        super().__init__()
        self.block: list[int] = []
        self.loops: dict[int, Loop] = {}
        self.names: dict[int, str] = {}

    def emit(self, op: str, operands: tuple[Any, ...], dtype: torch.dtype, **attributes: Any) -> Any:
        number = len(self.instructions)
        value = super().emit(op, operands, dtype, **attributes)
        if len(self.instructions) > number:
            self.block.append(number)
        return value

    def unknown(self, op: str, name: str, dtype: torch.dtype) -> Value:
        """A value that no instruction of the block computes."""
        self.instructions.append(Instruction(op, (), dtype, value=name))
        return Value(len(self.instructions) - 1, dtype)

    @contextmanager
    def _inner(self) -> Iterator[list[int]]:
        """A block of its own: what it computes is unknown outside."""
        outer, known = self.block, dict(self._known)
        self.block = []
        yield self.block
        self.block, self._known = outer, known

    def repeat(self, state: Mapping[str, Any], condition: Any, step: Any, trips: int) -> dict[str, Value]:
        carried = {name: self.unknown("carried", name, value.dtype) for name, value in state.items()}
        for name, value in carried.items():
            self.names[value.number] = name
        with self._inner() as test:
            holds = condition(**carried).number
        with self._inner() as body:
            following = carried | step(**carried)
        number = len(self.instructions)
        self.instructions.append(Instruction("loop", (), torch.bool))
        self.block.append(number)
        self.loops[number] = Loop(
            tuple(value.number for value in carried.values()),
            tuple(value.number for value in state.values()),
            tuple(test),
            holds,
            tuple(body),
            tuple(following[name].number for name in state),
            trips,
        )
        return carried


def _without_dead(record: Record) -> Record:
    """Without the instructions that the result does not need; a loop is kept or dropped as a whole."""
    needed = {record.result}

    def sweep(block: tuple[int, ...]) -> tuple[int, ...]:
        kept = []
        for number in reversed(block):
            loop = record.loops.get(number)
            if loop is not None and not needed.isdisjoint(loop.carried):
                needed.update(loop.initial, loop.following, (loop.condition,), loop.carried)
                loops[number] = Loop(
                    loop.carried, loop.initial, sweep(loop.test), loop.condition, sweep(loop.body), loop.following,
                    loop.trips,
                )  # fmt: skip
                kept.append(number)
            elif loop is None and number in needed:
                needed.update(record.instructions[number].operands)
                kept.append(number)
        return tuple(reversed(kept))

    loops: dict[int, Loop] = {}
    block = sweep(record.block)
    return Record(
        record.name, record.summary, record.dtype, record.parameters, record.instructions, block, record.result, loops,
        record.names,
    )  # fmt: skip


def with_calls(functions: Iterable[tuple[str, torch.dtype]]) -> list[Record]:
    """The records of the functions and of those that they call, each once and after the ones that it needs."""
    found: dict[tuple[str, torch.dtype], Record] = {}

    def visit(name: str, dtype: torch.dtype) -> None:
        if (name, dtype) in found:
            return
        record = traced(name, dtype)
        for other in dict.fromkeys((i.op, i.dtype) for i in record.instructions if i.op in NAMED):
            visit(*other)
        found[name, dtype] = record

    for name, dtype in functions:
        visit(name, dtype)
    return list(found.values())
