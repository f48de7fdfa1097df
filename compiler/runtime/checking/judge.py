"""Whether a result is right: the one place that decides it, for graphs, for gradients and for the peer.

A result is judged beside two others of the same inputs: the same computation in float64, which is the reference, and
eager PyTorch, which has an error against it too. An output is right if

- it has eager's structure, dtype and shape;
- NaN and infinities stand where the reference has them, or where eager has them: a float16 that overflows in eager may
  overflow here;
- its error is what rounding explains. Two errors are looked at, that of the whole tensor, as `relative_error` has it,
  and that of the element that is furthest off, beside the largest element: in a large tensor of bfloat16 one wrong
  element would be lost among the roundings of the others. Each may be as large as `TOLERANCE` of the dtype, or
  `TIMES_EAGER` times eager's, and `TIMES_EAGER_OF_SMALL` times where that is no more than `SMALL`.

A sum that cancels, or a step such as `round`, makes much of little, and eager may be exact by luck. So where an error
is larger than that, the reference is computed again with noise in every step that rounds (`rounding_noise.py`), and
what this changes is allowed as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from compiler.runtime.checking.element_errors import ElementErrors
from compiler.runtime.checking.verify import (
    NUMBERS,
    Norms,
    are_same,
    as_tensor,
    chunks,
    flat,
    is_rounded,
    leaves,
    scale_of,
    share_that_differs,
)
from compiler.wording import counted

#: Errors that rounding alone explains, by the dtype of the outputs: a few times what eager shows on sums of thousands
#: of terms. The float8 keep 4 and 3 bits, bfloat16 8, float16 11, float32 24, of which a product in TF32 keeps 11.
TOLERANCE: dict[torch.dtype, float] = {
    torch.float64: 1e-10,
    torch.complex128: 1e-10,
    torch.float32: 1e-5,
    torch.complex64: 1e-5,
    torch.float16: 5e-3,
    torch.bfloat16: 2e-2,
    torch.float8_e4m3fn: 1e-1,
    torch.float8_e5m2: 2e-1,
}

#: Share of the elements of integer outputs that may differ where they were rounded from floating-point values: a value
#: that falls on a rounding boundary may go either way.
INTEGER_TOLERANCE = 1e-3

#: How many times eager's error a right result may have. The order of a sum alone changes it by a factor of two, and of
#: some hundred outputs one is further off. Over 187 steps of 96 architectures on an H100, with a factor of two, five
#: steps were called wrong that were not.
TIMES_EAGER = 4.0

#: The same where it has three digits all the same. Attention in one kernel computes its weights again from a sum of
#: exponentials: gradients in which much cancels were off by 4.1 times what eager's were. A step in TF32 in the place of
#: float32 is off by some thousand times as much.
TIMES_EAGER_OF_SMALL, SMALL = 10.0, 1e-3

#: How many times what noise changes: it is one draw of many, and an approximation may be off by several roundings.
TIMES_NOISE = 8.0


@dataclass(frozen=True)
class Judgement:
    """How one output was judged. Errors are relative, as `relative_error` has them; infinite where the outputs cannot
    be compared. `tolerance` is the largest error that was allowed; `problem` says what is wrong, in a clause."""

    path: str
    error: float
    eager_error: float
    tolerance: float
    problem: str | None = None
    #: Element by element, where both are rounded and can be compared.
    elements: ElementErrors | None = None
    eager_elements: ElementErrors | None = None

    @property
    def is_right(self) -> bool:
        return self.problem is None

    @property
    def has_digits(self) -> bool:
        """Whether rounding leaves a digit of it. What cancels to nothing but rounding has none, such as the gradient of
        a bias before a batch norm: an error relative to it tells nothing, unless the result is wrong. Eager's own error
        does not say it: in float64 eager is the reference."""
        return self.tolerance < 1.0 or not self.is_right


def judge(
    outputs: object,
    reference: object,
    eager: object,
    scale: float | None = None,
    perturbed: Iterable[object] = (),
) -> list[Judgement]:
    """Every output judged, in the order of `leaves`. All three are whatever the function returned, `reference` in
    float64; `scale` is that of `relative_error`. `perturbed` gives the reference with noise in every step, of several
    draws, and is read as far as it is needed; without it nothing is allowed for what rounding makes worse."""
    found, expected, baseline = (list(leaves(value)) for value in (outputs, reference, eager))
    if [path for path, _ in found] != [path for path, _ in baseline]:
        problem = f"has {counted(len(found), 'value')} or other names for them, where eager's has {len(baseline)}"
        return [Judgement("", math.inf, math.inf, 0.0, problem)]
    if [path for path, _ in expected] != [path for path, _ in baseline]:
        expected = baseline
    scale = scale_of(reference) if scale is None else scale
    noise = _Noise(perturbed, [path for path, _ in found])
    return [
        _judge_one(path, (out, ref, plain), scale, noise.of(position))
        for position, ((path, out), (_, ref), (_, plain)) in enumerate(zip(found, expected, baseline, strict=True))
    ]


def judge_forms(outputs: object, expected: object) -> list[Judgement]:
    """Only dtypes and shapes, of results that draw random numbers; of `expected` no values are read."""
    judged = []
    for (path, out), (_, plain) in zip(leaves(outputs), leaves(expected), strict=True):
        are_tensors = isinstance(out, torch.Tensor) and isinstance(plain, torch.Tensor)
        problem = _other_form(out, plain, plain) if are_tensors else None
        judged.append(Judgement(path, math.inf if problem else 0.0, 0.0, tolerance(out), problem))
    return judged


def is_correct(
    outputs: object, reference: object, eager: object, scale: float | None = None, perturbed: Iterable[object] = ()
) -> bool:
    """Whether every output is right, given the float64 `reference` and what eager made of the same inputs."""
    return all(judgement.is_right for judgement in judge(outputs, reference, eager, scale, perturbed))


def tolerance(output: object) -> float:
    """The error against float64 that rounding alone explains in one output, by its dtype."""
    if isinstance(output, torch.Tensor):
        return TOLERANCE.get(output.dtype, INTEGER_TOLERANCE)
    return TOLERANCE[torch.float64] if isinstance(output, float | complex) else INTEGER_TOLERANCE


class _Noise:
    """The perturbed outputs, each draw computed when it is first asked for."""

    def __init__(self, perturbed: Iterable[object], paths: list[str]) -> None:
        self._left = iter(perturbed)
        self._paths = paths
        self._drawn: list[list[Any]] = []

    def of(self, position: int) -> Iterator[Any]:
        """What stands at one position, of each draw."""
        yield from (one[position] for one in self._drawn)
        try:
            for drawn in self._left:
                found = list(leaves(drawn))
                if [path for path, _ in found] == self._paths:
                    self._drawn.append([leaf for _, leaf in found])
                    yield self._drawn[-1][position]
        except RuntimeError:  # a step that noise makes impossible, such as a Cholesky factor, tells nothing
            return


# --- one output


def _judge_one(path: str, values: tuple[Any, Any, Any], scale: float, noise: Iterator[Any]) -> Judgement:
    out, ref, eager = values
    allowed = tolerance(out)
    if not isinstance(out, NUMBERS) or not isinstance(eager, NUMBERS):
        is_same = type(out) is type(eager) and out == eager
        problem = None if is_same else f"is {_described(out)}, eager's is {_described(eager)}"
        return Judgement(path, 0.0 if is_same else math.inf, 0.0, allowed, problem)
    plain = _between(eager, ref, eager, scale) if _is_comparable(eager, ref) else _Distance()
    problem = _other_form(out, ref, eager)
    if problem is not None:
        return Judgement(path, math.inf, plain.whole, allowed, problem, eager_elements=plain.elements)
    if not _is_comparable(out, ref):
        ref, plain = eager, _Distance()
    ours = _between(out, ref, eager if _is_comparable(out, eager) else ref, scale)
    if ours.strays:
        return Judgement(path, math.inf, plain.whole, allowed, ours.strays, eager_elements=plain.elements)
    bounds = plain.widening(_Distance(allowed, allowed), TIMES_EAGER)
    bounds = plain.widening(bounds, TIMES_EAGER_OF_SMALL, SMALL)
    while not ours.is_within(bounds) and (drawn := next(noise, None)) is not None:
        if _is_comparable(drawn, ref):
            bounds = _between(drawn, ref, drawn, scale).widening(bounds, TIMES_NOISE)
    judged = _with_errors(path, ours, plain, bounds, is_rounded(as_tensor(out)))
    return replace(judged, elements=ours.elements, eager_elements=plain.elements)


def _with_errors(path: str, ours: _Distance, plain: _Distance, bounds: _Distance, is_rounded_value: bool) -> Judgement:
    """The error of the whole output, unless it is within its bound and an element's is not."""
    if ours.is_within(bounds):
        return Judgement(path, ours.whole, plain.whole, bounds.whole)
    if ours.whole <= bounds.whole:
        error, eager_error, allowed = ours.furthest, plain.furthest, bounds.furthest
        said = f"has an element that is off by {error:.1e} of the largest one"
    else:
        error, eager_error, allowed = ours.whole, plain.whole, bounds.whole
        said = f"has an error of {error:.1e}" if is_rounded_value else f"differs in {error:.1e} of its elements"
    problem = f"{said} against float64; eager's is {eager_error:.1e}, and {allowed:.1e} is allowed"
    return Judgement(path, error, eager_error, allowed, problem)


