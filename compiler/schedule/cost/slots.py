"""Issue slots: how many instructions one iteration of a body takes, by the unit that computes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

import torch

from compiler.ir.body import Body, Instruction, operands_of
from compiler.ir.index import Dim
from compiler.ir.ops import RANDOM, cost_of
from compiler.ir.size import hint
from compiler.schedule.vectors import ELEMENTS_OF_A_THREAD, changes_along

#: What computes: the lanes of 32 bits, functions of several instructions, divisions of integers, float64, random
#: numbers.
IssueUnit = Literal["simple", "function", "division", "double", "random"]

_NOT_COUNTED = frozenset(("load", "store", "constant", "index_value", "indirect"))
_DIVISIONS = frozenset("floordiv truncdiv remainder fmod".split())
#: What differs from point to point whatever it is told.
_CHANGING = RANDOM | frozenset(("reduce", "scan", "store"))

#: Issue slots of one element: instructions of the assembler's output for sm_90, except where a comment says otherwise.
#: Ops that are not named take `OpInfo.cost`, 1 for simple arithmetic.
SLOTS: Mapping[str, int] = {
    "sin": 38,  # measured: chains of 4 and 16 sines; the way for large arguments is not counted
    "cos": 38,  # as sin
    "exp": 10,  # measured: a chain of 16
    "exp2": 6,
    "tanh": 20,
    "erf": 28,
    "pow": 90,
    "truediv": 9,
    "sqrt": 8,
    "rsqrt": 4,
    "reciprocal": 8,
    "rand": 29,  # measured: dropout of 64 Mi elements, one draw for four of them
    "rand_compared": 9,  # measured: the same, one draw of seven rounds for eight
    "randn": 130,
}
#: Of functions in kernels that store half types alone, which take fast-math approximations
#: (`schedule/program/fast_math.py`).
FAST_SLOTS: Mapping[str, int] = {"erf": 12, "tanh": 5, "exp": 2, "sigmoid": 5}
#: A division of 64-bit integers is a function of its own (measured: floor division and remainder of 8 Mi elements).
_LONG_DIVISION, _SHORT_DIVISION = 150, 30
#: That of an address, by a constant, is a multiplication and a shift, and most of them vanish when loops are split.
_ADDRESS_DIVISION = 1
#: A float64 instruction issues at half the rate, and a function has half as many again.
_DOUBLE = 3


@lru_cache(maxsize=1 << 13)
def unit_slots(
    body: Body, is_fast: bool, lane: Dim | None = None, is_gpu: bool = True
) -> tuple[tuple[IssueUnit, bool, float], ...]:
    """Issue slots of one iteration of the body: the unit, whether they come after its reduction, so once for each
    independent point, and how many. The divisions of addresses are among them. `is_fast` says that functions have
    fast-math approximations. Of an index that is computed and does not change along `lane`, a thread has one for all
    elements that it takes of that loop; on a CPU there is one of whatever does not change, before the vector loop. What
    is computed twice in the same way, as by bodies that were put together, is one instruction of the kernel's."""
    found: defaultdict[tuple[IssueUnit, bool], float] = defaultdict(float)
    after: set[int] = set()
    counted: set[int] = set()
    shared = _same_along(body, lane, is_gpu) if lane is not None else frozenset()
    points = max(hint(lane.size), 1) if lane is not None else 1
    run = min(points, ELEMENTS_OF_A_THREAD) if is_gpu else points
    for number, instruction in enumerate(body.instructions):
        if instruction.op == "reduce" or not after.isdisjoint(operands_of(instruction)):
            after.add(number)
        is_after = number in after and instruction.op != "reduce"
        if instruction.op not in _NOT_COUNTED and body.recipes[number] not in counted:
            counted.add(body.recipes[number])
            unit, count = _slots_of(instruction, is_fast)
            found[unit, is_after] += count / run if number in shared else count
        if instruction.index is not None:
            found["division", is_after] += _ADDRESS_DIVISION * instruction.index.divisions
    return tuple((unit, is_after, count) for (unit, is_after), count in found.items() if count)


def _same_along(body: Body, lane: Dim, is_gpu: bool) -> frozenset[int]:
    """The instructions whose results are one for the neighbours along `lane` that a thread takes: they follow from the
    other loops, or from quotients of this one by more. On a CPU from the other loops alone, but loads do, too."""
    found: set[int] = set()
    for number, i in enumerate(body.instructions):
        if i.index is None:
            changes = i.op in _CHANGING
        elif is_gpu:
            changes = i.op in _CHANGING or changes_along(i.index, lane) or (i.op == "load" and bool(i.index.terms))
        else:
            changes = i.op in _CHANGING or lane in i.index.dims
        if not changes and operands_of(i) <= found:
            found.add(number)
    return frozenset(found)


def _slots_of(instruction: Instruction, is_fast: bool) -> tuple[IssueUnit, int]:
    op, dtype = instruction.op, instruction.dtype
    if op in RANDOM:
        return "random", SLOTS[op]
    if op in _DIVISIONS and not dtype.is_floating_point:
        return "division", _LONG_DIVISION if dtype.itemsize == 8 else _SHORT_DIVISION
    if is_fast and op in FAST_SLOTS:
        return "function", FAST_SLOTS[op]
    count = SLOTS.get(op) or cost_of(op)
    if dtype == torch.float64:
        return "double", _DOUBLE * count
    return ("function" if count > 1 else "simple"), count * max(dtype.itemsize // 4, 1)
