"""Complex numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.wide.declare import normal, positive, program, uniform


@program(normal(1 << 22, 2), normal(1 << 22, 2))
def product_with_the_conjugate(a: Tensor, b: Tensor) -> Tensor:
    return torch.view_as_real(torch.view_as_complex(a) * torch.view_as_complex(b).conj())


@program(normal(64, 65536, 2))
def magnitude_and_phase(x: Tensor) -> tuple[Tensor, Tensor]:
    z = torch.view_as_complex(x)
    return z.abs(), z.angle()


@program(normal(32, 256, 1024, 2), normal(256))
def relu_of_magnitudes(x: Tensor, bias: Tensor) -> Tensor:
    z = torch.view_as_complex(x)
    size = z.abs()
    return torch.view_as_real(torch.relu(size + bias[:, None]) / (size + 1e-5) * z)


@program(positive(1 << 22), normal(1 << 22))
def from_magnitude_and_phase(size: Tensor, phase: Tensor) -> Tensor:
    return torch.view_as_real(torch.polar(size, phase))


@program(normal(1 << 21, 2))
def circle_to_half_plane(x: Tensor) -> Tensor:
    z = torch.view_as_complex(x)
    return torch.view_as_real((z - 1j) / (z + 3 + 1j))


@program(normal(16, 512, 512, 2), normal(512, 512, 2))
def spectrum_filtered_and_centred(x: Tensor, kernel: Tensor) -> Tensor:
    product = torch.view_as_complex(x) * torch.view_as_complex(kernel)
    return torch.view_as_real(torch.fft.fftshift(product, (1, 2)))


@program(uniform(1 << 23))
def waves_added_up(time: Tensor) -> Tensor:
    return torch.stack([torch.cos(6.2832 * k * time + 0.1 * k) / k for k in (1, 2, 3, 5)]).sum(0)


@program(normal(2048, 1024, 2))
def power_and_its_share(x: Tensor) -> tuple[Tensor, Tensor]:
    power = torch.view_as_complex(x).abs().square()
    return power, power / power.sum(-1, keepdim=True)
