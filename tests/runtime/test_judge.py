"""Which results are right: what rounding explains is, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from compiler.capture.rounding_noise import RoundingNoise, epsilon_of
from compiler.runtime.checking.judge import TOLERANCE, is_correct, judge, judge_forms, tolerance
from compiler.runtime.checking.wrong_results import checked_graph

F64 = torch.float64


def test_an_error_of_rounding_is_correct() -> None:
    reference = torch.ones(4, dtype=F64)
    assert is_correct(torch.full((4,), 1 + 1e-6), reference, torch.ones(4))
    assert not is_correct(torch.full((4,), 1 + 1e-3), reference, torch.ones(4))
    half = torch.full((4,), 1 + 2**-7, dtype=torch.bfloat16)
    assert is_correct(half, reference, torch.ones(4, dtype=torch.bfloat16))


def test_an_error_of_less_than_four_times_eagers_is_correct() -> None:
    reference = torch.ones(4, dtype=F64)
    assert is_correct(torch.full((4,), 1.038), reference, torch.full((4,), 1.01))
    assert not is_correct(torch.full((4,), 1.042), reference, torch.full((4,), 1.01))


def test_ten_times_eagers_error_is_correct_to_three_digits() -> None:
    reference = torch.ones(4, dtype=F64)
    assert is_correct(torch.full((4,), 1 + 9e-5), reference, torch.full((4,), 1 + 1e-5))
    assert not is_correct(torch.full((4,), 1 + 1.1e-4), reference, torch.full((4,), 1 + 1e-5))
    assert not is_correct(torch.full((4,), 1 + 1.3e-3), reference, torch.full((4,), 1 + 2e-4))


def test_each_output_is_judged_by_its_own_dtype() -> None:
    reference = [torch.ones(4), torch.tensor([1, 2, 3, 4])]
    eager = [torch.ones(4, dtype=torch.bfloat16), torch.tensor([1, 2, 3, 4])]
    assert is_correct(eager, reference, eager)
    assert not is_correct([eager[0], torch.tensor([1, 2, 3, 5])], reference, eager)
    assert tolerance(torch.ones(1, dtype=torch.bfloat16)) > tolerance(torch.ones(1))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_special_value_that_eager_does_not_have_is_wrong(wrong: float) -> None:
    found = judge(torch.tensor([1.0, wrong]), torch.ones(2, dtype=F64), torch.ones(2))
    assert [one.is_right for one in found] == [False] and found[0].error == math.inf
    assert "1 of 2 elements" in str(found[0].problem)


def test_a_number_where_eager_has_nan_is_wrong_only_if_the_reference_has_nan_too() -> None:
    eager = torch.tensor([1.0, math.nan])
    assert not is_correct(torch.ones(2), eager.double(), eager)
    assert is_correct(torch.ones(2), torch.ones(2, dtype=F64), eager)


def test_what_overflows_in_eager_may_overflow() -> None:
    """A product beyond float16, and an intermediate one that eager rounds to infinity on its way."""
    beyond = torch.tensor([1e5, 1.0], dtype=F64)
    half = beyond.half()
    assert math.isinf(half[0]) and is_correct(half, beyond, half)
    assert is_correct(half, torch.ones(2, dtype=F64), half)
    # Eager stays below by a rounding; ours is the next number, which is infinity.
    assert is_correct(half, torch.tensor([65519.0, 1.0], dtype=F64), torch.tensor([65504.0, 1.0], dtype=torch.float16))


@pytest.mark.parametrize(
    "out",
    [torch.ones(3), torch.ones(2, 1), torch.ones(2, dtype=F64), torch.ones(2, dtype=torch.int64), None, 1.0],
    ids=str,
)
def test_another_shape_dtype_or_kind_than_eagers_is_wrong(out: object) -> None:
    (found,) = judge(out, torch.ones(2, dtype=F64), torch.ones(2))
    assert not found.is_right and found.error == math.inf
    assert "float32[2]" in str(found.problem)


def test_another_structure_than_eagers_is_wrong() -> None:
    one = torch.ones(1)
    assert not is_correct([one], one, one)
    assert not is_correct([one, one], [one], [one])


def test_a_shape_that_depends_on_values_may_be_that_of_the_reference() -> None:
    three, two = torch.ones(3), torch.ones(2)
    assert is_correct(three, three.double(), two)
    assert is_correct(two, three.double(), two)
    assert not is_correct(torch.ones(4), three.double(), two)


def test_results_of_random_numbers_have_a_form_all_the_same() -> None:
    with torch.device("meta"):
        expected = [torch.empty(2, dtype=torch.float16), None]
    assert all(one.is_right for one in judge_forms([torch.rand(2).half(), None], expected))
    assert not judge_forms([torch.rand(2), None], expected)[0].is_right


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, F64])
@pytest.mark.parametrize("size", [1, 100, 1_000_000])
def test_one_wrong_element_among_many_is_found(dtype: torch.dtype, size: int) -> None:
    """The norm of a large tensor hides it: what is wrong with one element is little beside the others' rounding."""
    torch.manual_seed(0)
    reference = torch.randn(size, dtype=F64)
    eager = reference.to(dtype)
    ours = eager.clone()
    assert is_correct(ours, reference, eager)
    ours[size // 2] += 1.0
    (found,) = judge(ours, reference, eager)
    assert not found.is_right and found.error > found.tolerance


def test_the_judgement_has_the_figures_that_it_rests_on() -> None:
    reference = torch.full((4,), 2.0, dtype=F64)
    (found,) = judge(torch.full((4,), 3.0), reference, torch.full((4,), 2.0))
    assert (found.error, found.eager_error, found.tolerance) == (0.5, 0.0, TOLERANCE[torch.float32])
    assert found.problem == "has an error of 5.0e-01 against float64; eager's is 0.0e+00, and 1.0e-05 is allowed"


def cancelled() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A sum of terms of size 1 that is 6e-11: ours, the reference and eager's, which is the reference in float64."""
    reference = torch.tensor(6e-11, dtype=F64)
    return reference * 1.25, reference, reference


def test_the_error_of_what_cancels_is_told_with_what_was_allowed() -> None:
    (judged,) = judge(*cancelled(), perturbed=[cancelled()[1] * 0.8])
    found = checked_graph("graph_0", None, ["sum_1"], [judged])
    assert found.wrong == [] and found.eager_error == 0.0
    assert found.compiled_error == pytest.approx(0.25) and found.allowed_error == pytest.approx(8 * 0.2)


def test_what_may_all_be_rounding_hides_no_error_of_another_output() -> None:
    sum_of_ours, sum_of_reference, _ = cancelled()
    ones = torch.ones(4, dtype=F64)
    ours, reference = [sum_of_ours, ones * (1 + 1e-14)], [sum_of_reference, ones]
    judged = judge(ours, reference, reference, perturbed=[[reference[0] * 0.8, reference[1]]])
    found = checked_graph("graph_0", None, ["sum_1", "add"], judged)
    assert found.wrong == []
    assert found.compiled_error == pytest.approx(1e-14, rel=0.1) and found.allowed_error == TOLERANCE[F64]


def test_numbers_whose_squares_are_beyond_float64_are_judged_too() -> None:
    reference = torch.tensor([1e300, -1e300], dtype=F64)
    assert is_correct(reference.clone(), reference, reference)
    assert not is_correct(-reference, reference, reference)


# --- noise

PROGRAMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a sum that cancels": lambda x: x.sum(),
    "a difference that cancels": lambda x: (x + 1e3) - 1e3,
    "rounding": lambda x: (x / 0.1).round(),
    "a large sine": lambda x: (x * 1e4).sin(),
}


