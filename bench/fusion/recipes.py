"""Programs of the table: whole recipes, as people write them, of several of the other families at once."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from bench.fusion.program import Program, index, tensor

Tensor = torch.Tensor


def rolled_and_padded(x: Tensor) -> Tensor:
    return F.pad(torch.roll(x.flip(-1), (1, 2), (2, 3)), (1, 1, 1, 1), mode="reflect") + 1


def rotate(q: Tensor, v: Tensor) -> Tensor:
    """Points by unit quaternions."""
    u = q[:, 1:]
    return v + 2 * (q[:, :1] * torch.linalg.cross(u, v) + torch.linalg.cross(u, torch.linalg.cross(u, v)))


def escape_times(real: Tensor, imaginary: Tensor) -> Tensor:
    """Of the Mandelbrot set: a chain of 160 operators."""
    a, b, steps = torch.zeros_like(real), torch.zeros_like(real), torch.zeros_like(real)
    for _ in range(16):
        a, b = a * a - b * b + real, 2 * a * b + imaginary
        steps = steps + (a * a + b * b < 4).float()
    return steps


def dequantised_product(w: Tensor, scale: Tensor, x: Tensor) -> Tensor:
    return (w.to(x.dtype) * scale[:, None]) @ x


def one_token(x: Tensor, gate: Tensor, up: Tensor) -> Tensor:
    return F.silu(F.linear(x, gate)) * F.linear(x, up)


def shifted_windows(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    batch, height, width, channels = x.shape
    x = torch.roll(F.layer_norm(x, (channels,), w, b), (-3, -3), (1, 2))
    return x.view(batch, height // 7, 7, width // 7, 7, channels).permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, channels)


def ignoring(x: Tensor, i: Tensor) -> Tensor:
    return F.cross_entropy(x, torch.where(i % 7 == 0, -100, i), label_smoothing=0.1, ignore_index=-100)


def dice(x: Tensor, y: Tensor) -> Tensor:
    p, axes = x.sigmoid(), (0, 2, 3)
    return (1 - (2 * (p * y).sum(axes) + 1) / (p.sum(axes) + y.sum(axes) + 1)).mean()


def total_variation(x: Tensor) -> Tensor:
    return (x[..., 1:] - x[..., :-1]).abs().mean() + (x[..., 1:, :] - x[..., :-1, :]).abs().mean()


def doubly_stochastic(x: Tensor) -> Tensor:
    for _ in range(2):
        x = x - torch.logsumexp(x, 1, keepdim=True)
        x = x - torch.logsumexp(x, 0, keepdim=True)
    return x.exp()


def channel_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    centred = x - x.mean(1, keepdim=True)
    return w * centred * torch.rsqrt(centred.square().mean(1, keepdim=True) + 1e-5) + b


def response_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    size = torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True)
    return w * (x * (size / (size.mean(-1, keepdim=True) + 1e-6))) + b + x


def lamb(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    update = m / (v.abs().sqrt() + 1e-6) + 0.01 * p
    return p - 1e-3 * p.norm() / update.norm().clamp(min=1e-6) * update, m, v


HALF = torch.bfloat16
ROWS = tensor("n m")
IMAGES = tensor("32 c w w")
LAST = tensor("32 w w c")
CHANNEL = tensor("c")

PROGRAMS = (
    Program("rolled, flipped, padded", rolled_and_padded, (IMAGES,)),
    Program("points rotated by quaternions", rotate, (tensor("n 4"), tensor("n 3"))),
    Program("chain of 160 operators", escape_times, (ROWS, ROWS)),
    Program("product of a dequantised matrix and a vector", dequantised_product,
            (tensor("n m", torch.int8), tensor("n", HALF), tensor("m", HALF))),
    Program("gated layers of one token", one_token,
            (tensor("1 m", HALF), tensor("n m", HALF), tensor("n m", HALF))),
    Program("means of bags of embeddings", lambda i, t: F.embedding_bag(i, t, mode="mean"),
            (index("n 32", "v"), tensor("v 128"))),
    Program("norm and shifted windows", shifted_windows, (LAST, CHANNEL, CHANNEL)),
    Program("smoothed cross entropy of some rows", ignoring, (tensor("n v"), index("n", "v"))),
    Program("dice loss", dice, (IMAGES, IMAGES)),
    Program("total variation", total_variation, (IMAGES,)),
    Program("doubly stochastic", doubly_stochastic, (ROWS,)),
    Program("norm of channels", channel_norm, (IMAGES, tensor("c 1 1"), tensor("c 1 1"))),
    Program("response norm of channels", response_norm, (LAST, CHANNEL, CHANNEL)),
    Program("LAMB", lamb, (ROWS, ROWS, ROWS, ROWS)),
    Program("largest so far in each row", lambda x: torch.cummax(x, -1), (ROWS,)),
)  # fmt: skip
