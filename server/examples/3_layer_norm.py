"""Layer norm: a mean, a variance, and an affine step that broadcasts.

The mean and the variance reduce along the same axis, so both can be taken while the row is at hand. The weight and
the bias have one value for each column: the same for every row, they are read again and again, from cache.

Lesson: reductions_and_softmax
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.bias = torch.nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = (x - mean).square().mean(dim=-1, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + 1e-5) * self.weight + self.bias


def get_init_inputs():
    return [1024]


def get_inputs():
    return [torch.randn(4096, 1024)]
