"""Cache calls on fake tensors, and check each kind of result once.

torch remembers what an operator gives for tensors of the same sizes. Before it does, it makes the result once more by
what it will remember, only to compare the keys by which both are dispatched. Where sizes are open that takes as long as
the call itself, half of all that a capture does with tensors. The keys depend on the operator being a view, and on the
result's dtype, device and layout; so the check is made once for each of those, and each set of keys. It is always made
where somebody reads the log of what torch finds, which tells of the sizes that it compares.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import torch
from torch._logging._internal import trace_log
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode


def kinds_checked_once() -> ExitStack:
    """Within, a kind of result that was found to be made as it was is not made again to be compared."""
    by_torch = vars(FakeTensorMode).get("_get_output_info_for_cache_entry")
    made_by_torch = vars(FakeTensorMode).get("_output_from_cache_entry")
    stack = ExitStack()
    if by_torch is None or made_by_torch is None or trace_log.handlers:
        return stack
    checked: set[Hashable] = set()
    #: Results that need not be made, of calls under way.
    given: list[FakeTensor] = []

    def remember(
        self: Any, state: Any, key: Any, func: Any, args: Any, kwargs: Any, output: Any, *more: Any, **others: Any
    ) -> Any:
        kind = _kind_of(func, output)
        if kind not in checked:
            info = by_torch(self, state, key, func, args, kwargs, output, *more, **others)
            if kind is not None:
                checked.add(kind)
            return info
        given.append(output)
        try:
            return by_torch(self, state, key, func, args, kwargs, output, *more, **others)
        finally:
            given.pop()

    def made(self: Any, *arguments: Any, **others: Any) -> Any:
        return given[-1] if given else made_by_torch(self, *arguments, **others)

    stack.enter_context(mock.patch.object(FakeTensorMode, "_get_output_info_for_cache_entry", remember))
    stack.enter_context(mock.patch.object(FakeTensorMode, "_output_from_cache_entry", made))
    return stack


def _kind_of(func: Any, output: Any) -> Hashable | None:
    """All that a result's keys depend on, and the keys; None where more may count, as where a size is known only when
    an operator has run: torch may find that it cannot make such a result."""
    if type(output) is not FakeTensor or output.layout != torch.strided or output.requires_grad:
        return None
    if any(isinstance(size, torch.SymInt) and size.node.hint is None for size in (*output.shape, *output.stride())):
        return None
    is_view = isinstance(func, torch._ops.OpOverload) and func.is_view
    bits = output.is_conj(), output.is_neg(), output.is_inference()
    return is_view, output.dtype, output.device, bits, torch._C._dispatch_key_set(output)
