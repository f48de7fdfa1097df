"""Softmax, written out: two reductions and three pointwise steps in one kernel.

A reduction must see a whole row before what follows can use its result. Because all steps here walk the same rows,
one program can hold a row, find its maximum, add up the exponentials and divide, without writing anything in between.
Look at the decisions: each names the rows and columns of the two nodes, and says that they agree.

Lesson: reductions_and_softmax
"""

import torch


def softmax(scores):
    highest = scores.amax(dim=-1, keepdim=True)
    exponentials = torch.exp(scores - highest)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


compiled = torch.compile(softmax)
compiled(torch.randn(4096, 1024))
