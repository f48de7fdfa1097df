"""Loaded or computed indices in 32 bits, where their dimension is that short.

    v: int64 = load index[x0]                             v: int64 = load index[x0];  w = int32(v)
    p = where(v < 0, v + 1000, v)               ->        p = where(w < 0, w + 1000, w)
    load table[minimum(maximum(p, 0), 999)]               load table[minimum(maximum(p, 0), 999)]

Indices are int64, and a GPU's registers have 32 bits: each of these steps is two or three instructions there, and so
is the product with a stride. What lies in the dimension keeps its value. Eager raises for anything else, so that no
program depends on which element is read for it, only that one of the tensor is: the lower half of a number beyond 32
bits is brought into the dimension as any other is. Bounds that a program itself asks for are kept as they are: it may
well depend on what becomes of such a number.

    n = floor(x);  low = int64(n);  share = x - float32(low)        ->        share = x - (n + 0.0)

And what was rounded before it became an index is a whole number already, which needs no way there and back, at a
quarter of a GPU's speed each. A sum with zero makes 0.0 of -0.0, as the whole number does. Beyond the range of int64
PyTorch leaves open what becomes of a float."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from compiler.schedule.program.program import Statement

_LARGEST = torch.iinfo(torch.int32).max
_ROUNDING = frozenset(("floor", "ceil", "trunc", "round"))
_WHOLE = frozenset((torch.int32, torch.int64))


@dataclass(frozen=True)
class _WrappedIndex:
    """The numbers of the statements that bring a loaded `value` into a dimension: see `wrapped_index` in
    `lowering/advanced_index.py`."""

    value: int
    is_negative: int
    from_end: int
    chosen: int
    above: int
    inside: int

    @property
    def steps(self) -> tuple[int, ...]:
        return self.from_end, self.chosen, self.above, self.inside


def with_narrow_indices(statements: Sequence[Statement]) -> list[Statement]:
    """The statements with loaded indices in int32 where nothing but an address depends on them."""
    statements = _without_ways_back(statements)
    by_number = {s.number: s for s in statements}
    found = [index for s in statements if (index := _wrapped_index(s, by_number)) is not None]
    indices = _only_in_addresses(found, statements) if found else []
    return _written(indices, statements, by_number) if indices else list(statements)


def _without_ways_back(statements: Sequence[Statement]) -> Sequence[Statement]:
    """The statements without floats that were rounded, made whole numbers, and floats again."""
    by_number = {s.number: s for s in statements}
    following = 1 + max(by_number, default=0)
    result: list[Statement] = []
    for s in statements:
        whole = by_number[s.operands[0]] if s.op == "to_dtype" else s
        rounded = by_number[whole.operands[0]] if whole.op == "to_dtype" and whole.dtype in _WHOLE else s
        if rounded.op not in _ROUNDING or rounded.dtype != s.dtype or s is whole:
            result.append(s)
            continue
        zero = replace(s, number=following, op="constant", operands=(), value=0.0)
        result += [zero, replace(s, op="add", operands=(rounded.number, following))]
        following += 1
    return result


def _wrapped_index(s: Statement, by_number: Mapping[int, Statement]) -> _WrappedIndex | None:
    """The steps that end with `s`, all of one node, if they bring a value into a dimension."""
    above = _of(s, "minimum", by_number)
    chosen = _of(above, "maximum", by_number)
    if above is None or chosen is None or chosen.op != "where":
        return None
    is_negative, from_end, value = (by_number[number] for number in chosen.operands)
    size = _constant(by_number[s.operands[1]])
    steps = (is_negative, from_end, chosen, above, s)
    if (
        size is None
        or not 0 <= size < _LARGEST
        or value.dtype != torch.int64
        or _constant(by_number[above.operands[1]]) != 0
        or (is_negative.op, is_negative.operands[0]) != ("lt", value.number)
        or _constant(by_number[is_negative.operands[1]]) != 0
        or (from_end.op, from_end.operands[0]) != ("add", value.number)
        or _constant(by_number[from_end.operands[1]]) != size + 1
        or not frozenset.intersection(*(frozenset(step.nodes) for step in steps))
    ):
        return None
    return _WrappedIndex(value.number, is_negative.number, from_end.number, chosen.number, above.number, s.number)


def _of(s: Statement | None, op: str, by_number: Mapping[int, Statement]) -> Statement | None:
    """The first operand of a statement, if that is an `op` of whole numbers."""
    return by_number[s.operands[0]] if s is not None and s.op == op and s.dtype == torch.int64 else None


def _constant(s: Statement) -> int | None:
    return s.value if s.op == "constant" and isinstance(s.value, int) else None


def _only_in_addresses(indices: Sequence[_WrappedIndex], statements: Sequence[Statement]) -> list[_WrappedIndex]:
    """The indices whose steps nothing else reads."""
    readers: dict[int, set[int]] = {}
    values: set[int] = set()
    for s in statements:
        values.update(s.operands)
        for number in s.operands:
            readers.setdefault(number, set()).add(s.number)
    chosen_by = {index.from_end: index.chosen for index in indices}
    return [
        index
        for index in indices
        if index.inside not in values
        and readers[index.above] == {index.inside}
        and readers[index.chosen] == {index.above}
        and readers[index.from_end] == {chosen_by[index.from_end]}
    ]


def _written(
    indices: Sequence[_WrappedIndex], statements: Sequence[Statement], by_number: Mapping[int, Statement]
) -> list[Statement]:
    readers: dict[int, set[int]] = {}
    for s in statements:
        for number in s.needs:
            readers.setdefault(number, set()).add(s.number)
    steps = {number for index in indices for number in index.steps}
    narrow = steps | {index.is_negative for index in indices if readers[index.is_negative] <= steps}
    for index in indices:
        narrow |= _computed(index, narrow, readers, by_number)
    following = 1 + max(by_number)
    in_32_bits: dict[int, int] = {}
    result: list[Statement] = []
    for s in statements:
        if s.number not in narrow:
            result.append(s)
            continue
        operands: list[int] = []
        for number in s.operands:
            source = by_number[number]
            if number in narrow or source.dtype != torch.int64:
                operands.append(number)
                continue
            if number not in in_32_bits:
                in_32_bits[number] = following
                result.append(_in_32_bits(source, following, s.nodes))
                following += 1
            operands.append(in_32_bits[number])
        dtype = torch.int32 if s.dtype == torch.int64 else s.dtype
        result.append(replace(s, operands=tuple(operands), dtype=dtype))
    return result


def _computed(
    index: _WrappedIndex, narrow: set[int], readers: Mapping[int, set[int]], by_number: Mapping[int, Statement]
) -> set[int]:
    """The statements that compute an index for indices alone: small numbers added to a float that is cut off.
    Where the sum lies in the dimension, the float lies within 32 bits."""
    found: set[int] = set()
    room = _LARGEST - (_constant(by_number[by_number[index.inside].operands[1]]) or 0) - 1
    number = index.value
    while readers[number] <= narrow | found:
        s = by_number[number]
        if s.op == "to_dtype" and by_number[s.operands[0]].dtype.is_floating_point:
            return found | {number}
        added = _constant(by_number[s.operands[1]]) if s.op in ("add", "sub") else None
        if added is None or abs(added) > room:
            break
        room -= abs(added)
        found.add(number)
        number = s.operands[0]
    return set()


def _in_32_bits(source: Statement, number: int, nodes: tuple[str, ...]) -> Statement:
    if source.op == "constant":
        return replace(source, number=number, dtype=torch.int32)
    return replace(
        source, number=number, op="to_dtype", operands=(source.number,), dtype=torch.int32, nodes=nodes, buffer=None,
        index=None, value=None,
    )  # fmt: skip
