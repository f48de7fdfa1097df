"""The fake tensor of each node: its sizes, which may be symbols, and its layout."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
import torch

#: Operators whose results hold whatever the memory held.
UNDEFINED = frozenset(("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"))


#: How the results of attention's operators are called by which the backward pass draws its dropout again: of no use to
#: it, and anything, where there is none. A graph that has some is not compared at all.
_OF_DROPOUT = ("philox", "rng_state", "unused", "debug")


def is_undefined(value: Any) -> bool:
    """Whether it is a node of such an operator: no two runs need agree on it."""
    target = getattr(value, "target", None)
    if target is operator.getitem:
        source = getattr(value.args[0], "target", None)
        if isinstance(source, torch._ops.OpOverload) and isinstance(value.args[1], int):
            return "attention" in source._schema.name and _name_of_result(source, value.args[1]).startswith(_OF_DROPOUT)
    return isinstance(target, torch._ops.OpOverload) and target._schema.name.split("::")[1] in UNDEFINED


def _name_of_result(target: torch._ops.OpOverload, position: int) -> str:
    return target._schema.returns[position].name or ""


def device_of(graph: torch.fx.GraphModule) -> torch.device:
    """Where a graph runs: the first GPU that one of its values is on, else the CPU."""
    devices = [value.device for node in graph.graph.nodes if isinstance(value := node.meta.get("val"), torch.Tensor)]
    return next((device for device in devices if device.type == "cuda"), torch.device("cpu"))


def shown_size(size: Any) -> int | str:
    """A number, or the formula of one that differs from call to call."""
    return size if isinstance(size, int) else str(size)


def hint_of(size: Any) -> int:
    """The int of a size, by its hint where it is symbolic: describing must never add a guard."""
    if isinstance(size, int):
        return size
    hint = getattr(size.node, "hint", None)
    return int(hint) if hint is not None else -1


def in_this_call(size: int | torch.SymInt) -> int:
    """A size that differs from call to call as what it was when the graph was captured."""
    return size if isinstance(size, int) else int(size.node.hint)


def strides_at(traced: torch.Tensor, shape: Sequence[int]) -> tuple[int, ...] | None:
    """The strides of a fake tensor in a call in which it has this shape; None where the shape does not tell them."""
    if tuple(map(hint_of, traced.shape)) == tuple(shape):
        strides = tuple(map(hint_of, traced.stride()))
        return None if -1 in strides else strides
    formulas = [None if isinstance(size, int) else size.node.expr for size in traced.shape]
    known = {size: sympy.Integer(one) for size, one in zip(formulas, shape, strict=True) if size is not None}

    def number(size: Any) -> Any:
        return size if isinstance(size, int) else size.node.expr.xreplace(known)

    numbers = [*map(number, traced.shape), *map(number, traced.stride())]
    if numbers[: len(shape)] != list(shape) or not all(isinstance(one, int | sympy.Integer) for one in numbers):
        return None
    return tuple(map(int, numbers[len(shape) :]))


def fake_mode_of_its_own() -> contextlib.AbstractContextManager[Any]:
    """A mode with sizes of its own, in which what is asked of one is no guard of a graph's."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    return FakeTensorMode(shape_env=ShapeEnv())


def fake_mode_of(values: Iterable[Any]) -> contextlib.AbstractContextManager[Any]:
    """The mode in which the fake tensors among `values` were traced, in which further ones fit to them; else a new one.

    A graph's values are fake tensors that carry its symbols of sizes, which only their own mode knows."""
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    return next((value.fake_mode for value in values if isinstance(value, FakeTensor)), None) or FakeTensorMode()


def strides_of_result(target: Any, arguments: Sequence[Any], strides: Mapping[int, Any]) -> tuple[int, ...]:
    """The strides that ATen gives the result of a call of fake tensors, where the arguments at the positions that
    `strides` names have those."""
    with fake_mode_of(arguments):
        given = [
            torch.empty_strided(value.shape, strides[position], dtype=value.dtype, device=value.device)
            if position in strides
            else value
            for position, value in enumerate(arguments)
        ]
        result: torch.Tensor = target(*given)
        return tuple(result.stride())


def outside_fake_mode() -> contextlib.AbstractContextManager[Any]:
    """Let a graph be compiled with tensors that have values: AOTAutograd calls a compiler while every tensor operation
    of its own gives fake tensors, and refuses the real ones that a graph holds (the index of `x[[1, 2]]`)."""
    return torch._subclasses.fake_tensor.unset_fake_temporarily()  # type: ignore[no-any-return]
