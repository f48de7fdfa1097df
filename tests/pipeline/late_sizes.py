"""Functions in whose graphs a size is known only when an operator has run, each with inputs of several calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import fusionscope

#: Dynamo takes such operators into the graph where these are on.
SETTINGS = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def positives(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.sin()
    kept = y[y > 0]
    return (kept * 2 + 1).sum(), kept * 3


def rows(x: Tensor) -> tuple[Tensor, ...]:
    y = x[x[:, 0] > 0]
    return y.softmax(1), y.sum(0), F.layer_norm(y, (5,)), y.amax(1), (y @ y.t()).relu()


def places(x: Tensor) -> tuple[Tensor, Tensor]:
    i, j = torch.where(x > 0)
    return x[i, j] + i, torch.ones(i.shape[0], 3, device=x.device).cumsum(0)


def both_signs(x: Tensor) -> Tensor:
    a, b = x[x > 0], x[x < 0]
    return torch.cat([a, b.exp()]).cos()


def count(x: Tensor) -> tuple[int, Tensor]:
    found = x.nonzero()
    return found.shape[0], x.sum() * found.shape[0]


def as_many_as(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    size: int = n.item()  # type: ignore[assignment]  # of an integer
    torch._check(size >= 0)
    torch._check(size <= x.shape[0])
    return torch.zeros(size, device=x.device) + x.sum(), x[:size].sum(0)


def parts(x: Tensor, sizes: Tensor) -> list[Tensor]:
    a, b = sizes.tolist()
    torch._check(a >= 0)
    torch._check(b >= 0)
    torch._check(a + b == x.shape[0])
    return [part * 2 for part in x.split([a, b])]


def repeated(x: Tensor, often: Tensor) -> Tensor:
    return torch.repeat_interleave(x, often, 0) * 2


def of_two_shapes(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda a: a[:3] + 1, lambda a: a[:5] - 1, (x.sin(),)) * 3


def sum_of_positives(x: Tensor) -> Tensor:
    y = x * 2
    kept = y[y > 0]
    return (kept * kept.sin()).sum()


LINE, TABLE = numbers(40), numbers(9, 5)

CASES: dict[str, tuple[Callable[..., Any], list[tuple[Tensor, ...]]]] = {
    "mask": (positives, [(LINE,), (LINE - 9,), (LINE + 9,), (LINE - LINE.topk(1).values + 1e-3,)]),
    "rows": (rows, [(TABLE,), (TABLE + 9,)]),
    "where": (places, [(TABLE,), (TABLE - 9,)]),
    "two masks": (both_signs, [(LINE,), (LINE - 9,)]),
    "count": (count, [(TABLE,), (TABLE * 0,)]),
    "item": (as_many_as, [(TABLE, torch.tensor(n)) for n in (7, 0, 1)]),
    "tolist": (parts, [(TABLE, torch.tensor([4, 5])), (TABLE, torch.tensor([0, 9]))]),
    "repeat_interleave": (repeated, [(TABLE[:3], torch.tensor([2, 0, 3])), (TABLE[:3], torch.tensor([0, 0, 0]))]),
    "cond": (of_two_shapes, [(LINE - LINE.mean() + 1,), (LINE - LINE.mean() - 1,)]),
}


def check_results(name: str, device: str) -> None:
    """A case gives what eager gives, in every call."""
    torch._dynamo.reset()
    function, calls = CASES[name]
    with torch._dynamo.config.patch(SETTINGS):
        compiled = torch.compile(function, backend=fusionscope, fullgraph=True)
        for call in calls:
            given = [x.to(device) for x in call]
            torch.testing.assert_close(compiled(*given), function(*given), equal_nan=True)


def check_gradients(device: str) -> None:
    """Gradients are eager's, where some elements are chosen and where none is."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(SETTINGS):
        compiled = torch.compile(sum_of_positives, backend=fusionscope, fullgraph=True)
        for shift in (0, -9):
            ours, eager = ((LINE + shift).to(device).requires_grad_() for _ in range(2))
            compiled(ours).backward()
            sum_of_positives(eager).backward()
            torch.testing.assert_close(ours.grad, eager.grad)
