"""Sizes that are known only when a graph is called.

A size is an `int`, or a `Size`: a polynomial with integer coefficients in atoms.

    Symbol     s0             a size of an input, with the value that it had in the first call and the least it can be
    Quotient   (s0 + 3) // 4  a division that does not come out even
    Opaque     max(s0, 8)     any other formula, computed by the wrapper

    64 * s0 * (s1 + 1)   ->   64*s0*s1 + 64*s0          equal formulas are equal objects, and hash alike

`==` compares formulas: it says whether two sizes are equal for every call. `<` and its kin hold, or fail, for every
call; where they hold for some only, they raise `Undecided`, rather than give an answer that is right for one size.
What is a matter of speed and not of meaning asks for `hint(size)`, the value in the first call. There is no conversion
to `int`, so nothing is fixed to one size by accident.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod
from typing import Any, TypeGuard

from compiler.ir import polynomials
from compiler.ir.formula_names import name_of
from compiler.ir.lazy import lazy
from compiler.ir.polynomials import Term, Terms


class Undecided(TypeError):
    """Raised where an answer would depend on the value of a size."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A size of an input. `lower` is the least value that it can have, None where it has no bound.

    All of it counts when two are compared: answers are kept from graph to graph, and another graph's `s0` may have
    other bounds."""

    name: str
    hint: int
    lower: int | None = 2
    #: Whether no input tells it, but a call of the graph once that has run.
    is_late: bool = False

    @property
    def text(self) -> str:
        return self.name


@dataclass(frozen=True)
class Quotient:
    """`numerator // divisor`, rounded down."""

    numerator: Size
    divisor: Integer

    @lazy
    def name(self) -> str:
        return name_of(self.text)

    @lazy
    def text(self) -> str:
        return f"{self.numerator} // {self.divisor}"

    @lazy
    def hint(self) -> int:
        return hint(self.numerator) // hint(self.divisor)

    @lazy
    def lower(self) -> int | None:
        least = least_value(self.numerator)
        if least is None or least_value(self.divisor) is None:
            return None
        return least // self.divisor if isinstance(self.divisor, int) else 0 if least >= 0 else None


@dataclass(frozen=True)
class Opaque:
    """A formula that is no polynomial, as Python `text` over the symbols that it names."""

    text: str
    symbols: tuple[Symbol, ...]
    hint: int
    lower: int | None = None

    @lazy
    def name(self) -> str:
        return name_of(self.text)


SizeAtom = Symbol | Quotient | Opaque


@dataclass(frozen=True)
class Size:
    """A polynomial that is no constant; build it from atoms by `size` and arithmetic, never by hand."""

    terms: Terms[SizeAtom]

    @lazy
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    @lazy
    def hint(self) -> int:
        """Its value at the sizes of the first call."""
        return sum(coefficient * prod(atom.hint for atom in monomial) for monomial, coefficient in self.terms)

    # --- arithmetic

    def __add__(self, other: Any) -> Integer:
        return _sum(self, other) if is_integer(other) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Integer:
        return self * -1

    def __sub__(self, other: Any) -> Integer:
        return _sum(self, other * -1) if is_integer(other) else NotImplemented

    def __rsub__(self, other: Any) -> Integer:
        return _sum(self * -1, other) if is_integer(other) else NotImplemented

    def __mul__(self, other: Any) -> Integer:
        return _product(self, other) if is_integer(other) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Integer:
        return floor_quotient(self, other) if is_integer(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Integer:
        return floor_quotient(other, self) if is_integer(other) else NotImplemented

    def __mod__(self, other: Any) -> Integer:
        return self - (self // other) * other if is_integer(other) else NotImplemented

    def __rmod__(self, other: Any) -> Integer:
        return other - (other // self) * self if is_integer(other) else NotImplemented

    def __abs__(self) -> Integer:
        return self * -1 if self < 0 else self

    # --- order, for all values of the symbols

    def __ge__(self, other: Any) -> bool:
        return _is_at_least(self, other) if is_integer(other) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        return not _is_at_least(self, other) if is_integer(other) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return _is_at_least(other, self) if is_integer(other) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return not _is_at_least(other, self) if is_integer(other) else NotImplemented

    def __bool__(self) -> bool:
        if self > 0 or self < 0:
            return True
        raise Undecided(f"whether {self.text} is zero")

    # --- text

    @lazy
    def text(self) -> str:
        """Python and C alike; atoms that are no symbols stand by their names."""
        return polynomials.text(self.terms)

    @property
    def factor(self) -> str:
        """Its text as a factor of a product."""
        return self.text if len(self.terms) == 1 and self.terms[0][1] > 0 else f"({self.text})"

    def __str__(self) -> str:
        is_atom = len(self.terms) == 1 and len(self.terms[0][0]) == 1 and self.terms[0][1] == 1
        return self.text if is_atom else f"({self.text})"

    __repr__ = __str__

    def __format__(self, _: str) -> str:
        """Sentences group the digits of numbers; a formula stands as it is."""
        return str(self)


Integer = int | Size


def is_integer(value: object) -> TypeGuard[Integer]:
    return isinstance(value, int | Size)


def known(value: Integer) -> int:
    """A size that is a number. Raises Undecided where it is not."""
    if isinstance(value, int):
        return value
    raise Undecided(f"{value.text} is known only in a call")


def product(sizes: Iterable[Integer]) -> Integer:
    total: Integer = 1
    for factor in sizes:
        total = total * factor
    return total


def size(atom: SizeAtom) -> Size:
    return Size((((atom,), 1),))


def hint(value: Integer) -> int:
    """Its value at the sizes of the first call, for choices that are about speed alone."""
    return value if isinstance(value, int) else value.hint


def atoms_of(value: Integer) -> Iterator[SizeAtom]:
    """The atoms that it is a polynomial of."""
    if isinstance(value, Size):
        for monomial, _ in value.terms:
            yield from monomial


def symbols_of(value: Integer) -> Iterator[Symbol]:
    """The symbols that it depends on, inside of other atoms too."""
    for atom in atoms_of(value):
        if isinstance(atom, Symbol):
            yield atom
        elif isinstance(atom, Opaque):
            yield from atom.symbols
        else:
            yield from symbols_of(atom.numerator)
            yield from symbols_of(atom.divisor)


def _terms(value: Integer) -> Terms[SizeAtom]:
    return value.terms if isinstance(value, Size) else (((), value),) if value else ()


def _from_terms(terms: Terms[SizeAtom]) -> Integer:
    """The polynomial of terms in normal form, as a number where it is one."""
    is_number = not terms or not terms[0][0]  # the longest monomial comes first
    return sum(coefficient for _, coefficient in terms) if is_number else Size(terms)


def _normal_form(terms: Iterable[Term[SizeAtom]]) -> Integer:
    return _from_terms(polynomials.normal_form(terms))


@lru_cache(maxsize=65536)
def _sum(a: Integer, b: Integer) -> Integer:
    return _normal_form([*_terms(a), *_terms(b)])


@lru_cache(maxsize=65536)
def _product(a: Integer, b: Integer) -> Integer:
    return _from_terms(polynomials.product(_terms(a), _terms(b)))


# Division -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def divide(numerator: Integer, divisor: Integer) -> tuple[Integer, Integer]:
    """Some (q, r) with  numerator = q * divisor + r;  r is 0 where the division comes out even for every call, and
    where it can be told, 0 <= r < divisor. Makes no new atom."""
    if isinstance(numerator, int) and isinstance(divisor, int):
        return divmod(numerator, divisor)
    quotient, rest = map(_from_terms, polynomials.divided(_terms(numerator), _terms(divisor)))
    for shift in (0, -1):
        shifted = rest - divisor * shift
        if _is_proven(shifted) and _is_proven(divisor - shifted - 1):
            return quotient + shift, shifted
    return quotient, rest


def is_multiple(value: Integer, divisor: Integer) -> bool:
    """Whether `divisor` divides `value` in every call."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value % divisor == 0
    return divide(value, divisor)[1] == 0


