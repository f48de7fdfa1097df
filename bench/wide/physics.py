"""Fields, particles and prices, a step at a time."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import index, normal, positive, program, uniform


def laplacian(x: Tensor) -> Tensor:
    """The sum of the four neighbours, less four times the point, on a torus."""
    return x.roll(1, -1) + x.roll(-1, -1) + x.roll(1, -2) + x.roll(-1, -2) - 4 * x


@program(uniform(4, 2048, 2048), uniform(4, 2048, 2048))
def reaction_and_diffusion(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    reaction = u * v * v
    return u + 0.16 * laplacian(u) - reaction + 0.06 * (1 - u), v + 0.08 * laplacian(v) + reaction - 0.122 * v


@program(normal(256, 256, 256))
def heat_in_a_cube(x: Tensor) -> Tensor:
    inner = x[1:-1, 1:-1, 1:-1]
    around = x[2:, 1:-1, 1:-1] + x[:-2, 1:-1, 1:-1] + x[1:-1, 2:, 1:-1] + x[1:-1, :-2, 1:-1]
    around = around + x[1:-1, 1:-1, 2:] + x[1:-1, 1:-1, :-2]
    return F.pad(inner + 0.1 * (around - 6 * inner), (1, 1, 1, 1, 1, 1))


@program(normal(8, 1500, 1500), normal(8, 1500, 1500))
def step_of_a_wave(now: Tensor, before: Tensor) -> Tensor:
    padded = F.pad(now, (1, 1, 1, 1))
    around = padded[:, 2:, 1:-1] + padded[:, :-2, 1:-1] + padded[:, 1:-1, 2:] + padded[:, 1:-1, :-2]
    return (2 * now - before + 0.25 * (around - 4 * now)) * 0.999


@program(normal(4096, 3), positive(4096))
def forces_between_bodies(place: Tensor, mass: Tensor) -> Tensor:
    away = place[None] - place[:, None]
    inverse = (away.square().sum(-1) + 0.01).pow(-1.5)
    return (away * (mass * inverse)[..., None]).sum(1)


@program(normal(2048, 3))
def energy_of_pairs_in_a_box(place: Tensor) -> Tensor:
    away = place[:, None] - place
    away = away - 8.0 * torch.round(away / 8.0)
    sixth = (0.8 / (away.square().sum(-1) + 0.5)) ** 3
    return (4 * (sixth * sixth - sixth)).sum(1)


@program(uniform(9, 1024, 1024))
def collision_on_a_lattice(f: Tensor) -> Tensor:
    density = f.sum(0) + 1.0
    vx = (f[1] + f[5] + f[8] - f[3] - f[6] - f[7]) / density
    vy = (f[2] + f[5] + f[6] - f[4] - f[7] - f[8]) / density
    along = torch.stack((0 * vx, vx, vy, -vx, -vy, vx + vy, vy - vx, -vx - vy, vx - vy))
    still = density * (1 + 3 * along + 4.5 * along.square() - 1.5 * (vx * vx + vy * vy)) / 9
    return f + 0.6 * (still - f)


@program(uniform(9, 1024, 1024))
def streaming_on_a_lattice(f: Tensor) -> Tensor:
    steps = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1))
    return torch.stack([f[k].roll(step, (0, 1)) for k, step in enumerate(steps)])


@program(index(32, 1024, 1024, high=2, dtype=torch.int8))
def energy_of_spins(bit: Tensor) -> Tensor:
    spin = bit.float() * 2 - 1
    return -(spin * (spin.roll(1, 1) + spin.roll(1, 2))).mean((1, 2))


@program(index(16, 1024, 1024, high=2, dtype=torch.int8), uniform(16, 1024, 1024))
def half_of_the_spins_turned(bit: Tensor, chance: Tensor) -> Tensor:
    spin = bit.to(torch.int32) * 2 - 1
    field = spin.roll(1, 1) + spin.roll(-1, 1) + spin.roll(1, 2) + spin.roll(-1, 2)
    place = torch.arange(1024, device=bit.device)
    turned = (chance < torch.exp(-0.8 * (spin * field).float())) & ((place + place[:, None]) % 2 == 0)
    return torch.where(turned, -spin, spin).to(torch.int8)


@program(index(4, 2048, 2048, high=2, dtype=torch.uint8))
def game_of_life(alive: Tensor) -> Tensor:
    around = sum(alive.roll((i, j), (1, 2)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((around == 3) | ((alive == 1) & (around == 2))).to(torch.uint8)


@program(normal(2, 2048, 2048))
def curl_and_divergence(field: Tensor) -> tuple[Tensor, Tensor]:
    (along_y, along_x) = torch.gradient(field, dim=(1, 2))
    return along_x[1] - along_y[0], along_x[0] + along_y[1]


@program(normal(64, 100000))
def upwind_step(u: Tensor) -> Tensor:
    left, right = u - u.roll(1, 1), u.roll(-1, 1) - u
    return u - 0.1 * (u.clamp(min=0) * left + u.clamp(max=0) * right) + 0.01 * (right - left)


@program(*[normal(1024, 2048)] * 3)
def electric_and_magnetic_field(e: Tensor, hx: Tensor, hy: Tensor) -> tuple[Tensor, ...]:
    hx = hx[:, :-1] - 0.5 * (e[:, 1:] - e[:, :-1])
    hy = hy[:-1] + 0.5 * (e[1:] - e[:-1])
    inner = e[1:-1, 1:-1] + 0.5 * (hy[1:, 1:-1] - hy[:-1, 1:-1] - hx[1:-1, 1:] + hx[1:-1, :-1])
    return inner, hx, hy


@program(normal(2, 1024, 1024), normal(1024, 1024))
def carried_by_the_flow(velocity: Tensor, dye: Tensor) -> Tensor:
    place = torch.arange(1024, device=dye.device)
    row = (place[:, None] - velocity[0].round().long()) % 1024
    column = (place - velocity[1].round().long()) % 1024
    return dye[row, column] * 0.99


@program(*[positive(1 << 22)] * 3)
def price_of_an_option(spot: Tensor, strike: Tensor, years: Tensor) -> tuple[Tensor, Tensor]:
    spot, strike, root = spot + 0.5, strike + 0.5, (years + 0.1).sqrt() * 0.3
    first = (torch.log(spot / strike) + 0.02 * (years + 0.1)) / root + root / 2
    chance = 0.5 * (1 + torch.erf(first * 0.70711))
    other = 0.5 * (1 + torch.erf((first - root) * 0.70711))
    call = spot * chance - strike * torch.exp(-0.02 * (years + 0.1)) * other
    return call, chance


@program(normal(65536, 128))
def payoff_of_paths(noise: Tensor) -> Tensor:
    path = torch.exp((noise * 0.02 - 0.0002).cumsum(1))
    return (path.mean(1) - 1).clamp(min=0).mean()


@program(normal(2048, 2048), normal(2048, 2048))
def three_sweeps_of_jacobi(x: Tensor, source: Tensor) -> Tensor:
    for _ in range(3):
        p = F.pad(x, (1, 1, 1, 1))
        x = 0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - source)
    return x


@program(normal(100, 3), normal(100, 3))
def particles_bouncing_off_walls(place: Tensor, speed: Tensor) -> tuple[Tensor, Tensor]:
    moved = place + 0.01 * speed
    outside = moved.abs() > 1
    return moved.clamp(-1, 1), torch.where(outside, -0.9 * speed, speed)
