"""Replace products in bfloat16 and float16 on a CPU without instructions for them.

torch's libraries then multiply element by element: one product of 512 x 2048 by 2048 x 4096 in bfloat16 was seen to
take 28 s of processor time, where float32 takes 0.1 s. What only needs the values computes such products in float32 and
rounds the result, which is what the missing instructions do.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

#: Seconds of one call from which its products are not worth waiting for.
SLOW_SECONDS = 3.0
#: What a CPU has instructions for is about as fast as float32, or faster; what it has none for, a hundred times slower.
CLEARLY_SLOWER = 8.0
#: Multiplications that no CPU takes so long for: a graph with fewer of them is not looked at further.
_CERTAINLY_QUICK = 250_000_000
#: Rows, what is summed over, and columns of the product that is timed: its matrices are larger than most caches, which
#: is where products without instructions lose most.
_PROBE = (8, 2048, 1024)

_LOW = (torch.bfloat16, torch.float16)
_aten = torch.ops.aten
_PRODUCTS = {
    overload: getattr(_aten, name).default
    for name in ("mm", "addmm", "bmm", "baddbmm")
    for overload in (getattr(_aten, name).default, getattr(_aten, name).out)
}


def product_seconds(graph: torch.fx.GraphModule) -> float:
    """What one call of the ATen graph spends in products of low precision on this CPU, by the rate of a small one; 0.0
    where that is little."""
    counts = {dtype: sum(_multiplications(node, dtype) for node in graph.graph.nodes) for dtype in _LOW}
    if sum(counts.values()) < _CERTAINLY_QUICK:
        return 0.0
    return sum(count / _per_second(dtype, torch.get_num_threads()) for dtype, count in counts.items() if count)


def _multiplications(node: torch.fx.Node, dtype: torch.dtype) -> int:
    result = node.meta.get("val")
    if node.target not in _PRODUCTS or not isinstance(result, torch.Tensor):
        return 0
    if result.dtype != dtype or result.device.type != "cpu":
        return 0
    left = [read.meta["val"] for read in node.all_input_nodes if isinstance(read.meta.get("val"), torch.Tensor)]
    sizes = [*result.shape, left[-1].shape[-2] if left and left[-1].dim() >= 2 else 1]
    return math.prod(size for size in sizes if isinstance(size, int))


@functools.cache
def _per_second(dtype: torch.dtype, threads: int) -> float:
    """Multiplications of this CPU in a second, `threads` of them at a time; infinitely many where they are not clearly
    slower than those of float32."""
    seconds, in_float32 = _probe_seconds(dtype), _probe_seconds(torch.float32)
    if seconds < CLEARLY_SLOWER * in_float32:
        return math.inf
    rows, summed, columns = _PROBE
    return rows * summed * columns / seconds


def _probe_seconds(dtype: torch.dtype) -> float:
    """Of this thread's processor time, so that a busy machine does not count; the first one may set something up."""
    rows, summed, columns = _PROBE
    left, right = torch.ones(rows, summed, dtype=dtype), torch.ones(summed, columns, dtype=dtype)
    seconds = []
    for _ in range(3):
        started = time.thread_time()
        torch.mm(left, right)
        seconds.append(time.thread_time() - started)
    return max(min(seconds), 1e-6)


def products_in_float32(wanted: bool = True) -> AbstractContextManager[object]:
    """Within, products of low precision on a CPU are computed in float32 and rounded."""
    return _InFloat32() if wanted else nullcontext()


class _InFloat32(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        first = next((value for value in args if isinstance(value, torch.Tensor)), None)
        if func not in _PRODUCTS or first is None or first.dtype not in _LOW or first.device.type != "cpu":
            return func(*args, **kwargs)
        out = kwargs.pop("out", None)
        raised = tree_map_only(torch.Tensor, lambda tensor: tensor.float(), (tuple(args), kwargs))
        result = _PRODUCTS[func](*raised[0], **raised[1]).to(first.dtype)
        return result if out is None else out.resize_(result.shape).copy_(result)
