"""Named functions: formulas too long to stand in the body of a loop, written once for every backend.

    @function
    def inverse_erf(y):                              v3 = inverse_erf v2
        "The number whose error function is y."  ->
        ...formulas of `Value`s...                   in a kernel: value = inverse_erf(x)

A body calls one like an op, by its name. Its definition is traced once for each dtype into a `Record`, which is what
the interpreter evaluates and what the printers write above a kernel as a function of that name. A definition computes
without branches, choosing by `where`, so that a loop over it becomes vector instructions.

Definitions are in `compiler/functions/`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import torch

from compiler.ir.body import Instruction, Recorder
from compiler.ir.ops import NAMED, POINTWISE, cost_of, current_handler, handled_by
from compiler.ir.value import Value


@dataclass(frozen=True)
class Record:
    """A function traced for one dtype: straight-line instructions, of which the first are its arguments (the op
    "argument" occurs only here). `names` is what the definition calls some of its values."""

    name: str
    summary: str
    dtype: torch.dtype
    parameters: range
    instructions: tuple[Instruction, ...]
    result: int
    names: Mapping[int, str]

    @cached_property
    def cost(self) -> int:
        return sum(cost_of(i.op) for i in self.instructions[len(self.parameters) :] if i.op != "constant")


@dataclass(frozen=True)
class Function:
    """A named function of floats. `cost` is measured like that of an op; see `OpInfo`."""

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
        return traced(self.name, torch.float32).cost


def function(definition: Callable[..., Value]) -> Callable[..., Value]:
    """Register a definition under its name. Raises ValueError where an op or a function has the name."""
    name = definition.__name__
    if name in POINTWISE or name in NAMED:
        raise ValueError(f"there is an op or function {name!r} already")
    NAMED[name] = Function(name, len(inspect.signature(definition).parameters), definition)
    return definition


@cache
def traced(name: str, dtype: torch.dtype) -> Record:
    """The record of a named function for arguments of `dtype`."""
    known = NAMED[name]
    assert isinstance(known, Function)
    recorder = _FunctionRecorder()
    parameters = [recorder.argument(parameter, dtype) for parameter in inspect.signature(known.define).parameters]
    with handled_by(recorder):
        result = known.define(*parameters)
    return Record(
        name, known.summary, dtype, range(len(parameters)), tuple(recorder.instructions), result.number, recorder.names
    )


def named(name: str, value: Value) -> Value:
    """`value`, which generated code shall call `name`."""
    recorder = current_handler()
    if isinstance(recorder, _FunctionRecorder):
        recorder.names.setdefault(value.number, name)
    return value


class _FunctionRecorder(Recorder):
    """Writes a record: a recorder that knows arguments, and what values are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[int, str] = {}

    def argument(self, name: str, dtype: torch.dtype) -> Value:
        number = len(self.instructions)
        self.instructions.append(Instruction("argument", (), dtype, value=name))
        self.names[number] = name
        return Value(number, dtype)


def records_of(functions: Iterable[tuple[str, torch.dtype]]) -> list[Record]:
    """The records of the functions, each once."""
    return [traced(name, dtype) for name, dtype in dict.fromkeys(functions)]
