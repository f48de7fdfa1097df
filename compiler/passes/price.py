"""What a call of the library is predicted to take: one roofline, whose corner is what calls of each kind reach.

    microseconds = least + max(operations / (share * peak), passes * bytes / bandwidth)

Of convolutions only the difference between the layouts decides: `python -m bench --suite layouts --device cuda`
measures both for each row of the tables, and fits what stands in `REACHED`.

Of products it is what their sizes are multiples of: the library's fast kernels load and store eight elements of two
bytes at a time. A size counts where a matrix is contiguous along it: of rows that are no multiple of eight elements the
next one starts elsewhere in its vector. Where none is, as along the rows of a product of layers, an odd size costs
nothing. Rows that only lie further apart do not help: a product into 30,522 columns of rows of 30,528 takes as long as
into rows of 30,522.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import torch

from compiler.devices import Device
from compiler.ir.library_calls import ALIGNED_ELEMENTS, rows_apart
from compiler.lowering.convolutions import FEW_CHANNELS

Precision = Literal["half", "tf32", "float32", "float64"]
Kind = Literal["dense", "transposed", "few channels", "one pixel", "grouped", "depthwise"]
#: Rows, inner size and columns of a product.
Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class Reached:
    """What calls of one kind reach: none takes less than `least_us`, and beyond it no more than `share` of the peak is
    reached, nor any time less than that of moving the bytes `passes` times."""

    least_us: float
    share: float
    passes: float = 1.0

    def microseconds(self, work: float, memory: float) -> float:
        """Of a call whose operations take `work` at the peak, and its bytes `memory` at the bandwidth."""
        return self.least_us + max(work / self.share, self.passes * memory)


def start_us(device: Device) -> float:
    """What a call takes besides what it computes and moves."""
    return device.launch_us + device.latency_us


def copy_us(moved: int, device: Device) -> float:
    """What a kernel takes that reads and writes so many bytes."""
    return start_us(device) + 1e6 * moved / device.bandwidth


def _peak(precision: Precision, device: Device) -> float:
    """Operations per second of the units that compute in a precision."""
    units = {"half": device.half_product_flops, "tf32": device.tf32_product_flops}
    return units.get(precision) or device.flops


# --- convolutions


@dataclass(frozen=True)
class Layouts:
    """Both layouts; what the library rearranges is in the contiguous one's figures."""

    channels_last: Reached
    contiguous: Reached