@dataclass(frozen=True)
class _Distance:
    """How far an output is from its reference: as a whole, and where it is furthest off, beside the largest element;
    `strays` says which elements are NaN or infinite and should not be, or the other way."""

    whole: float = 0.0
    furthest: float = 0.0
    strays: str | None = None
    elements: ElementErrors | None = None

    def is_within(self, bounds: _Distance) -> bool:
        return self.whole <= bounds.whole and self.furthest <= bounds.furthest  # NaN is within no bounds

    def widening(self, bounds: _Distance, times: float, at_most: float = math.inf) -> _Distance:
        """The bounds, or so many times this distance, but at most `at_most`, where that is more."""
        if self.strays is not None or not math.isfinite(self.whole + self.furthest):
            return bounds
        whole, furthest = (min(times * distance, at_most) for distance in (self.whole, self.furthest))
        return _Distance(max(bounds.whole, whole), max(bounds.furthest, furthest))


def _between(out: Any, ref: Any, eager: Any, scale: float) -> _Distance:
    a, b, plain = as_tensor(out), as_tensor(ref), as_tensor(eager)
    if not is_rounded(a):
        return _Distance(share_that_differs(flat(a), flat(b)))
    norms, strays, elements = Norms(), _Strays(a), ElementErrors(a.dtype)
    limit = torch.finfo(a.dtype).max * (1 - tolerance(out))
    for x, y, e in chunks(flat(a), flat(b), flat(plain)):
        special = ~(torch.isfinite(x) & torch.isfinite(y))
        if bool(special.any()):
            strays.add(x, y, e, special & ~are_same(x, y), limit)
            x, y = x.masked_fill(special, 0.0), y.masked_fill(special, 0.0)
        norms.add(x, y)
        elements.add(x, y)
    if strays.text is not None:
        return _Distance(math.inf, math.inf, strays.text)
    largest = elements.largest_reference
    relative = 0.0 if norms.is_nothing(scale) or not largest else elements.largest / largest
    return _Distance(norms.error(scale) if norms.elements else 0.0, relative, elements=elements)


