"""Polynomials with integer coefficients in a normal form: the arithmetic of sizes that are not known (see `size.py`).

    s0 * (s1 + 2) + 2   ->   ((s0, s1), 1), ((s0,), 2), ((), 2)      each a monomial and its coefficient

A monomial is its atoms, sorted by their names, each as often as it is a factor; that of a constant is empty. The terms
are sorted too, the longest first, and no coefficient is zero, so that equal polynomials are equal tuples. An atom is
whatever has a name and a least value: what it stands for is not asked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from math import gcd
from operator import and_
from typing import Protocol, TypeVar


class Named(Protocol):
    """What a polynomial may be one of."""

    @property
    def name(self) -> str: ...

    @property
    def lower(self) -> int | None:
        """The least value that it can have; None where it has no bound."""
        ...


A = TypeVar("A", bound=Named)
Term = tuple[tuple[A, ...], int]
Terms = tuple[Term[A], ...]


def normal_form(terms: Iterable[Term[A]]) -> Terms[A]:
    """The sum of terms whose monomials are sorted each; empty where that is zero."""
    collected: dict[tuple[A, ...], int] = {}
    for monomial, coefficient in terms:
        collected[monomial] = collected.get(monomial, 0) + coefficient
    return tuple(sorted(((m, c) for m, c in collected.items() if c), key=_order))


def _order(term: Term[A]) -> tuple[int, tuple[str, ...]]:
    monomial = term[0]
    return -len(monomial), tuple(atom.name for atom in monomial)


def product(a: Terms[A], b: Terms[A]) -> Terms[A]:
    return normal_form((tuple(sorted((*m, *n), key=lambda atom: atom.name)), c * d) for m, c in a for n, d in b)


def divided(numerator: Terms[A], divisor: Terms[A]) -> tuple[Terms[A], Terms[A]]:
    """Some (q, r) with  numerator = q * divisor + r:  division by the divisor's first term, for as long as coefficients
    divide. The divisor is not zero."""
    lead, *_ = divisor
    quotient: Terms[A] = ()
    rest = numerator
    for _ in range(len(numerator) + 8):
        step = next((step for term in rest if (step := _divided_term(term, lead)) is not None), None)
        if step is None:
            break
        monomial, coefficient = step
        quotient = normal_form([*quotient, step])
        rest = normal_form([*rest, *product(((monomial, -coefficient),), divisor)])
    return quotient, rest


def _divided_term(term: Term[A], lead: Term[A]) -> Term[A] | None:
    """How often `lead` goes into a term; a constant divides with a remainder, what has atoms only if it comes out."""
    (monomial, coefficient), (atoms, factor) = term, lead
    left = list(monomial)
    for atom in atoms:
        if atom not in left:
            return None
        left.remove(atom)
    whole = coefficient // factor if not atoms or coefficient % factor == 0 else 0
    return (tuple(left), whole) if whole else None


def common_factor(a: Terms[A], b: Terms[A]) -> Term[A]:
    """A common divisor of both: the coefficients' greatest, times the atoms that stand in every term of both."""
    monomials = [Counter(monomial) for monomial, _ in (*a, *b)]
    shared = reduce(and_, monomials) if monomials else Counter[A]()
    return tuple(shared.elements()), gcd(*(coefficient for _, coefficient in (*a, *b)))


@dataclass(frozen=True, slots=True)
class _Above:
    """An atom less the least value that it can have, so that it is zero at least."""

    name: str
    lower: int = 0


def least_value(terms: Terms[A]) -> int | None:
    """A number that the polynomial is never below, or None where none is found: its constant once it is written in
    atoms that are not negative, if no other coefficient is."""
    total: list[Term[_Above]] = []
    for monomial, coefficient in terms:
        factors: Terms[_Above] = (((), coefficient),)
        for atom in monomial:
            if atom.lower is None:
                return None
            above: Terms[_Above] = (((_Above(atom.name),), 1), ((), atom.lower))
            factors = product(factors, above)
        total += factors
    constant = 0
    for shifted, coefficient in normal_form(total):
        if not shifted:
            constant = coefficient
        elif coefficient < 0:
            return None
    return constant


def text(terms: Terms[A]) -> str:
    """In Python and C alike, by the atoms' names."""
    parts: list[str] = []
    for monomial, coefficient in terms:
        names = [atom.name for atom in monomial]
        if abs(coefficient) != 1 or not names:
            names.insert(0, str(abs(coefficient)))
        formula = " * ".join(names)
        sign = "-" if coefficient < 0 else "+"
        parts.append(formula if not parts and sign == "+" else f"-{formula}" if not parts else f" {sign} {formula}")
    return "".join(parts)
