"""Simplify the indices of masked loads: they need to be right only where the mask holds.

    m = index x3 - 1 >= 0;  load b[2048*((x1 + (x2 + x3 + 15) // 16 + 2047) % 2048) + 128*((x2 + x3 + 15) % 16)] where m
    x3 < 2, so where m holds x3 = 1          ->          load b[2048*x1 + 128*x2] where m

What stands before the padding or beside another part of a concatenation is read at indices that carry over into the
next row where they are outside. No value is read there: the mask bounds the loop variables, and within those bounds the
divisions go away, and lanes that read neighbours are seen to do so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from compiler.ir.choices import masks_that_hold
from compiler.ir.index import Dim, Index
from compiler.ir.index_formulas import Step, formula_of_step

#: The smallest and the largest value of a loop variable, both inclusive.
Bounds = tuple[int, int]

#: What a comparison says: by how much the one that it calls larger is above the other at least.
_AT_LEAST = {"ge": 0, "gt": 1, "le": 0, "lt": 1}


@dataclass(frozen=True)
class MaskedIndex:
    """Where a load reads, and the mask under which it does."""

    index: Index
    masks: tuple[int, ...]


def simpler_indices(
    steps: Sequence[Step], is_known_for: Callable[[int, int], bool] = lambda mask, load: True
) -> Mapping[int, MaskedIndex]:
    """Other indices for loads, by the numbers of the steps, which are numbered in order. A load without a mask gets the
    one under which its value counts: elsewhere the other index may be outside of the buffer. Of those masks it gets
    one that `is_known_for` it, given the numbers of both: what a row shares is loaded before a mask that depends on
    the row's elements is known, but a part of that mask may do without them."""
    loads = [number for number, step in enumerate(steps) if step.op == "load" and step.index and step.index.divisions]
    if not loads:
        return {}
    holds = masks_that_hold(steps)
    found = {}
    for number in loads:
        step = steps[number]
        assert step.index is not None
        for mask in step.operands or _candidates(holds[number], steps):
            if mask >= number or not is_known_for(mask, number):
                continue
            bounds: dict[Dim, Bounds] = {}
            _narrow(bounds, mask, steps)
            simpler = _within(step.index, bounds)
            if simpler.divisions < step.index.divisions:
                found[number] = MaskedIndex(simpler, (mask,))
                break
    return found


def _candidates(masks: Collection[int], steps: Sequence[Step]) -> list[int]:
    """Masks that hold together, and behind them those that they are made of, which hold as well."""
    found = sorted(masks)
    for mask in found:
        parts = steps[mask].operands if steps[mask].op == "logical_and" else ()
        found += [part for part in parts if part not in found]
    return found


def _narrow(bounds: dict[Dim, Bounds], mask: int, steps: Sequence[Step]) -> None:
    """Take in what a mask says of single loop variables."""
    step = steps[mask]
    if step.op == "logical_and":
        for operand in step.operands:
            _narrow(bounds, operand, steps)
        return
    if step.op not in _AT_LEAST:
        return
    left, right = (formula_of_step(operand, steps) for operand in step.operands)
    if left is None or right is None:
        return
    above = left - right if step.op in ("ge", "gt") else right - left
    _at_least(bounds, above, _AT_LEAST[step.op])


def _at_least(bounds: dict[Dim, Bounds], formula: Index, least: int) -> None:
    """Take in that `formula >= least`, for each variable with the others where they make it largest."""
    if not formula.is_affine or not all(isinstance(size, int) for size in formula.sizes):
        return
    _, most = formula.bounds
    for dim, factor in formula.terms:
        if not isinstance(dim, Dim) or not isinstance(dim.size, int) or not isinstance(most, int):
            continue
        assert isinstance(factor, int)
        low, high = bounds.get(dim, (0, dim.size - 1))
        # At its own best end the variable makes the formula `most`; it may be so many steps away from there.
        steps = (most - least) // abs(factor)
        bounds[dim] = (max(low, dim.size - 1 - steps), high) if factor > 0 else (low, min(high, steps))


def _within(index: Index, bounds: Mapping[Dim, Bounds]) -> Index:
    """The index, simplified for loop variables within `bounds`."""
    near: dict[Dim, Index] = {}
    back: dict[Dim, Index] = {}
    for dim in index.dims:
        low, high = bounds.get(dim, (0, 0))
        if dim not in bounds or low > high or (low, high + 1) == (0, dim.size):
            continue
        shifted = Dim(f"{dim.name}_from_{low}", high - low + 1)
        near[dim] = Index.of(shifted) + low
        back[shifted] = Index.of(dim) - low
    return index.substitute(near).substitute(back) if near else index
