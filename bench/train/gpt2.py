"""GPT-2 with 124 million parameters in torch alone: pre-norm blocks, one table for words in and words out.

The architecture and its widths are those of "Language Models are Unsupervised Multitask Learners" (Radford and others,
2019). Dropout is left out, so that the step can be checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.models.model import Example, ModelSize, tokens


@dataclass(frozen=True)
class Shape:
    """Widths of the architecture; `words` is the vocabulary."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    words: int = 50257
    length: int = 1024


SMALL = Shape(layers=2, width=48, heads=3, words=101, length=24)
#: What GPT-2's vocabulary is often padded to: rows of 128 bytes, which tensor cores read at full speed.
PADDED = Shape(words=50304)


class Attention(nn.Module):
    """To all earlier words."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.qkv, self.mix = nn.Linear(shape.width, 3 * shape.width), nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).split(x.shape[-1], dim=-1)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.mix(mixed.transpose(1, 2).flatten(-2))


class Block(nn.Module):
    """Attention, then a layer four times as wide with the tanh form of GELU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.attention = Attention(shape)
        self.widen, self.narrow = nn.Linear(shape.width, 4 * shape.width), nn.Linear(4 * shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.narrow(F.gelu(self.widen(self.norm_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """Words and the words that follow them in, the mean loss out."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(shape.words, shape.width), nn.Embedding(shape.length, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        for table in (self.words, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, words: Tensor, following: Tensor) -> dict[str, Tensor]:
        x = self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.words.weight)
        return {"loss": F.cross_entropy(logits.flatten(0, 1), following.flatten())}


def gpt2(size: ModelSize) -> Example:
    return _example(SMALL if size == "small" else Shape())


def gpt2_padded(size: ModelSize) -> Example:
    """With the vocabulary padded to a multiple of 64."""
    return _example(SMALL if size == "small" else PADDED)


def _example(shape: Shape) -> Example:
    def inputs(batch: int, generator: torch.Generator) -> dict[str, Any]:
        text = tokens(shape.words, (batch, shape.length + 1), generator)
        return {"words": text[:, :-1].contiguous(), "following": text[:, 1:].contiguous()}

    return Example(GPT2(shape), inputs)
