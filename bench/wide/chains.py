"""Long chains of operators, branches that meet nowhere, and programs of which a launch is the greater part."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, index, normal, positive, program


@program(normal(4096, 4096, dtype=BF16), normal(4096, dtype=BF16))
def chain_of_fifty_cheap_steps(x: Tensor, w: Tensor) -> Tensor:
    y = x
    for step in range(25):
        y = torch.clamp(y * 0.9 + w * (0.1 + step / 100), -4, 4)
    return y


@program(normal(2048, 2048), normal(2048, 2048))
def chain_of_twelve_costly_steps(x: Tensor, y: Tensor) -> Tensor:
    for _ in range(4):
        x = torch.tanh(x * y) + torch.sin(y)
        y = torch.log1p(torch.exp(-x.abs())) + y
    return x * y


@program(*[normal(1024, 1024)] * 8)
def eight_branches_that_never_meet(
    a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor, f: Tensor, g: Tensor, h: Tensor
) -> tuple[Tensor, ...]:
    return (
        torch.relu(a), torch.softmax(b, -1), c.sum(0), d.mean(), torch.tanh(e), F.layer_norm(f, (1024,)),
        g.t().contiguous(), h.cumsum(-1),
    )  # fmt: skip


@program(normal(8), normal(8), limit="launch")
def eight_numbers(a: Tensor, b: Tensor) -> Tensor:
    return torch.sigmoid(a) * b + a.sum()


@program(normal(32, 10), index(32, high=10), gradients=True, limit="launch")
def loss_of_a_small_classifier(scores: Tensor, label: Tensor) -> Tensor:
    return F.cross_entropy(scores, label)


@program(normal(1, 128, 768), normal(768), normal(768), normal(1, 128, 768), limit="launch")
def norm_of_one_short_prompt(x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
    total = x + residual
    return total, F.layer_norm(total, (768,), weight, bias)


@program(normal(1, 32, 1, 128, dtype=BF16), normal(1, 8, 1, 128, dtype=BF16), normal(128), normal(128), limit="launch")
def rotary_of_one_word(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    def turned(x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return (x * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)

    return turned(q), turned(k)


@program(*[normal(5000)] * 3, *[normal(127, 33)] * 3, *[positive(5000)], *[positive(127, 33)], limit="launch")
def adam_of_two_small_tensors(
    p: Tensor, g: Tensor, m: Tensor, q: Tensor, h: Tensor, n: Tensor, v: Tensor, w: Tensor
) -> list[Tensor]:
    m, n = torch._foreach_lerp([m, n], [g, h], 0.1)
    squares = torch._foreach_mul([g, h], [g, h])
    v, w = torch._foreach_lerp([v, w], squares, 0.001)
    below = torch._foreach_add(torch._foreach_sqrt([v, w]), 1e-8)
    steps = torch._foreach_div([m, n], below)
    return [*torch._foreach_add([p, q], steps, alpha=-1e-3), m, n, v, w]
