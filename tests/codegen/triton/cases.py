"""The table of hand-written groups: sizes that divide and sizes that do not, every plan, every dtype."""

from __future__ import annotations

import torch

from tests.codegen.triton import groups
from tests.codegen.triton.groups import Case

_TIES = torch.tensor([[1.0, 5.0, 5.0, 0.0] * 10, [float("nan"), 7.0, float("nan"), 9.0] * 10, [-1e30] * 40])


def all_cases() -> list[Case]:
    torch.manual_seed(0)
    return [
        *(
            groups.pointwise(dtype, 37, 129)
            for dtype in (
                torch.float32,
                torch.float64,
                torch.float16,
                torch.bfloat16,
                torch.int64,
                torch.int32,
                torch.uint8,
            )
        ),
        groups.pointwise(torch.float32, 64, 128),
        groups.pointwise(torch.float32, 0, 3),
        groups.pointwise(torch.float32, 1, 1),
        groups.transposed(96, 160),
        groups.transposed(33, 70),
        groups.transposed(5, 1000, torch.bfloat16),
        groups.pairs_apart(5, 128),
        groups.pairs_apart(3, 130, torch.bfloat16),
        groups.softmax(4, 1000),
        groups.softmax(50, 40),
        groups.softmax(3, 40000),
        groups.softmax(4, 256, torch.bfloat16),
        groups.softmax(3, 100, torch.float64),
        groups.layer_norm(5, 768),
        groups.layer_norm(2, 50000),
        *(groups.reduction(kind, 5, 300, 1) for kind in ("sum", "prod", "min", "max", "argmin", "argmax")),
        *(groups.reduction(kind, 5, 9000, 1) for kind in ("sum", "prod", "min", "max", "argmin", "argmax")),
        *(groups.reduction(kind, 700, 40, 0) for kind in ("sum", "min", "max", "argmax")),
        *(groups.reduction(kind, 70, 1000, -1) for kind in ("sum", "min", "max", "argmin", "argmax")),
        *(groups.reduction(kind, 3, 5000, 1, torch.bool) for kind in ("any", "all")),
        *(groups.reduction(kind, 40, 70, 1, torch.bool) for kind in ("any", "all")),
        groups.reduction("any", 100, 1000, -1, torch.bool),
        *(groups.reduction(kind, 7, 6000, 1, torch.int64) for kind in ("sum", "min", "max", "argmax")),
        groups.reduction("sum", 100, 1000, -1, torch.int64),
        groups.reduction("sum", 100, 1000, -1, torch.float64),
        groups.reduction("sum", 7, 6000, 1, torch.bfloat16),
        groups.reduction("max", 7, 60, 1, torch.uint8),
        *(groups.reduction(kind, 3, 40, 1, data=_TIES) for kind in ("argmin", "argmax", "min", "max")),
        groups.reduction("sum", 5, 0, 1),
        groups.reduction("sum", 0, 5, 1),
        groups.reduction("sum", 1, 1, -1),
        groups.reduced_constant(40, 2),
        groups.reduced_constant(3, 9000),
        groups.stored_and_summed(5, 300),
        groups.stored_and_summed(2, 40000),
        groups.concatenated(100, 57),
        groups.embedding(50, 24, 19),
        groups.embedding(50, 24, 19, torch.uint8),
        groups.random(1000, "rand"),
        groups.random(1000, "randn"),
    ]
