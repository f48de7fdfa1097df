"""Programs of the table: chains of pointwise operators, activations, masks, random numbers, optimisers."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from bench.fusion.program import Program, coin, index, tensor, weight

Tensor = torch.Tensor


def wavy_gate(u: Tensor, v: Tensor) -> Tensor:
    return torch.relu((torch.sin(u) * torch.cos(v) + u) * v)


def gelu_by_hand(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0))))


def diamond(x: Tensor) -> Tensor:
    y = x.sin()
    return (y + 1).exp() * (y - 1).cos() + y


def rope(q: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = q.chunk(2, -1)
    return q * cos + torch.cat((-second, first), -1) * sin


def rope_pairs(q: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of neighbours, as by complex numbers."""
    pairs = q.reshape(*q.shape[:-1], -1, 2)
    even, odd = pairs[..., 0], pairs[..., 1]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def rope_of_both(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return rope(q, cos, sin), rope(k, cos, sin)


def swiglu_packed(x: Tensor) -> Tensor:
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


def dropout_add_norm(x: Tensor, residual: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    total = residual + F.dropout(x, 0.1)
    return total, F.layer_norm(total, (x.shape[-1],), w, b)


def sgd_momentum(p: Tensor, g: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    v = 0.9 * v + g + 1e-4 * p
    return p - 0.1 * v, v


def adamw(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p * (1 - 1e-5) - 1e-3 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8), m, v


def sgd_of_many(a: Tensor, b: Tensor, c: Tensor, ga: Tensor, gb: Tensor, gc: Tensor) -> tuple[Tensor, ...]:
    """One step for three parameters of different sizes, one after the other."""
    return tuple(p - 0.1 * g for p, g in ((a, ga), (b, gb), (c, gc)))


def foreach_step(a: Tensor, b: Tensor, c: Tensor, ga: Tensor, gb: Tensor, gc: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch._foreach_sub([a, b, c], torch._foreach_mul([ga, gb, gc], 0.1)))


def quantise(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
    return (x / scale).round().clamp(-127, 127).to(torch.int8), scale


def quantise_whole(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.abs().amax().clamp(min=1e-8) / 127
    return (x / scale).round().clamp(-127, 127).to(torch.int8), scale


def dequantise(q: Tensor, scale: Tensor) -> Tensor:
    return q.to(torch.float32) * scale


def fake_quantise(x: Tensor) -> Tensor:
    q, scale = quantise(x)
    return dequantise(q, scale)


def masked_scores(x: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(x.masked_fill(mask, float("-inf")), -1)


def causal_scores(x: Tensor) -> Tensor:
    rows, columns = x.shape[-2:]
    seen = torch.ones(rows, columns, dtype=torch.bool, device=x.device).tril()
    return torch.softmax(x.masked_fill(~seen, float("-inf")), -1)


def residual_stream(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    one = x + a
    two = one + b
    return one, two, two + c


ROWS = tensor("n m")

PROGRAMS = (
    Program("pointwise chain", wavy_gate, (ROWS, ROWS)),
    Program("GELU by hand", gelu_by_hand, (ROWS,)),
    Program("GELU backward", lambda x: F.gelu(x), (weight("n m"),)),
    Program("SiLU backward", lambda x: F.silu(x), (weight("n m"),)),
    Program("diamond", diamond, (ROWS,)),
    Program("several outputs", lambda x: (x.sin(), x.cos(), x.exp()), (ROWS,)),
    Program("bias and ReLU", lambda x, b: torch.relu(x + b), (ROWS, tensor("m"))),
    Program("bias and GELU backward", lambda x, b: F.gelu(x + b), (weight("n m"), weight("m"))),
    Program("rotary embedding", rope, (tensor("b h l d"), tensor("l d"), tensor("l d"))),
    Program("rotary embedding of pairs", rope_pairs, (tensor("b h l 64"), tensor("l 32"), tensor("l 32"))),
    Program("rotary embedding of q and k", rope_of_both, (*[tensor("b h l d")] * 2, *[tensor("l d")] * 2)),
    Program("rotary embedding of q and grouped k", rope_of_both,
            (tensor("b h l d"), tensor("b 2 l d"), *[tensor("l d")] * 2)),
    Program("SwiGLU", lambda gate, up: F.silu(gate) * up, (ROWS, ROWS)),
    Program("SwiGLU packed", swiglu_packed, (ROWS,)),
    Program("SwiGLU packed, backward", swiglu_packed, (weight("n m"),)),
    Program("dropout", lambda x: F.dropout(x, 0.1), (ROWS,), is_random=True),
    Program("dropout, add, norm", dropout_add_norm, (ROWS, ROWS, tensor("m"), tensor("m")), is_random=True),
    Program("SGD with momentum", sgd_momentum, (ROWS, ROWS, ROWS)),
    Program("AdamW", adamw, (ROWS, ROWS, ROWS, ROWS)),
    Program("SGD of three parameters", sgd_of_many, (*[tensor("n m"), tensor("m"), tensor("k m")] * 2,)),
    Program("foreach SGD of three parameters", foreach_step, (*[tensor("n m"), tensor("m"), tensor("k m")] * 2,)),
    Program("quantise rows", quantise, (ROWS,)),
    Program("quantise a tensor", quantise_whole, (ROWS,)),
    Program("dequantise", dequantise, (tensor("n m", torch.int8), tensor("n 1"))),
    Program("quantise and dequantise", fake_quantise, (ROWS,)),
    Program("masked softmax", masked_scores, (tensor("b l l"), coin("l l"))),
    Program("causal softmax", causal_scores, (tensor("b l l"),)),
    Program("where", lambda c, x, y: torch.where(c, x * 2, y + 1), (coin("n m"), ROWS, ROWS)),
    Program("residual stream", residual_stream, (ROWS,) * 4),
    Program("one-hot", lambda i: F.one_hot(i, 64).float() * 0.9 + 0.1 / 64, (index("n", "64"),)),
)  # fmt: skip
