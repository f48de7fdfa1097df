"""Products that a short form is a factor of, as one: constants meet, and a quotient takes the other factors.

    x * sigmoid(x)                                  ->  quick_logistic(x, -1.442695 * x)        x / (1 + 2^-1.44x)
    0.5 * x * (1 + tanh(0.8 * y))                   ->  quick_logistic(x, -2.308312 * y)
    0.5 * x * (1 + erf(0.70710678 * x))             ->  x * normal_share(x)

The forms are those of `short_forms.py`, for results in half types, and so is what becomes of them: a product of a few
factors has their relative errors, in whichever order they are multiplied. A kernel at the speed of memory has time for
some 30 instructions an element, of which a GELU's constants were four.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from compiler.codegen.program import Statement, closure

#: 1 / log(2), which exponents of e are multiplied by to be exponents of two; and the scale of a normal distribution.
_PER_TWO, _HALF_ROOT = 1 / math.log(2), math.sqrt(0.5)
#: As far from a number as its neighbours in float32.
_NEAR = 1e-7

HELPERS: dict[str, str] = {
    "quick_logistic": '''@triton.jit
def quick_logistic(y, x):
    """y / (1 + 2^x), for results in half types."""
    return libdevice.fast_dividef(y, 1.0 + libdevice.exp2(x))
''',
    "normal_share": '''@triton.jit
def normal_share(x):
    """The share of a normal distribution below x, (1 + erf(x / sqrt(2))) / 2, for results in half types. For x < 0 it is
    2^p(-x), with a p that is fitted so that the relative error is at most 6e-6 down to -6.2; the rest is smaller than
    1e-9."""
    t = tl.abs(x)
    p = t * -1.7958692e-06 + 6.0761904e-05
    p = p * t - 9.2342033e-04
    p = p * t + 8.4775873e-03
    p = p * t - 5.3892083e-02
    p = p * t - 4.5854080e-01
    p = p * t - 1.1512145
    tail = libdevice.exp2(p * t - 1.0)
    return tl.where(x < 0, tail, 1.0 - tail)
''',
}

Readers = Mapping[int, list[Statement]]


def joined_products(statements: list[Statement], needs_few_digits: Mapping[int, bool], readers: Readers) -> list[Statement]:
    """The statements with each product of a form, where it and its factors need few digits, as one form."""
    joined = _Joined(statements, needs_few_digits, readers)
    wanted = closure([s.number for s in statements if not readers[s.number]], joined.by_number)
    return [s for s in joined.result if s.number in wanted]


class _Joined:
    def __init__(self, statements: list[Statement], needs_few_digits: Mapping[int, bool], readers: Readers) -> None:
        self.by_number = {s.number: s for s in statements}
        self.needs_few_digits, self.readers = needs_few_digits, readers
        self.following = 1 + max((s.number for s in statements), default=0)
        self.result: list[Statement] = []
        #: What the product in hand is made for: the nodes of all that it takes in.
        self.nodes: dict[str, None] = {}
        for s in statements:
            if self._is_product(s) and not self._is_factor(s):
                self._join(s)
            else:
                self.result.append(s)

    def _is_product(self, s: Statement) -> bool:
        return s.op == "mul" and s.dtype == torch.float32 and self.needs_few_digits[s.number]

    def _is_factor(self, s: Statement) -> bool:
        """Whether a larger product takes it in."""
        return len(self.readers[s.number]) == 1 and self._is_product(self.readers[s.number][0])

    def _factors(self, s: Statement) -> list[Statement]:
        found: list[Statement] = []
        for number in s.operands:
            factor = self.by_number[number]
            inside = self._is_product(factor) and len(self.readers[number]) == 1
            found += self._factors(factor) if inside else [factor]
        self.nodes |= dict.fromkeys(s.nodes)
        return found

    def _join(self, s: Statement) -> None:
        self.nodes = dict.fromkeys(s.nodes)
        factors = self._factors(s)
        scale = math.prod(float(f.value or 0) for f in factors if f.op == "constant")
        factors = [f for f in factors if f.op != "constant"]
        form = next((f for f in factors if f.op in _FORMS and len(self.readers[f.number]) == 1), None)
        if form is None or scale == 0 or not math.isfinite(scale):
            self.result.append(s)
            return
        masks = [f.number for f in factors if f.op == "to_dtype"]
        others = [f for f in factors if f is not form and f.number not in masks]
        others.sort(key=lambda f: f.level == "r")  # what is the same for a whole row comes first
        self.nodes |= dict.fromkeys(form.nodes)
        _FORMS[form.op](self, s, form, [f.number for f in others], masks, scale)

    def logistic(self, s: Statement, form: Statement, others: list[int], masks: list[int], scale: float) -> None:
        """y / (1 + 2^x) of the other factors: a sigmoid is that of -x / log(2), and 1 + tanh(x) is 2 sigmoid(2 x)."""
        times = 2 if form.op == "one_plus_tanh" else 1
        y = self._product(s, others, scale * times, is_last=False)
        exponent = self._times(s, form.operands[0], -times * _PER_TWO)
        made = self._new(s, "quick_logistic", (y, exponent), is_last=not masks)
        if masks:
            self._product(s, [*masks, made])

    def normal(self, s: Statement, form: Statement, others: list[int], masks: list[int], scale: float) -> None:
        """1 + erf of a multiple of x is twice the share of a normal distribution below x, if it is that multiple."""
        found = self._as_multiple(form.operands[0])
        if found is None or abs(found[1] / _HALF_ROOT - 1) > _NEAR:
            self.result.append(s)
            return
        share = self._new(s, "normal_share", (found[0],), is_last=False)
        # A constant beside a mask becomes one choice later.
        self._product(s, [*others, share, *masks], 2 * scale)

    def _as_multiple(self, number: int) -> tuple[int, float] | None:
        """A value that another one is a constant multiple of, and the constant."""
        s = self.by_number[number]
        if s.op != "mul" or s.dtype != torch.float32:
            return None
        for constant, value in (s.operands, s.operands[::-1]):
            factor = self.by_number[constant]
            if factor.op == "constant":
                self.nodes |= dict.fromkeys(s.nodes)
                return value, float(factor.value or 0)
        return None

    def _times(self, like: Statement, number: int, factor: float) -> int:
        """A value times a constant, which takes in the constant that it is a multiple of."""
        found = self._as_multiple(number)
        value, factor = (number, factor) if found is None else (found[0], found[1] * factor)
        return self._new(like, "mul", (value, self._constant(like, factor)), is_last=False)

    def _product(self, s: Statement, factors: list[int], scale: float = 1.0, is_last: bool = True) -> int:
        """The product of values and a constant, in the place of `s` if it is the last."""
        if abs(scale - 1) > _NEAR or not factors:
            factors = [*factors, self._constant(s, scale)]
        made = factors[0]
        for place, factor in enumerate(factors[1:], start=2):
            made = self._new(s, "mul", (made, factor), is_last and place == len(factors))
        return made

    def _constant(self, like: Statement, value: float) -> int:
        self._add(replace(like, number=self.following, op="constant", operands=(), value=value, level="x"))
        return self.following - 1

    def _new(self, like: Statement, op: str, operands: tuple[int, ...], is_last: bool) -> int:
        """A statement with a number of its own, or with that of the one that it is `like`."""
        is_inside = any(self.by_number[number].level == "r" for number in operands)
        number = like.number if is_last else self.following
        level = "r" if is_inside else like.level if like.level == "tail" else "x"
        nodes = tuple(self.nodes)
        self._add(replace(like, number=number, op=op, operands=operands, value=None, level=level, nodes=nodes))
        return number

    def _add(self, s: Statement) -> None:
        self.by_number[s.number] = s
        self.result.append(s)
        self.following = max(self.following, s.number + 1)


_FORMS: dict[str, Callable[[_Joined, Statement, Statement, list[int], list[int], float], None]] = {
    "quick_sigmoid": _Joined.logistic,
    "one_plus_tanh": _Joined.logistic,
    "one_plus_erf": _Joined.normal,
}
