"""Sizes that are known only in a call: equal formulas are equal; order is told where it holds for every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ir.index import Dim, Index
from compiler.ir.interpret import evaluate
from compiler.ir.positions import invert
from compiler.ir.size import Opaque, Size, Symbol, Undecided, divide, hint, is_multiple, least_value, size

A, B = size(Symbol("a", 32)), size(Symbol("b", 6, lower=4))

Meaning = Callable[[dict[str, int]], int]


def leaves() -> st.SearchStrategy[tuple[Any, Meaning]]:
    numbers = st.integers(-4, 9).map(lambda n: (n, lambda env: n))
    return st.one_of(st.sampled_from([(A, lambda env: env["a"]), (B, lambda env: env["b"])]), numbers)


def grow(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    divisors = st.sampled_from([2, 3, 8])
    return st.one_of(
        st.builds(lambda p, q: (p[0] + q[0], lambda env: p[1](env) + q[1](env)), children, children),
        st.builds(lambda p, q: (p[0] - q[0], lambda env: p[1](env) - q[1](env)), children, children),
        st.builds(lambda p, q: (p[0] * q[0], lambda env: p[1](env) * q[1](env)), children, children),
        st.builds(lambda p, n: (p[0] // n, lambda env: p[1](env) // n), children, divisors),
        st.builds(lambda p, n: (p[0] % n, lambda env: p[1](env) % n), children, divisors),
        st.builds(lambda p: (p[0] // A, lambda env: p[1](env) // env["a"]), children),
    )


formulas = st.recursive(leaves(), grow, max_leaves=7)
calls = st.fixed_dictionaries({"a": st.integers(2, 70), "b": st.integers(4, 70)})


@settings(max_examples=500, deadline=None)
@given(st.data(), calls)
def test_a_formula_means_what_pythons_integers_mean(data: st.DataObject, call: dict[str, int]) -> None:
    try:
        value, meaning = data.draw(formulas)
    except Undecided:
        return
    assert evaluate(value, call) == meaning(call)
    assert hint(value) == meaning({"a": 32, "b": 6})
    least = least_value(value)
    assert least is None or least <= meaning(call)


@settings(max_examples=500, deadline=None)
@given(st.data(), calls)
def test_an_order_that_is_told_holds_in_every_call(data: st.DataObject, call: dict[str, int]) -> None:
    try:
        (a, meaning_a), (b, meaning_b) = data.draw(formulas), data.draw(formulas)
        told = a < b
    except Undecided:
        return
    assert told == (meaning_a(call) < meaning_b(call))


def test_equal_formulas_are_equal_and_hash_alike() -> None:
    assert (A + 1) * B == B + A * B
    assert hash((A + 1) * B) == hash(B + A * B)
    assert (A * B + B) // B == A + 1
    assert (10 * A) // 4 == 2 * A + A // 2
    assert A - A == 0


def test_what_differs_from_call_to_call_is_not_answered() -> None:
    with pytest.raises(Undecided, match="depends on the sizes of a call"):
        bool(A > 3)
    with pytest.raises(Undecided):
        bool(A - 2)
    assert B > 3
    assert bool(A)
    assert A != 32  # type: ignore[comparison-overlap]  # an open size is no number


def test_nothing_turns_a_size_into_one_number() -> None:
    for convert in (int, float, range, list, lambda s: [0] * s):
        with pytest.raises(TypeError):
            convert(A)  # type: ignore[arg-type, call-overload]


def test_a_quotient_is_at_most_the_exact_one() -> None:
    assert 4 * ((A + 3) // 4) <= A + 3
    assert str((A + 3) // 4) == "a_plus_3_over_4"


def test_division_that_comes_out_even() -> None:
    assert divide(64 * A * B, 8 * B) == (8 * A, 0)
    assert is_multiple(48 * A, 16)
    assert not is_multiple(A, 2)


def test_indices_over_sizes_split_and_merge_like_those_over_numbers() -> None:
    x, y = Dim("x0", A), Dim("x1", B)
    flat = Index.of(x) * B + Index.of(y)
    assert flat // B == Index.of(x)
    assert flat % B == Index.of(y)
    whole = Index.of(Dim("d0", A * B))
    assert (whole // B) * B + whole % B == whole
    assert invert(flat, (x, y), whole) == {x: whole // B, y: whole % B}
    assert isinstance(flat.bounds[1], Size)
    assert flat.bounds[1] == A * B - 1


def test_a_symbol_of_another_graph_has_its_own_bounds() -> None:
    """Answers are kept from graph to graph, and each graph has its `s0`."""
    assert size(Symbol("s0", 8, lower=4)) > 3
    with pytest.raises(Undecided):
        bool(size(Symbol("s0", 8, lower=0)) > 3)
    one, two = (Index.of(Dim("x0", size(Symbol("s0", first, 2)))) for first in (8, 64))
    assert [hint(index.bounds[1]) for index in (one, two)] == [7, 63]


def test_formulas_of_the_same_words_have_names_of_their_own() -> None:
    """A kernel knows each by its name alone."""
    of_sum, of_terms = ((A + B) // 4 + 1) // 5, (A + B // 4 + 1) // 5
    assert isinstance(of_sum, Size) and isinstance(of_terms, Size)
    assert of_sum != of_terms and of_sum.text != of_terms.text
    floats = ("math.floor((a + 1) / 3)", "math.floor(a + 1 / 3)", "int(1.5 * a)", "int(15 * a)")
    names = [size(Opaque(text, (), 1)).text for text in floats]
    assert len(set(names)) == len(names) and all(name.isidentifier() for name in names)
