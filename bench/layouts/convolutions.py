"""Single convolutions of the library, contiguous and channels-last, beside what the price table expects of them.

Image and filter lie in the layout at hand before the call, as they do in a graph that is laid out so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compiler.devices import Device
from compiler.options import Timing
from compiler.passes.price import (
    Convolution,
    Price,
    Reached,
    least_times,
    least_times_of_gradients,
    precision_of,
    price_of,
    price_of_gradients,
)
from compiler.runtime.timing.measure import take_samples
from compiler.runtime.timing.stopwatch import Stopwatch

DTYPES = (torch.bfloat16, torch.float16, torch.float32)


@dataclass(frozen=True)
class Row:
    """One convolution of a net: channels and sides of the image, channels of the result, side of the filter. Without a
    stride its result has the image's sides, and with one, if it is transposed, so many times those."""

    channels: int
    side: int
    filters: int
    filter: int
    stride: int = 1
    groups: int = 1
    is_transposed: bool = False

    def tensors(self, batch: int, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        image = torch.randn(batch, self.channels, self.side, self.side, device=device)
        first, second = (self.channels, self.filters) if self.is_transposed else (self.filters, self.channels)
        weight = torch.randn(first, second // self.groups, self.filter, self.filter, device=device)
        return image.to(dtype), weight.to(dtype)

    def call(self, image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.convolution(image, weight, None, *self._geometry)

    @property
    def _geometry(self) -> tuple[Any, ...]:
        padding = (self.filter - self.stride) // 2 if self.is_transposed else self.filter // 2
        return [self.stride] * 2, [padding] * 2, [1, 1], self.is_transposed, [0, 0], self.groups

    def convolution(self, image: torch.Tensor, weight: torch.Tensor, result: torch.Tensor) -> Convolution:
        shapes = tuple(image.shape), tuple(weight.shape), tuple(result.shape)
        return Convolution(*shapes, self.groups, image.dtype, self.is_transposed)

    @property
    def has_gradient_of_image(self) -> bool:
        return self.channels != 3

    def gradients(self, result: torch.Tensor, image: torch.Tensor, weight: torch.Tensor) -> Any:
        """The gradients of filter and image, given that of the result; of the filter alone where the image has three
        channels, as at the entrance of a net."""
        wanted = [self.has_gradient_of_image, True, False]
        return torch.ops.aten.convolution_backward(result, image, weight, None, *self._geometry, wanted)


#: Of ResNet-50, ResNeXt-50, MobileNetV2 and ConvNeXt, and what makes images larger in nets that generate or segment.
ROWS = {
    "stem 7x7": Row(3, 224, 64, 7, stride=2),
    "3x3, 64 channels": Row(64, 56, 64, 3),
    "3x3, 256 channels": Row(256, 14, 256, 3),
    "3x3, 512 channels": Row(512, 7, 512, 3),
    "1x1, 256 to 64": Row(256, 56, 64, 1),
    "1x1, 64 to 256": Row(64, 56, 256, 1),
    "1x1, 1024 to 256": Row(1024, 14, 256, 1),
    "grouped 3x3, 32 groups": Row(128, 56, 128, 3, groups=32),
    "depthwise 3x3, 96 channels": Row(96, 112, 96, 3, stride=2, groups=96),
    "depthwise 3x3, 384 channels": Row(384, 14, 384, 3, groups=384),
    "depthwise 7x7, 96 channels": Row(96, 56, 96, 7, groups=96),
    "transposed 4x4, 128 to 64": Row(128, 28, 64, 4, stride=2, is_transposed=True),
    "transposed 4x4, 512 to 256": Row(512, 14, 256, 4, stride=2, is_transposed=True),
    "transposed 2x2, 128 to 64": Row(128, 56, 64, 2, stride=2, is_transposed=True),
}


def measure_row(
    row: Row, batch: int, dtype: torch.dtype, device: torch.device, model: Device, watch: Stopwatch, timing: Timing
) -> dict[str, Any]:
    """Measured and predicted microseconds of both layouts, and the least that its operations and its bytes take."""
    image, weight = row.tensors(batch, dtype, device)
    result = row.call(image, weight)
    convolution = row.convolution(image, weight, result)
    least = least_times(convolution, model)
    return _measured(row.call, (image, weight), convolution, price_of(convolution, model), least, model, watch, timing)


def measure_gradients(
    row: Row, batch: int, dtype: torch.dtype, device: torch.device, model: Device, watch: Stopwatch, timing: Timing
) -> dict[str, Any]:
    """The same of the call for the gradients of a row."""
    image, weight = row.tensors(batch, dtype, device)
    result = row.call(image, weight)
    convolution = row.convolution(image, weight, result)
    least = least_times_of_gradients(convolution, model, row.has_gradient_of_image)
    price = price_of_gradients(convolution, model, row.has_gradient_of_image)
    return _measured(row.gradients, (result, image, weight), convolution, price, least, model, watch, timing)


def _measured(
    call: Callable[..., Any],
    tensors: Sequence[torch.Tensor],
    convolution: Convolution,
    predicted: Price | None,
    least: tuple[float, float],
    model: Device,
    watch: Stopwatch,
    timing: Timing,
) -> dict[str, Any]:
    last = [tensor.to(memory_format=torch.channels_last) for tensor in tensors]
    calls = {"contiguous": lambda: call(*tensors), "channels_last": lambda: call(*last)}
    samples = take_samples(calls, watch, tensors[0].device, timing)
    measured = {name: 1e3 * kept.median_ms for name, kept in samples.items()}
    return {
        "precision": precision_of(convolution, model),
        "kind": convolution.kind,
        "measured_us": measured,
        "predicted_us": None if predicted is None else vars(predicted),
        "ratio": measured["channels_last"] / measured["contiguous"],
        "predicted_ratio": None if predicted is None else predicted.channels_last / predicted.contiguous,
        "least_us": least,
    }


def rows_for_table(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the measured rows say of each row of `REACHED`: the least time of a call, the share of the peak and the
    passes over its bytes that are nearest to all of them, in the mean of squared logarithms."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for result in results:
        found[result["precision"], result["kind"]].append(result)
    lines = []
    for (precision, kind), rows in sorted(found.items()):
        last, first = (_nearest(rows, layout, PASSES.get(kind, (1.0,))) for layout in ("channels_last", "contiguous"))
        lines.append(f'("{precision}", "{kind}"): Layouts({last}, {first}),')
    return lines


#: Passes that are tried for kinds of which the bytes take longer than one pass over them.
PASSES = {"transposed": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)}


def _nearest(rows: Sequence[Mapping[str, Any]], layout: str, passes: Sequence[float]) -> str:
    """As it is written in the table."""

    def error(reached: Reached) -> float:
        return sum(math.log(reached.microseconds(*row["least_us"]) / row["measured_us"][layout]) ** 2 for row in rows)

    shares = [float(f"{10 ** (-step / 30):.2g}") for step in range(1, 100)]
    tried = (Reached(half / 2, share, often) for half in range(1, 81) for share in shares for often in passes)
    found = min(tried, key=error)
    often = "" if found.passes == 1 else f", {found.passes}"
    return f"Reached({found.least_us}, {found.share}{often})"
