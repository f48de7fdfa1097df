"""Reading across the rows: fusing is legal, but is it worth it?

A transposed view moves nothing: it only changes the formula by which elements are found. Here one operand is read
along its rows and the other along its columns. One kernel can still do both, but one of the two reads then touches
memory in large strides; the index formulas of the loop show which one.

Lesson: index_order
"""

import torch


def add_transposed(a, b):
    return torch.relu(a) + torch.relu(b.t())


compiled = torch.compile(add_transposed)
compiled(torch.randn(2048, 2048), torch.randn(2048, 2048))
