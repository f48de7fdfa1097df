"""What a convolution is expected to take in either layout. All figures are predictions, and the table is ASSUMED.

    microseconds = max(operations / (share * peak), bytes / bandwidth) + launch
    contiguous   + what the library rearranges: operands and result, each read and written once, each by a launch

Only the difference between the layouts decides. `python -m bench --suite layouts --device cuda` measures both for each
row of the table; `SHARES` is where its figures go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from compiler.devices import Device

Precision = Literal["half", "tf32", "float32", "float64"]
Kind = Literal["dense", "one pixel", "grouped", "depthwise"]

#: Peak of the matrix units as a multiple of `Device.flops`, from the capability named on: half types that sum in
#: float32, and TF32. Data sheets, without sparsity: T4, A100, RTX 4090, H100, B200.
MATRIX_UNITS: dict[int, dict[Precision, float]] = {
    75: {"half": 8.0},
    80: {"half": 16.0, "tf32": 8.0},
    89: {"half": 2.0, "tf32": 1.0},
    90: {"half": 14.8, "tf32": 7.4},
    100: {"half": 30.0, "tf32": 15.0},
}


@dataclass(frozen=True)
class Shares:
    """The shares of the peak that a large convolution reaches, and whether the library rearranges contiguous tensors
    into channels-last and back. Equal shares without that say that nothing speaks for either layout."""

    channels_last: float
    contiguous: float
    rearranges: bool = False


#: Assumed of cuDNN, none of it measured. In half precision its fast kernels are channels-last only; in TF32 it has
#: kernels for both; without matrix units, and for groups of few channels, neither layout is known to be faster.
SHARES: dict[tuple[Precision, Kind], Shares] = {
    ("half", "dense"): Shares(0.55, 0.55, rearranges=True),
    ("half", "one pixel"): Shares(0.50, 0.50, rearranges=True),
    ("half", "grouped"): Shares(0.10, 0.10),
    ("half", "depthwise"): Shares(0.02, 0.02),
    ("tf32", "dense"): Shares(0.50, 0.40),
    ("tf32", "one pixel"): Shares(0.45, 0.40),
}


@dataclass(frozen=True)
class Convolution:
    """A convolution as far as its cost depends on it: sizes in elements, `filter` as the library takes it."""

    image: tuple[int, ...]
    filter: tuple[int, ...]
    result: tuple[int, ...]
    groups: int
    dtype: torch.dtype
    is_transposed: bool = False

    @property
    def kind(self) -> Kind:
        if self.groups > 1:
            return "depthwise" if self.groups == self.image[1] else "grouped"
        return "one pixel" if all(size == 1 for size in self.filter[2:]) else "dense"

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        points = self.image if self.is_transposed else self.result
        return 2 * _product(self.filter) * points[0] * _product(points[2:])

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of image, filter and result."""
        elements = (_product(self.image), _product(self.filter), _product(self.result))
        image, weight, result = (self.dtype.itemsize * count for count in elements)
        return image, weight, result


@dataclass(frozen=True)
class Price:
    """Microseconds of one call in either layout."""

    contiguous: float
    channels_last: float

    @property
    def gain(self) -> float:
        return self.contiguous - self.channels_last


def price_of(convolution: Convolution, device: Device) -> Price | None:
    """What the call takes on `device`; None where nothing is known that would tell the layouts apart."""
    precision = precision_of(convolution.dtype, device)
    shares = SHARES.get((precision, convolution.kind))
    if device.kind == "cpu" or shares is None:
        return None
    peak = device.flops * _matrix_units(device).get(precision, 1.0)
    start = device.launch_us + device.latency_us
    memory = 1e6 * sum(convolution.sizes) / device.bandwidth

    def call(share: float) -> float:
        return max(1e6 * convolution.operations / (share * peak), memory) + start

    rearranged = 2 * memory + len(convolution.sizes) * start if shares.rearranges else 0.0
    return Price(call(shares.contiguous) + rearranged, call(shares.channels_last))


def reached_share(convolution: Convolution, device: Device, microseconds: float) -> float:
    """The share of the peak that a call of so long reaches, its launch aside: what `SHARES` has for its kind."""
    peak = device.flops * _matrix_units(device).get(precision_of(convolution.dtype, device), 1.0)
    working = max(microseconds - device.launch_us - device.latency_us, 0.1)
    return 1e6 * convolution.operations / (working * peak)


def precision_of(dtype: torch.dtype, device: Device) -> Precision:
    """How the library computes: float32 goes through the matrix units where the device and torch's settings let it."""
    if dtype in (torch.float16, torch.bfloat16):
        return "half"
    if dtype == torch.float64:
        return "float64"
    return "tf32" if "tf32" in _matrix_units(device) and torch.backends.cudnn.allow_tf32 else "float32"


def _matrix_units(device: Device) -> dict[Precision, float]:
    known = [capability for capability in MATRIX_UNITS if capability <= device.capability]
    return MATRIX_UNITS[max(known)] if known else {}


def _product(sizes: tuple[int, ...]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
