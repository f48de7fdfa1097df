"""Steps of which each needs the one before, written as Python loops."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.wide.declare import BF16, normal, positive, program, uniform


@program(normal(8, 1 << 20))
def moving_average_of_eight_steps(x: Tensor) -> Tensor:
    state, seen = x[0], [x[0]]
    for step in range(1, 8):
        state = 0.9 * state + 0.1 * x[step]
        seen.append(state)
    return torch.stack(seen)


@program(normal(8, 1 << 20))
def spikes_of_leaky_neurons(current: Tensor) -> Tensor:
    voltage = torch.zeros_like(current[0])
    levels = []
    for step in range(8):
        voltage = 0.8 * voltage + current[step]
        voltage = voltage - (voltage - 1).clamp(min=0)
        levels.append(voltage)
    return torch.stack(levels).mean(0)


@program(normal(16384, 16), uniform(16384, 16), normal(16384, 16))
def advantages_backwards_in_time(reward: Tensor, going_on: Tensor, value: Tensor) -> Tensor:
    last, kept = torch.zeros_like(reward[:, 0]), []
    for step in reversed(range(15)):
        delta = reward[:, step] + 0.99 * value[:, step + 1] * going_on[:, step] - value[:, step]
        last = delta + 0.95 * 0.99 * going_on[:, step] * last
        kept.append(last)
    return torch.stack(kept[::-1], 1)


@program(uniform(1 << 22))
def logistic_map(x: Tensor) -> Tensor:
    for _ in range(6):
        x = 2.8 * x * (1 - x)
    return x


@program(uniform(2048, 2048))
def escape_of_points(x: Tensor) -> Tensor:
    real, imaginary = x * 0.5 - 0.25, x.t() * 0.5 - 0.25
    zr, zi = real, imaginary
    for _ in range(8):
        zr, zi = zr * zr - zi * zi + real, 2 * zr * zi + imaginary
    return zr * zr + zi * zi


@program(normal(64, 512, 512))
def rows_and_columns_balanced(scores: Tensor) -> Tensor:
    for _ in range(3):
        scores = scores - scores.logsumexp(2, keepdim=True)
        scores = scores - scores.logsumexp(1, keepdim=True)
    return scores.exp()


@program(normal(1 << 22))
def chebyshev_polynomials(x: Tensor) -> Tensor:
    x = torch.tanh(x)
    terms = [torch.ones_like(x), x]
    for _ in range(4):
        terms.append(2 * x * terms[-1] - terms[-2])
    return torch.stack(terms, -1)


@program(positive(1 << 23))
def reciprocal_root_by_newton(x: Tensor) -> Tensor:
    y = 1 / (1 + x)
    for _ in range(5):
        y = y * (1.5 - 0.5 * (x / 10 + 0.1) * y * y)
    return y


@program(normal(8, 2048, 16), positive(8, 2048), normal(2048, 16), normal(8, 16), normal(8, 16), normal(8, 2048))
def step_of_a_state_space(state: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    decay = torch.exp(-dt[..., None] * a.abs())
    state = state * decay + dt[..., None] * b[:, None] * x[..., None]
    return state, (state * c[:, None]).sum(-1)


@program(normal(2048, 512, 64, dtype=BF16), normal(512, 64, dtype=BF16))
def four_steps_of_a_gated_memory(x: Tensor, decay: Tensor) -> Tensor:
    keep = torch.sigmoid(decay.float())
    state = x[0].float()
    for step in range(1, 4):
        state = keep * state + (1 - keep) * x[step * 512].float()
    return (x.float() * state).to(x.dtype)


@program(normal(1 << 21), normal(1 << 21))
def pendulum_by_leapfrog(angle: Tensor, speed: Tensor) -> tuple[Tensor, Tensor]:
    for _ in range(5):
        speed = speed - 0.05 * torch.sin(angle)
        angle = angle + 0.1 * speed
        speed = speed - 0.05 * torch.sin(angle)
    return angle, speed


@program(normal(1 << 20), normal(1 << 20), normal(1 << 20))
def attractor_by_runge_and_kutta(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    def slope(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return torch.stack((10 * (y - x), x * (28 - z) - y, x * y - 2.6667 * z))

    point = torch.stack((x, y, z))
    first = slope(*point)
    second = slope(*(point + 0.005 * first))
    third = slope(*(point + 0.005 * second))
    return point + 0.01 / 6 * (first + 2 * second + 2 * third + slope(*(point + 0.01 * third)))


@program(normal(4096, 256))
def level_and_trend(x: Tensor) -> Tensor:
    level, trend = x[:, 0], x[:, 1] - x[:, 0]
    for step in range(1, 12):
        before = level
        level = 0.3 * x[:, step] + 0.7 * (level + trend)
        trend = 0.1 * (level - before) + 0.9 * trend
    return level[:, None] + trend[:, None] * torch.arange(1, 257, device=x.device)
