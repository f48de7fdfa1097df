"""Graphs of any length, of the kinds that models are made of: what the suite `scheduling` schedules.

A kind is a function of a count of blocks that gives a program and the shapes of its inputs. Programs are traced with
fake tensors, so the sizes are those of real models and no memory is needed; a training step is one graph, forward and
backward together, which is harder to schedule than its two halves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.lowering.decompositions import decompositions
from compiler.lowering.lower import lower

Shape = tuple[int, ...]
Function = Callable[[Sequence[Tensor]], Any]


@dataclass(frozen=True)
class Program:
    """A function of a list of float32 tensors of these shapes. With `trains`, its result is a loss, and what is traced
    is the loss and its gradients with respect to all inputs."""

    function: Function
    shapes: tuple[Shape, ...]
    trains: bool = False

    def graph(self) -> torch.fx.GraphModule:
        """The functional ATen graph, as a backend of torch.compile gets it."""

        def step(*tensors: Tensor) -> Any:
            if not self.trains:
                return self.function(tensors)
            loss = self.function(tensors)
            return loss, *torch.autograd.grad(loss, tensors)

        with FakeTensorMode():
            inputs = [torch.empty(shape, requires_grad=self.trains) for shape in self.shapes]
            traced: torch.fx.GraphModule = make_fx(step, decomposition_table=decompositions())(*inputs)
        return traced


Kind = Callable[[int], Program]


def transformer_training(blocks: int) -> Program:
    """Attention by library call, two layer norms and a GELU in each block."""
    width, tokens, batch, heads = 256, 128, 4, 4

    def block(x: Tensor, qkv: Tensor, out: Tensor, up: Tensor, down: Tensor, *norms: Tensor) -> Tensor:
        weight_1, bias_1, weight_2, bias_2 = norms
        y = F.layer_norm(x, (width,), weight_1, bias_1) @ qkv
        q, k, v = (part.view(batch, tokens, heads, -1).transpose(1, 2) for part in y.chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / (width // heads) ** 0.5
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width)
        x = x + mixed @ out
        y = F.layer_norm(x, (width,), weight_2, bias_2) @ up
        return x + F.gelu(y, approximate="tanh") @ down

    def function(tensors: Sequence[Tensor]) -> Tensor:
        x, *weights = tensors
        for start in range(0, len(weights), 8):
            x = block(x, *weights[start : start + 8])
        return x.square().mean()

    vector = (width,)
    of_block: tuple[Shape, ...] = (
        (width, 3 * width), (width, width), (width, 4 * width), (4 * width, width), vector, vector, vector, vector,
    )  # fmt: skip
    return Program(function, ((batch, tokens, width), *(of_block * blocks)), trains=True)


def residual_training(blocks: int) -> Program:
    """Convolutions with batch norm and ReLU, added to what they read."""
    channels, size, batch = 64, 28, 8

    def function(tensors: Sequence[Tensor]) -> Tensor:
        x, *weights = tensors
        for start in range(0, len(weights), 6):
            kernel_1, weight_1, bias_1, kernel_2, weight_2, bias_2 = weights[start : start + 6]
            y = F.batch_norm(F.conv2d(x, kernel_1, padding=1), None, None, weight_1, bias_1, training=True).relu()
            y = F.batch_norm(F.conv2d(y, kernel_2, padding=1), None, None, weight_2, bias_2, training=True)
            x = (x + y).relu()
        return x.square().mean()

    kernel, vector = (channels, channels, 3, 3), (channels,)
    of_block: tuple[Shape, ...] = (kernel, vector, vector, kernel, vector, vector)
    return Program(function, ((batch, channels, size, size), *(of_block * blocks)), trains=True)


def pointwise_chain(blocks: int) -> Program:
    """A chain in which every value has several readers, some far away, and one tensor is read by all."""

    def function(tensors: Sequence[Tensor]) -> Any:
        x, scale = tensors
        kept = [x]
        for number in range(blocks):
            y = torch.sin(x) * scale
            x = y + torch.cos(x) * kept[number // 2] + y.abs()
            kept.append(x)
        return x, kept[len(kept) // 2]

    return Program(function, ((512, 512), (512,)))


def optimiser(blocks: int) -> Program:
    """One step of Adam for many small parameters, each updated on its own."""
    shapes: tuple[Shape, ...] = ((256, 64), (256,), (64,), (16, 16))

    def function(tensors: Sequence[Tensor]) -> Any:
        updated: list[Tensor] = []
        for start in range(0, len(tensors), 4):
            parameter, gradient, mean, square = tensors[start : start + 4]
            mean = mean * 0.9 + gradient * 0.1
            square = square * 0.999 + gradient * gradient * 0.001
            updated += [parameter - mean / (square.sqrt() + 1e-8) * 1e-3, mean, square]
        return updated

    return Program(function, tuple(shapes[number % len(shapes)] for number in range(blocks) for _ in range(4)))


def concatenations(blocks: int) -> Program:
    """Dense blocks: each step reads the concatenation of all before it, sixteen steps a block."""
    rows, width, steps = 512, 32, 16

    def function(tensors: Sequence[Tensor]) -> Any:
        (x,) = tensors
        for _ in range(blocks):
            parts = [x]
            for step in range(steps):
                joined = torch.cat(parts, 1) if step else x
                parts.append(joined.relu().sigmoid()[:, :width] + joined[:, -width:].tanh())
            x = torch.cat(parts, 1).reshape(rows, -1, width).amax(1)
        return x

    return Program(function, ((rows, width),))


KINDS: dict[str, Kind] = {
    "transformer_training": transformer_training,
    "residual_training": residual_training,
    "pointwise_chain": pointwise_chain,
    "optimiser": optimiser,
    "concatenations": concatenations,
}


def blocks_for(kind: str, nodes: int) -> int:
    """How many blocks of a kind make the shortest program with at least so many loop nodes."""
    two, three = (len(lower(KINDS[kind](blocks).graph()).nodes) for blocks in (2, 3))
    return 2 + max(0, -(-(nodes - two) // (three - two)))
