"""Convolutional nets from before there were norms in each layer, written out as their papers have them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from bench.models.model import Example, ModelSize, pixels


class Classified(nn.Module):
    """A net whose one result has a name, as those of the library have."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, pixel_values: Tensor) -> dict[str, Tensor]:
        return {"logits": self.layers(pixel_values)}


def alexnet(size: ModelSize) -> Example:
    """Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014), on one device."""
    wide = 1 if size == "full" else 8
    widths = [64 // wide, 192 // wide, 384 // wide, 256 // wide, 256 // wide]
    hidden = 4096 // (wide * wide)
    net = Classified(
        *(_convolution(3, widths[0], 11, 4, 2), nn.MaxPool2d(3, 2)),
        *(_convolution(widths[0], widths[1], 5, 1, 2), nn.MaxPool2d(3, 2)),
        *(_convolution(before, after, 3, 1, 1) for before, after in pairwise(widths[1:])),
        *(nn.MaxPool2d(3, 2), nn.AdaptiveAvgPool2d(6), nn.Flatten()),
        *(nn.Dropout(), nn.Linear(36 * widths[4], hidden), nn.ReLU()),
        *(nn.Dropout(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10)),
    )
    return Example(net.eval(), _square(size))


class Fire(nn.Module):
    """Fewer channels, then a concatenation of two convolutions of them."""

    def __init__(self, channels: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = _convolution(channels, squeezed, 1)
        self.narrow, self.wide = _convolution(squeezed, expanded, 1), _convolution(squeezed, expanded, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze(x)
        return torch.cat((self.narrow(x), self.wide(x)), 1)


def squeezenet(size: ModelSize) -> Example:
    """Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters" (2016), version 1.1."""
    wide = 1 if size == "full" else 4

    def fire(channels: int, squeezed: int, expanded: int) -> Fire:
        return Fire(channels // wide, squeezed // wide, expanded // wide)

    net = Classified(
        *(_convolution(3, 64 // wide, 3, 2), nn.MaxPool2d(3, 2, ceil_mode=True)),
        *(fire(64, 16, 64), fire(128, 16, 64), nn.MaxPool2d(3, 2, ceil_mode=True)),
        *(fire(128, 32, 128), fire(256, 32, 128), nn.MaxPool2d(3, 2, ceil_mode=True)),
        *(fire(256, 48, 192), fire(384, 48, 192), fire(384, 64, 256), fire(512, 64, 256)),
        *(nn.Dropout(), _convolution(512 // wide, 10, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    )
    return Example(net.eval(), _square(size))


def _convolution(channels: int, filters: int, size: int, stride: int = 1, padding: int = 0) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, filters, size, stride, padding), nn.ReLU())


def _square(size: ModelSize) -> Any:
    return pixels(64 if size == "small" else 224)
