"""Steps of optimisers and what comes before them: new parameters and states from gradients."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, index, normal, positive, program, uniform


@program(*[normal(4096, 4096)] * 3)
def sgd_nesterov_step(parameter: Tensor, gradient: Tensor, momentum: Tensor) -> tuple[Tensor, Tensor]:
    gradient = gradient + 1e-4 * parameter
    new = 0.9 * momentum + gradient
    return parameter - 0.1 * (gradient + 0.9 * new), new


@program(*[normal(2048, 4096)] * 3, positive(2048, 4096), positive(2048, 4096))
def amsgrad_step(p: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, top: Tensor) -> tuple[Tensor, ...]:
    new_mean = torch.lerp(mean, gradient, 0.1)
    new_square = 0.999 * square + 0.001 * gradient * gradient
    new_top = torch.maximum(top, new_square)
    return p - 1e-3 * new_mean / (new_top.sqrt() + 1e-8), new_mean, new_square, new_top


@program(normal(4096, 3000), normal(4096, 3000, dtype=BF16), normal(4096, 3000), positive(4096, 3000), uniform(1))
def adamw_with_master_weights(
    master: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, scale: Tensor
) -> tuple[Tensor, ...]:
    wide = gradient.to(master.dtype) * scale
    mean, square = 0.9 * mean + 0.1 * wide, 0.95 * square + 0.05 * wide.square()
    new = master * (1 - 1e-5) - 1e-4 * (mean / 0.19) / ((square / 0.0975).sqrt() + 1e-8)
    return new, new.to(torch.bfloat16), mean, square


@program(*[normal(4096, 4096, dtype=BF16)] * 3)
def lion_step_bf16(parameter: Tensor, gradient: Tensor, momentum: Tensor) -> tuple[Tensor, Tensor]:
    direction = (0.9 * momentum.float() + 0.1 * gradient.float()).sign()
    new = parameter.float() * (1 - 1e-4) - 1e-2 * direction
    return new.to(parameter.dtype), (0.99 * momentum.float() + 0.01 * gradient.float()).to(parameter.dtype)


@program(normal(4096, 4096), normal(4096, 4096), positive(4096), positive(4096))
def adafactor_rows_and_columns(p: Tensor, gradient: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, ...]:
    squares = gradient.square() + 1e-30
    rows = 0.8 * rows + 0.2 * squares.mean(1)
    columns = 0.8 * columns + 0.2 * squares.mean(0)
    update = gradient * (rows / rows.mean()).rsqrt()[:, None] * columns.rsqrt()[None, :]
    size = update.square().mean().sqrt().clamp(min=1.0)
    return p - 1e-2 * update / size, rows, columns


@program(*[normal(4096, 2048)] * 4, positive(4096, 2048))
def centred_rmsprop_step(p: Tensor, gradient: Tensor, mean: Tensor, step: Tensor, square: Tensor) -> tuple[Tensor, ...]:
    square = 0.99 * square + 0.01 * gradient.square()
    mean = 0.99 * mean + 0.01 * gradient
    step = 0.9 * step + gradient / (square + 0.1 - 0.05 * mean.square().clamp(max=1.0)).sqrt()
    return p - 0.01 * step, mean, step, square


@program(*[normal(2048, 4096)] * 3, positive(2048, 4096))
def lamb_step(p: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> tuple[Tensor, ...]:
    mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient.square()
    update = mean / (square.sqrt() + 1e-6) + 0.01 * p
    trust = p.norm() / update.norm()
    return p - 1e-3 * trust.clamp(max=10.0) * update, mean, square


@program(normal(1024, 1024, dtype=BF16))
def newton_schulz_two_steps(gradient: Tensor) -> Tensor:
    """Muon: towards an orthogonal matrix."""
    x = gradient / (gradient.norm() + 1e-7)
    for _ in range(2):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x


@program(normal(2048, 2048), normal(2048, 8192), normal(2048), normal(8192), normal(8192, 1024))
def clip_of_five_gradients_by_norm(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor) -> tuple[Tensor, ...]:
    norms = torch.stack([one.norm() for one in (a, b, c, d, e)])
    total = norms.norm()
    factor = (1.0 / (total + 1e-6)).clamp(max=1.0)
    return *(one * factor for one in (a, b, c, d, e)), total


@program(*[normal(1024, 1024)] * 3, *[normal(1024)] * 3, *[normal(4096, 1024)] * 3)
def sgd_of_three_parameters(*tensors: Tensor) -> tuple[Tensor, ...]:
    new = []
    for parameter, gradient, momentum in zip(tensors[0::3], tensors[1::3], tensors[2::3], strict=True):
        momentum = 0.9 * momentum + gradient
        new += [parameter - 0.01 * momentum, momentum]
    return tuple(new)


@program(*[normal(2048, 2048), normal(2048), normal(64, 3, 7, 7), normal(16384, 512)] * 2)
def moving_averages_of_four_parameters(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch._foreach_lerp(tensors[:4], tensors[4:], 0.001))


@program(normal(4096, 4096, dtype=F16), normal(4096, 1024, dtype=F16), uniform(1))
def unscaled_gradients_and_overflow(a: Tensor, b: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
    inverse = 1.0 / (scale + 0.5)
    found = ~torch.isfinite(a).all() | ~torch.isfinite(b).all()
    return a.float() * inverse, b.float() * inverse, torch.where(found, scale * 0.5, scale)


@program(
    normal(8192, 2048),
    normal(8192, 2048),
    index(8192, 2048, high=255, dtype=torch.uint8),
    index(8192, 2048, high=255, dtype=torch.uint8),
    positive(65536),
    positive(65536),
)
def adam_with_states_in_eight_bits(
    p: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, mean_scale: Tensor, square_scale: Tensor
) -> tuple[Tensor, ...]:
    """States in blocks of 256 with one scale each; what is rounded is stored with half a step added, so that it is
    compared as what it stands for."""
    blocks = gradient.reshape(65536, 256)
    m = 0.9 * (mean.reshape(65536, 256) - 127.0) / 127.0 * mean_scale[:, None] + 0.1 * blocks
    v = 0.999 * square.reshape(65536, 256) / 255.0 * square_scale[:, None] + 0.001 * blocks.square()
    tops = m.abs().amax(1), v.amax(1)
    new = p - 1e-3 * (m / (v.sqrt() + 1e-6)).reshape(8192, 2048)
    codes = (m / tops[0][:, None] * 127.0 + 127.0).round().to(torch.uint8), (v / tops[1][:, None] * 255.0).round()
    return new, codes[0], codes[1].to(torch.uint8), *tops


@program(*[normal(4096, 4096)] * 2, normal(4096, 4096), positive(4096, 4096))
def clipped_second_order_step(p: Tensor, gradient: Tensor, mean: Tensor, curvature: Tensor) -> tuple[Tensor, Tensor]:
    """Sophia."""
    mean = 0.965 * mean + 0.035 * gradient
    return p * (1 - 1e-4) - 1e-3 * (mean / (0.04 * curvature).clamp(min=1e-15)).clamp(-1.0, 1.0), mean


@program(*[normal(4096, 2048)] * 5, positive(4096, 2048))
def adan_step(
    p: Tensor, gradient: Tensor, before: Tensor, mean: Tensor, change: Tensor, square: Tensor
) -> tuple[Tensor, ...]:
    d = gradient - before
    mean, change = 0.98 * mean + 0.02 * gradient, 0.92 * change + 0.08 * d
    square = 0.99 * square + 0.01 * (gradient + 0.92 * d).square()
    return (p - 1e-3 * (mean + 0.92 * change) / (square.sqrt() + 1e-8)) / 1.0002, mean, change, square


@program(normal(4096, 4096), normal(4096, 4096))
def adaptive_clipping_by_units(weight: Tensor, gradient: Tensor) -> Tensor:
    most = 0.01 * weight.norm(dim=1, keepdim=True).clamp(min=1e-3)
    norm = gradient.norm(dim=1, keepdim=True).clamp(min=1e-6)
    return torch.where(norm > most, gradient * (most / norm), gradient)


@program(normal(2048, 2048), normal(512, 512, 3, 3), normal(2048, 1024))
def centralised_gradients(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    return a - a.mean(1, keepdim=True), b - b.mean((1, 2, 3), keepdim=True), c - c.mean(1, keepdim=True)


@program(normal(4096, 4096), normal(4096), normal(4096))
def spectral_norm_by_power_iteration(weight: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    v = F.normalize(weight.T @ u, dim=0)
    u = F.normalize(weight @ v, dim=0)
    return weight / torch.dot(u, weight @ v), u, v


@program(normal(2048, 4096), normal(2048, 4096), normal(2048, 4096), positive(2048, 4096))
def cautious_adamw_step(p: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> tuple[Tensor, ...]:
    mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient.square()
    update = mean / (square.sqrt() + 1e-8)
    agrees = (gradient * mean > 0).to(p.dtype)
    return p - 1e-3 * update * agrees / agrees.mean().clamp(min=1e-3), mean, square


@program(normal(4096, 4096), normal(4096, 4096), normal(4096, 4096), positive(4096, 1))
def adam_with_one_second_moment_a_row(p: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> tuple[Tensor, ...]:
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.95 * square + 0.05 * gradient.square().mean(1, keepdim=True)
    return p - 1e-3 * mean / (square.sqrt() + 1e-8), mean, square


@program(normal(4096, 2048), normal(4096, 2048), normal(2048, 2048), normal(2048, 2048))
def sharpness_aware_ascent(p: Tensor, gradient: Tensor, q: Tensor, other: Tensor) -> tuple[Tensor, ...]:
    norm = torch.sqrt((p * gradient).square().sum() + (q * other).square().sum())
    factor = 0.05 / (norm + 1e-12)
    return p + p.square() * gradient * factor, q + q.square() * other * factor


@program(*[normal(1000, 100)] * 2, normal(100), normal(100))
def small_sgd_step(weight: Tensor, gradient: Tensor, bias: Tensor, bias_gradient: Tensor) -> tuple[Tensor, Tensor]:
    return weight - 0.1 * gradient, bias - 0.1 * bias_gradient