def draws(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> list[torch.Tensor]:
    found = []
    for seed in range(3):
        with RoundingNoise(epsilon_of([x]), seed):
            found.append(function(x.double()))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("size", [1000, 100_000])
def test_what_rounding_makes_worse_is_correct_and_a_scaled_result_is_not(name: str, size: int) -> None:
    torch.manual_seed(size)
    function, x = PROGRAMS[name], torch.randn(size)
    reference = function(x.double())
    ours = function(x.flip(0)) if not reference.shape else function(x)
    # Eager had luck: it is the reference, rounded once.
    eager = reference.float()
    assert is_correct(ours, reference, eager, perturbed=draws(function, x))
    assert not is_correct(2 * ours, reference, eager, perturbed=draws(function, x))


def test_noise_leaves_alone_what_no_rounding_touches() -> None:
    x = torch.tensor([0.0, 1.0, -3.0, 0.5], dtype=F64)
    with RoundingNoise(1e-3, 0):
        moved, viewed, whole = x * 1.5, x.view(2, 2), x + 1
        written = x.clone().mul_(0.7)
    assert moved[0] == 0 and moved[1] != 1.5 and abs(moved[1] - 1.5) <= 1.5e-3
    assert torch.equal(viewed.flatten(), x) and viewed.data_ptr() == x.data_ptr()
    assert torch.equal(whole[:3], torch.tensor([1.0, 2.0, -2.0], dtype=F64))
    assert torch.equal(x, torch.tensor([0.0, 1.0, -3.0, 0.5], dtype=F64)) and written.shape == x.shape


def test_noise_repeats_and_draws_nothing_from_torchs_generator() -> None:
    x = torch.randn(8, dtype=F64)
    state = torch.get_rng_state()
    with RoundingNoise(1e-3, 5):
        one = x.exp()
    with RoundingNoise(1e-3, 5):
        two = x.exp()
    assert torch.equal(one, two) and not torch.equal(one, x.exp())
    assert torch.equal(torch.get_rng_state(), state)


def test_noise_keeps_strides() -> None:
    x = torch.randn(4, 6, dtype=F64).t()
    with RoundingNoise(1e-3, 0):
        assert (x * 2.5).stride() == (x * 2.5).stride() == x.stride()
