"""What a tile goes by of a group: which memory it touches, and how long its text is.

Each multiprocessor fetches its instructions through small caches. A thread that takes several elements has the text as
many times, as neither Triton nor the assembler rolls it up again, and a text that no cache holds is fetched anew by
every warp. So what is long for one element is better taken by more threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import torch

from compiler.devices import Device
from compiler.ir.body import Body
from compiler.ir.index_formulas import Step
from compiler.ir.lazy import lazy
from compiler.ir.ops import cost_of
from compiler.ir.size import hint
from compiler.schedule.group import Group
from compiler.schedule.program.fast_math import fast_statements
from compiler.schedule.program.program import EFFECTS, Program, Statement, closure
from compiler.schedule.program.statements import statements_of
from compiler.schedule.tiles.walk import accesses_of

#: Of a load or a store.
OF_ACCESS = 2
#: Instructions for sm_90, of float32; of a function with a branch those of both ways, but of sine, cosine and tangent
#: the usual way: a kernel has the other one once (see `runtime/triton/device_functions.py`). Ops that are not named
#: take `OpInfo.cost`.
_LENGTHS = {
    "sin": 33, "cos": 34, "tan": 45, "asin": 16, "acos": 15, "atan": 54, "sinh": 31, "cosh": 18, "tanh": 20,
    "asinh": 67, "acosh": 64, "atanh": 40, "exp": 8, "exp2": 1, "expm1": 24, "log": 25, "log2": 27, "log10": 26,
    "log1p": 28, "erf": 28, "erfc": 47, "lgamma": 199, "sqrt": 1, "rsqrt": 1, "pow": 113, "atan2": 94, "hypot": 16,
    "fmod": 61, "truediv": 8, "reciprocal": 7, "sigmoid": 12, "quick_exp": 2, "quick_sigmoid": 4, "quick_truediv": 8,
    "quick_reciprocal": 7, "one_plus_tanh": 4, "one_plus_erf": 12, "load": OF_ACCESS, "store": OF_ACCESS,
    "rand": 16, "rand_compared": 8, "constant": 0, "index_value": 0,
}  # fmt: skip


def touching_program(group: Group, storage: Mapping[str, torch.dtype]) -> Program:
    """The statements of a group, as it has them; no sections."""
    return Program(group.name, group.space, (), _used(statements_of(group)), (), (), (), storage)


def _used(statements: list[Statement]) -> tuple[Statement, ...]:
    """Those of the statements that something is done for."""
    used = closure((s.number for s in statements if s.op in EFFECTS), {s.number: s for s in statements})
    return tuple(s for s in statements if s.number in used)


class Text:
    """How long the text of a group without reduction loops is for one element, in instructions. That takes all its
    statements with fast-math approximations, so it is looked at only where bodies as they stand are as long."""

    def __init__(self, group: Group) -> None:
        self.group = group

    def is_longer_than(self, length: int) -> bool:
        return self._most > length and self._length > length

    @lazy
    def _most(self) -> int:
        produced, passed = self.group.produced, 0
        for member in self.group.members:
            # Within the group a value is passed on in a register.
            passed += sum(count for buffer, count in member.body.loads.items() if buffer in produced)
            passed += member.name not in self.group.stored
        return sum(_length_of_body(member.body) for member in self.group.members) - OF_ACCESS * passed

    @lazy
    def _length(self) -> int:
        return length_of(_used(fast_statements(self.group)))


@lru_cache(maxsize=1 << 14)
def _length_of_body(body: Body) -> int:
    return length_of(body.instructions)


def length_of(steps: Iterable[Step]) -> int:
    """Instructions for one element of a kernel without a reduction."""
    return sum(_LENGTHS[step.op] if step.op in _LENGTHS else cost_of(step.op) for step in steps)


def length_along_rows(program: Program) -> int:
    """The same of a reduction, for one element of a row."""
    return length_of(statement for statement in program.statements if statement.level == "r")


def is_hidden_by_memory(program: Program, device: Device) -> bool:
    """Whether a device issues the instructions of all elements of its rows in less time than their bytes take."""
    slots = hint(program.space.numel) * hint(program.space.reduction_numel) * length_along_rows(program)
    return slots / (device.flops / 2) <= sum(access.bytes for access in accesses_of(program)) / device.bandwidth
