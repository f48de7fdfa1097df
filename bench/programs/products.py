"""Products and convolutions of odd sizes with what stands around them, as process replay compiles them.

The programs of `bench/fusion` have products of sizes that tiles divide, and no convolutions. Here are sizes that no
tile divides, several products of one operand, and what is fused before and after a product.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from bench.fusion.program import Input, Program, tensor, weight

HALF = torch.bfloat16


def _half(*shapes: str) -> tuple[Input, ...]:
    return tuple(tensor(shape, HALF) for shape in shapes)


def relu_of_an_odd_product(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.relu(x @ w + b)


def residual_after_an_odd_product(x: Tensor, w: Tensor, y: Tensor) -> Tensor:
    return y + torch.sigmoid(x @ w)


def few_rows(x: Tensor, w: Tensor) -> Tensor:
    return x @ w


def gate(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    return F.silu(x @ w) * (x @ v)


def queries_keys_values(x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x @ q, x @ k, x @ v


def scaled_operand(x: Tensor, scale: Tensor, w: Tensor) -> Tensor:
    return (x * scale) @ w


def scores_of_heads(q: Tensor, k: Tensor) -> Tensor:
    return torch.tanh(torch.bmm(q, k.transpose(1, 2)) * 0.125)


def convolution_in_a_block(x: Tensor, w: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return torch.relu(F.conv2d(x, w, padding=1) * scale[:, None, None] + shift[:, None, None])


def pointwise_convolution(x: Tensor, w: Tensor, b: Tensor, y: Tensor) -> Tensor:
    return F.gelu(F.conv2d(x, w, b), approximate="tanh") + y


def depthwise_convolution(x: Tensor, w: Tensor) -> Tensor:
    return F.hardswish(F.conv2d(x, w, stride=2, padding=1, groups=x.shape[1]))


def convolution_of_sound(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.leaky_relu(F.conv1d(x, w, b, dilation=2))


def loss_of_a_product(x: Tensor, w: Tensor, target: Tensor) -> Tensor:
    return (torch.tanh(x @ w) - target).square().mean()


PROGRAMS = {
    function.__name__: Program(function.__name__, function, inputs)
    for function, inputs in (
        (relu_of_an_odd_product, _half("197 768", "768 1000", "1000")),
        (residual_after_an_odd_product, _half("1021 509", "509 257", "1021 257")),
        (few_rows, _half("5 4096", "4096 1000")),
        (gate, _half("1025 768", "768 2049", "768 2049")),
        (queries_keys_values, _half("197 768", "768 768", "768 768", "768 768")),
        (scaled_operand, (tensor("130 333"), tensor("333"), tensor("333 77"))),
        (scores_of_heads, _half("12 197 64", "12 197 64")),
        (convolution_in_a_block, _half("8 64 28 28", "96 64 3 3", "96", "96")),
        (pointwise_convolution, _half("8 96 14 14", "160 96 1 1", "160", "8 160 14 14")),
        (depthwise_convolution, _half("8 48 33 31", "48 1 3 3")),
        (convolution_of_sound, (tensor("4 33 1003"), tensor("65 33 5"), tensor("65"))),
        (loss_of_a_product, (tensor("257 129"), weight("129 65"), tensor("257 65"))),
    )
}
