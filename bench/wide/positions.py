"""Positions in a sequence or an image, as numbers that a network can use."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.wide.declare import BF16, index, normal, program, uniform


@program(normal(8, 1024, 16, 128, dtype=BF16), normal(1024, 64, dtype=BF16), normal(1024, 64, dtype=BF16))
def rotary_of_neighbours(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = cos[:, None], sin[:, None]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)


@program(normal(4, 2048, 32, 128, dtype=BF16), normal(4, 2048, 8, 128, dtype=BF16), index(4, 2048, high=8192))
def rotary_of_halves_by_position(q: Tensor, k: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
    steps = 10000.0 ** (-torch.arange(0, 128, 2, device=q.device) / 128)
    angles = position[:, :, None, None] * torch.cat((steps, steps))
    cos, sin = angles.cos().to(q.dtype), angles.sin().to(q.dtype)
    q_turned = torch.cat((-q[..., 64:], q[..., :64]), -1)
    k_turned = torch.cat((-k[..., 64:], k[..., :64]), -1)
    return q * cos + q_turned * sin, k * cos + k_turned * sin


@program(normal(8, 1024, 16, 64), normal(1024, 32, 2))
def rotary_by_complex_numbers(x: Tensor, turn: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.unflatten(-1, (32, 2)))
    return torch.view_as_real(pairs * torch.view_as_complex(turn)[:, None]).flatten(-2)


@program(normal(8, 16, 1024, 96, dtype=BF16), normal(1024, 16, dtype=BF16), normal(1024, 16, dtype=BF16))
def rotary_of_a_third(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second, rest = x.split((16, 16, 64), -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), -1)


@program(normal(16, 8, 32, 32, 64), normal(32, 16), normal(32, 16))
def rotary_of_rows_and_columns(x: Tensor, of_row: Tensor, of_column: Tensor) -> Tensor:
    angle = torch.cat((of_row[:, None].expand(32, 32, 16), of_column[None].expand(32, 32, 16)), -1)
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)


@program(normal(32, 1024, 768))
def sines_of_positions_added(x: Tensor) -> Tensor:
    place = torch.arange(1024, device=x.device, dtype=x.dtype)[:, None]
    steps = torch.exp(torch.arange(0, 768, 2, device=x.device, dtype=x.dtype) * (-9.21 / 768))
    return x * 27.7 + torch.stack((torch.sin(place * steps), torch.cos(place * steps)), -1).flatten(1)


@program(uniform(64))
def embedding_of_a_time_step(time: Tensor) -> Tensor:
    steps = torch.exp(-9.21 * torch.arange(160, device=time.device, dtype=time.dtype) / 160)
    angles = time[:, None] * 1000 * steps
    return torch.cat((angles.cos(), angles.sin()), -1)


@program(uniform(1 << 18, 3))
def coordinates_at_octaves(x: Tensor) -> Tensor:
    angles = x[:, None] * 2.0 ** torch.arange(8, device=x.device)[:, None]
    return torch.cat((x, angles.sin().flatten(1), angles.cos().flatten(1)), -1)


@program(index(32, 512, high=30522), index(32, 512, high=2), normal(30522, 768), normal(512, 768), normal(2, 768))
def words_positions_and_segments(word: Tensor, segment: Tensor, words: Tensor, places: Tensor, kinds: Tensor) -> Tensor:
    return words[word] + places + kinds[segment]


@program(normal(64, 196, 768, dtype=BF16), normal(1, 1, 768, dtype=BF16), normal(1, 197, 768, dtype=BF16))
def class_token_and_positions(patches: Tensor, token: Tensor, positions: Tensor) -> Tensor:
    return torch.cat((token.expand(64, 1, 768), patches), 1) + positions
