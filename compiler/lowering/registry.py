"""Which function lowers which ATen operator.

    @lowers(aten.flip)
    def flip(build: Builder, x: TensorValue, dims: Sequence[int]) -> TensorValue: ...

A lowering takes the builder and then what the operator takes, with a `TensorValue` for each tensor, and returns a
`TensorValue`, or a tuple of them where the operator returns several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch._ops import OpOverload, OpOverloadPacket

Lowering = Callable[..., Any]
Function = TypeVar("Function", bound=Lowering)

LOWERINGS: dict[OpOverload[..., Any], Lowering] = {}
#: What operators are in terms of others.
DECOMPOSITIONS: dict[OpOverload[..., Any], Lowering] = {}
#: By `operator_name`: operators that torch defines only once something has asked for them.
LATE_LOWERINGS: dict[str, Lowering] = {}


def lowers(*targets: OpOverload[..., Any] | OpOverloadPacket[..., Any]) -> Callable[[Function], Function]:
    """Register the decorated function for overloads, or for all overloads of an operator that return new tensors."""

    def register(function: Function) -> Function:
        for target in targets:
            for overload in overloads(target):
                LOWERINGS[overload] = function
        return function

    return register


def decomposes(*targets: OpOverload[..., Any] | OpOverloadPacket[..., Any]) -> Callable[[Function], Function]:
    """Register the decorated function of tensors for what an operator is in terms of others, which AOTAutograd then
    takes it apart into. Those of complex numbers stay whole."""

    def register(function: Function) -> Function:
        DECOMPOSITIONS.update({overload: function for target in targets for overload in overloads(target)})
        return function

    return register


def lowering_of(target: OpOverload[..., Any]) -> Lowering | None:
    """The function that lowers an operator; None where it has none."""
    return LOWERINGS.get(target) or LATE_LOWERINGS.get(operator_name(target))


def overloads(target: OpOverload[..., Any] | OpOverloadPacket[..., Any]) -> list[OpOverload[..., Any]]:
    if isinstance(target, OpOverload):
        return [target]
    names: list[str] = target.overloads()  # type: ignore[no-untyped-call]
    found = [getattr(target, name) for name in names]
    return [overload for overload in found if not overload._schema.is_mutable]


def operator_name(target: Any) -> str:
    """`aten.sin` for torch.ops.aten.sin.default, `aten.sum.dim_IntList` where the overload has a name of its own."""
    return str(target).removesuffix(".default")
