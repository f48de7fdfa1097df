"""Sound: frames, spectra, levels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import F16, index, normal, positive, program, uniform


@program(normal(16, 480000), uniform(400))
def windowed_frames(wave: Tensor, window: Tensor) -> Tensor:
    return wave.unfold(1, 400, 160) * window


@program(normal(64, 480000))
def high_tones_raised(wave: Tensor) -> Tensor:
    return torch.cat((wave[:, :1], wave[:, 1:] - 0.97 * wave[:, :-1]), 1)


@program(positive(32, 80, 3000))
def logarithm_of_mel_bands(mel: Tensor) -> Tensor:
    level = mel.clamp(min=1e-10).log10()
    level = torch.maximum(level, level.amax((1, 2), keepdim=True) - 8.0)
    return (level + 4.0) / 4.0


@program(normal(16, 257, 2000, 2))
def decibels_of_a_spectrum(spectrum: Tensor) -> Tensor:
    power = spectrum.square().sum(-1)
    return 10 * torch.log10(power + 1e-10) - 10 * torch.log10(power.amax() + 1e-10)


@program(uniform(32, 240000))
def companded(wave: Tensor) -> Tensor:
    signed = wave * 2 - 1
    return signed.sign() * torch.log1p(255 * signed.abs()) / torch.log1p(torch.tensor(255.0, device=wave.device))


@program(index(32, 240000, high=256, dtype=torch.uint8))
def expanded_again(code: Tensor) -> Tensor:
    signed = code.float() / 127.5 - 1
    return signed.sign() * (256.0 ** signed.abs() - 1) / 255


@program(normal(64, 1000, 400))
def crossings_and_level_of_frames(frames: Tensor) -> tuple[Tensor, Tensor]:
    crossings = (frames[..., 1:] * frames[..., :-1] < 0).sum(-1)
    return crossings, frames.square().mean(-1).sqrt()


@program(positive(32, 1025, 800))
def centre_and_spread_of_a_spectrum(power: Tensor) -> tuple[Tensor, Tensor]:
    frequency = torch.linspace(0, 1, 1025, device=power.device, dtype=power.dtype)[:, None]
    total = power.sum(1) + 1e-8
    centre = (power * frequency).sum(1) / total
    spread = (power * (frequency - centre[:, None]).square()).sum(1) / total
    return centre, spread.sqrt()


@program(normal(64, 80, 2000))
def changes_of_features(x: Tensor) -> Tensor:
    padded = F.pad(x, (2, 2), mode="replicate")
    delta = (padded[..., 3:-1] - padded[..., 1:-3] + 2 * (padded[..., 4:] - padded[..., :-4])) / 10
    return torch.cat((x, delta), 1)


@program(normal(16, 1024, 1000))
def frames_added_up(frames: Tensor) -> Tensor:
    return F.fold(frames, (1, 256 * 999 + 1024), (1, 1024), stride=(1, 256))


@program(normal(32, 2, 240000, dtype=F16))
def middle_and_sides(stereo: Tensor) -> Tensor:
    left, right = stereo.unbind(1)
    return torch.stack(((left + right) * 0.5, (left - right) * 0.5), 1)


@program(normal(64, 160000), normal(64, 160000))
def noise_mixed_at_a_ratio(wave: Tensor, noise: Tensor) -> Tensor:
    gain = (wave.square().mean(1, keepdim=True) / (noise.square().mean(1, keepdim=True) * 10 + 1e-8)).sqrt()
    mixed = wave + gain * noise
    return mixed / mixed.abs().amax(1, keepdim=True)


@program(normal(64, 80, 2000), index(64, high=1900), index(64, high=70))
def bands_and_times_masked(mel: Tensor, time: Tensor, band: Tensor) -> Tensor:
    step = torch.arange(2000, device=mel.device) - time[:, None]
    row = torch.arange(80, device=mel.device) - band[:, None]
    hidden = ((step >= 0) & (step < 100))[:, None] | ((row >= 0) & (row < 10))[:, :, None]
    return mel.masked_fill(hidden, 0.0)


@program(normal(16, 513, 1000, 2), positive(16, 513, 1000))
def spectrum_with_given_magnitudes(guess: Tensor, magnitude: Tensor) -> Tensor:
    guess = torch.view_as_complex(guess)
    return torch.view_as_real(magnitude * guess / (guess.abs() + 1e-8))


@program(normal(1, 16000))
def loudness_of_a_second(wave: Tensor) -> Tensor:
    return 20 * torch.log10(wave.view(100, 160).square().mean(-1).sqrt() + 1e-5)
