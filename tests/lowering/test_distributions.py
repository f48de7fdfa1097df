"""Numbers of other distributions, by the moments of many of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope
from compiler.ir import interpret
from tests.compile_program import compile_program

COUNT = 1 << 16

#: What draws in the place of so many zeros; the mean and the variance of what it draws.
DISTRIBUTIONS: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
    "uniform": (lambda x: x.clone().uniform_(-2.0, 5.0), 1.5, 49 / 12),
    "geometric": (lambda x: x.clone().geometric_(0.3), 1 / 0.3, 0.7 / 0.09),
    "normal, in place": (lambda x: x.clone().normal_(3.0, 2.0), 3.0, 4.0),
    "normal, of a size": (lambda x: torch.normal(3.0, 2.0, x.shape) + x, 3.0, 4.0),
    "normal, of means": (lambda x: torch.normal(x + 3.0, 2.0), 3.0, 4.0),
    "normal, of deviations": (lambda x: torch.normal(3.0, x + 2.0), 3.0, 4.0),
    "normal, of both": (lambda x: torch.normal(x + 3.0, x[:1] + 2.0), 3.0, 4.0),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_draws_have_the_moments_of_their_distribution(name: str, dtype: torch.dtype) -> None:
    draw, mean, variance = DISTRIBUTIONS[name]
    zeros = torch.zeros(COUNT, dtype=dtype)
    torch.manual_seed(0)
    (drawn,) = interpret.run(compile_program(draw, zeros).loops, [zeros])
    expected = torch.float32 if name == "normal, of a size" else dtype
    assert drawn.dtype == expected and drawn.shape == zeros.shape
    # Six deviations of the mean of so many draws; the variance of few of these is known within a twentieth.
    assert abs(drawn.double().mean() - mean) < 6 * (variance / COUNT) ** 0.5 + 2**-8 * (dtype == torch.bfloat16)
    assert drawn.double().var() == pytest.approx(variance, rel=0.05)


def test_slopes_are_drawn_in_training_alone() -> None:
    def rectified(x: Tensor) -> Tensor:
        return torch.nn.functional.rrelu(x, 0.1, 0.3, training=False)

    x = torch.linspace(-2.0, 2.0, 101)
    torch.testing.assert_close(interpret.run(compile_program(rectified, x).loops, [x]), [rectified(x)])


def test_bounds_in_the_wrong_order_are_refused_as_by_eager() -> None:
    torch._dynamo.reset()
    with pytest.raises(RuntimeError, match=r"from=5 > to=-2"):
        torch.compile(lambda x: x.clone().uniform_(5, -2) + 1, backend=fusionscope)(torch.zeros(4))
