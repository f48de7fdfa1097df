"""A matrix product and what follows it.

The product itself is best left to a library. What follows (add a bias, apply GELU) is pointwise on its result: three
operations that become one kernel, an "epilogue". Compare the bytes that the epilogue moves with the operations of
the product to see which of the two decides the time.

Lesson: products_and_layout
"""

import torch


def linear_gelu(x, weight, bias):
    projected = x @ weight + bias
    return 0.5 * projected * (1.0 + torch.erf(projected * 0.7071067811865476))


compiled = torch.compile(linear_gelu)
compiled(torch.randn(512, 512), torch.randn(512, 1024), torch.randn(1024))
