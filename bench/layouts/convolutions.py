"""Single convolutions of the library, contiguous and channels-last, beside what the price table expects of them.

Image and filter lie in the layout at hand before the call, as they do in a graph that is laid out so.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from compiler.devices import Device
from compiler.layout.price import Convolution, precision_of, price_of, reached_share
from compiler.options import Timing
from compiler.runtime.measure import take_samples
from compiler.runtime.stopwatch import Stopwatch

DTYPES = (torch.bfloat16, torch.float16, torch.float32)


@dataclass(frozen=True)
class Row:
    """One convolution of a net: channels and sides of the image, channels of the result, side of the filter."""

    channels: int
    side: int
    filters: int
    filter: int
    stride: int = 1
    groups: int = 1

    def tensors(self, batch: int, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        image = torch.randn(batch, self.channels, self.side, self.side, device=device)
        weight = torch.randn(self.filters, self.channels // self.groups, self.filter, self.filter, device=device)
        return image.to(dtype), weight.to(dtype)

    def call(self, image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.conv2d(image, weight, None, self.stride, self.filter // 2, 1, self.groups)


#: Of ResNet-50, ResNeXt-50, MobileNetV2 and ConvNeXt.
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
}


def measure_row(
    row: Row, batch: int, dtype: torch.dtype, device: torch.device, model: Device, watch: Stopwatch, timing: Timing
) -> dict[str, Any]:
    """Measured and predicted microseconds of both layouts, and the shares of the peak that the measured ones reach."""
    image, weight = row.tensors(batch, dtype, device)
    last = [tensor.to(memory_format=torch.channels_last) for tensor in (image, weight)]
    calls = {"contiguous": lambda: row.call(image, weight), "channels_last": lambda: row.call(*last)}
    result = row.call(image, weight)
    convolution = Convolution(tuple(image.shape), tuple(weight.shape), tuple(result.shape), row.groups, dtype)
    samples = take_samples(calls, watch, device, timing)
    measured = {name: 1e3 * kept.median_ms for name, kept in samples.items()}
    predicted = price_of(convolution, model)
    return {
        "precision": precision_of(dtype, model),
        "kind": convolution.kind,
        "measured_us": measured,
        "predicted_us": None if predicted is None else vars(predicted),
        "ratio": measured["channels_last"] / measured["contiguous"],
        "predicted_ratio": None if predicted is None else predicted.channels_last / predicted.contiguous,
        "reached_share": {name: reached_share(convolution, model, us) for name, us in measured.items()},
    }


def rows_for_table(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the measured rows say of each row of `SHARES`: medians, as the table would have them.

    Where one layout's time holds what the library rearranges, its share is the lower for it: such a row has no
    `rearranges`."""
    found: dict[tuple[str, str], list[Mapping[str, float]]] = defaultdict(list)
    for result in results:
        found[result["precision"], result["kind"]].append(result["reached_share"])
    lines = []
    for (precision, kind), shares in sorted(found.items()):
        last, first = (statistics.median(share[name] for share in shares) for name in ("channels_last", "contiguous"))
        lines.append(f'("{precision}", "{kind}"): Shares({last:.3f}, {first:.3f}),')
    return lines