#: Fitted to 58 calls of cuDNN on one H200 (torch 2.11), batches of 1 and of 32: mostly within 30 %; an image of three
#: channels takes longer in either. Those of TF32 that are transposed, of few channels or of groups are fitted to some
#: 300, 30 and 80 calls, within a factor of 1.4, 1.7 and 1.7; transposed ones of half types are assumed to be like dense
#: ones. Taken for other devices too, where it is an assumption; nothing is known without matrix units. Without TF32
#: only depthwise convolutions gain in float32; they never take it.
REACHED: dict[tuple[Precision, Kind], Layouts] = {
    ("half", "dense"): Layouts(Reached(11.5, 0.58), Reached(23.5, 0.34)),
    ("half", "transposed"): Layouts(Reached(11.5, 0.58), Reached(23.5, 0.34)),
    ("half", "one pixel"): Layouts(Reached(7.5, 0.63), Reached(8.0, 0.18)),
    ("half", "grouped"): Layouts(Reached(8.0, 0.022), Reached(13.0, 0.011)),
    ("half", "depthwise"): Layouts(Reached(10.5, 0.014), Reached(6.0, 0.0023)),
    ("tf32", "dense"): Layouts(Reached(14.0, 0.58), Reached(24.5, 0.37)),
    ("tf32", "transposed"): Layouts(Reached(13.5, 0.34, 4.0), Reached(22.0, 0.29, 6.0)),
    ("tf32", "few channels"): Layouts(Reached(28.5, 0.086), Reached(29.5, 0.074)),
    ("tf32", "one pixel"): Layouts(Reached(9.5, 0.43), Reached(9.5, 0.40)),
    ("tf32", "grouped"): Layouts(Reached(11.5, 0.16), Reached(25.5, 0.12)),
    ("float32", "depthwise"): Layouts(Reached(6.5, 0.081), Reached(7.0, 0.034)),
}
#: Contiguous and without TF32, where the library takes it channels-last: of some 280 calls, within a factor of 2.
EXACT: dict[Kind, Reached] = {
    "dense": Reached(16.0, 0.22),
    "transposed": Reached(15.0, 0.20),
    "few channels": Reached(11.0, 0.25),
    "one pixel": Reached(8.0, 0.93),
    "grouped": Reached(19.5, 0.04),
}
#: The same of the calls for gradients, twice the operations where both are computed: fitted to 48 calls, of batches of
#: 4 and of 32. The host's time is in those of bfloat16 and of batch 4, so times are too long, alike in both layouts.
GRADIENTS: dict[tuple[Precision, Kind], Layouts] = {
    ("half", "dense"): Layouts(Reached(27.5, 0.29), Reached(40.0, 0.14)),
    ("half", "transposed"): Layouts(Reached(27.5, 0.29), Reached(40.0, 0.14)),
    ("half", "few channels"): Layouts(Reached(27.5, 0.29), Reached(40.0, 0.14)),
    ("half", "one pixel"): Layouts(Reached(18.5, 0.2), Reached(21.0, 0.1)),
    ("half", "grouped"): Layouts(Reached(10.0, 0.004), Reached(18.5, 0.0079)),
    ("half", "depthwise"): Layouts(Reached(25.5, 0.005), Reached(15.5, 0.001)),
}
#: The library's half-precision kernels fill up fewer than `FEW_CHANNELS` in a pass of its own, at this share of the
#: bandwidth; and they take filters by at least as many. Fitted to 6 calls (torch 2.11), within 20 %.
FILLING_SHARE, LEAST_FILTERS = 0.4, 64
FILLED = Reached(11.5, 0.09)
#: Elements of windows that a product over them reads in a microsecond, for each operation a second of the device; what
#: it takes at least. Fitted to 5 products on the same H200, within 25 %.
WINDOWS, WINDOWS_US = 0.5e6 / 67e12, 9.0
#: With TF32 and fewer channels than these, convolutions with strides took 0.3 to 2 times as long channels-last.
CHANNELS_OF_STRIDED = 64


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
        if all(size == 1 for size in self.filter[2:]):
            return "one pixel"
        if self.is_transposed:
            return "transposed"
        return "few channels" if self.image[1] < FEW_CHANNELS else "dense"

    @property
    def is_strided(self) -> bool:
        """Whether it has a stride in both dimensions, so that it gives far fewer pixels than it takes."""
        return not self.is_transposed and 2 * prod(self.result[2:]) <= prod(self.image[2:])

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        points = self.image if self.is_transposed else self.result
        return 2 * prod(self.filter) * points[0] * prod(points[2:])

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of image, filter and result."""
        elements = (prod(self.image), prod(self.filter), prod(self.result))
        image, weight, result = (self.dtype.itemsize * count for count in elements)
        return image, weight, result


@dataclass(frozen=True)
class Price:
    """Microseconds of one call in either layout."""

    contiguous: float
    channels_last: float

    def __add__(self, other: Price) -> Price:
        return Price(self.contiguous + other.contiguous, self.channels_last + other.channels_last)


def price_of(convolution: Convolution, device: Device) -> Price | None:
    """What the call takes on `device`; None where nothing is known that would tell the layouts apart."""
    if convolution.kind == "few channels" and precision_of(convolution, device) == "half":
        library = _filled_up_us(convolution, device) if device.half_product_flops else None
        return None if library is None else Price(library, library)
    is_dense_tf32 = convolution.kind == "dense" and precision_of(convolution, device) == "tf32"
    if is_dense_tf32 and convolution.is_strided and convolution.image[1] < CHANNELS_OF_STRIDED:
        return None
    return _price(REACHED, convolution, device, least_times(convolution, device))


def price_of_rounding(convolution: Convolution, device: Device) -> Price | None:
    """The same where the library takes TF32 channels-last, and true float32 contiguous."""
    price, exact = price_of(convolution, device), EXACT.get(convolution.kind)
    if price is None or exact is None:
        return None
    memory = least_times(convolution, device)[1]
    return replace(price, contiguous=exact.microseconds(1e6 * convolution.operations / device.flops, memory))


def takes_windows(convolution: Convolution, device: Device) -> bool:
    """Whether a convolution of few channels is expected to be faster as a product over windows."""
    return windows_us(convolution, device) < _filled_up_us(convolution, device)


def windows_us(convolution: Convolution, device: Device) -> float:
    """Microseconds of a convolution as a product over the windows of the image."""
    batch, filters, *pixels = convolution.result
    elements = batch * prod(tuple(pixels)) * prod(convolution.filter[1:]) * -(-filters // LEAST_FILTERS)
    return WINDOWS_US + elements / (WINDOWS * device.flops)


def _filled_up_us(convolution: Convolution, device: Device) -> float:
    """Microseconds of the library's call, in either layout: what it rearranges is not in it."""
    filters, channels = convolution.filter[:2]
    filled = FEW_CHANNELS / channels * -(-filters // LEAST_FILTERS) * LEAST_FILTERS / filters
    work, memory = least_times(convolution, device)
    image = 1e6 * convolution.sizes[0] * (1 + FEW_CHANNELS / channels) / (FILLING_SHARE * device.bandwidth)
    return FILLED.least_us + image + max(filled * work / FILLED.share, memory)


def price_of_gradients(convolution: Convolution, device: Device, writes_image: bool) -> Price | None:
    """What the call for the gradients of `convolution` takes: of the filter, and of the image if `writes_image`."""
    return _price(GRADIENTS, convolution, device, least_times_of_gradients(convolution, device, writes_image))


def _price(
    table: Mapping[tuple[Precision, Kind], Layouts],
    convolution: Convolution,
    device: Device,
    least: tuple[float, float],
) -> Price | None:
    reached = table.get((precision_of(convolution, device), convolution.kind))
    if device.kind == "cpu" or reached is None:
        return None
    return Price(reached.contiguous.microseconds(*least), reached.channels_last.microseconds(*least))


def least_times(convolution: Convolution, device: Device) -> tuple[float, float]:
    """Microseconds of its operations at the peak, and of its bytes at the bandwidth."""
    peak = _peak(precision_of(convolution, device), device)
    return 1e6 * convolution.operations / peak, 1e6 * sum(convolution.sizes) / device.bandwidth


def least_times_of_gradients(convolution: Convolution, device: Device, writes_image: bool) -> tuple[float, float]:
    """The same of the call for its gradients, which are as many products each as the convolution itself."""
    work, memory = least_times(convolution, device)
    image, weight, _ = convolution.sizes
    written = 1e6 * (weight + writes_image * image) / device.bandwidth
    return work * (2 if writes_image else 1), memory + written


def precision_of(convolution: Convolution, device: Device) -> Precision:
    """How the library computes: float32 goes through the matrix units where the device and torch's settings let it, but
    for depthwise convolutions, which have kernels of their own."""
    if convolution.dtype in (torch.float16, torch.bfloat16):
        return "half"
    if convolution.dtype == torch.float64:
        return "float64"
    may_round = device.tf32_product_flops > 0 and torch.backends.cudnn.allow_tf32
    return "tf32" if may_round and convolution.kind != "depthwise" else "float32"


# --- products

#: The share of the peak that cuBLAS reaches where sizes are multiples of 8, 4, 2 or of nothing. By 46 large products
#: on one H200 (torch 2.11), 1024 rows or more: 0.58 to 0.82; 0.24 to 0.28, whether 4 or only 2 divides; and 0.095 where
#: the columns alone are odd, 0.13 to 0.15 where the inner size or the rows are. Assumed of other devices.
SHARE_OF_PRODUCTS: Mapping[int, float] = {8: 0.74, 4: 0.25, 2: 0.25, 1: 0.11}
#: Rows and columns of a tile of cuBLAS's kernels for sizes that eight does not divide: 32 rows of 50,257 columns take
#: 116 us and 128 rows 132 us.
TILE_OF_PRODUCTS = 128
#: A line of memory in such elements. Matrices whose rows start at whole lines are loaded fastest: with rows of 776 the
#: calls of 50257 columns take 677 us, and with rows of 768 554.
LINE = 64
#: How much longer the narrow call of a few columns takes than reading its left matrix.
EDGE = 2.0
#: Padding is taken where it is expected to take less than this share of the time without.
WORTH = 0.9


def padded(size: int) -> int:
    return -(-size // ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS


def alignment(size: int) -> int:
    """The largest of 8, 4, 2 and 1 that divides `size`."""
    return next(piece for piece in SHARE_OF_PRODUCTS if size % piece == 0)


def counting(left: torch.Tensor, right: torch.Tensor) -> tuple[bool, bool, bool]:
    """Whether rows, inner size and columns of a product count: whether a matrix is contiguous along them. The result
    is along its columns."""
    is_left_along_rows = left.stride(1) != 1 and left.stride(0) == 1
    is_right_along_inner = right.stride(1) != 1 and right.stride(0) == 1
    return is_left_along_rows, not is_left_along_rows or is_right_along_inner, True


def product_us(sizes: Sizes, least_alignment: int, itemsize: int, device: Device) -> float:
    rows, inner, columns = sizes
    tile = TILE_OF_PRODUCTS if least_alignment < ALIGNED_ELEMENTS else 1
    points = -(-rows // tile) * tile * -(-columns // tile) * tile
    moved = itemsize * (rows * inner + inner * columns + rows * columns)
    reached = Reached(start_us(device), SHARE_OF_PRODUCTS[least_alignment])
    return reached.microseconds(2e6 * points * inner / _peak("half", device), 1e6 * moved / device.bandwidth)


def apart_us(sizes: Sizes, itemsize: int, device: Device) -> float:
    """By calls of rows that lie apart: a whole product at the rate of the fast kernels, with a start for each call, and
    two narrow ones that read the left matrix."""
    rows, inner, columns = sizes
    calls = rows_apart(columns)
    edges = 2 * (start_us(device) + 1e6 * EDGE * itemsize * rows * inner / device.bandwidth)
    return product_us(sizes, ALIGNED_ELEMENTS, itemsize, device) + (calls - 1) * start_us(device) + edges
