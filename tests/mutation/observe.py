"""What a call did, as far as its caller can tell: values, strides, who shares memory with whom, and what was counted.

A case is run three times on equal arguments: eagerly, through `torch.compile` with PyTorch's own "aot_eager" backend,
and with ours. Arguments that share memory share it in every run, since each run makes its own by the same function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten


@dataclass(frozen=True)
class Case:
    """`function` is called with what `arguments` gives, after a fixed seed. With `backward`, the sum of the outputs
    that want a gradient is differentiated; the gradients of the arguments are then compared too. `like` names the run
    whose strides and shared memory are the promise: torch.compile itself gives up eager's in a few cases. One that is
    `left_to_eager` is not compiled: arguments overlap, one of which is written to, or Dynamo breaks the graph."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[], Sequence[Any]]
    backward: bool = False
    like: str = "eager"
    calls: int = 1
    left_to_eager: bool = False


@dataclass(frozen=True)
class Observed:
    """Tensors are numbered, arguments first, then the results in the order of the tree that was returned."""

    structure: str
    values: list[Any]
    gradients: list[Tensor | None]
    layouts: list[tuple[Any, ...]]
    #: For each tensor the number of the first one in the same storage, and of the first that is the same object.
    sharing: list[tuple[int, int]]
    #: Whether the version counter of each argument grew, which is what autograd goes by.
    versions: list[bool]


def observe(case: Case, compile_: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Observed:
    torch._dynamo.reset()
    torch.manual_seed(0)
    compiled = compile_(case.function)
    for _ in range(case.calls - 1):
        compiled(*case.arguments())
    arguments = list(case.arguments())
    before = [_version(argument) for argument in arguments]
    result = compiled(*arguments)
    versions = [_version(argument) > start for argument, start in zip(arguments, before)]
    flat, structure = tree_flatten(result)
    tensors = [value for value in (*arguments, *flat) if isinstance(value, Tensor)]
    if case.backward:
        wanting = [value for value in flat if isinstance(value, Tensor) and value.requires_grad]
        sum(value.sum() for value in wanting).backward()  # type: ignore[union-attr]
    return Observed(
        structure=str(structure),
        values=[value.detach().clone() if isinstance(value, Tensor) else value for value in (*arguments, *flat)],
        gradients=[tensor.grad for tensor in arguments if isinstance(tensor, Tensor) and tensor.is_leaf],
        layouts=[_layout(tensor) for tensor in tensors],
        sharing=[_sharing(tensor, tensors) for tensor in tensors],
        versions=versions,
    )


def _version(value: Any) -> int:
    return value._version if isinstance(value, Tensor) and not value.is_inference() else 0


def _layout(tensor: Tensor) -> tuple[Any, ...]:
    return (
        tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset(), tensor.dtype, tensor.requires_grad,
        tensor.is_inference(),
    )  # fmt: skip


def _sharing(tensor: Tensor, tensors: list[Tensor]) -> tuple[int, int]:
    # An empty tensor has no memory to share.
    storage = next(
        place
        for place, other in enumerate(tensors)
        if other is tensor or (tensor.numel() and _storage(other) == _storage(tensor))
    )
    return storage, next(place for place, other in enumerate(tensors) if other is tensor)


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def differences(ours: Observed, eager: Observed, peer: Observed, like: str) -> list[str]:
    """What a caller could tell apart; empty where there is nothing."""
    promised = eager if like == "eager" else peer
    found = [
        f"{name}: {getattr(ours, name)} instead of {getattr(expected, name)}"
        for name, expected in (("structure", eager), ("layouts", promised), ("sharing", promised), ("versions", peer))
        if getattr(ours, name) != getattr(expected, name)
    ]
    pairs = [*zip(ours.values, eager.values), *zip(ours.gradients, eager.gradients)]
    for place, (value, expected) in enumerate(pairs):
        if not isinstance(expected, Tensor):
            found += [] if value == expected else [f"value {place}: {value} instead of {expected}"]
            continue
        try:
            torch.testing.assert_close(value, expected, equal_nan=True, check_stride=False)
        except AssertionError as error:
            found.append(f"value {place}: {error}")
    return found
