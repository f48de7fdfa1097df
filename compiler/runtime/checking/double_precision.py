"""Anything that eager PyTorch runs, in float64: the user's own function, its autograd included, without changing it.

Below autograd, every operator's floating-point tensors and dtypes become float64, so also a cast to bfloat16, a tensor
of ones and a formula of the backward pass. Parameters stay as they are and are widened where they are read, so what
is wrong with the result is what rounding the parameters and the final gradients to their own dtype makes wrong.
"""

from __future__ import annotations

import contextlib
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from compiler.capture.exact_operators import IN_ANY_DTYPE
from compiler.capture.reference import raise_precision

_NARROW = (torch.float32, torch.bfloat16, torch.float16)
_DTYPE = torch.Tensor.dtype.__get__  # type: ignore[attr-defined]
#: What the names of operators begin with whose operands torch compares ahead of any dispatch.
_COMPARED = tuple(
    """conv1d conv2d conv3d conv_transpose lstm gru rnn_tanh rnn_relu tensordot bilinear inner vecdot linalg_vecdot
    multi_dot linalg_multi_dot chain_matmul isclose""".split()
)
#: Held from here on: a snippet may put another one in its place.
_to = torch.Tensor.to
#: Each makes what it is given, its last argument, in the default dtype where none is named. The least float64, which
#: masks are filled with, has no place in a float32.
_OF_A_NUMBER = (torch.ops.aten.full.default, torch.ops.aten.scalar_tensor.default)


class _WideArguments(TorchFunctionMode):
    """Widens what an operator is given before torch compares the dtypes of its operands, which it does ahead of any
    dispatch: the input is float64 as a rule, and a parameter float32. The modules of recurrent networks compare them
    in Python, so every tensor says that it is float64."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function == _DTYPE:
            dtype = function(*args)
            return torch.float64 if dtype in _NARROW else dtype
        if getattr(function, "__name__", "").startswith(_COMPARED):
            args, kwargs = tree_map(_widened, (args, kwargs or {}))
        return function(*args, **(kwargs or {}))


def _widened(value: Any) -> Any:
    return _to(value, torch.float64) if isinstance(value, torch.Tensor) and value.dtype in _NARROW else value


class InDoublePrecision(TorchDispatchMode):
    """Within `with InDoublePrecision() as mode, mode.calling():` every operator computes in float64 (complex ones in
    complex128).

    Autograd wants the gradient of a float32 parameter in float32, and casts it: `with mode.differentiating():` around
    a backward pass lets it. No other cast of a backward pass goes to less than float64.
    """

    #: `torch.cond` and its like come here too, to be refused in words.
    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self._is_differentiating = False

    def calling(self) -> contextlib.AbstractContextManager[Any]:
        """Around a call of the user's function, within all modes that it is called in."""
        return _WideArguments()

    def differentiating(self) -> contextlib.AbstractContextManager[Any]:
        return mock.patch.object(self, "_is_differentiating", True)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.ops.aten.view.dtype:
            raise NotImplementedError("the bits of a tensor are read as another dtype, which has no counterpart here")
        if isinstance(function, torch._ops.HigherOrderOperator):
            reason = "traces the functions that it is given to differentiate them, and would trace float64 for float32"
            raise NotImplementedError(f"{function.name()} {reason}; each graph was checked alone")
        if function is torch.ops.aten.as_strided.default:  # offsets in memory, of which a widened copy has others
            return raise_precision(function(*args, **(kwargs or {})))
        if self._is_differentiating and function is torch.ops.aten._to_copy.default:
            return function(*args, **(kwargs or {}))
        originals: dict[int, torch.Tensor] = {}

        def widened(value: Any) -> Any:
            raised = raise_precision(value)
            if raised is not value and isinstance(value, torch.Tensor):
                originals[id(raised)] = value
            return raised

        wide_args, wide_kwargs = tree_map(widened, (args, kwargs or {}))
        if function in _OF_A_NUMBER and isinstance(wide_args[-1], float) and wide_kwargs.get("dtype") is None:
            wide_kwargs["dtype"] = torch.float64
        results = IN_ANY_DTYPE.get(function, function)(*wide_args, **wide_kwargs)
        if not function._schema.is_mutable:
            return tree_map(raise_precision, results)
        self._write_back(function, wide_args, wide_kwargs, originals)
        # What an operator writes to and gives back is the tensor of the caller, in its own dtype.
        return tree_map(lambda result: originals.get(id(result), result), results)

    def _write_back(self, function: Any, args: Any, kwargs: Any, originals: dict[int, torch.Tensor]) -> None:
        for position, argument in enumerate(function._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            written = args[position] if position < len(args) else kwargs.get(argument.name)
            for tensor in written if isinstance(written, list | tuple) else [written]:
                original = originals.get(id(tensor))
                if original is not None:
                    original.copy_(tensor)
