"""Index expressions mean what Python's integers mean, and equal formulas are equal values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ir.index import Dim, Index
from compiler.ir.positions import flatten, invert, unflatten
from compiler.ir.size import known
from tests.ir.points import value_at

DIMS = (Dim("a", 4), Dim("b", 6), Dim("c", 5))
X, R, FLAT = Dim("x0", 1024), Dim("r0", 512), Dim("d0", 1024 * 512)

Meaning = Callable[[dict[Dim, int]], int]


def leaves() -> st.SearchStrategy[tuple[Index, Meaning]]:
    def build(dim: Dim, factor: int, offset: int) -> tuple[Index, Meaning]:
        return Index.of(dim) * factor + offset, lambda env: env[dim] * factor + offset

    return st.builds(build, st.sampled_from(DIMS), st.sampled_from([1, 2, 3, 4, 6, -1, -2]), st.integers(-3, 5))


def grow(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    divisors = st.sampled_from([2, 3, 4, 6, 12])
    return st.one_of(
        st.builds(lambda p, q: (p[0] + q[0], lambda env: p[1](env) + q[1](env)), children, children),
        st.builds(lambda p, n: (p[0] // n, lambda env: p[1](env) // n), children, divisors),
        st.builds(lambda p, n: (p[0] % n, lambda env: p[1](env) % n), children, divisors),
        st.builds(split, children, divisors, divisors),
    )


def split(whole: tuple[Index, Meaning], size: int, count: int) -> tuple[Index, Meaning]:
    """A position taken apart and put together again, as reading through two views does: it may wrap on the way."""
    index, meaning = whole
    return size * (index // size % count) + index % size, lambda env: meaning(env) % (size * count)


expressions = st.recursive(leaves(), grow, max_leaves=8)
points = st.fixed_dictionaries({dim: st.integers(0, known(dim.size) - 1) for dim in DIMS})


@settings(max_examples=400, deadline=None)
@given(expressions, points)
def test_simplification_keeps_the_value_and_the_bounds(
    expression: tuple[Index, Meaning], point: dict[Dim, int]
) -> None:
    index, meaning = expression
    low, high = index.bounds
    assert value_at(index, point) == meaning(point)
    assert low <= meaning(point) <= high


@settings(max_examples=200, deadline=None)
@given(expressions, points)
def test_substitution_is_evaluation_at_the_replaced_point(
    expression: tuple[Index, Meaning], point: dict[Dim, int]
) -> None:
    index, meaning = expression
    replaced = index.substitute({DIMS[0]: Index.of(DIMS[1]) // 2})
    assert value_at(replaced, point) == meaning({**point, DIMS[0]: point[DIMS[1]] // 2})


@settings(max_examples=200, deadline=None)
@given(expressions, points)
def test_text_is_python_that_gives_the_value(expression: tuple[Index, Meaning], point: dict[Dim, int]) -> None:
    index, meaning = expression
    assert eval(str(index), {dim.name: value for dim, value in point.items()}) == meaning(point)


def test_a_split_of_a_dense_offset_dissolves() -> None:
    offset = 512 * Index.of(X) + Index.of(R)
    assert offset // 512 == Index.of(X)
    assert offset % 512 == Index.of(R)


def test_joining_a_split_gives_the_whole() -> None:
    flat = Index.of(FLAT)
    assert flatten(unflatten(flat, (1024, 512)), (1024, 512)) == flat
    assert flatten(unflatten(flat, (64, 16, 8, 64)), (64, 16, 8, 64)) == flat


def test_joining_a_split_of_a_rolled_place_gives_the_whole() -> None:
    """Windows of seven, put back into rows of 56 that are rolled by three."""
    rolled = (Index.of(Dim("x0", 56)) + 53) % 56
    window, within = rolled // 7, rolled % 7
    assert flatten((window, within), (8, 7)) == rolled


def test_a_split_of_parts_larger_than_it_dissolves() -> None:
    """A dense (33, 33) tensor viewed as (3, 3, 121)."""
    place = 363 * Index.of(Dim("a", 3)) + 121 * Index.of(Dim("b", 3)) + Index.of(Dim("c", 121))
    assert flatten(unflatten(place, (33, 33)), (33, 33)) == place


def test_a_part_that_cannot_carry_leaves_the_division() -> None:
    row, column = Index.of(Dim("x0", 4096)), Index.of(Dim("r0", 256))
    offset = 256 * row + column
    assert offset // 65536 == row // 256
    assert offset % 65536 == 256 * (row % 256) + column


def test_a_masked_position_keeps_its_constant_when_it_is_split_twice() -> None:
    """A window over an image, at the row and column before it, read through two kernels: ResNet's first pool."""
    image, row, column = Dim("x0", 8), Dim("x1", 16), Dim("r0", 3)
    position = 1024 * Index.of(image) + 64 * Index.of(row) + 32 * Index.of(column) - 33
    layout = [Dim("n", 2), Dim("c", 4), Dim("h", 1024)]
    stored = flatten([Index.of(dim) for dim in layout], [dim.size for dim in layout])
    once = invert(stored, layout, position, is_masked=True)
    assert once is not None
    twice = invert(stored, layout, stored.substitute(once), is_masked=True)
    assert twice is not None
    point = {image: 3, row: 2, column: 1}
    assert [value_at(twice[dim], point) for dim in layout] == [0, 3, 64 * 2 + 32 - 33]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([1, 2, 3, 4]),
    st.integers(0, 9),
    st.sampled_from([(3, 3), (2, 3, 4), (4, 6), (5, 2)]),
    st.integers(0, 5),
    points,
)
def test_digits_that_turn_are_joined_to_their_value(
    step: int, offset: int, sizes: tuple[int, ...], turn: int, point: dict[Dim, int]
) -> None:
    """As a rolled, repeated or padded tensor of one layout is read by loops of another."""
    count = math.prod(sizes)
    place = Index.of(DIMS[0]) * step + Index.of(DIMS[1]) + offset
    digits = [(digit + turn) % size for digit, size in zip(unflatten(place % count, sizes), sizes, strict=True)]
    joined = flatten(digits, sizes)
    value = value_at(joined, point)
    assert value_at(joined % count, point) == value % count
    for divisor in (2, 3, sizes[-1], count):
        assert value_at(joined % divisor, point) == value % divisor
        assert value_at(joined // divisor, point) == value // divisor


def test_equal_formulas_are_equal_whatever_order_they_were_built_in() -> None:
    x, r = Index.of(X), Index.of(R)
    assert x * 512 + r + 3 == 3 + r + x * 512
    assert hash(x * 512 + r + 3) == hash(3 + r + x * 512)


def test_a_loop_of_one_iteration_is_no_variable() -> None:
    assert Index.of(Dim("x1", 1)) == Index.number(0)


@pytest.mark.parametrize("strides", [(512, 1), (1, 1024), (512, -1), (-1, -1024)])
def test_inversion_finds_the_point_of_a_dense_offset(strides: tuple[int, int]) -> None:
    rows, columns = Dim("d0", 1024), Dim("d1", 512)
    ends = sum(-stride * (dim.size - 1) for stride, dim in zip(strides, (rows, columns), strict=True) if stride < 0)
    index = Index.of(rows) * strides[0] + Index.of(columns) * strides[1] + ends
    answer = invert(index, (rows, columns), Index.of(FLAT))
    assert answer is not None and index.substitute(answer) == Index.of(FLAT)


def test_inversion_of_an_overlapping_window_has_no_answer() -> None:
    window, place = Dim("w", 3), Dim("p", 10)
    assert invert(Index.of(window) + Index.of(place), (window, place), Index.of(FLAT)) is None


def test_inversion_refuses_offsets_outside_of_the_layout() -> None:
    half = Dim("d0", 64)
    assert invert(Index.of(half), (half,), Index.of(Dim("d", 128))) is None
    assert invert(Index.of(half), (half,), Index.of(Dim("d", 128)) - 64, is_masked=True) is not None


def test_indices_are_values_whether_or_not_they_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Index.of(X) * 512 + Index.of(R)
    monkeypatch.setattr("compiler.ir.index._kept", {})
    after = Index.of(X) * 512 + Index.of(R)
    assert after is not before
    assert after == before
    assert {before: "known"}[after] == "known"
    assert Index.of(R) + Index.of(X) * 512 is after
