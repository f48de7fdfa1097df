"""The state of torch under which a call was made, restored before it is called again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.backends import cuda
from torch.nn.attention import SDPBackend, sdpa_kernel

from compiler.capture.torch_internals import default_device as current_default_device
from compiler.capture.torch_internals import device_in_force

_NOTHING = contextlib.nullcontext()


class Uncompiled(contextlib.AbstractContextManager[None]):
    """Within: what the snippet compiled runs as it was before that. An eager call may call other compiled functions."""

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def __bool__(self) -> bool:
        return self._depth > 0


@dataclass(frozen=True)
class CallState:
    """Gradient mode, autocast, default device and dtype, and the kernels that attention may use. Dynamo guards on each
    of them but the last: another state compiles anew."""

    grad: bool
    inference: bool
    autocast: torch.dtype | None
    device_type: str
    default_device: torch.device | None
    default_dtype: torch.dtype
    attention: tuple[bool, ...]

    @staticmethod
    def current(device: torch.device) -> CallState:
        enabled = torch.is_autocast_enabled(device.type)
        return CallState(
            grad=torch.is_grad_enabled(),
            inference=torch.is_inference_mode_enabled(),
            autocast=torch.get_autocast_dtype(device.type) if enabled else None,
            device_type=device.type,
            default_device=device_in_force(),
            default_dtype=torch.get_default_dtype(),
            attention=_attention(),
        )

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Put torch into this state; only what differs is touched, so that timing a call costs next to nothing."""
        with contextlib.ExitStack() as stack:
            if self.default_device != current_default_device():
                stack.callback(torch.set_default_device, current_default_device())
                torch.set_default_device(self.default_device)
            stack.enter_context(with_default_dtype(self.default_dtype))
            if self.inference != torch.is_inference_mode_enabled():
                stack.enter_context(torch.inference_mode(self.inference))
            if self.grad != torch.is_grad_enabled():
                stack.enter_context(torch.set_grad_enabled(self.grad))
            if (self.autocast is not None) != torch.is_autocast_enabled(self.device_type):
                enabled = self.autocast is not None
                stack.enter_context(torch.autocast(self.device_type, dtype=self.autocast, enabled=enabled))
            if self.attention != _attention():
                allowed = [kernel for kernel, is_allowed in zip(_ATTENTION, self.attention, strict=True) if is_allowed]
                stack.enter_context(sdpa_kernel(allowed))
            yield

    def under(
        self, function: Callable[..., Any], within: contextlib.AbstractContextManager[None] = _NOTHING
    ) -> Callable[..., Any]:
        """`function`, called in this state and within that."""
        return _InState(self, function, within)


@dataclass(frozen=True)
class _InState:
    state: CallState
    function: Callable[..., Any]
    within: contextlib.AbstractContextManager[None] = _NOTHING

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self.state.entered(), self.within:
            return self.function(*args, **kwargs)


def compiled_in_state(function: Callable[..., Any], compile: Callable[..., Any]) -> Callable[..., Any]:
    """What `compile` makes of `function`, called in the state that this is called in. Dynamo passes over files of ours
    and of torch: of `nn.Sequential` it compiles nothing, unless it is given the module itself."""
    if isinstance(function, _InState):
        return _InState(function.state, compile(function.function))
    return compile(function)  # type: ignore[no-any-return]


#: What `torch.nn.attention.sdpa_kernel` chooses from. The flags are of the process, on a machine without a GPU too.
_ATTENTION = {
    SDPBackend.FLASH_ATTENTION: cuda.flash_sdp_enabled,
    SDPBackend.EFFICIENT_ATTENTION: cuda.mem_efficient_sdp_enabled,
    SDPBackend.MATH: cuda.math_sdp_enabled,
    SDPBackend.CUDNN_ATTENTION: cuda.cudnn_sdp_enabled,
}


def _attention() -> tuple[bool, ...]:
    return tuple(is_allowed() for is_allowed in _ATTENTION.values())


@contextlib.contextmanager
def with_default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Within: what torch makes of Python numbers, and of an operator that names no dtype."""
    before = torch.get_default_dtype()
    if dtype != before:
        torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        if dtype != before:
            torch.set_default_dtype(before)


@contextlib.contextmanager
def restored_state() -> Iterator[None]:
    """Undo what a snippet sets for the whole process and what its calls carry with them: each call knows its own."""
    grad, dtype, device = torch.is_grad_enabled(), torch.get_default_dtype(), current_default_device()
    try:
        yield
    finally:
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        if device != current_default_device():
            torch.set_default_device(device)
