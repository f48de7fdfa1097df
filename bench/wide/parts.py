"""Results of several steps, reductions or kernels, put side by side."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, normal, positive, program, uniform


@program(positive(8, 32, 2048), normal(8, 32, 2048), normal(2048, 16), normal(8, 32, 16), normal(8, 32, 16))
def eight_steps_of_a_state_space(step: Tensor, x: Tensor, decay: Tensor, into: Tensor, out: Tensor) -> Tensor:
    state = torch.zeros_like(decay).expand(32, 2048, 16)
    results = []
    for t in range(8):
        kept = torch.exp(-step[t, :, :, None] * decay.abs())
        state = kept * state + (step[t] * x[t])[:, :, None] * into[t][:, None, :]
        results.append((state * out[t][:, None, :]).sum(-1))
    return torch.stack(results)


@program(normal(16, 256, 3072), normal(256, 1024), normal(1024), normal(1024))
def sixteen_steps_of_a_simple_recurrent_unit(
    x: Tensor, memory: Tensor, forget: Tensor, reset: Tensor
) -> tuple[Tensor, Tensor]:
    results = []
    for t in range(16):
        new, kept, shown = x[t].chunk(3, -1)
        kept, shown = torch.sigmoid(kept + forget), torch.sigmoid(shown + reset)
        memory = kept * memory + (1 - kept) * new
        results.append(shown * torch.tanh(memory) + (1 - shown) * new)
    return torch.stack(results), memory


@program(normal(16, 512, 2048, dtype=BF16), normal(16, 512, 2048, dtype=BF16), normal(512, 2048, dtype=BF16))
def states_of_a_gated_recurrence(gates: Tensor, x: Tensor, state: Tensor) -> Tensor:
    states = []
    for gate, new in zip(gates, x, strict=True):
        state = torch.sigmoid(gate) * state + new
        states.append(state)
    return torch.stack(states, 1)


@program(normal(16384, 1024))
def four_statistics_of_rows(x: Tensor) -> Tensor:
    return torch.stack([x.mean(-1), x.amax(-1), x.amin(-1), x.var(-1)], -1)


@program(normal(8192, 1024), normal(8192, 512), normal(8192, 2048))
def three_norms_side_by_side(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return torch.cat([F.layer_norm(part, part.shape[-1:]) for part in (a, b, c)], -1)


@program(normal(8192, 1024), normal(8192, 1024))
def two_softmaxes_below_each_other(a: Tensor, b: Tensor) -> Tensor:
    return torch.cat([a.softmax(-1), b.softmax(-1)])


@program(normal(8, 64, 96, 128), normal(8, 64, 96, 128))
def correlations_at_nine_shifts(first: Tensor, second: Tensor) -> Tensor:
    wide = F.pad(second, (1, 1, 1, 1))
    height, width = first.shape[-2:]
    shifted = (wide[:, :, i : i + height, j : j + width] for i in range(3) for j in range(3))
    return torch.cat([(first * part).mean(1, keepdim=True) for part in shifted], 1)


@program(normal(4, 32, 128, 320), normal(4, 32, 128, 320))
def costs_of_eight_disparities(left: Tensor, right: Tensor) -> Tensor:
    width = left.shape[-1]
    return torch.stack([(left * F.pad(right, (d, 0))[..., :width]).mean(1) for d in range(8)], 1)


@program(normal(1 << 20, 4))
def matrix_of_a_quaternion_of_any_length(q: Tensor) -> Tensor:
    w, x, y, z = F.normalize(q, dim=-1).unbind(-1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


@program(normal(1 << 20, 3))
def nine_harmonics_of_a_direction(v: Tensor) -> Tensor:
    x, y, z = F.normalize(v, dim=-1).unbind(-1)
    root = math.sqrt(3)
    second = (root * x * z, root * x * y, y * y - (x * x + z * z) / 2, root * y * z, root / 2 * (z * z - x * x))
    return torch.stack([torch.ones_like(x), x, y, z, *second], -1)


@program(normal(8, 512, 56, 56))
def means_of_three_grids(x: Tensor) -> Tensor:
    return torch.cat([F.adaptive_avg_pool2d(x, size).flatten(1) for size in (1, 2, 4)], 1)


@program(uniform(64, 256, 512), uniform(64, 256, 512))
def sums_over_the_first_and_the_last(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return (x * y).sum((0, 2)), x.sum((0, 2)), y.amax((0, 2))
