"""On a GPU a value is the same in every kernel that computes it, and eager mode's where each step is rounded once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope

pytestmark = pytest.mark.gpu

#: Roots and inverse cosines of what is no less than zero, or no more than one, if each step is rounded by itself.
BOUNDED: dict[str, Callable[[Tensor], Tensor]] = {
    "above the smallest of its row": lambda y: (y - y.amin(-1, keepdim=True)).sqrt(),
    "above the smallest of its column": lambda y: (y - y.amin(0)).sqrt(),
    "below the largest so far": lambda y: (y.cummax(-1)[0] - y).sqrt(),
    "below the largest": lambda y: (y.amax() - y).sqrt(),
    "between the extremes": lambda y: ((y - y.amin(-1, True)) / (y.amax(-1, True) - y.amin(-1, True))).acos(),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", BOUNDED)
def test_differences_from_an_extreme_keep_their_sign(name: str, dtype: torch.dtype) -> None:
    a, b = torch.randn(2, 300, 1000, dtype=dtype, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    torch._dynamo.reset()
    result = torch.compile(lambda a, b: BOUNDED[name](a * b), backend=fusionscope)(a, b)
    assert not result.isnan().any()


def test_quotients_and_square_roots_are_eagers() -> None:
    """So a multiple of a step is in the cell that it begins, and the root of a square is a whole number."""

    def program(x: Tensor, step: Tensor) -> tuple[Tensor, ...]:
        return x * step / step, (x * x).sqrt(), x / x, (x + step).reciprocal(), x / 3

    x = torch.arange(1, 4001, device="cuda", dtype=torch.float32)
    step = torch.full_like(x, 0.1)
    torch._dynamo.reset()
    results = torch.compile(program, backend=fusionscope)(x, step)
    for result, wanted in zip(results, program(x, step), strict=True):
        assert torch.equal(result, wanted)


@pytest.mark.parametrize("is_shared", [False, True])
def test_quotients_of_all_numbers_are_eagers(is_shared: bool) -> None:
    """Zeros with their signs, infinities and NaN among them. Of numerators below 2^-102, and of quotients below
    2^-125, the last digit may be another one."""
    bits = torch.randint(
        -(2**31), 2**31, (2, 4096, 4097), device="cuda", generator=torch.Generator("cuda").manual_seed(0)
    )
    x, y = bits.to(torch.int32).view(torch.float32)
    special = [0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan, 2.0**-149, -(2.0**-126), 3.4028235e38, 2.0**100]
    x[:, : len(special)] = torch.tensor(special, device="cuda")
    y[: len(special)] = torch.tensor(special, device="cuda")[:, None]
    divisor = y[:, -1:].clone() if is_shared else y
    torch._dynamo.reset()
    # The minimum makes a tile of each row.
    result, _ = torch.compile(lambda x, y: (x / y, x.abs().amin(-1)), backend=fusionscope)(x, divisor)
    wanted = x / divisor
    is_same = (result.view(torch.int32) == wanted.view(torch.int32)) | (result.isnan() & wanted.isnan())
    assert is_same[(x.abs() >= 2.0**-102) & (wanted.abs() >= 2.0**-125) | (x == 0) | wanted.isinf()].all()
    torch.testing.assert_close(result, wanted, rtol=2.0**-23, atol=2.0**-148, equal_nan=True)


def test_square_roots_of_all_numbers_are_eagers() -> None:
    bits = torch.randint(-(2**31), 2**31, (1 << 24,), device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    x = bits.to(torch.int32).view(torch.float32)
    x[:8] = torch.tensor([0.0, -0.0, 1.0, torch.inf, -torch.inf, torch.nan, 2.0**-149, 3.4028235e38], device="cuda")
    torch._dynamo.reset()
    result, wanted = torch.compile(lambda x: x.sqrt(), backend=fusionscope)(x), x.sqrt()
    assert ((result.view(torch.int32) == wanted.view(torch.int32)) | (result.isnan() & wanted.isnan())).all()


def test_products_cancel() -> None:
    a, b = torch.randn(2, 100_000, device="cuda")
    torch._dynamo.reset()
    result = torch.compile(lambda a, b: a * b - b * a, backend=fusionscope)(a, b)
    assert torch.equal(result, torch.zeros_like(result))
