"""Checks of a program's values: they compute nothing that is read, and fail where a condition does not hold.

A check is a loop of one point, so it joins the kernel that makes its condition. On a GPU it is an assertion on the
device, which no call waits for; on a CPU the call fails when the kernel is done.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.ir.index import ZERO
from compiler.ir.size import Size, is_integer
from compiler.lowering.builder import Builder
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, TensorValue

aten = torch.ops.aten

#: What eager says where the caller says nothing.
WITHOUT_MESSAGE = "Expected Tensor with single nonzero value, but got zero"


@lowers(aten._assert_scalar)
def assert_scalar(build: Builder, condition: Any, message: str) -> None:
    """A condition on sizes, which the host checks before it launches what follows."""
    if not is_integer(condition):
        raise CannotLower("it depends on more than sizes")
    if isinstance(condition, Size) or not condition:
        build.graph.size_checks.append((condition, message))


@lowers(aten._assert_async.msg, aten._assert_async.default)
def assert_async(build: Builder, condition: TensorValue, message: str = WITHOUT_MESSAGE) -> None:
    if condition.numel != 1:
        raise CannotLower("its condition is not one value")
    if condition.buffer is None:
        raise CannotLower("its condition is a constant, so there is no kernel that it could join")
    position = (ZERO,) * len(condition.shape)

    def holds() -> Any:
        return condition.load(position).to(torch.bool)

    build.check(holds, message)
