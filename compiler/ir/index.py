"""Index expressions in a normal form.

An `Index` is the element offset that a loop reads or writes, as a formula of the loop's variables:

    Index  =  constant + sum of coefficient * atom            constants and coefficients are sizes (see size.py)
    atom   =  Dim            a loop variable, 0 <= d < d.size
           |  Indirect       a value loaded from memory, 0 <= v < size (embedding, gather)
           |  FloorDiv       Index // constant
           |  Mod            Index % constant

Terms are sorted, coefficients are never zero, and every constructor simplifies with the bounds of its variables, so two
offsets that are built in the same variables and are equal as affine formulas are equal as values: comparing and
hashing cost no algebra. Reshapes and splits of loops stay in the form because `FloorDiv` and `Mod` of an expression
whose parts are multiples of the divisor dissolve:

    (512 * x0 + r0) // 512  ->  x0        when 0 <= r0 < 512
    (512 * x0 + r0) % 512   ->  r0

Division floors and remainders are not negative, as in Python; all divisors are positive. Where sizes are symbols, what
cannot be told for every value of them is left as it stands, or raises `compiler.ir.size.Undecided`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from compiler.ir.lazy import lazy
from compiler.ir.size import (
    Integer,
    Size,
    Undecided,
    common_factor,
    divide,
    floor_quotient,
    hint,
    is_below,
    is_multiple,
    is_negative_stride,
    known_quotient,
    text_of,
)


@dataclass(frozen=True, slots=True)
class Dim:
    """A loop variable: it takes the integers 0, 1, ..., size - 1."""

    name: str
    size: Integer


def points_of(dims: Iterable[Dim]) -> int:
    """How many points these loops have, at the sizes of the first call."""
    return prod(hint(dim.size) for dim in dims)


@dataclass(frozen=True, slots=True)
class Indirect:
    """The value of an earlier instruction (its number in the body), known to lie in 0 <= value < size."""

    value: int
    size: Integer


@dataclass(frozen=True, slots=True)
class FloorDiv:
    """`numerator // divisor`, rounded down. Built by `floor_divide` alone, which leaves it only where nothing
    simpler is equal; the divisor is positive."""

    numerator: Index
    divisor: Integer


@dataclass(frozen=True, slots=True)
class Mod:
    """`numerator % divisor`, from 0 to `divisor` - 1. Built by `modulo` alone, likewise."""

    numerator: Index
    divisor: Integer


Atom = Dim | Indirect | FloorDiv | Mod


@dataclass(frozen=True)
class Index:
    """`constant + sum(coefficient * atom)`; build it with `of`, `constant` and the operators, never by hand."""

    offset: Integer
    terms: tuple[tuple[Atom, Integer], ...]

    # Indices are compared and hashed all the time, so the hash is computed once for each value.
    @lazy
    def _hash(self) -> int:
        return hash((self.offset, self.terms))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Index):
            return NotImplemented
        return self._hash == other._hash and self.offset == other.offset and self.terms == other.terms

    @staticmethod
    def of(atom: Atom) -> Index:
        if isinstance(atom, Dim) and atom.size == 1:
            return ZERO
        return _index(0, ((atom, 1),))

    @staticmethod
    def number(value: Integer) -> Index:
        return _index(value, ())

    def __add__(self, other: Index | Integer) -> Index:
        if not isinstance(other, Index):
            return _index(self.offset + other, self.terms)
        return _normal_form(self.offset + other.offset, (*self.terms, *other.terms))

    __radd__ = __add__

    def __sub__(self, other: Index | Integer) -> Index:
        return self + (other * -1)

    def __rsub__(self, other: Integer) -> Index:
        return self * -1 + other

    def __mul__(self, factor: Integer) -> Index:
        if factor == 0:
            return ZERO
        return _index(self.offset * factor, tuple((atom, coefficient * factor) for atom, coefficient in self.terms))

    __rmul__ = __mul__

    def __floordiv__(self, divisor: Integer) -> Index:
        return floor_divide(self, divisor)

    def __mod__(self, divisor: Integer) -> Index:
        return modulo(self, divisor)

    @lazy
    def bounds(self) -> tuple[Integer, Integer]:
        """The smallest and the largest value, both inclusive; exact for affine expressions, else safe."""
        low = high = self.offset
        for atom, coefficient in self.terms:
            atom_low, atom_high = _atom_bounds(atom)
            if is_negative_stride(coefficient):
                atom_low, atom_high = atom_high, atom_low
            low += coefficient * atom_low
            high += coefficient * atom_high
        return low, high

    def is_within(self, low: Integer, end: Integer) -> bool:
        """Whether it is known to be `low` at the least, and below `end`, in every call."""
        least, most = self.bounds
        return is_below(low - 1, least) and is_below(most, end)

    @lazy
    def dims(self) -> frozenset[Dim]:
        """The loop variables that it depends on."""
        return frozenset(leaf for leaf in self._leaves() if isinstance(leaf, Dim))

    @lazy
    def points(self) -> int:
        """How many points its loop variables have, at the sizes of the first call."""
        return points_of(self.dims)

    @lazy
    def most_values(self) -> int:
        """How many different values it has at most, without those that are loaded: it has one at each point, and no
        more than its terms together have. `8 * (x0 // 4)` has a quarter as many as there are points."""
        spans = [_atom_bounds(atom) for atom, _ in self.terms]
        return min(self.points, prod(max(hint(high) - hint(low) + 1, 0) for low, high in spans))

    @property
    def sizes(self) -> Iterator[Integer]:
        """Every size in it: the constant, coefficients and divisors."""
        yield self.offset
        for atom, coefficient in self.terms:
            yield coefficient
            if isinstance(atom, FloorDiv | Mod):
                yield atom.divisor
                yield from atom.numerator.sizes

    @lazy
    def indirections(self) -> frozenset[Indirect]:
        """The loaded values that it depends on."""
        return frozenset(leaf for leaf in self._leaves() if isinstance(leaf, Indirect))

    @lazy
    def divisions(self) -> int:
        """How many divisions and remainders it takes to compute it."""
        return sum(1 + atom.numerator.divisions for atom, _ in self.terms if isinstance(atom, FloorDiv | Mod))

    def _leaves(self) -> Iterator[Dim | Indirect]:
        for atom, _ in self.terms:
            if isinstance(atom, FloorDiv | Mod):
                yield from atom.numerator._leaves()
            else:
                yield atom

    @property
    def is_affine(self) -> bool:
        """Whether it is a sum of multiples of loop variables, without division, remainder or loaded values."""
        return all(isinstance(atom, Dim) for atom, _ in self.terms)

    def coefficient(self, dim: Dim) -> Integer:
        """The factor of `dim` where it stands alone; 0 where it does not occur (see `is_affine`)."""
        # A loop, as a generator takes several times as long, and every access of every fusion is asked.
        for atom, factor in self.terms:
            if atom == dim:
                return factor
        return 0

    def stride(self, dim: Dim) -> Integer | None:
        """How far the offset moves when `dim` grows by one: 0 if not at all, None if that is not one number."""
        if dim not in self.dims:
            return 0
        for atom, _ in self.terms:
            if isinstance(atom, FloorDiv | Mod) and dim in atom.numerator.dims:
                return None
        return self.coefficient(dim)

    def step(self, dim: Dim) -> Integer:
        """The same with 0 where it is not one number. An open size is not asked whether it is zero, as by `or`."""
        stride = self.stride(dim)
        return 0 if stride is None else stride

    def substitute(self, values: Mapping[Dim, Index]) -> Index:
        """The expression with each loop variable replaced, simplified again."""
        if not values or self.dims.isdisjoint(values):
            return self
        return _substituted(self, tuple(values.items()))

    def renumber(self, numbers: Mapping[int, int] | Sequence[int]) -> Index:
        """The expression with the numbers of loaded values replaced."""
        if not self.indirections:
            return self
        return self._map_atoms(
            lambda atom: Index.of(Indirect(numbers[atom.value], atom.size)) if isinstance(atom, Indirect) else None
        )

    def with_indices(self, indices: Mapping[int, Index]) -> Index:
        """The expression with those loaded values, by their numbers, replaced that are formulas of the loops."""
        if not indices:
            return self
        return self._map_atoms(lambda atom: indices.get(atom.value) if isinstance(atom, Indirect) else None)

    def _map_atoms(self, replace: Callable[[Atom], Index | None]) -> Index:
        offset = self.offset
        terms: list[tuple[Atom, Integer]] = []
        for atom, coefficient in self.terms:
            value = replace(atom)
            if value is None and isinstance(atom, FloorDiv):
                value = floor_divide(atom.numerator._map_atoms(replace), atom.divisor)
            elif value is None and isinstance(atom, Mod):
                value = modulo(atom.numerator._map_atoms(replace), atom.divisor)
            if value is None:
                terms.append((atom, coefficient))
            else:
                offset += value.offset * coefficient
                terms += [(inner, factor * coefficient) for inner, factor in value.terms]
        return _normal_form(offset, terms)

    def render(self, name: Callable[[Dim | Indirect], str], floor_divide_operator: str = "//") -> str:
        """Source text; `name` gives the text of variables. Python and, with "/", C (all values here are >= 0
        wherever a division is taken, which `floor_divide` and `modulo` ensure)."""
        if not self.terms:
            return text_of(self.offset)
        parts: list[str] = []
        for atom, coefficient in self.terms:
            if isinstance(atom, Dim | Indirect):
                text = name(atom)
            else:
                inner = atom.numerator.render(name, floor_divide_operator)
                inner = f"({inner})" if " " in inner and not _is_parenthesised(inner) else inner
                operator = floor_divide_operator if isinstance(atom, FloorDiv) else "%"
                text = f"({inner} {operator} {atom.divisor})"
            sign, magnitude = _sign_and_magnitude(coefficient)
            factor = magnitude.factor if isinstance(magnitude, Size) else magnitude
            text = text if magnitude == 1 else f"{factor} * {text}"
            parts.append(text if not parts and sign == "+" else f"-{text}" if not parts else f" {sign} {text}")
        if self.offset != 0:
            sign, magnitude = _sign_and_magnitude(self.offset)
            parts.append(f" {sign} {magnitude}")
        return "".join(parts)

    def __str__(self) -> str:
        return self.render(lambda atom: atom.name if isinstance(atom, Dim) else f"v{atom.value}")


ZERO = Index(0, ())

#: How many indices, and how many answers about them, are kept: the repeated blocks of a model ask the same again.
MOST_KEPT = 1 << 15
_kept: dict[tuple[Integer, tuple[tuple[Atom, Integer], ...]], Index] = {}


def _index(offset: Integer, terms: tuple[tuple[Atom, Integer], ...]) -> Index:
    """The index, one object for equal ones as long as it is kept: comparing them is then comparing addresses, and each
    computes its bounds and variables once."""
    key = offset, terms
    found = _kept.get(key)
    if found is None:
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        found = _kept[key] = Index(offset, terms)
    return found


@lru_cache(maxsize=MOST_KEPT)
def _substituted(index: Index, values: tuple[tuple[Dim, Index], ...]) -> Index:
    known = dict(values)
    return index._map_atoms(lambda atom: known.get(atom) if isinstance(atom, Dim) else None)


def _atom_bounds(atom: Atom) -> tuple[Integer, Integer]:
    if isinstance(atom, Dim | Indirect):
        return 0, 0 if atom.size == 0 else atom.size - 1
    low, high = atom.numerator.bounds
    if isinstance(atom, FloorDiv):
        return low // atom.divisor, high // atom.divisor
    return 0, atom.divisor - 1


def _sort_key(term: tuple[Atom, Integer]) -> tuple[int, int, str]:
    # Largest stride first reads best ("512 * x0 + r0"); the text breaks ties in a stable way.
    atom, coefficient = term
    rank = 0 if isinstance(atom, Dim) else 1
    text = atom.name if isinstance(atom, Dim) else repr(atom)
    return -abs(hint(coefficient)), rank, text


def _normal_form(offset: Integer, terms: Iterable[tuple[Atom, Integer]]) -> Index:
    collected: dict[Atom, Integer] = {}
    for atom, coefficient in terms:
        collected[atom] = collected.get(atom, 0) + coefficient
    collected = {atom: coefficient for atom, coefficient in collected.items() if coefficient != 0}
    if any(isinstance(atom, Mod) for atom in collected):
        rejoined = _rejoin(collected)
        if rejoined is not None:
            return rejoined + offset
    if len(collected) > 1:
        return _index(offset, tuple(sorted(collected.items(), key=_sort_key)))
    return _index(offset, tuple(collected.items()))


def _rejoin(collected: dict[Atom, Integer]) -> Index | None:
    """Undo a split that turned out needless:  c*k * (e // c)  +  k * (e % c)  ->  k * e,
    and one level of a longer split, where the larger digit may have more in it, as that of a rolled index has:
    c*k * ((e // c + a) % m)  +  k * (e % c)  ->  k * ((e + a*c) % (c*m))."""
    for atom, coefficient in collected.items():
        if not isinstance(atom, Mod):
            continue
        quotient = floor_divide(atom.numerator, atom.divisor)
        others = {key: value for key, value in collected.items() if key != atom}
        if len(quotient.terms) == 1 and quotient.offset == 0:
            inner, factor = quotient.terms[0]
            if others.get(inner) == coefficient * atom.divisor * factor:
                del others[inner]
                return _normal_form(0, others.items()) + atom.numerator * coefficient
        for other, factor in others.items():
            if not isinstance(other, Mod) or factor != coefficient * atom.divisor:
                continue
            if quotient.terms and set(quotient.terms) <= set(other.numerator.terms):
                del others[other]
                ahead = (other.numerator - quotient) * atom.divisor
                whole = modulo(atom.numerator + ahead, atom.divisor * other.divisor)
                return _normal_form(0, others.items()) + whole * coefficient
    return None


@lru_cache(maxsize=MOST_KEPT)
def floor_divide(numerator: Index, divisor: Integer) -> Index:
    """numerator // divisor, for divisor > 0.

    Whole multiples of the divisor leave the division, (121*x + r) // 33  ->  3*x + (22*x + r) // 33, so that it divides
    what `modulo` takes the rest of; it vanishes where that stays below the divisor."""
    if divisor == 1:
        return numerator
    if not numerator.terms:
        return Index(floor_quotient(numerator.offset, divisor), ())
    terms = [(atom, *_split_coefficient(c, divisor)) for atom, c in numerator.terms]
    outside, inside = divide(numerator.offset, divisor)
    rest = Index(inside, tuple((atom, c) for atom, _, c in terms if c != 0))
    quotient = _normal_form(outside, [(atom, c) for atom, c, _ in terms if c != 0])
    # Whole divisors move out until nothing negative is divided, so that C's division gives the same.
    shift = _least_quotient(rest, divisor)
    high = rest.bounds[1]
    if shift == known_quotient(high, divisor):
        return quotient + shift
    rest, quotient = rest - divisor * shift, quotient + shift
    parts = _split_below(rest, divisor)
    if parts is not None:
        step, large, _ = parts
        return quotient + floor_divide(large, divide(divisor, step)[0])
    if len(rest.terms) == 1 and rest.terms[0][1] == 1 and rest.offset == 0:
        atom = rest.terms[0][0]
        if isinstance(atom, FloorDiv):
            return quotient + floor_divide(atom.numerator, atom.divisor * divisor)
        if isinstance(atom, Mod) and is_multiple(atom.divisor, divisor):
            return quotient + modulo(floor_divide(atom.numerator, divisor), divide(atom.divisor, divisor)[0])
    return quotient + _index(0, ((FloorDiv(rest, divisor), 1),))


def _least_quotient(index: Index, divisor: Integer) -> Integer:
    """index // divisor where the index is smallest. Raises Undecided where it may be negative by an unknown amount."""
    low, _ = index.bounds
    quotient = known_quotient(low, divisor)
    if quotient is not None:
        return quotient
    if low >= 0:
        return 0
    raise Undecided(f"how often {text_of(divisor)} goes into {text_of(low)} depends on the sizes of a call")


@lru_cache(maxsize=MOST_KEPT)
def modulo(numerator: Index, divisor: Integer) -> Index:
    """numerator % divisor, for divisor > 0, with a result that is not negative."""
    if divisor == 1:
        return ZERO
    if not numerator.terms:
        return Index(numerator.offset % divisor, ())
    terms: list[tuple[Atom, Integer]] = []
    offset = numerator.offset
    for atom, coefficient in numerator.terms:
        if is_multiple(coefficient, divisor):
            continue
        if isinstance(atom, Mod) and is_multiple(atom.divisor * coefficient, divisor):
            # (e % (k*m)) * c  is  e * c  modulo k*m*c, so modulo the divisor too.
            terms += [(inner, c * coefficient) for inner, c in atom.numerator.terms]
            offset = offset + atom.numerator.offset * coefficient
            continue
        terms.append((atom, coefficient))
    rest = _normal_form(0, [(atom, _reduced(c, divisor)) for atom, c in terms])
    # Rejoined parts may have brought a constant of their own.
    offset = divide(offset + rest.offset, divisor)[1]
    rest = Index(offset, tuple((atom, c) for atom, c in rest.terms if not is_multiple(c, divisor)))
    shift = _least_quotient(rest, divisor)
    high = rest.bounds[1]
    rest = rest - divisor * shift
    if shift == known_quotient(high, divisor):
        return rest
    parts = _split_below(rest, divisor)
    if parts is not None:
        step, large, small = parts
        return modulo(large, divide(divisor, step)[0]) * step + small
    return _index(0, ((Mod(rest, divisor), 1),))


def _split_coefficient(coefficient: Integer, divisor: Integer) -> tuple[Integer, Integer]:
    """(q, r) with  coefficient = q * divisor + r,  where r is what `modulo` goes on with."""
    if is_multiple(coefficient, divisor):
        return divide(coefficient, divisor)[0], 0
    rest = _reduced(coefficient, divisor)
    return divide(coefficient - rest, divisor)[0], rest


def _reduced(coefficient: Integer, divisor: Integer) -> Integer:
    """A coefficient modulo the divisor; one that is negative stays, since it would only grow."""
    if isinstance(coefficient, int) and isinstance(divisor, int):
        return coefficient % divisor if coefficient > 0 else coefficient
    return coefficient


def _split_below(index: Index, divisor: Integer) -> tuple[Integer, Index, Index] | None:
    """Write  index = step * large + small  with  0 <= small < step  and  step > 1  a divisor of `divisor`.

    Then small never carries: index // divisor = large // (divisor // step), as in (256*x + r) // 65536 = x // 256
    where r < 256."""
    steps = {common_factor(divisor, coefficient) for _, coefficient in index.terms} - {1}
    for step in sorted(steps, key=hint, reverse=True):
        large_offset, small_offset = divide(index.offset, step)
        small = Index(small_offset, tuple((atom, c) for atom, c in index.terms if not is_multiple(c, step)))
        if small.is_within(0, step):
            terms = tuple((atom, divide(c, step)[0]) for atom, c in index.terms if is_multiple(c, step))
            return step, Index(large_offset, terms), small
    return None


def _sign_and_magnitude(value: Integer) -> tuple[str, Integer]:
    """How to print it after other terms."""
    is_negative = value < 0 if isinstance(value, int) else all(coefficient < 0 for _, coefficient in value.terms)
    return ("-", value * -1) if is_negative else ("+", value)


def _is_parenthesised(text: str) -> bool:
    """Whether the first bracket closes only at the end."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(text) - 1
    return False
