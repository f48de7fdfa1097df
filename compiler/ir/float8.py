"""The two floats of eight bits that kernels know: e4m3fn and e5m2, named after their bits of exponent and mantissa.

Their numbers are computed with as float32, like those of the half types. What is different is that so little is left of
a number that it matters in every place: a value that becomes a float8 is rounded at once by a named function
(`compiler/functions/float8.py`), also where a kernel goes on with it without storing it; what is stored is exact then.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch


@dataclass(frozen=True)
class Float8:
    """One format. `beyond` is what a number becomes that rounds to more than `largest`, infinity among them."""

    name: str
    mantissa_bits: int
    bias: int
    largest: float
    beyond: float

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def spacing(self) -> float:
        """Between the numbers below the smallest normal one."""
        return 2.0 ** (1 - self.bias - self.mantissa_bits)

    @property
    def rounding(self) -> str:
        """The named function that gives the nearest number of this format."""
        return f"nearest_{self.name}"


def _beyond(dtype: torch.dtype) -> float:
    """e4m3fn has no infinity: NaN stands for one in some versions of PyTorch, the largest number in others."""
    return float(torch.tensor(inf).to(dtype))


FLOAT8: dict[torch.dtype, Float8] = {
    torch.float8_e4m3fn: Float8("float8_e4m3fn", 3, 7, 448.0, _beyond(torch.float8_e4m3fn)),
    torch.float8_e5m2: Float8("float8_e5m2", 2, 15, 57344.0, _beyond(torch.float8_e5m2)),
}
