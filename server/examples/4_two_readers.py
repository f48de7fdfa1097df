"""One value, two readers: keep it, write it, or compute it again?

`activation` is read by two results. Both results walk the same elements, so one kernel can compute the activation
once and feed both from a register. Then change `activation.sum()` into `activation.t().contiguous()`: the second
reader now walks the elements in another order, and the scheduler has to choose, with numbers.

Lesson: memory_hierarchy
"""

import torch


def two_readers(x, scale):
    activation = torch.tanh(x) * scale
    return activation + 1.0, activation.sum(dim=-1)


compiled = torch.compile(two_readers)
compiled(torch.randn(2048, 2048), torch.randn(2048))