def known_quotient(numerator: Integer, divisor: Integer) -> Integer | None:
    """numerator // divisor where it is a polynomial, else None."""
    quotient, rest = divide(numerator, divisor)
    if isinstance(rest, int) and isinstance(divisor, int):
        return quotient + rest // divisor
    return quotient if rest == 0 or (_is_proven(rest) and _is_proven(divisor - rest - 1)) else None


def floor_quotient(numerator: Integer, divisor: Integer) -> Integer:
    """numerator // divisor, rounded down, for divisor > 0; with a `Quotient` where it does not come out even."""
    known = known_quotient(numerator, divisor)
    if known is not None:
        return known
    whole, rest = divide(numerator, divisor)
    common = common_factor(rest, divisor)
    if common != 1:
        rest, divisor = divide(rest, common)[0], divide(divisor, common)[0]
    if rest == -1:
        return whole - 1
    if not isinstance(rest, Size):
        return whole + size(_quotient_of_number(rest, divisor))
    return whole + size(Quotient(rest, divisor))


def _quotient_of_number(number: int, divisor: Integer) -> Opaque:
    """By a formula of symbols alone; a quotient among them may be zero, where tensors have no elements. It is least
    where the divisor is one, or infinitely large."""
    symbols = tuple(dict.fromkeys(symbols_of(divisor)))
    is_plain = all(isinstance(atom, Symbol) for atom in atoms_of(divisor))
    text = str(divisor) if is_plain else f"max({spelt_out(divisor)}, 1)"
    return Opaque(f"{number} // {text}", symbols, number // max(hint(divisor), 1), min(number, 0))


def ceiling_quotient(numerator: Integer, divisor: Integer) -> Integer:
    """numerator / divisor, rounded up."""
    return (numerator + (divisor - 1)) // divisor


def common_factor(a: Integer, b: Integer) -> Integer:
    """A common divisor of both: the numbers' greatest, times the atoms that stand in every term of both."""
    if isinstance(a, int) and isinstance(b, int):
        return gcd(a, b)
    return _normal_form([polynomials.common_factor(_terms(a), _terms(b))])


# Order --------------------------------------------------------------------------------------------------------------


def _is_at_least(a: Integer, b: Integer) -> bool:
    if _is_proven(a - b):
        return True
    if _is_proven(b - a - 1):
        return False
    raise Undecided(f"whether {text_of(a)} is at least {text_of(b)} depends on the sizes of a call")


def is_negative_stride(stride: Integer) -> bool:
    """Whether a stride walks backwards. A stride is a product of sizes, which are not negative, or the negative of one
    (a flip), so its sign is the same in every call; where it cannot be shown, the first call tells."""
    try:
        return stride < 0
    except Undecided:
        return hint(stride) < 0


def is_below(a: Integer, b: Integer) -> bool:
    """Whether a < b in every call; False where that cannot be told."""
    return _is_proven(b - a - 1)


def text_of(value: Integer) -> str:
    return value.text if isinstance(value, Size) else str(value)


def spelt_out(value: Integer, given: Collection[SizeAtom] = ()) -> str:
    """Its text as a formula of symbols alone, with no names for its quotients, but those of the atoms `given`."""

    def of_atom(atom: SizeAtom) -> str:
        if atom in given:
            return atom.name
        if isinstance(atom, Quotient):
            return f"({spelt_out(atom.numerator, given)} // {spelt_out(atom.divisor, given)})"
        return atom.text if isinstance(atom, Symbol) else f"({atom.text})"

    terms = (" * ".join([str(coefficient), *map(of_atom, monomial)]) for monomial, coefficient in _terms(value))
    return f"({' + '.join(terms) or '0'})"


def _is_proven(value: Integer) -> bool:
    """Whether value >= 0 can be shown."""
    return value >= 0 if isinstance(value, int) else _size_is_proven(value)


@lru_cache(maxsize=65536)
def _size_is_proven(value: Size) -> bool:
    """With each atom written as its least value and a rest that is not negative, no term is negative. A quotient that
    is subtracted is first replaced by what it is at most, its exact quotient."""
    least = _least_of_size(value)
    if least is not None and least >= 0:
        return True
    for position, (monomial, coefficient) in enumerate(value.terms):
        quotient = next((atom for atom in monomial if isinstance(atom, Quotient)), None)
        if coefficient >= 0 or quotient is None or not isinstance(quotient.divisor, int):
            continue
        others = list(monomial)
        others.remove(quotient)
        rest = _normal_form(term for other, term in enumerate(value.terms) if other != position)
        replaced = rest * quotient.divisor + _normal_form([(tuple(others), coefficient)]) * quotient.numerator
        return _is_proven(replaced)
    return False


def least_value(value: Integer) -> int | None:
    """A number that it is never below, or None."""
    return value if isinstance(value, int) else _least_of_size(value)


@lru_cache(maxsize=65536)
def _least_of_size(value: Size) -> int | None:
    return polynomials.least_value(value.terms)


def next_power_of_two(value: int) -> int:
    """The least power of two that is no less."""
    return 1 << max(value - 1, 0).bit_length()


def last_power_of_two(value: int) -> int:
    """The largest power of two that is no more."""
    return 1 << max(value, 1).bit_length() - 1
