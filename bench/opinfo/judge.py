"""Is a result right: as close to eager's as torch's own tests ask, or as close to float64's.

In bfloat16 eager rounds after every operator and a fused kernel does not, so the two may differ although both are
right; the result in float64 then decides: ours is right if it is as close to that, or closer to it than eager's (where
a sum cancels, few digits of bfloat16 are left of either). Random results are right if no test tells
their distribution from eager's: the two-sample test of Kolmogorov and Smirnov on each element and on all together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

#: A random operator is run so often with each; a right one fails one comparison in a hundred million.
RUNS = 100
FALSE_ALARM = 1e-8
ELEMENTS = 512


@dataclass(frozen=True)
class Verdict:
    """None of `problem` is right; `by_float64` says that eager's own result was further off."""

    problem: str | None = None
    by_float64: bool = False


def judge(
    ours: Sequence[Any], eager: Sequence[Any], exact: Callable[[], Sequence[Any]], tolerance: tuple[float, float]
) -> Verdict:
    """All results of one sample; `exact` computes those in float64 where they are needed."""
    problem = first_problem(ours, eager, tolerance)
    if problem is None:
        return Verdict()
    try:
        reference = exact()
    except Exception:  # some operators have no float64
        return Verdict(problem)
    if len(reference) != len(eager):
        return Verdict(problem)
    rounded = [
        r.to(e.dtype) if isinstance(e, Tensor) and isinstance(r, Tensor) else r
        for r, e in zip(reference, eager, strict=True)
    ]
    if first_problem(ours, rounded, tolerance) is None or _are_closer(ours, eager, reference):
        return Verdict(by_float64=True)
    return Verdict(problem)


def _are_closer(ours: Sequence[Any], eager: Sequence[Any], exact: Sequence[Any]) -> bool:
    """Whether every result is a floating point tensor of eager's form, in which ours errs no more than eager."""
    return len(ours) == len(eager) and all(
        difference(own, wanted, (0.0, 0.0)) is None
        or (
            isinstance(wanted, Tensor)
            and wanted.is_floating_point()
            and wrong_form(own, wanted) is None
            and _error(own, reference) <= _error(wanted, reference) < math.inf
        )
        for own, wanted, reference in zip(ours, eager, exact, strict=True)
    )


def _error(values: Tensor, exact: Tensor) -> float:
    """The largest distance; infinite where one is NaN or infinite and the other is not."""
    is_equal = (values.double() == exact) | (values.isnan() & exact.isnan())
    distance = torch.where(is_equal, 0.0, (values.double() - exact).abs())
    return float(distance.nan_to_num(nan=math.inf).max()) if distance.numel() else 0.0


def first_problem(ours: Sequence[Any], expected: Sequence[Any], tolerance: tuple[float, float]) -> str | None:
    if len(ours) != len(expected):
        return f"{len(ours)} results instead of {len(expected)}"
    for place, (own, wanted) in enumerate(zip(ours, expected, strict=True)):
        problem = difference(own, wanted, tolerance)
        if problem is not None:
            return f"result {place}: {problem}" if len(ours) > 1 else problem
    return None


def difference(own: Any, wanted: Any, tolerance: tuple[float, float]) -> str | None:
    """What is wrong with one result, as a sentence; None if nothing is."""
    if own is wanted:
        return None
    if not isinstance(wanted, Tensor):
        return None if own == wanted or _are_nan(own, wanted) else f"{own!r} instead of {wanted!r}"
    form = wrong_form(own, wanted)
    if form is not None:
        return form
    try:
        rtol, atol = _allowed(wanted.dtype, tolerance)
        torch.testing.assert_close(own, wanted, equal_nan=True, rtol=rtol, atol=atol)
    except AssertionError as error:
        return " ".join(line.strip() for line in str(error).splitlines() if line.strip())[:400]
    return None


def _allowed(dtype: torch.dtype, declared: tuple[float, float]) -> tuple[float, float]:
    """torch.testing's rtol and atol for the dtype of the result (none for integers), or those declared where wider."""
    rtol, atol = torch.testing._comparison.default_tolerances(dtype)  # type: ignore[attr-defined]
    is_exact = not (dtype.is_floating_point or dtype.is_complex)
    wider = (0.0, 0.0) if is_exact else declared
    return max(rtol, wider[0]), max(atol, wider[1])


