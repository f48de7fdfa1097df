"""Index expressions in a normal form.

An `Index` is the element offset that a loop reads or writes, as a formula of the loop's variables:

    Index  =  constant + sum of coefficient * atom
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

Division floors and remainders are not negative, as in Python; all divisors are positive constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod


@dataclass(frozen=True, slots=True, order=True)
class Dim:
    """A loop variable: it takes the integers 0, 1, ..., size - 1."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Indirect:
    """The value of an earlier instruction (its number in the body), known to lie in 0 <= value < size."""

    value: int
    size: int


@dataclass(frozen=True, slots=True)
class FloorDiv:
    numerator: Index
    divisor: int


@dataclass(frozen=True, slots=True)
class Mod:
    numerator: Index
    divisor: int


Atom = Dim | Indirect | FloorDiv | Mod


@dataclass(frozen=True)
class Index:
    """`constant + sum(coefficient * atom)`; build it with `of`, `constant` and the operators, never by hand."""

    offset: int
    terms: tuple[tuple[Atom, int], ...]

    # Hashing is on the path of every comparison of two accesses, so it is computed once for each value.
    @cached_property
    def _hash(self) -> int:
        return hash((self.offset, self.terms))

    def __hash__(self) -> int:
        return self._hash

    @staticmethod
    def of(atom: Atom) -> Index:
        if isinstance(atom, Dim) and atom.size == 1:
            return ZERO
        return Index(0, ((atom, 1),))

    @staticmethod
    def number(value: int) -> Index:
        return Index(value, ())

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.offset + other, self.terms)
        return _normal_form(self.offset + other.offset, (*self.terms, *other.terms))

    __radd__ = __add__

    def __sub__(self, other: Index | int) -> Index:
        return self + (other * -1)

    def __rsub__(self, other: int) -> Index:
        return self * -1 + other

    def __mul__(self, factor: int) -> Index:
        if factor == 0:
            return ZERO
        return Index(self.offset * factor, tuple((atom, coefficient * factor) for atom, coefficient in self.terms))

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Index:
        return floor_divide(self, divisor)

    def __mod__(self, divisor: int) -> Index:
        return modulo(self, divisor)

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value, both inclusive; exact for affine expressions, else safe."""
        low = high = self.offset
        for atom, coefficient in self.terms:
            atom_low, atom_high = _atom_bounds(atom)
            if coefficient < 0:
                atom_low, atom_high = atom_high, atom_low
            low += coefficient * atom_low
            high += coefficient * atom_high
        return low, high

    @cached_property
    def dims(self) -> frozenset[Dim]:
        """The loop variables that it depends on."""
        found: set[Dim] = set()
        for atom, _ in self.terms:
            if isinstance(atom, Dim):
                found.add(atom)
            elif isinstance(atom, FloorDiv | Mod):
                found |= atom.numerator.dims
        return frozenset(found)

    @cached_property
    def indirections(self) -> frozenset[Indirect]:
        """The loaded values that it depends on."""
        found: set[Indirect] = set()
        for atom, _ in self.terms:
            if isinstance(atom, Indirect):
                found.add(atom)
            elif isinstance(atom, FloorDiv | Mod):
                found |= atom.numerator.indirections
        return frozenset(found)

    @property
    def is_affine(self) -> bool:
        """Whether it is a sum of multiples of loop variables, without division, remainder or loaded values."""
        return all(isinstance(atom, Dim) for atom, _ in self.terms)

    def coefficient(self, dim: Dim) -> int:
        """The factor of `dim` where it stands alone; 0 where it does not occur (see `is_affine`)."""
        return next((factor for atom, factor in self.terms if atom == dim), 0)

    def stride(self, dim: Dim) -> int | None:
        """How far the offset moves when `dim` grows by one: 0 if not at all, None if that is not one number."""
        if dim not in self.dims:
            return 0
        for atom, _ in self.terms:
            if isinstance(atom, FloorDiv | Mod) and dim in atom.numerator.dims:
                return None
        return self.coefficient(dim)

    def substitute(self, values: Mapping[Dim, Index]) -> Index:
        """The expression with each loop variable replaced, simplified again."""
        if not values or self.dims.isdisjoint(values):
            return self
        return self._map_atoms(lambda atom: values.get(atom) if isinstance(atom, Dim) else None)

    def renumber(self, numbers: Mapping[int, int]) -> Index:
        """The expression with the numbers of loaded values replaced."""
        if not self.indirections:
            return self
        return self._map_atoms(
            lambda atom: Index.of(Indirect(numbers[atom.value], atom.size)) if isinstance(atom, Indirect) else None
        )

    def _map_atoms(self, replace: Callable[[Atom], Index | None]) -> Index:
        result = Index.number(self.offset)
        for atom, coefficient in self.terms:
            value = replace(atom)
            if value is None and isinstance(atom, FloorDiv):
                value = floor_divide(atom.numerator._map_atoms(replace), atom.divisor)
            elif value is None and isinstance(atom, Mod):
                value = modulo(atom.numerator._map_atoms(replace), atom.divisor)
            result = result + (Index.of(atom) if value is None else value) * coefficient
        return result

    def evaluate(self, dims: Mapping[Dim, int], values: Mapping[int, int] | None = None) -> int:
        """Its value at one point of the loop; `values` gives the loaded values by their number."""
        total = self.offset
        for atom, coefficient in self.terms:
            if isinstance(atom, Dim):
                value = dims[atom]
            elif isinstance(atom, Indirect):
                value = (values or {})[atom.value]
            elif isinstance(atom, FloorDiv):
                value = atom.numerator.evaluate(dims, values) // atom.divisor
            else:
                value = atom.numerator.evaluate(dims, values) % atom.divisor
            total += coefficient * value
        return total

    def render(self, name: Callable[[Dim | Indirect], str], floor_divide_operator: str = "//") -> str:
        """Source text; `name` gives the text of variables. Python and, with "/", C (all values here are >= 0
        wherever a division is taken, which `floor_divide` and `modulo` ensure)."""
        if not self.terms:
            return str(self.offset)
        parts: list[str] = []
        for atom, coefficient in self.terms:
            if isinstance(atom, Dim | Indirect):
                text = name(atom)
            else:
                inner = atom.numerator.render(name, floor_divide_operator)
                inner = f"({inner})" if " " in inner and not _is_parenthesised(inner) else inner
                operator = floor_divide_operator if isinstance(atom, FloorDiv) else "%"
                text = f"{inner} {operator} {atom.divisor}"
                text = f"({text})"
            magnitude = abs(coefficient)
            text = text if magnitude == 1 else f"{magnitude} * {text}"
            sign = "-" if coefficient < 0 else "+"
            parts.append(text if not parts and sign == "+" else f"-{text}" if not parts else f" {sign} {text}")
        if self.offset:
            parts.append(f" {'-' if self.offset < 0 else '+'} {abs(self.offset)}")
        return "".join(parts)

    def __str__(self) -> str:
        return self.render(lambda atom: atom.name if isinstance(atom, Dim) else f"v{atom.value}")


def _is_parenthesised(text: str) -> bool:
    """Whether the first bracket closes only at the end."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place == len(text) - 1
    return False


