"""The logarithm of the gamma function on a CPU, beside its zeros and poles too."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from compiler.compile import build
from tests.compile_program import compile_program

SPECIAL = [0.0, -0.0, 1.0, 2.0, -1.0, -2.0, -3.0, 1e-45, -1e-45, 1e-38, -1e-38, 0.5, -0.5, 1.5, 2.5, 1e10, 4e36]
SPECIAL += [5e36, -1e10, -8388609.0, float("inf"), float("-inf"), float("nan")]


def log_gamma(x: Tensor) -> Tensor:
    (result,) = build(compile_program(torch.lgamma, x, target="cpu")).executable.call([x])
    assert isinstance(result, Tensor)
    return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_log_gamma_is_right_to_the_last_digits(dtype: torch.dtype) -> None:
    eps = torch.finfo(dtype).eps
    near_zeros = (torch.rand(2, 5000, dtype=dtype) - 0.5) * 1e-2 + torch.tensor([[1.0], [2.0]], dtype=dtype)
    sizes = torch.exp(torch.rand(20_000, dtype=dtype) * 80 - 40)
    positive = torch.cat([near_zeros.flatten(), torch.rand(20_000, dtype=dtype) * 4 - 0.5, sizes])
    torch.testing.assert_close(log_gamma(positive).double(), torch.lgamma(positive.double()), rtol=6 * eps, atol=0.0)
    # Between its poles it is 0 where the logarithms of two large numbers meet.
    negative = -torch.rand(20_000, dtype=dtype) * 30
    torch.testing.assert_close(
        log_gamma(negative).double(), torch.lgamma(negative.double()), rtol=8 * eps, atol=8 * eps
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_log_gamma_of_poles_and_limits(dtype: torch.dtype) -> None:
    x = torch.tensor(SPECIAL * 3, dtype=dtype)
    torch.testing.assert_close(log_gamma(x), torch.lgamma(x), equal_nan=True, rtol=1e-6, atol=0.0)