def wrong_form(own: Any, wanted: Tensor) -> str | None:
    """The shape and the dtype, without the values."""
    if not isinstance(own, Tensor):
        return f"{type(own).__name__} instead of a tensor"
    if own.dtype != wanted.dtype or own.shape != wanted.shape or own.device.type != wanted.device.type:
        return f"{own.dtype}{list(own.shape)} on {own.device} instead of {wanted.dtype}{list(wanted.shape)}"
    return None


def by_form(ours: Sequence[Any], eager: Sequence[Any], places: Container[int]) -> list[Any]:
    """Ours, with eager's results at those `places` where no value is the right one; a wrong form stays as it is."""
    return [
        eager[place] if place in places and place < len(eager) and wrong_form(own, eager[place]) is None else own
        for place, own in enumerate(ours)
    ]


def _are_nan(a: Any, b: Any) -> bool:
    return isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)


def judge_random(ours: Callable[[], Sequence[Any]], eager: Callable[[], Sequence[Any]]) -> Verdict:
    """Two random functions give results of one form, and no test tells their distributions apart."""
    own_runs, eager_runs = [list(ours()) for _ in range(RUNS)], [list(eager()) for _ in range(RUNS)]
    for place, wanted in enumerate(eager_runs[0]):
        if not isinstance(wanted, Tensor):
            continue
        problem = wrong_form(own_runs[0][place], wanted)
        if problem is not None:
            return Verdict(problem)
        drawn, expected = (torch.stack([_numbers(run[place]) for run in runs]) for runs in (own_runs, eager_runs))
        rounding = 2 * torch.finfo(wanted.dtype).eps if wanted.is_floating_point() else 0.0
        problem = _unlike(drawn, expected, rounding)
        if problem is not None:
            return Verdict(problem)
    return Verdict()


def _numbers(tensor: Tensor) -> Tensor:
    """At most ELEMENTS of its elements as float64; NaN is a number above all others."""
    flat = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return flat.detach().reshape(-1)[:ELEMENTS].double().nan_to_num(nan=1e300, posinf=1e299, neginf=-1e299).cpu()


def _unlike(own: Tensor, eager: Tensor, rounding: float) -> str | None:
    """(runs, elements) of each: what tells them apart, if anything does."""
    runs, count = own.shape
    if not count:
        return None
    if count * runs >= 100 and bool((eager[0] != eager).any()) and not bool((own[0] != own).any()):
        return "every run draws the same numbers"
    distance = max(_distance(own[:, place], eager[:, place], rounding) for place in range(count))
    limit = math.sqrt(-math.log(FALSE_ALARM / 2 / count) / runs)
    if distance > limit:
        return f"an element's distribution differs from eager's by {distance:.2f} (at most {limit:.2f} by chance)"
    distance = _distance(own.flatten(), eager.flatten(), rounding)
    # The elements of one run may depend on each other, so only a difference that runs alone would show counts.
    if distance > limit:
        return f"the elements' distribution differs from eager's by {distance:.2f} (at most {limit:.2f} by chance)"
    return None


def _distance(a: Tensor, b: Tensor, rounding: float) -> float:
    """The largest difference between two empirical distribution functions, where numbers that differ by rounding (to
    the relative precision given, or by 1e-5) count as equal."""
    a, b = a.sort().values, b.sort().values
    return max(_excess(a, b, rounding), _excess(b, a, rounding))


def _excess(a: Tensor, b: Tensor, rounding: float) -> float:
    """How far the share of `a` below a number exceeds the share of `b` below a slightly larger one, at most."""
    # What cancelled is as uncertain as the numbers that most others are like.
    larger = a + 1e-5 + rounding * (4 * a.abs() + b.abs().quantile(0.9))
    below_a = torch.searchsorted(a, a, right=True) / len(a)
    below_b = torch.searchsorted(b, larger, right=True) / len(b)
    return float((below_a - below_b).max())
