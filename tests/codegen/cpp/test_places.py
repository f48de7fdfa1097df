"""Tables looked up by what a comparison gives: compilers that make vectors have got this wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.compile import build
from tests.compile_program import compile_program

#: Each gives the rows 0 and 1 by a condition, in the ways that PyTorch has of making a number of one.
CONDITIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "a comparison": lambda x: (x != 0).long(),
    "a negated one": lambda x: (~(x != 0)).int(),
    "of two": lambda x: torch.logical_xor(x > 0.5, x < -0.5).long(),
    "through floating point": lambda x: (x > 0).float().long(),
    "chosen constants": lambda x: torch.where(x > 0, 1, 0),
    "a sign": lambda x: x.abs().sign().long(),
    "a heaviside step": lambda x: torch.heaviside(x, torch.zeros(())).long(),
    "a remainder": lambda x: torch.remainder((x > 0).long(), 17),
    "a product": lambda x: (x > 0).long() * 3,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32], ids=str)
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_is_an_index(name: str, dtype: torch.dtype) -> None:
    condition = CONDITIONS[name]
    torch.manual_seed(0)
    x = torch.randint(-1, 2, (17, 40)).float()
    table, rows = torch.arange(1, 18).to(dtype), torch.randn(17, 40).to(dtype)

    def look_up(x: Tensor, table: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
        place = condition(x).long()
        return table[place], rows.gather(0, place), table[place[0]] * 2

    results = build(compile_program(look_up, x, table, rows)).executable.call([x, table, rows])
    torch.testing.assert_close(tuple(results), look_up(x, table, rows), rtol=0, atol=0)


def pairs_under_conditions(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    padded = [F.pad(x, (0, 0, front, back)) for front, back in ((1, 0), (5, 1), (6, 1), (12, 3), (-2, 5))]
    turned = F.pad(x.flip(1), (0, 0, 7, 1))
    around = F.pad(torch.view_as_complex(y), (6, 1)), F.pad(y, (0, 0, 5, 2), value=2.0) + 1
    return *padded, turned, torch.cat((x, y.to(x.dtype))), *around


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8], ids=str)
def test_pairs_are_taken_by_the_condition_of_their_own_point(dtype: torch.dtype) -> None:
    """The two of a row, or real and imaginary parts, which a vector along the rows takes together."""
    torch.manual_seed(0)
    x, y = (torch.randn(17, 2) * 50).abs().to(dtype), torch.randn(17, 2)
    results = build(compile_program(pairs_under_conditions, x, y)).executable.call([x, y])
    for result, expected in zip(results, pairs_under_conditions(x, y), strict=True):
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
