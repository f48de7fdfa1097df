"""Whether the library rounds what a float32 convolution reads to TF32, in either layout.

Where it may (`torch.backends.cudnn.allow_tf32`), cuDNN picks an algorithm by the layout, the sizes and the device, and
some algorithms round and others do not. With a filter of 7 x 7 over 64 channels the result is exact for one contiguous
image and rounded for eight; channels-last it is rounded for both. No simple rule holds for all of the 1,100 calls that
were measured (docs/performance/archive/layouts_rounding_h200.json).

So a GPU that is at hand is asked: the very convolution is called on random numbers in both layouts, and the results at
one corner are compared with float64. The plans that cuDNN makes for that are kept by torch, and used by later calls.
Where there is no GPU, or too little memory, a table of what an H200 does is taken, which leaves out what varies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from compiler.devices import free_bytes
from compiler.fx.fake_values import outside_fake_mode
from compiler.passes.price import Convolution

#: Errors relative to float64, by the norm, as they were measured of random numbers: the usual ones, and one between.
EXACT_ERROR, ROUNDED_ERROR, LEAST_ROUNDED_ERROR = 2e-7, 3e-4, 1e-5
#: Where an H200 took TF32 in either layout (torch 2.11): so many channels of image and result or more, filters so large
#: or smaller, and so many operations or more, the second where the convolution is transposed; so many channels where
#: there are groups.
LEAST_CHANNELS, LARGEST_SIDE, FEWEST_OPERATIONS, FEWEST_OF_TRANSPOSED = 64, 5, 1e7, 1e9
LEAST_CHANNELS_OF_GROUPS = 256
#: Results along each dimension of the corner that is compared, where there are as many.
CORNER = 8
#: The share of the free memory that a call to find out may take.
MOST_OF_FREE = 0.25


@dataclass(frozen=True)
class Rounding:
    """Errors of a convolution's results: as eager lays its tensors out, and channels-last."""

    kept_error: float
    moved_error: float
    is_measured: bool = False

    @property
    def is_rounded(self) -> bool:
        """Whether eager's own results are rounded to TF32."""
        return self.kept_error >= LEAST_ROUNDED_ERROR

    @property
    def is_rounded_if_moved(self) -> bool:
        return self.moved_error >= LEAST_ROUNDED_ERROR


@dataclass(frozen=True)
class Question:
    """All that the library's choice of an algorithm depends on: sizes, geometry, device, and torch's settings."""

    image: tuple[int, ...]
    filter: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    is_transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    device: torch.device
    settings: tuple[bool, ...]

    def call(self, image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        geometry: Any = (self.stride, self.padding, self.dilation, self.is_transposed, self.output_padding)
        result: torch.Tensor = torch.ops.aten.convolution(image, weight, None, *geometry, self.groups)
        return result

    def corner(self, dim: int) -> tuple[int, int]:
        """How many of the image's first elements along a dimension suffice for how many of the result's first ones."""
        side, window = self.image[2 + dim], self.dilation[dim] * (self.filter[2 + dim] - 1)
        stride, padding = self.stride[dim], self.padding[dim]
        taken = min(side, CORNER + padding if self.is_transposed else window + 1 + CORNER * stride)
        if self.is_transposed:
            return taken, max(1, taken * stride - padding)
        return taken, max(1, (taken + padding - window - 1) // stride + 1)


def rounding_of(convolution: Convolution, arguments: tuple[Any, ...]) -> Rounding:
    """What the library does with a call of `aten.convolution` of these arguments, fake tensors among them, where it may
    take TF32."""
    device = arguments[0].device
    if device.type == "cuda" and torch.cuda.is_available() and _can_be_asked(convolution, device):
        found = _asked(question_of(convolution, arguments))
        if found is not None:
            return found
    return Rounding(ROUNDED_ERROR if is_rounded_on_h200(convolution) else EXACT_ERROR, ROUNDED_ERROR)


def question_of(convolution: Convolution, arguments: tuple[Any, ...]) -> Question:
    image, _, _, stride, padding, dilation, is_transposed, output_padding, groups = arguments
    library = torch.backends.cudnn
    return Question(
        convolution.image, convolution.filter, _pair(stride), _pair(padding), _pair(dilation), is_transposed,
        _pair(output_padding), groups, image.device,
        (library.enabled, library.allow_tf32, library.benchmark, library.deterministic),
    )  # fmt: skip


def _pair(value: Sequence[int]) -> tuple[int, int]:
    """One number for each dimension, where ATen takes a single one for both."""
    return value[0], value[-1]


def is_rounded_on_h200(convolution: Convolution) -> bool:
    """Whether a contiguous call is known to take TF32, as a channels-last one does."""
    channels = min(convolution.image[1], convolution.result[1])
    if convolution.groups > 1:
        return channels >= LEAST_CHANNELS_OF_GROUPS and not convolution.is_transposed
    fewest = FEWEST_OF_TRANSPOSED if convolution.is_transposed else FEWEST_OPERATIONS
    is_small = all(side <= LARGEST_SIDE for side in convolution.filter[2:])
    return channels >= LEAST_CHANNELS and convolution.operations >= fewest and is_small


def _can_be_asked(convolution: Convolution, device: torch.device) -> bool:
    """Whether there is memory for two calls, with what the library rearranges for them."""
    with torch.cuda.device(device):
        is_capturing = torch.cuda.is_current_stream_capturing()
        return not is_capturing and 4 * sum(convolution.sizes) <= MOST_OF_FREE * free_bytes(device)


@functools.lru_cache(maxsize=4096)
def _asked(question: Question) -> Rounding | None:
    """What the GPU says; None where the library has no such call."""
    with outside_fake_mode(), torch.cuda.device(question.device), suppress(RuntimeError):
        return measured_rounding(question, question.call)
    return None


@torch.no_grad()
def measured_rounding(question: Question, call: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Rounding:
    """The errors of what `call` gives of random numbers, in both layouts; in float32, whatever autocast is on."""
    generator = torch.Generator(question.device).manual_seed(0)
    image, weight = (
        torch.randn(shape, generator=generator, device=question.device) for shape in (question.image, question.filter)
    )
    last = [tensor.contiguous(memory_format=torch.channels_last) for tensor in (image, weight)]
    (taken_rows, rows), (taken_columns, columns) = question.corner(0), question.corner(1)
    with torch.autocast(question.device.type, enabled=False):
        exact = question.call(image[:1, :, :taken_rows, :taken_columns].double(), weight.double())[..., :rows, :columns]
        corner = slice(0, 1), slice(None), slice(0, exact.shape[2]), slice(0, exact.shape[3])
        found = [call(*tensors)[corner].double() for tensors in ((image, weight), last)]
    kept_error, moved_error = torch.stack([(one - exact).norm() / exact.norm() for one in found]).tolist()
    return Rounding(kept_error, moved_error, is_measured=True)
