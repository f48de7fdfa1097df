"""The errors of an output element by element, beside its reference in float64: the largest, the mean, and both in units
in the last place of the output's dtype."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass
class ElementErrors:
    """Over elements that come chunk by chunk; those that are NaN or infinite are left out."""

    dtype: torch.dtype
    elements: int = 0
    largest: float = 0.0
    total: float = 0.0
    largest_ulp: float = 0.0
    total_ulp: float = 0.0
    largest_reference: float = 0.0

    def add(self, output: torch.Tensor, reference: torch.Tensor) -> None:
        """Both flat, finite and in float64."""
        error = (output - reference).abs()
        in_units = error / ulp(reference, self.dtype)
        self.elements += output.numel()
        self.largest = max(self.largest, float(error.max()))
        self.total += float(error.sum())
        self.largest_ulp = max(self.largest_ulp, float(in_units.max()))
        self.total_ulp += float(in_units.sum())
        self.largest_reference = max(self.largest_reference, float(reference.abs().max()))

    @property
    def mean(self) -> float:
        return self.total / max(self.elements, 1)

    @property
    def mean_ulp(self) -> float:
        return self.total_ulp / max(self.elements, 1)


#: The bits of a float64 that alone are the power of two not above it.
_EXPONENT = 0x7FF0_0000_0000_0000


def ulp(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The unit in the last place of `dtype` at each of these finite values in float64: the distance of two neighbours
    with its exponent, at zero and among denormals that of denormals (Goldberg, "What every computer scientist should
    know about floating-point arithmetic", 1991)."""
    limits = torch.finfo(dtype)
    power_of_two = (values.view(torch.int64) & _EXPONENT).view(torch.float64)
    return (power_of_two * limits.eps).clamp_min(limits.tiny * limits.eps)
