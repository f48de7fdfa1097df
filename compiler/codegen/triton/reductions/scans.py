"""How each kind of scan is printed: within a block, and from block to block.

    looped      for each block:  cumsum = carry + tl.cumsum(x, 0);  carry = the last lane of cumsum
    persistent  cumsum = tl.cumsum(x, 0)

Lanes beyond the end of a row stand behind all others, so they need no neutral element.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from compiler.codegen.triton.values.ops import DTYPES

HELPERS: dict[str, str] = {
    "latest_larger_at": '''@triton.jit
def latest_larger_at(a, a_at, b, b_at):
    """The larger value and its position; NaN wins, and among equals the higher position."""
    a_is_nan = a != a
    b_is_nan = b != b
    is_tie = (a == b) | (a_is_nan & b_is_nan)
    takes_a = (a > b) | (a_is_nan & (b == b)) | (is_tie & (a_at > b_at))
    return tl.where(takes_a, a, b), tl.where(takes_a, a_at, b_at)
''',
    "latest_smaller_at": '''@triton.jit
def latest_smaller_at(a, a_at, b, b_at):
    """The smaller value and its position; NaN wins, and among equals the higher position."""
    a_is_nan = a != a
    b_is_nan = b != b
    is_tie = (a == b) | (a_is_nan & b_is_nan)
    takes_a = (a < b) | (a_is_nan & (b == b)) | (is_tie & (a_at > b_at))
    return tl.where(takes_a, a, b), tl.where(takes_a, a_at, b_at)
''',
    "log_of_sum": '''@triton.jit
def log_of_sum(a, b):
    """log(exp(a) + exp(b)) without overflow; two infinities of one sign stay what they are."""
    low = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    high = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    is_infinite = (low == high) & (tl.abs(low) == float("inf"))
    return tl.where(is_infinite, low, high + libdevice.log1p(libdevice.exp(low - high)))
''',
}

_COMBINE = {
    "prod": "product_of_two",
    "max": "maximum_of_two",
    "min": "minimum_of_two",
    "argmax": "latest_larger_at",
    "argmin": "latest_smaller_at",
    "logsumexp": "log_of_sum",
}


@dataclass(frozen=True)
class Scan:
    """One kind of scan over values of `dtype`."""

    kind: str
    dtype: torch.dtype

    @property
    def is_position(self) -> bool:
        """Whether it carries a position beside the value."""
        return self.kind.startswith("arg")

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the variables that it carries are called: of a position, the value and the position."""
        return ("_best", "") if self.is_position else ("",)

    @property
    def dtypes(self) -> tuple[torch.dtype, ...]:
        return (self.dtype, torch.int64) if self.is_position else (self.dtype,)

    @property
    def helper(self) -> str | None:
        """The function that joins two results, where no operator of Triton does."""
        return _COMBINE.get(self.kind)

    @property
    def identities(self) -> tuple[str, ...]:
        """What a row starts from."""
        if self.kind in ("sum", "prod"):
            return ("0" if self.kind == "sum" else "1",)
        is_least = not self.kind.endswith("min")
        if self.dtype.is_floating_point:
            value = 'float("-inf")' if is_least else 'float("inf")'
        else:
            value = str(torch.iinfo(self.dtype).min if is_least else torch.iinfo(self.dtype).max)
        return (value, "-1") if self.is_position else (value,)

    def start(self, shape: str) -> list[str]:
        """The values that the first block joins to, one for each variable."""
        return [f"tl.full({shape}, {i}, {DTYPES[d]})" for i, d in zip(self.identities, self.dtypes, strict=True)]

    def block(self, values: list[str], axis: int) -> str:
        """The scan of a block along a tile axis."""
        if self.kind == "sum":
            return f"tl.cumsum({values[0]}, {axis})"
        operand = f"({', '.join(values)})" if self.is_position else values[0]
        return f"tl.associative_scan({operand}, {axis}, {self.helper})"

    def total(self, values: list[str]) -> str:
        """All lanes of a vector joined, in an order that is always the same."""
        if self.kind == "sum":
            return f"tl.sum({values[0]}, 0)"
        operand = f"({', '.join(values)})" if self.is_position else values[0]
        return f"tl.reduce({operand}, 0, {self.helper})"

    def join(self, left: list[str], right: list[str]) -> str:
        """The results of what stands before and of a block as one."""
        if self.kind == "sum":
            return f"{left[0]} + {right[0]}"
        return f"{left[0]} * {right[0]}" if self.kind == "prod" else f"{self.helper}({', '.join([*left, *right])})"
