"""Three small architectures in plain torch, made of what the large ones are made of; `bench/models` has those."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WORDS, LENGTH, WIDTH, HEADS = 61, 12, 24, 3


class DecoderBlock(nn.Module):
    """As in GPT-2: layer norms before, attention to the past, a wide layer with the tanh form of GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.norm_1(x)).chunk(3, -1)]
        scores = heads[0] @ heads[1].mT / math.sqrt(WIDTH / HEADS)
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        mixed = scores.masked_fill(future, -math.inf).softmax(-1) @ heads[2]
        x = x + self.mix(mixed.transpose(1, 2).flatten(-2))
        return x + self.narrow(F.gelu(self.widen(self.norm_2(x)), approximate="tanh"))


class Decoder(nn.Module):
    """Words in, scores of the next word out, by the same table."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.norm = nn.Sequential(DecoderBlock(), DecoderBlock()), nn.LayerNorm(WIDTH)

    def forward(self, words: Tensor) -> dict[str, Tensor]:
        places = torch.arange(words.shape[1], device=words.device)
        return {"logits": self.norm(self.blocks(self.words(words) + self.places(places))) @ self.words.weight.T}


class RotaryBlock(nn.Module):
    """As in Llama: root mean square norms, rotated queries and keys, fewer heads of keys, a gated wide layer."""

    frequencies: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = (nn.RMSNorm(WIDTH, eps=1e-6) for _ in range(2))
        size = WIDTH // HEADS
        self.q, self.k, self.v = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, size), nn.Linear(WIDTH, size)
        self.mix = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.widen = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.narrow = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.register_buffer("frequencies", 100.0 ** (-torch.arange(0, size, 2) / size), persistent=False)

    def rotated(self, x: Tensor, angles: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        doubled = torch.cat((angles, angles), -1)
        return x * doubled.cos() + torch.cat((-second, first), -1) * doubled.sin()

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm_1(x)
        queries, keys, values = (
            part(normed).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for part in (self.q, self.k, self.v)
        )
        angles = torch.outer(torch.arange(x.shape[1], device=x.device), self.frequencies)
        keys = self.rotated(keys, angles).repeat_interleave(HEADS, 1)
        values = values.repeat_interleave(HEADS, 1)
        mixed = F.scaled_dot_product_attention(self.rotated(queries, angles), keys, values, is_causal=True)
        x = x + self.mix(mixed.transpose(1, 2).flatten(-2))
        normed = self.norm_2(x)
        return x + self.narrow(F.silu(self.gate(normed)) * self.widen(normed))


class RotaryDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.blocks = nn.Sequential(RotaryBlock(), RotaryBlock())

    def forward(self, words: Tensor) -> dict[str, Tensor]:
        return {"logits": self.head(self.blocks(self.words(words)))}


class ResidualNet(nn.Module):
    """As in ResNet: convolutions with batch norms, a pool with a border, a block that adds what it skips."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm_1 = nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.inner, self.norm_2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16)
        self.skip, self.norm_3 = nn.Conv2d(8, 16, 1, stride=2, bias=False), nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 10)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        x = self.pool(F.relu(self.norm_1(self.stem(image))))
        x = F.relu(self.norm_2(self.inner(x)) + self.norm_3(self.skip(x)))
        return {"logits": self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))}
