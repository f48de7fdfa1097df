"""Nodes, edges and what travels along them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import index, mask, normal, positive, program

NODES, EDGES = 20000, 200000


@program(normal(NODES, 64), index(EDGES, high=NODES), index(EDGES, high=NODES))
def sums_over_neighbours(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, target, x[source])


@program(normal(NODES, 32), index(EDGES, high=NODES), index(EDGES, high=NODES))
def neighbours_by_roots_of_degrees(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
    degree = torch.zeros(NODES, device=x.device, dtype=x.dtype).index_add(0, target, torch.ones_like(x[:, 0])[source])
    norm = (degree + 1).rsqrt()
    message = x[source] * (norm[source] * norm[target])[:, None]
    return F.relu(torch.zeros_like(x).index_add(0, target, message) + x * norm[:, None].square())


@program(normal(NODES), normal(NODES), index(EDGES, high=NODES), index(EDGES, high=NODES))
def weights_of_attention_on_edges(a: Tensor, b: Tensor, source: Tensor, target: Tensor) -> Tensor:
    score = F.leaky_relu(a[source] + b[target], 0.2).exp()
    total = torch.zeros_like(a).index_add(0, target, score)
    return score / (total[target] + 1e-9)


@program(normal(NODES, 32), index(NODES, 16, high=NODES))
def edges_to_the_nearest(x: Tensor, nearest: Tensor) -> Tensor:
    centre = x[:, None].expand(NODES, 16, 32)
    return torch.cat((centre, x[nearest] - centre), -1)


@program(normal(NODES, 128), index(NODES, 10, high=NODES))
def mean_and_largest_of_ten_neighbours(x: Tensor, near: Tensor) -> Tensor:
    around = x[near]
    return torch.cat((x, around.mean(1), around.amax(1)), -1)


@program(mask(4096, 4096))
def adjacency_by_roots_of_degrees(linked: Tensor) -> Tensor:
    weight = (linked | linked.t()).float()
    norm = weight.sum(1).clamp(min=1).rsqrt()
    return weight * norm[:, None] * norm


@program(positive(4096, 4096))
def laplacian_of_a_graph(weight: Tensor) -> Tensor:
    both = (weight + weight.t()) / 2
    return torch.diag(both.sum(1)) - both


@program(normal(NODES, 64), index(EDGES, high=NODES), index(EDGES, high=NODES))
def largest_message(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
    place = target[:, None].expand(EDGES, 64)
    return torch.full_like(x, -10.0).scatter_reduce(0, place, x[source], "amax")


@program(positive(NODES), index(EDGES, high=NODES), index(EDGES, high=NODES), positive(NODES))
def step_of_page_rank(rank: Tensor, source: Tensor, target: Tensor, degree: Tensor) -> Tensor:
    flow = torch.zeros_like(rank).index_add(0, target, (rank / (degree + 1))[source])
    return 0.15 / NODES + 0.85 * flow


@program(normal(NODES, 3), index(EDGES, high=NODES), index(EDGES, high=NODES))
def lengths_of_edges_in_waves(place: Tensor, source: Tensor, target: Tensor) -> Tensor:
    length = (place[source] - place[target]).norm(dim=-1, keepdim=True).clamp(max=5.0)
    waves = torch.sin(torch.arange(1, 17, device=place.device) * 0.628 * length)
    return waves * (0.5 * torch.cos(0.628 * length) + 0.5)
