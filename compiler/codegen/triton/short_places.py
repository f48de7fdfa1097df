"""Places that are loaded or computed, in 32 bits where their dimension is that short.

    v: int64 = load index[x0]                             v: int64 = load index[x0];  w = int32(v)
    p = where(v < 0, v + 1000, v)               ->        p = where(w < 0, w + 1000, w)
    load table[minimum(maximum(p, 0), 999)]               load table[minimum(maximum(p, 0), 999)]

Indices are int64, and a GPU's registers have 32 bits: each of these steps is two or three instructions there, and so
is the product with a stride. What lies in the dimension keeps its value. Eager raises for anything else, so that no
program depends on which element is read for it, only that one of the tensor is: the lower half of a number beyond 32
bits is brought into the dimension as any other is. Bounds that a program itself asks for are kept as they are: it may
well depend on what becomes of such a number.

    n = floor(x);  low = int64(n);  share = x - float32(low)        ->        share = x - (n + 0.0)

And what was rounded before it became a place is a whole number already, which needs no way there and back, at a quarter
of a GPU's speed each. A sum with zero makes 0.0 of -0.0, as the whole number does. Beyond the range of int64 PyTorch
leaves open what becomes of a float.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from compiler.schedule.program.program import Statement

_LARGEST = torch.iinfo(torch.int32).max
_ROUNDING = frozenset(("floor", "ceil", "trunc", "round"))
_WHOLE = frozenset((torch.int32, torch.int64))


@dataclass(frozen=True)
class _Place:
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


def with_short_places(statements: Sequence[Statement]) -> list[Statement]:
    """The statements with loaded places in int32 where nothing but an address depends on them."""
    statements = _without_ways_back(statements)
    by_number = {s.number: s for s in statements}
    found = [place for s in statements if (place := _place(s, by_number)) is not None]
    places = _of_addresses_only(found, statements) if found else []
    return _written(places, statements, by_number) if places else list(statements)


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


def _place(s: Statement, by_number: Mapping[int, Statement]) -> _Place | None:
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
    return _Place(value.number, is_negative.number, from_end.number, chosen.number, above.number, s.number)


def _of(s: Statement | None, op: str, by_number: Mapping[int, Statement]) -> Statement | None:
    """The first operand of a statement, if that is an `op` of whole numbers."""
    return by_number[s.operands[0]] if s is not None and s.op == op and s.dtype == torch.int64 else None


def _constant(s: Statement) -> int | None:
    return s.value if s.op == "constant" and isinstance(s.value, int) else None


def _of_addresses_only(places: Sequence[_Place], statements: Sequence[Statement]) -> list[_Place]:
    """The places whose steps nothing else reads."""
    readers: dict[int, set[int]] = {}
    values: set[int] = set()
    for s in statements:
        values.update(s.operands)
        for number in s.operands:
            readers.setdefault(number, set()).add(s.number)
    chosen_by = {place.from_end: place.chosen for place in places}
    return [
        place
        for place in places
        if place.inside not in values
        and readers[place.above] == {place.inside}
        and readers[place.chosen] == {place.above}
        and readers[place.from_end] == {chosen_by[place.from_end]}
    ]


def _written(
    places: Sequence[_Place], statements: Sequence[Statement], by_number: Mapping[int, Statement]
) -> list[Statement]:
    readers: dict[int, set[int]] = {}
    for s in statements:
        for number in s.needs:
            readers.setdefault(number, set()).add(s.number)
    steps = {number for place in places for number in place.steps}
    short = steps | {place.is_negative for place in places if readers[place.is_negative] <= steps}
    for place in places:
        short |= _computed(place, short, readers, by_number)
    following = 1 + max(by_number)
    in_32_bits: dict[int, int] = {}
    result: list[Statement] = []
    for s in statements:
        if s.number not in short:
            result.append(s)
            continue
        operands: list[int] = []
        for number in s.operands:
            source = by_number[number]
            if number in short or source.dtype != torch.int64:
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
    place: _Place, short: set[int], readers: Mapping[int, set[int]], by_number: Mapping[int, Statement]
) -> set[int]:
    """The statements that compute a place's value for places alone: small numbers added to a float that is cut off.
    Where the sum lies in the dimension, the float lies within 32 bits."""
    found: set[int] = set()
    room = _LARGEST - (_constant(by_number[by_number[place.inside].operands[1]]) or 0) - 1
    number = place.value
    while readers[number] <= short | found:
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
