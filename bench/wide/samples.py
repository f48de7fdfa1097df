"""Programs that choose a sample or a place by its score."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.wide.declare import index, normal, program


@program(normal(8192, 4096), index(8192, high=4096), gradients=True)
def log_probability_of_a_place(scores: Tensor, place: Tensor) -> Tensor:
    return torch.log_softmax(scores, -1).gather(1, place[:, None])


@program(normal(65536, 512))
def margin_of_the_first_two(scores: Tensor) -> Tensor:
    first = scores.amax(-1, keepdim=True)
    second = torch.where(scores == first, -torch.inf, scores).amax(-1, keepdim=True)
    return (first - second).squeeze(-1)