class _Strays:
    """Elements that are NaN or infinite where neither the reference nor eager gives a reason, or the other way."""

    def __init__(self, output: torch.Tensor) -> None:
        self._counts = {"NaN": 0, "infinite": 0, "numbers": 0}
        self._elements = flat(output).numel()

    def add(self, x: torch.Tensor, y: torch.Tensor, eager: torch.Tensor, differs: torch.Tensor, limit: float) -> None:
        """`differs` marks where output and reference are not both numbers, and not the same."""
        if not bool(differs.any()):
            return
        as_eager = are_same(x, eager) | (torch.isfinite(x) & torch.isfinite(eager))
        overflows = torch.isinf(x) & (x.sign() == y.sign()) & (y.abs() >= limit)
        left = x[differs & ~as_eager & ~overflows]
        self._counts["NaN"] += int(left.isnan().sum())
        self._counts["infinite"] += int(left.isinf().sum())
        self._counts["numbers"] += int(left.isfinite().sum())

    @property
    def text(self) -> str | None:
        for what, others in (
            ("NaN", "eager's and float64's are not"),
            ("infinite", "eager's and float64's are not"),
            ("numbers", "eager's and float64's are NaN or infinite"),
        ):
            if count := self._counts[what]:
                return f"has {count:,} of {self._elements:,} elements that are {what} where {others}"
        return None


def _is_comparable(a: Any, b: Any) -> bool:
    if not isinstance(a, NUMBERS) or not isinstance(b, NUMBERS):
        return False
    one, two = as_tensor(a), as_tensor(b)
    return one.shape == two.shape and is_rounded(one) == is_rounded(two)


def _other_form(out: Any, ref: Any, eager: Any) -> str | None:
    """That an output is of another dtype or shape than eager's. Where the shape depends on rounded values it may be the
    reference's."""
    ours, plain = as_tensor(out), as_tensor(eager)
    shapes = (plain.shape, as_tensor(ref).shape if isinstance(ref, NUMBERS) else plain.shape)
    are_tensors = isinstance(out, torch.Tensor), isinstance(eager, torch.Tensor)
    if are_tensors[0] == are_tensors[1] and ours.dtype == plain.dtype and ours.shape in shapes:
        return None
    return f"is {_described(out)}, eager's is {_described(eager)}"


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return f"the {type(value).__name__} {str(value)[:40]!r}" if value is not None else "None"
