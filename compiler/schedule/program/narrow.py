"""Whole numbers in 32 bits where their values fit.

    v0 = index x1: int64            0 .. 127                v0 = index x1: int32
    v1 = v0 - 1                    -1 .. 126        ->      v1 = v0 - 1
    v2 = v1 >= 0                                            v2 = v1 >= 0
    store a[x1] = v1                                        store a[x1] = int64(v1)

Positions are int64 in a program, as eager has them. A GPU's registers have 32 bits: each sum, comparison or choice of
int64 is two or more instructions there, and a conversion from or to a float goes at a quarter of the speed. A CPU's
vectors have twice as many numbers of 32 bits, and masks that fit those of floats.

    n = floor(x);  low = int64(n);  share = x - float32(low)        ->        share = x - (n + 0.0)

And what was rounded before it became an index is a whole number already, which needs no way there and back. A sum with
zero makes 0.0 of -0.0, as the whole number does. Beyond the range of int64 PyTorch leaves open what becomes of a float.
For a CPU a float that was not rounded is: GCC 12 does the same, and leaves -0.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from compiler.ir.ranges import Range, ranges_of
from compiler.ir.size import Integer
from compiler.schedule.program.program import Statement, new_numbers

_LIMITS = torch.iinfo(torch.int32)

#: Ops of whole numbers whose result is narrow where all their operands are, and it fits.
_ARITHMETIC = frozenset("add sub mul neg abs square minimum maximum where floordiv remainder truncdiv fmod".split())
_COMPARISONS = frozenset("eq ne lt le gt ge".split())
_ROUNDING = frozenset(("floor", "ceil", "trunc", "round"))
_WHOLE = frozenset((torch.int32, torch.int64))
#: What makes a whole number of something else.
_SOURCES = frozenset(("index_value", "constant", "to_dtype"))


def in_32_bits(statements: Sequence[Statement], length: Integer) -> list[Statement]:
    """The statements with int64 values in int32 where that holds them; who needs them in int64 converts them. `length`
    is how many points the loops have that sums and scans go over, 0 where that is not known."""
    if not any(s.dtype == torch.int64 for s in statements):
        return list(statements)
    positions = {s.number: position for position, s in enumerate(statements)}
    steps = [_with_indices(s, positions) for s in statements]
    ranges = ranges_of(steps)
    for position, s in enumerate(statements):
        if _is_sum(s):
            ranges[position] = _of_sum(ranges[steps[position].operands[0]], length)
    fits = {s.number for s, found in zip(statements, ranges, strict=True) if s.dtype == torch.int64 and _fits(found)}
    narrow = _narrow(statements, fits)
    narrow = _worth_it(statements, narrow)
    return _written(statements, narrow) if narrow else list(statements)


def _with_indices(s: Statement, positions: Mapping[int, int]) -> Statement:
    """The statement with its operands by their positions."""
    operands = tuple([positions[number] for number in s.operands])
    return s if operands == s.operands else replace(s, operands=operands)


def _is_sum(s: Statement) -> bool:
    return s.op in ("reduce", "scan") and s.value == "sum"


def _of_sum(of_each: Range | None, length: Integer) -> Range | None:
    """Of all sums of values within a range, also of a few of them."""
    if of_each is None or not isinstance(length, int) or length == 0:
        return None
    return min(of_each[0] * length, 0), max(of_each[1] * length, 0)


def _fits(found: Range | None) -> bool:
    return found is not None and _LIMITS.min <= found[0] and found[1] <= _LIMITS.max


def _narrow(statements: Sequence[Statement], fits: set[int]) -> set[int]:
    """The statements whose values and operands fit. A float that is cut off to a whole number may be too large where
    nobody chooses it."""
    cut = {s.number for s in statements if s.dtype == torch.int64 and s.op == "to_dtype"} - fits
    while True:
        narrow = set(cut)
        for s in statements:
            if s.number in fits and _may_be_narrow(s, narrow):
                narrow.add(s.number)
        wanted = {n for s in statements for n in s.needs if not (s.number in narrow and _chooses(s, n))}
        if cut.isdisjoint(wanted):
            return narrow
        cut -= wanted


def _chooses(s: Statement, number: int) -> bool:
    """Whether a statement takes a value only where its mask holds."""
    return s.op == "where" and s.operands[1] == number and s.operands[2] != number


def _may_be_narrow(s: Statement, narrow: set[int]) -> bool:
    if s.op in _SOURCES:
        return True
    takes = s.operands[1:] if s.op == "where" else s.operands
    return (s.op in _ARITHMETIC or _is_sum(s)) and narrow.issuperset(takes)


def _worth_it(statements: Sequence[Statement], narrow: set[int]) -> set[int]:
    """Without what every reader would have to convert back, unless it is computed: positions that are stored."""
    computed = {s.number for s in statements if s.op in _ARITHMETIC or _is_sum(s)}
    while True:
        used = {number for s in statements for number in _taken(s, narrow)}
        kept = narrow & (used | computed)
        if kept == narrow:
            return narrow
        narrow = kept


def _taken(s: Statement, narrow: set[int]) -> set[int]:
    """The narrow values that a statement takes as they are."""
    indices = s.needs - set(s.operands)
    if s.number in narrow or s.op in ("to_dtype", "load") or (s.op in _COMPARISONS and narrow.issuperset(s.operands)):
        return narrow & s.needs
    # The position beside a value.
    position = s.operands[1:] if s.op == "reduce" and str(s.value).startswith("arg") else ()
    return narrow & indices.union(position)


def _written(statements: Sequence[Statement], narrow: set[int]) -> list[Statement]:
    by_number, numbers = {s.number: s for s in statements}, new_numbers(statements)
    wide: dict[int, int] = {}
    result: list[Statement] = []
    for s in statements:
        if s.number in narrow:
            result.append(replace(s, dtype=torch.int32))
            continue
        taken = _taken(s, narrow)
        again = [number for number in s.operands if number in narrow and number not in taken]
        for number in again:
            if number not in wide:
                wide[number] = next(numbers)
                result.append(_widened(by_number[number], wide[number]))
        operands = tuple(wide[number] if number in again else number for number in s.operands)
        result.append(replace(s, operands=operands) if again else s)
    return result


def _widened(source: Statement, number: int) -> Statement:
    if source.op in ("constant", "index_value"):
        return replace(source, number=number)
    return replace(
        source, number=number, op="to_dtype", operands=(source.number,), dtype=torch.int64, index=None, value=None
    )


def without_ways_back(statements: Sequence[Statement], rounds: bool = False) -> list[Statement]:
    """The statements without floats that were rounded, made whole numbers, and floats again; with `rounds` those that
    were not are rounded."""
    by_number, numbers = {s.number: s for s in statements}, new_numbers(statements)
    result: list[Statement] = []
    for s in statements:
        whole = by_number[s.operands[0]] if s.op == "to_dtype" else s
        given = by_number[whole.operands[0]] if whole.op == "to_dtype" and whole.dtype in _WHOLE else s
        is_rounded = given.op in _ROUNDING
        if given is s or given.dtype != s.dtype or not (is_rounded or (rounds and s.dtype.is_floating_point)):
            result.append(s)
            continue
        if not is_rounded:
            given = replace(s, number=next(numbers), op="trunc", operands=(given.number,))
            result.append(given)
        zero = replace(s, number=next(numbers), op="constant", operands=(), value=0.0)
        result += [zero, replace(s, op="add", operands=(given.number, zero.number))]
    return result
