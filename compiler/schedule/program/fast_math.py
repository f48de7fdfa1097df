"""Fast-math approximations, where the difference does not reach the results.

    1 + erf(x)            ->  one_plus_erf(x)       where all that is made of it is stored in half types
    1 + tanh(x)           ->  one_plus_tanh(x)      likewise
    1 - tanh(x)^2         ->  p (2 - p)             where p is one_plus_tanh(x), and sums may follow as well
    exp(x), sigmoid(x)    ->  quick_exp(x), ...     likewise
    x / y, 1 / x          ->  quick_truediv(x, y)   likewise
    positions in int64    ->  positions in int32     everywhere that they fit (see `narrow.py`)

The functions of CUDA's libm are right to the last bits of a float32, which takes 25 instructions for an error function.
An H200 issues some 30 instructions for each element of bfloat16 that its memory can read and write, and a half type
keeps 8 or 11 of the 24 bits. The approximations have relative errors of less than 1e-5, a twentieth of the last bit of
a float16, over the whole line: `1 + erf(x)` for x far below zero is smaller than the rounding of the sum as written,
and here it keeps its digits. So they may stand where nothing follows that makes a relative error larger: products and
quotients, choices between values, sums of what is positive. `one_plus_tanh` is right to 1e-6, a 250th of what rounding
to a float16 does: where it takes part in sums, as in the gradient of a GELU, their terms may cancel to as much."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch

from compiler.ir.ops import HALF_TYPES
from compiler.schedule.group import Group
from compiler.schedule.program.narrow import in_32_bits, without_ways_back
from compiler.schedule.program.program import Statement, new_numbers, readers_of
from compiler.schedule.program.statements import statements_of

#: The largest error of an approximation, relative to its value.
LARGEST_ERROR = 1e-5

#: What becomes of a function, and of one plus it. A quotient that is rounded once takes 18 issue slots, half of what an
#: H200 has while its memory moves an element of a half type. A quick one takes 3 to 11 and may be off by two roundings
#: of a float32, so that no difference is taken of it, which might be below zero.
_FAST = {
    "exp": "quick_exp", "sigmoid": "quick_sigmoid", "truediv": "quick_truediv", "reciprocal": "quick_reciprocal",
}  # fmt: skip
_FAST_PLUS_ONE = {"erf": "one_plus_erf", "tanh": "one_plus_tanh"}

#: Ops whose result is no less exact, relatively, than their operands.
_KEEPS_DIGITS = frozenset("mul truediv neg abs relu square sqrt rsqrt reciprocal".split())


def fast_statements(
    group: Group, rewrite: Callable[[list[Statement]], list[Statement]] | None = None
) -> list[Statement]:
    """The statements of `group`, or what `rewrite` puts in their place, with fast-math approximations and without
    names."""
    statements = statements_of(group)
    rewritten = statements if rewrite is None else rewrite(statements)
    narrow = in_32_bits(rewritten, group.space.reduction_numel)
    return with_fast_math(without_ways_back(narrow), {m.name: m.node.layout.dtype for m in group.members})


def with_fast_math(statements: list[Statement], storage: Mapping[str, torch.dtype]) -> list[Statement]:
    """The statements with fast-math approximations; each keeps its number, so that its readers find it."""
    if not any(s.op in _FAST or s.op in _FAST_PLUS_ONE for s in statements):
        return statements
    by_number, readers = {s.number: s for s in statements}, readers_of(statements)
    needs_few_digits = _needing_few_digits(statements, storage)
    chosen = [_fast(s, by_number, readers) if needs_few_digits[s.number] else s for s in statements]
    return _with_gradients_of_tanh(chosen, storage) if any(s.op == "tanh" for s in chosen) else chosen


def _needing_few_digits(
    statements: Sequence[Statement], storage: Mapping[str, torch.dtype], may_cancel: bool = False
) -> dict[int, bool]:
    """For each statement whether results in half types alone are made of it, in ways that do not make its error larger;
    one that is so small that terms of a sum `may_cancel` may become larger there."""
    by_number, readers = {s.number: s for s in statements}, readers_of(statements)
    found: dict[int, bool] = {}
    for s in reversed(statements):
        found[s.number] = bool(readers[s.number]) and all(
            _takes_few_digits(s, reader, found, by_number, storage, may_cancel) for reader in readers[s.number]
        )
    return found


def _with_gradients_of_tanh(statements: list[Statement], storage: Mapping[str, torch.dtype]) -> list[Statement]:
    """The statements with p = 1 + tanh(x) in the place of each tanh(x) of which only 1 + tanh(x) and 1 - tanh(x)^2 are
    made. On an H200 CUDA's function, whose branch no two elements of a thread share, is half of the gradient of a GELU;
    and 1 - tanh(x)^2 = p (2 - p) keeps its digits where x is far below zero."""
    by_number, readers = {s.number: s for s in statements}, readers_of(statements)
    needs_few_digits = _needing_few_digits(statements, storage, may_cancel=True)
    numbers = new_numbers(statements)
    result: dict[int, list[Statement]] = {}
    instead: dict[int, int] = {}
    for s in statements:
        sums = [r for r in readers[s.number] if r.op == "add" and _is_plus_one(r, by_number)]
        squares = [r for r in readers[s.number] if r.op == "square" or (r.op, r.operands) == ("mul", (s.number,) * 2)]
        rests = [r for square in squares for r in readers[square.number]]
        is_gradient = squares and len(sums) + len(squares) == len(readers[s.number])
        if s.op != "tanh" or s.dtype != torch.float32 or not (is_gradient and needs_few_digits[s.number]):
            continue
        if not all(r.op == "sub" and by_number[r.operands[0]].value == 1 for r in rests):
            continue
        nodes = tuple(dict.fromkeys(node for one in (*sums, s, *squares) for node in one.nodes))
        result[s.number] = [replace(s, op="one_plus_tanh", nodes=nodes)]
        for gone in (*sums, *squares):
            result[gone.number] = []
        instead |= {one.number: s.number for one in sums}
        for rest in rests:
            two = replace(rest, number=next(numbers), op="constant", operands=(), value=2.0)
            other = replace(rest, number=next(numbers), operands=(two.number, s.number))
            result[rest.number] = [two, other, replace(rest, op="mul", operands=(s.number, other.number))]
    kept = [new for s in statements for new in result.get(s.number, [s])]
    return [replace(s, operands=tuple(instead.get(number, number) for number in s.operands)) for s in kept]


def _takes_few_digits(
    value: Statement,
    reader: Statement,
    needs_few_digits: Mapping[int, bool],
    by_number: Mapping[int, Statement],
    storage: Mapping[str, torch.dtype],
    may_cancel: bool,
) -> bool:
    """Whether `reader` passes a relative error of `value` on to results in half types alone, no larger than it is but
    where terms of a sum `may_cancel`."""
    if value.dtype != torch.float32 or value.number not in reader.operands:
        return False
    if reader.op == "store":
        return reader.value is None and storage[reader.buffer or ""] in HALF_TYPES
    if reader.dtype != torch.float32 or not needs_few_digits[reader.number]:
        return False
    if reader.op == "where":
        return reader.operands[0] != value.number
    if reader.op in ("reduce", "across"):
        return reader.value == "sum" and (may_cancel or value.op == "exp")
    if may_cancel and reader.op in ("add", "sub"):
        return True
    if reader.op == "add":
        return value.op in ("exp", *_FAST_PLUS_ONE) and _is_plus_one(reader, by_number)
    return reader.op in _KEEPS_DIGITS


def _is_plus_one(s: Statement, by_number: Mapping[int, Statement]) -> bool:
    return any(by_number[number].op == "constant" and by_number[number].value == 1 for number in s.operands)


def _fast(s: Statement, by_number: Mapping[int, Statement], readers: Mapping[int, list[Statement]]) -> Statement:
    if s.dtype != torch.float32:
        return s
    if s.op in _FAST:
        return replace(s, op=_FAST[s.op])
    if s.op == "add" and _is_plus_one(s, by_number):
        function = next((by_number[n] for n in s.operands if by_number[n].op in _FAST_PLUS_ONE), None)
        if function is not None and len(readers[function.number]) == 1:
            return replace(s, op=_FAST_PLUS_ONE[function.op], operands=function.operands)
    return s
