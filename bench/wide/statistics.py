"""Moments, orders and counts."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.wide.declare import BF16, index, mask, normal, positive, program, uniform


@program(normal(8192, 3000))
def scores_of_rows(x: Tensor) -> Tensor:
    return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-6)


@program(normal(50000, 300))
def scores_of_columns(x: Tensor) -> Tensor:
    return (x - x.mean(0)) / (x.std(0) + 1e-6)


@program(normal(2048, 4096))
def scores_of_everything(x: Tensor) -> Tensor:
    return ((x - x.mean()) / x.std()).clamp(-3, 3)


@program(normal(4096, 4096))
def four_moments_of_rows(x: Tensor) -> tuple[Tensor, ...]:
    mean = x.mean(1, keepdim=True)
    centred = x - mean
    var = centred.square().mean(1)
    return mean[:, 0], var, centred.pow(3).mean(1) / var**1.5, centred.pow(4).mean(1) / var**2


@program(uniform(1 << 18))
def histogram_by_comparison(x: Tensor) -> Tensor:
    bins = torch.arange(64, device=x.device)
    return ((x * 64).long()[:, None] == bins).sum(0)


@program(index(1 << 22, high=1000))
def counts_of_a_thousand_kinds(kind: Tensor) -> Tensor:
    return torch.zeros(1000, dtype=torch.int64, device=kind.device).scatter_add(0, kind, torch.ones_like(kind))


@program(normal(1 << 16, 64))
def deviations_from_the_median_row(x: Tensor) -> Tensor:
    return (x - x.sort(0).values[1 << 15]).abs().mean(0)


@program(normal(4096, 2048))
def running_mean_and_largest(x: Tensor) -> tuple[Tensor, Tensor]:
    count = torch.arange(1, 2049, device=x.device)
    return x.cumsum(1) / count, x.cummax(1).values


@program(normal(4096, 4000))
def mean_of_the_last_twenty(x: Tensor) -> Tensor:
    total = torch.cat((torch.zeros_like(x[:, :1]), x.cumsum(1)), 1)
    return (total[:, 20:] - total[:, :-20]) / 20


@program(normal(2048, 4096))
def deviation_in_a_rolling_window(x: Tensor) -> Tensor:
    return x.unfold(1, 10, 1).std(-1)


@program(positive(16384, 1024))
def entropy_of_rows(weight: Tensor) -> Tensor:
    chances = weight / weight.sum(1, keepdim=True)
    return -(chances * (chances + 1e-12).log2()).sum(1)


@program(normal(8192, 2048), normal(8192, 2048))
def correlation_of_pairs_of_rows(x: Tensor, y: Tensor) -> Tensor:
    x, y = x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True)
    return (x * y).sum(1) / (x.square().sum(1) * y.square().sum(1)).sqrt()


@program(positive(2048, 5000))
def returns_and_volatility(price: Tensor) -> tuple[Tensor, Tensor]:
    change = torch.log((price[:, 1:] + 1) / (price[:, :-1] + 1))
    return change, change.std(1) * 252**0.5


@program(normal(256, 512, 300))
def mean_and_largest_over_different_axes(x: Tensor) -> tuple[Tensor, ...]:
    return x.mean(0), x.amax(1), x.amin(2), x.sum()


@program(normal(8192, 4096), uniform(8192, 4096))
def weighted_mean_and_variance(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    total = weight.sum(1)
    mean = (x * weight).sum(1) / total
    return mean, (x.square() * weight).sum(1) / total - mean.square()


@program(normal(4096, 4096, dtype=BF16))
def both_ends_and_where(x: Tensor) -> tuple[Tensor, ...]:
    return x.float().amin(1), x.float().amax(1), (x > 0).sum(1)


@program(normal(2048, 2048))
def centred_twice(x: Tensor) -> Tensor:
    return x - x.mean(0, keepdim=True) - x.mean(1, keepdim=True) + x.mean()


@program(normal(1 << 20, 5))
def median_of_five(x: Tensor) -> Tensor:
    a, b, c, d, e = x.unbind(1)
    a, b = torch.minimum(a, b), torch.maximum(a, b)
    d, e = torch.minimum(d, e), torch.maximum(d, e)
    low, high = torch.maximum(a, d), torch.minimum(b, e)
    low, high = torch.minimum(low, high), torch.maximum(low, high)
    return torch.maximum(low, torch.minimum(c, high))


@program(normal(4096, 8192), mask(4096, 8192))
def mean_of_what_is_known(x: Tensor, known: Tensor) -> Tensor:
    mean = torch.where(known, x, 0).sum(0) / known.sum(0).clamp(min=1)
    return torch.where(known, x, mean)


@program(normal(2048, 8192))
def correlation_with_what_was_before(x: Tensor) -> Tensor:
    centred = x - x.mean(1, keepdim=True)
    lags = [(centred[:, lag:] * centred[:, : 8192 - lag]).mean(1) for lag in (1, 2, 5, 20)]
    return torch.stack(lags, 1) / centred.square().mean(1, keepdim=True)


@program(positive(1 << 25))
def geometric_and_harmonic_mean(x: Tensor) -> tuple[Tensor, Tensor]:
    return (x + 0.1).log().mean().exp(), 1 / (1 / (x + 0.1)).mean()


@program(normal(1 << 24), normal(1 << 24))
def errors_of_a_forecast(wanted: Tensor, found: Tensor) -> tuple[Tensor, ...]:
    error = found - wanted
    share = 1 - error.square().sum() / (wanted - wanted.mean()).square().sum()
    return error.abs().mean(), error.square().mean().sqrt(), share


@program(normal(13, 7))
def moments_of_a_handful(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.mean(0), x.var(0)


@program(normal(1_000_003))
def norm_of_a_prime_vector(x: Tensor) -> Tensor:
    return x / x.norm().clamp(min=1)


@program(normal(64, 128, 1024))
def mean_of_three_norms(x: Tensor) -> Tensor:
    return (x.norm(p=1, dim=1) + x.norm(dim=1) + x.abs().amax(1)) / 3
