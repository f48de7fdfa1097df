"""Work that nobody reads is never done.

`_unused` is computed by eager PyTorch, which cannot know that its result will be thrown away. A compiler sees the
whole graph, follows the values back from what is returned, and leaves out all that is not on the way.

Lesson: dead_code
"""

import torch


def with_leftovers(x):
    _unused = torch.exp(x).sum(dim=-1) / x.shape[-1]
    kept = x.square() + x
    return kept


compiled = torch.compile(with_leftovers)
compiled(torch.randn(4096, 2048))