ZERO = Index(0, ())


def _atom_bounds(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Dim | Indirect):
        return 0, max(atom.size - 1, 0)
    low, high = atom.numerator.bounds
    if isinstance(atom, FloorDiv):
        return low // atom.divisor, high // atom.divisor
    return 0, atom.divisor - 1


def _sort_key(term: tuple[Atom, int]) -> tuple[int, int, str]:
    # Largest stride first reads best ("512 * x0 + r0"); the text breaks ties in a stable way.
    atom, coefficient = term
    rank = 0 if isinstance(atom, Dim) else 1
    text = atom.name if isinstance(atom, Dim) else repr(atom)
    return -abs(coefficient), rank, text


def _normal_form(offset: int, terms: Iterable[tuple[Atom, int]]) -> Index:
    collected: dict[Atom, int] = {}
    for atom, coefficient in terms:
        collected[atom] = collected.get(atom, 0) + coefficient
    collected = {atom: coefficient for atom, coefficient in collected.items() if coefficient}
    if any(isinstance(atom, Mod) for atom in collected):
        rejoined = _rejoin(collected)
        if rejoined is not None:
            return rejoined + offset
    return Index(offset, tuple(sorted(collected.items(), key=_sort_key)))


def _rejoin(collected: dict[Atom, int]) -> Index | None:
    """Undo a split that turned out needless:  c*k * (e // c)  +  k * (e % c)  ->  k * e,
    and one level of a longer split:  c*k * ((e // c) % m)  +  k * (e % c)  ->  k * (e % (c*m))."""
    for atom, coefficient in collected.items():
        if not isinstance(atom, Mod):
            continue
        quotient = floor_divide(atom.numerator, atom.divisor)
        others = {key: value for key, value in collected.items() if key != atom}
        if len(quotient.terms) == 1 and not quotient.offset:
            inner, factor = quotient.terms[0]
            if others.get(inner) == coefficient * atom.divisor * factor:
                del others[inner]
                return _normal_form(0, others.items()) + atom.numerator * coefficient
        for other, factor in others.items():
            if isinstance(other, Mod) and other.numerator == quotient and factor == coefficient * atom.divisor:
                del others[other]
                whole = modulo(atom.numerator, atom.divisor * other.divisor)
                return _normal_form(0, others.items()) + whole * coefficient
    return None


