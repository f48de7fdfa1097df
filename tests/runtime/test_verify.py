"""What the error of a result is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch

from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import relative_error, to_double, typical_scale_of


def test_equal_outputs_have_no_error() -> None:
    outputs = [
        torch.arange(3),
        (torch.ones(2), None),
        {"x": torch.tensor([True])},
        1.5,
        "text",
        [],
    ]
    assert relative_error(outputs, outputs) == 0.0


def test_the_error_is_the_norm_of_the_difference_over_the_norm_of_the_reference() -> None:
    reference = torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert relative_error(torch.tensor([3.0, 4.5]), reference) == pytest.approx(0.1)


def test_the_largest_error_of_several_outputs_counts() -> None:
    reference = [torch.ones(4), torch.full((4,), 10.0)]
    assert relative_error([torch.ones(4), torch.full((4,), 11.0)], reference) == pytest.approx(0.1)


def test_the_error_of_integers_is_the_share_that_differs() -> None:
    assert relative_error(torch.tensor([1, 2, 3, 5]), torch.tensor([1, 2, 3, 4])) == 0.25
    assert relative_error(torch.tensor([True, False]), torch.tensor([False, True])) == 1.0


def test_complex_outputs_are_compared_as_pairs() -> None:
    reference = torch.tensor([3 + 4j])
    assert relative_error(torch.tensor([3 + 4.5j]), reference) == pytest.approx(0.1)
    assert relative_error(torch.tensor([3 - 4j]).conj(), reference) == 0.0


def test_nan_where_the_reference_has_nan_counts_as_equal() -> None:
    reference = torch.tensor([math.nan, 3.0, 4.0, math.inf])
    assert relative_error(torch.tensor([math.nan, 3.0, 4.5, math.inf]), reference) == pytest.approx(0.1)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_special_value_elsewhere_is_an_infinite_error(wrong: float) -> None:
    assert relative_error(torch.tensor([1.0, wrong]), torch.ones(2)) == math.inf
    assert relative_error(torch.ones(2), torch.tensor([1.0, wrong])) == math.inf
    assert relative_error(torch.tensor([math.inf]), torch.tensor([-math.inf])) == math.inf


def test_a_reference_of_zeros_makes_the_error_absolute() -> None:
    assert relative_error(torch.zeros(4), torch.zeros(4)) == 0.0
    assert relative_error(torch.full((4,), 0.5), torch.zeros(4)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("outputs", "reference"),
    [
        (torch.ones(2), torch.ones(3)),
        (torch.ones(2), torch.ones(2, dtype=torch.int64)),
        (torch.ones(2), [torch.ones(2)]),
        (torch.ones(2), None),
        ([torch.ones(1)], []),
        ({"a": 1}, {"b": 1}),
        ("a", "b"),
    ],
)
def test_what_cannot_be_compared_is_an_infinite_error(outputs: object, reference: object) -> None:
    assert relative_error(outputs, reference) == math.inf


def test_empty_tensors_and_empty_structures_are_equal() -> None:
    assert relative_error((torch.empty(0, 3), []), (torch.empty(0, 3), [])) == 0.0
    assert relative_error((), ()) == 0.0


def test_a_tensor_longer_than_a_chunk_is_compared_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("compiler.runtime.checking.verify.CHUNK_ELEMENTS", 10)
    reference = torch.ones(25)
    out = reference.clone()
    out[24] = 2.0
    assert relative_error(out, reference) == pytest.approx(0.2)


@dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor | None = None


def test_the_fields_of_a_dataclass_are_outputs() -> None:
    assert relative_error(Output(torch.ones(4)), Output(torch.full((4,), 2.0))) == pytest.approx(0.5)


def test_arguments_in_double_precision_are_copies() -> None:
    original = torch.ones(2)
    copied = to_double([original, {"flag": torch.tensor([1])}, 3])
    copied[0].zero_()
    copied[1]["flag"].zero_()
    assert copied[0].dtype == torch.float64
    assert bool(original.eq(1).all())
    assert copied[2] == 3


def test_what_rounding_leaves_of_zero_is_zero_beside_a_larger_output() -> None:
    """The gradient of a bias that a batch norm takes out again: 1e-17 in float64, 1e-9 in float32."""
    large = torch.ones(4, dtype=torch.float64)
    reference = [large, torch.full((4,), 1e-17, dtype=torch.float64)]
    outputs = [large.float(), torch.full((4,), 1e-9)]
    assert relative_error(outputs, reference) == pytest.approx(1e-9)
    assert is_correct(outputs, reference, [large.float(), torch.zeros(4)])
    # Alone, or beside nothing larger, it is a small result like any other.
    assert relative_error(outputs[1], reference[1]) > 1e7


def test_a_small_output_is_not_taken_for_nothing() -> None:
    reference = [torch.ones(4, dtype=torch.float64), torch.full((4,), 1e-9, dtype=torch.float64)]
    outputs = [torch.ones(4), torch.full((4,), 2e-9)]
    assert relative_error(outputs, reference) == pytest.approx(1.0)
    assert not is_correct(outputs, reference, [torch.ones(4), torch.full((4,), 1e-9)])


def test_what_cancels_is_measured_beside_the_rest_if_asked() -> None:
    reference = [torch.ones(4, dtype=torch.float64), torch.full((4,), 1e-11, dtype=torch.float64)]
    found = [reference[0], reference[1] + 1e-16]
    assert relative_error(found, reference) == pytest.approx(1e-5, rel=1e-3)
    assert relative_error(found, reference, smallest=1e-4) == pytest.approx(1e-12, rel=1e-3)
    assert relative_error([reference[0] + 1e-6, reference[1]], reference, smallest=1e-4) == pytest.approx(1e-6)


def test_what_is_nothing_beside_a_large_one_is_right_where_it_is_the_same() -> None:
    reference = [torch.full((4,), 1e10, dtype=torch.float64), torch.full((4,), 1e-5, dtype=torch.float64)]
    assert relative_error(reference, reference) == 0.0
    assert relative_error([reference[0], torch.full((4,), 2e-5)], reference) == pytest.approx(2e-5)
    assert relative_error([reference[0], torch.full((4,), 3.0)], reference) == pytest.approx(3.0)
    assert typical_scale_of([reference[1], *reference]) == pytest.approx(1e-5)
