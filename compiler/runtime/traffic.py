"""What eager execution launches and moves: counted, not timed.

PyTorch's eager mode launches one kernel for each ATen call that computes something, and each call reads its arguments
from memory and writes its results there. Views, allocations and metadata move nothing. The graph that Dynamo captured
is run on fake tensors under a dispatch mode that sees every such call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

#: Calls that launch nothing: they allocate, or pass their argument on.
_FREE = frozenset(
    """aten.empty aten.empty_like aten.empty_strided aten.new_empty aten.new_empty_strided aten.detach aten.alias
    aten.lift_fresh aten._unsafe_view aten.sym_size aten.sym_stride aten.sym_numel aten.is_same_size
    aten._local_scalar_dense prim.device""".split()
)


@dataclass
class Traffic:
    """`kernels` are ATen calls that compute; `bytes` what they read and write, each tensor of a call once."""

    kernels: int = 0
    bytes: int = 0


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.traffic = Traffic()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view and str(func.overloadpacket) not in _FREE:
            moved = _distinct(tree_leaves((args, kwargs))) + _distinct(tree_leaves(result))
            if moved:
                self.traffic.kernels += 1
                self.traffic.bytes += sum(_bytes(tensor) for tensor in moved)
        return result


def _distinct(values: Iterable[Any]) -> list[torch.Tensor]:
    return list({id(value): value for value in values if isinstance(value, torch.Tensor)}.values())


def _bytes(tensor: torch.Tensor) -> int:
    elements = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= _in_this_call(size) if stride else 1
    return elements * tensor.dtype.itemsize if tensor.numel() else 0


def _in_this_call(size: int | torch.SymInt) -> int:
    """A size that differs from call to call counts as what it was when the graph was captured."""
    return size if isinstance(size, int) else int(size.node.hint)


def eager_traffic(graph: torch.fx.GraphModule, with_backward: bool) -> tuple[Traffic, Traffic | None] | None:
    """Traffic of the captured graph run eagerly, and of its backward; None where it cannot be run on fake tensors."""
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    examples = [node.meta.get("example_value") for node in placeholders]
    fakes = [value for value in examples if isinstance(value, torch.Tensor)]
    mode = getattr(fakes[0], "fake_mode", None) if fakes else None
    if mode is None:
        return None
    try:
        with mode:
            inputs = [_leaf(value) for value in examples]
            with torch.set_grad_enabled(with_backward), _Counter() as forward:
                outputs = [o for o in tree_leaves(graph(*inputs)) if isinstance(o, torch.Tensor) and o.requires_grad]
            if not (with_backward and outputs):
                return forward.traffic, None
            seeds = [torch.ones_like(o) for o in outputs]
            with _Counter() as backward:
                torch.autograd.backward(outputs, seeds)
        return forward.traffic, backward.traffic
    except Exception:  # a data-dependent operator, or one without a fake kernel: no figure is better than a guess
        return None


def _leaf(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)