def floor_divide(numerator: Index, divisor: int) -> Index:
    """numerator // divisor, for divisor > 0.

    Terms that are multiples of the divisor leave the division; it vanishes where the rest stays below the divisor."""
    if divisor == 1:
        return numerator
    whole = {atom: c // divisor for atom, c in numerator.terms if c % divisor == 0}
    rest_terms = tuple((atom, c) for atom, c in numerator.terms if c % divisor)
    rest = Index(numerator.offset % divisor, rest_terms)
    quotient = _normal_form(numerator.offset // divisor, whole.items())
    low, high = rest.bounds
    # Whole divisors move out until nothing negative is divided, so that C's division gives the same.
    shift = low // divisor
    if shift == high // divisor:
        return quotient + shift
    rest, quotient = rest - shift * divisor, quotient + shift
    parts = _split_below(rest, divisor)
    if parts is not None:
        step, large, _ = parts
        return quotient + floor_divide(large, divisor // step)
    if len(rest.terms) == 1 and rest.terms[0][1] == 1 and not rest.offset:
        atom = rest.terms[0][0]
        if isinstance(atom, FloorDiv):
            return quotient + floor_divide(atom.numerator, atom.divisor * divisor)
        if isinstance(atom, Mod) and atom.divisor % divisor == 0:
            return quotient + modulo(floor_divide(atom.numerator, divisor), atom.divisor // divisor)
    return quotient + Index(0, ((FloorDiv(rest, divisor), 1),))


def modulo(numerator: Index, divisor: int) -> Index:
    """numerator % divisor, for divisor > 0, with a result that is not negative."""
    if divisor == 1:
        return ZERO
    terms: list[tuple[Atom, int]] = []
    for atom, coefficient in numerator.terms:
        if coefficient % divisor == 0:
            continue
        if isinstance(atom, Mod) and (atom.divisor * coefficient) % divisor == 0:
            # (e % (k*m)) * c  is  e * c  modulo k*m*c, so modulo the divisor too.
            terms += [(inner, c * coefficient) for inner, c in atom.numerator.terms]
            terms += [(_UNIT, atom.numerator.offset * coefficient)] if atom.numerator.offset else []
            continue
        terms.append((atom, coefficient))
    offset = numerator.offset + sum(c for atom, c in terms if atom is _UNIT)
    rest = _normal_form(0, [(atom, c % divisor if c > 0 else c) for atom, c in terms if atom is not _UNIT])
    # Rejoined parts may have brought a constant of their own.
    rest = Index((offset + rest.offset) % divisor, tuple((atom, c) for atom, c in rest.terms if c % divisor))
    low, high = rest.bounds
    shift = low // divisor
    rest = rest - shift * divisor
    if shift == high // divisor:
        return rest
    parts = _split_below(rest, divisor)
    if parts is not None:
        step, large, small = parts
        return modulo(large, divisor // step) * step + small
    return Index(0, ((Mod(rest, divisor), 1),))


def _split_below(index: Index, divisor: int) -> tuple[int, Index, Index] | None:
    """Write  index = step * large + small  with  0 <= small < step  and  step > 1  a divisor of `divisor`.

    Then small never carries: index // divisor = large // (divisor // step), as in (256*x + r) // 65536 = x // 256
    where r < 256."""
    steps = {gcd(divisor, coefficient) for _, coefficient in index.terms} - {1}
    for step in sorted(steps, reverse=True):
        small = Index(index.offset % step, tuple((atom, c) for atom, c in index.terms if c % step))
        low, high = small.bounds
        if low >= 0 and high < step:
            terms = tuple((atom, c // step) for atom, c in index.terms if c % step == 0)
            return step, Index(index.offset // step, terms), small
    return None


_UNIT = Dim("1", 2)  # stands for the number one inside `modulo` alone


def flatten(indices: Sequence[Index], sizes: Sequence[int]) -> Index:
    """Row-major position of a point:  flatten((i, j), (4, 512))  ->  512 * i + j."""
    position = ZERO
    for index, size in zip(indices, sizes, strict=True):
        position = position * size + index
    return position


def unflatten(position: Index, sizes: Sequence[int]) -> tuple[Index, ...]:
    """The point at a row-major position, the inverse of `flatten`."""
    result: list[Index] = []
    inner = prod(sizes)
    for place, size in enumerate(sizes):
        inner = inner // size if size else 0
        digit = position // inner if inner > 1 else position
        result.append(digit % size if place and size > 1 else ZERO if size <= 1 else digit)
    return tuple(result)


def invert(index: Index, dims: Sequence[Dim], value: Index, is_masked: bool = False) -> dict[Dim, Index] | None:
    """Solve  index(dims) = value  for those of `dims` that `index` depends on, or None where it cannot be told.

    Solvable is an affine index with positive coefficients each of which exceeds all that the smaller ones can add up
    to, so that different points have different offsets, as every dense or sliced layout has:

        invert(512*d0 + d1, (d0, d1), v)  ->  {d0: v // 512, d1: v % 512}

    The answer is checked by putting it back: where `value` can leave the range of `index`, there is none, unless
    `is_masked` says that the caller guards against that (then the answer counts only where the guard holds).
    """
    if not index.is_affine:
        return None
    ordered = sorted((dim for dim in dims if dim in index.dims), key=lambda dim: -index.coefficient(dim))
    if any(index.coefficient(dim) <= 0 for dim in ordered):
        return None
    answer: dict[Dim, Index] = {}
    remaining = value - index.offset
    for place, dim in enumerate(ordered):
        step = index.coefficient(dim)
        if is_masked and place == len(ordered) - 1 and step == 1:
            answer[dim] = remaining
            continue
        if step <= sum(index.coefficient(d) * (d.size - 1) for d in ordered[place + 1 :]):
            return None
        answer[dim] = remaining // step
        remaining = remaining % step
    if is_masked:
        return answer
    stays_inside = all(0 <= low and high < dim.size for dim, i in answer.items() for low, high in [i.bounds])
    return answer if stays_inside and index.substitute(answer) == value else None
