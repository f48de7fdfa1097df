"""What judges the operators can itself be wrong: it must see what is wrong, and let rounding pass."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from bench.opinfo import database
from bench.opinfo.database import Job
from bench.opinfo.exceptions import WITHOUT_VALUE
from bench.opinfo.judge import Verdict, by_form, first_problem, judge, judge_random
from bench.opinfo.packets import Met, functional, packets_report

NO_TOLERANCE = (0.0, 0.0)


def _judge(ours: Tensor, eager: Tensor, exact: Tensor | None = None) -> str | None:
    return judge([ours], [eager], lambda: [eager.double() if exact is None else exact], NO_TOLERANCE).problem


def test_rounding_passes_and_an_error_does_not() -> None:
    eager = torch.linspace(-3, 3, 101)
    assert _judge(eager * (1 + 1e-7), eager) is None
    assert _judge(eager * (1 + 1e-4), eager) is not None
    assert _judge(eager[:-1], eager) is not None
    assert _judge(eager.double(), eager) is not None
    assert _judge(torch.tensor([1, 2]), torch.tensor([1, 3])) is not None


def test_float64_decides_where_eager_lost_digits() -> None:
    eager, exact = torch.tensor([0.5], dtype=torch.bfloat16), torch.tensor([0.6], dtype=torch.float64)
    assert _judge(exact.bfloat16(), eager, exact) is None
    assert _judge(torch.tensor([0.57], dtype=torch.bfloat16), eager, exact) is None
    assert _judge(torch.tensor([0.8], dtype=torch.bfloat16), eager, exact) is not None


@pytest.mark.parametrize("ours", [0.0, math.nan, math.inf])
def test_a_nan_must_stand_where_eager_has_it(ours: float) -> None:
    wanted = torch.tensor([1.0, math.nan if ours == 0.0 else 2.0])
    assert _judge(torch.tensor([1.0, ours]), wanted) is not None


def test_the_reference_in_float64_widens_dtypes_among_the_arguments() -> None:
    """On a GPU the backward of softmax refuses float64 tensors beside bfloat16 as the dtype of its input."""
    job = Job("_softmax_backward_data", torch.bfloat16, "forward")
    (sample,) = database.samples(job, "cpu", 1, seed=0)
    wide = [database.in_float64(tensor) for tensor in sample.tensors]
    assert [x.dtype for x in sample.function(*sample.tensors)] == [torch.bfloat16]
    assert [x.dtype for x in sample.in_float64(*wide)] == [torch.float64]


def test_a_rounded_product_in_eagers_softmax_backward_is_no_mistake_of_ours() -> None:
    """On a GPU eager rounds grad * output to bfloat16 before it sums; torch's own tolerance alone would not do."""
    generator = torch.Generator().manual_seed(0)
    output = torch.empty(5, 10, 5).uniform_(-9, 9, generator=generator).softmax(-1).bfloat16()
    grad = torch.empty(5, 10, 5).uniform_(-9, 9, generator=generator).bfloat16()

    def slope(product: Tensor, output: Tensor) -> Tensor:
        return product - output * product.sum(-1, keepdim=True)

    eager = slope((grad * output).float(), output.float()).bfloat16()
    ours = slope(grad.float() * output.float(), output.float()).bfloat16()
    exact = slope(grad.double() * output.double(), output.double())
    assert first_problem([ours], [eager], NO_TOLERANCE) is not None
    assert judge([ours], [eager], lambda: [exact], NO_TOLERANCE) == Verdict(by_float64=True)
    assert _judge(ours * 1.1, eager, exact) is not None


def test_results_without_a_value_are_judged_by_their_form() -> None:
    eager = [torch.tensor([1.0, 2.0]), torch.tensor(7), torch.tensor(8)]
    ours = [torch.tensor([1.0, 2.5]), torch.tensor(9), torch.tensor(8.0)]
    judged = by_form(ours, eager, {1, 2, 5})
    assert judged[0] is ours[0] and judged[1] is eager[1] and judged[2] is ours[2]
    assert len(by_form(ours[:1], eager, {1, 2})) == 1


def test_another_seed_without_a_value_is_right() -> None:
    eager, ours = ([torch.ones(2), torch.tensor([seed, 0], dtype=torch.uint64)] for seed in (3, 4))
    assert judge(ours, eager, list, NO_TOLERANCE) != Verdict()
    assert judge(by_form(ours, eager, {1}), eager, list, NO_TOLERANCE) == Verdict()


def test_results_without_a_value_are_the_state_of_a_generator() -> None:
    found = {}
    for operator, places in WITHOUT_VALUE.items():
        schema = getattr(torch.ops.aten, operator.removeprefix("torch.ops.aten.")).default._schema
        found[operator.rpartition(".")[2]] = [schema.returns[place].name for place in places]
    assert found == {
        "_flash_attention_forward": ["rng_state", "unused"],
        "_efficient_attention_forward": ["philox_seed", "philox_offset"],
    }


def _dropout(p: float, scale: float = 1.0) -> Callable[[], list[Tensor]]:
    x = torch.linspace(1, 2, 20)
    return lambda: [x * (torch.rand(20) > p) * scale / (1 - p)]


def test_distributions_are_told_apart() -> None:
    torch.manual_seed(0)
    assert judge_random(_dropout(0.5), _dropout(0.5)).problem is None
    assert judge_random(_dropout(0.5), _dropout(0.5, scale=1 + 1e-7)).problem is None
    assert judge_random(_dropout(0.2), _dropout(0.5)).problem is not None
    assert judge_random(_dropout(0.5, scale=1.01), _dropout(0.5)).problem is not None
    x = _dropout(0.5)()
    assert judge_random(lambda: x, _dropout(0.5)).problem is not None


def test_operators_in_place_count_as_their_functional_ones() -> None:
    assert [functional(name) for name in ("add_", "__iand__", "__and__", "add")] == ["add", "__and__", "__and__", "add"]
    met = Met()
    met.add({"add": None, "cumsum": "There is no lowering."}, "float32")
    report = packets_report(met)
    assert report["falls_back"] == {"cumsum": "There is no lowering."}
    assert report["lowered"] == 2
