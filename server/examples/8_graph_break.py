"""A graph break cuts the program in two, and fusion stops at the cut.

The condition asks for the value of a tensor, which is only known when the program runs. So capture ends there, the
condition runs in Python, and the rest is captured as a second graph. Nothing is fused across the two. Replace the
`if` by `torch.where` and the break is gone.

Lesson: breaks_guards_recompiles
"""

import torch


def scaled(x):
    doubled = x * 2.0
    if doubled.sum() > 0:
        return torch.relu(doubled) + 1.0
    return torch.sigmoid(doubled)


compiled = torch.compile(scaled)
compiled(torch.ones(1024, 1024))
