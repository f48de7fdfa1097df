"""Replace torch.compile and torch._dynamo.optimize while a snippet runs: same calls, our recording backend."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import torch
import torch._dynamo

from compiler.capture.captured import EntryCall, copy_call
from compiler.capture.recording.recorder import FailedCall, Recorder
from compiler.capture.torch_internals import (
    default_device,
    is_backend,
    is_transformed,
    mark_as_wrapper,
    refused_option,
    replace_forward,
    skip_files_of,
    trace_default_device,
    traceable,
)
from compiler.capture.torch_state import CallState, Uncompiled
from compiler.options import Options

_PASSED_OVER = (
    "PyTorch itself compiles nothing here: it passes over modules of its own, such as {}, on which `.compile()` is "
    "called. Use `torch.compile(module)`: its result is shown."
)
_WOULD_FAIL = "{}, so torch.compile would fail. The function was explored all the same."
#: Those of torch 2.11 and 2.13; `torch._inductor.list_mode_options` has them too, and imports TorchInductor.
_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
#: Parts of torch that compile what their caller asks them to.
_ASKED_TO_COMPILE = frozenset({"torch.compiler", "torch.nn.modules.module"})
_TOLD_NO_GRADIENT = "Gradients were turned off, as asked: no backward graph was captured."


class Interception:
    """Stands in for torch's ways to compile. `compiled` lists what the snippet compiled, whether called or not."""

    def __init__(self, recorder: Recorder, options: Options, needs_default_device: bool = True) -> None:
        self.compiled: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = []
        self._recorder = recorder
        self._options = options
        self.needs_default_device = needs_default_device
        self._compile = torch.compile
        self._optimize = torch._dynamo.optimize
        self._uncompiled = Uncompiled()
        skip_files_of("compiler.capture")

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        # torch keeps these for the life of the process, torch.compile among them: not ours, with all that is behind it.
        torch.overrides.get_ignored_functions()
        trace_default_device()
        with (
            mock.patch.object(torch, "compile", self.compile),
            mock.patch.object(torch._dynamo, "optimize", self.optimize),
        ):
            yield

    def compile(
        self,
        model: Any = None,
        *,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        backend: Any = "inductor",
        mode: str | None = None,
        options: Mapping[str, Any] | None = None,
        disable: bool = False,
        **_settings: Any,
    ) -> Any:
        """What torch.compile is while the snippet runs: as function, with arguments as decorator, or disabled."""
        settings = {"backend": backend, "mode": mode, "options": options, "disable": disable}
        if model is None:
            return functools.partial(self.compile, fullgraph=fullgraph, dynamic=dynamic, **settings)
        if _is_torch(sys._getframe(1)):
            return self._compile(model, fullgraph=fullgraph, dynamic=dynamic, **settings)
        if disable:
            return model
        for refusal in _refusals(backend, mode, options):
            self._recorder.note(_WOULD_FAIL.format(refusal))
        return self.explored(model, backend=backend, fullgraph=fullgraph, dynamic=dynamic)

    def optimize(
        self,
        backend: Any = "inductor",
        *,
        nopython: bool = False,
        dynamic: bool | None = None,
        disable: bool = False,
        **settings: Any,
    ) -> Any:
        """What torch._dynamo.optimize is while the snippet runs: the older way, always a decorator."""
        if _is_torch(sys._getframe(1)):
            return self._optimize(backend, nopython=nopython, dynamic=dynamic, disable=disable, **settings)
        return functools.partial(self.compile, fullgraph=nopython, dynamic=dynamic, backend=backend, disable=disable)

    def explored(
        self, function: Any, *, backend: Any = None, fullgraph: bool = False, dynamic: bool | None = None
    ) -> Any:
        """Compile `function` with the recording backend; its first call becomes an entry of the capture."""
        own_backend = backend if callable(backend) else None
        name, given = _name_of(function), function
        function = traceable(given)
        if function is not given:
            self._recorder.note(_PASSED_OVER.format(name))
        compiled = self._optimize(
            self._recorder.backend(own_backend),
            nopython=fullgraph,
            dynamic=dynamic if self._options.dynamic is None else self._options.dynamic,
            # A function, as a copy of a compiled module copies what a method is bound to, the recorder of all.
            guard_filter_fn=lambda guards: self._recorder.guards_chosen(guards),
        )(function)
        if isinstance(function, type):
            return compiled
        if isinstance(compiled, torch.nn.Module):
            replace_forward(compiled, lambda forward: self._watched(name, forward, function))
            watched = compiled
        else:
            watched = self._watched(name, compiled, function)
        self.compiled.append((name, watched, function))
        return watched

    def _watched(self, name: str, call: Callable[..., Any], eager: Callable[..., Any]) -> Any:
        """`call`, which notes its first arguments and which graphs come of it. The entry itself calls unwatched."""
        entry: EntryCall | None = None

        @functools.wraps(call)
        def watched(*args: Any, **kwargs: Any) -> Any:
            nonlocal entry
            if self._uncompiled:
                return eager(*args, **kwargs)
            if is_transformed():
                self._recorder.pass_on(name)
                return call(*args, **kwargs)
            args, kwargs = self._with_gradients((args, kwargs))
            with self._call_state():
                is_first = entry is None
                if entry is None:
                    state = CallState.current(self._recorder.capture.device)
                    copies = copy_call((args, kwargs))
                    entry = EntryCall(name, state.under(call), state.under(eager, self._uncompiled), *copies)
                    self._recorder.capture.entries.append(entry)
                with self._recorder.during(entry, FailedCall(entry.eager, args, kwargs)):
                    result = call(*args, **kwargs)
                entry.has_returned |= is_first
                return result

        mark_as_wrapper(watched)
        return watched

    def _with_gradients(self, values: Any) -> Any:
        """The arguments as they are, or, where a backward graph was asked for, as leaves that want a gradient."""
        if self._options.training is not True or not torch.is_grad_enabled():
            return values
        return torch.utils._pytree.tree_map_only(torch.Tensor, _wanting_gradient, values)

    @contextlib.contextmanager
    def _call_state(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if not self.needs_default_device and default_device() is not None:
                stack.callback(torch.set_default_device, default_device())
                torch.set_default_device(None)
            stack.enter_context(self._gradient_mode())
            yield

    def _gradient_mode(self) -> contextlib.AbstractContextManager[Any]:
        if self._options.training is False and torch.is_grad_enabled():
            self._recorder.note(_TOLD_NO_GRADIENT)
            return torch.no_grad()
        return contextlib.nullcontext()


def _is_torch(caller: types.FrameType | None) -> bool:
    """Whether torch compiles for itself, as `torch.cond` and `flex_attention` do where they are called outside of what
    is compiled. That is no part of the snippet."""
    names = (str(frame.f_globals.get("__name__", "")) for frame in _outwards(caller))
    name = next((name for name in names if name not in _ASKED_TO_COMPILE), "")
    return name == "torch" or name.startswith("torch.")


def _outwards(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _refusals(backend: Any, mode: str | None, options: Mapping[str, Any] | None) -> Iterator[str]:
    """Why torch.compile would raise for these settings."""
    if mode is not None and options is not None:
        yield "PyTorch takes either a mode or options, and here both are given"
    if backend == "inductor" and mode not in _MODES:
        yield f"PyTorch knows no mode {mode!r} here"
    if backend == "inductor" and options and (refused := refused_option(options)):
        yield f"PyTorch does not take these options ({refused})"
    if isinstance(backend, str) and not is_backend(backend):
        yield f"PyTorch knows no backend {backend!r} here"


def _wanting_gradient(tensor: torch.Tensor) -> torch.Tensor:
    wants = tensor.requires_grad or not (tensor.is_floating_point() or tensor.is_complex())
    return tensor if wants else tensor.detach().requires_grad_()


def _name_of(function: Any) -> str:
    """`MLP` for a module or its `forward`, `MLP.loss` for another method, else the function's name."""
    owner, own = getattr(function, "__self__", None), str(getattr(function, "__name__", type(function).__name__))
    if isinstance(function, torch.nn.Module):
        return type(function).__name__
    if owner is None or isinstance(owner, types.ModuleType):
        return own
    owner_name = owner.__name__ if isinstance(owner, type) else type(owner).__name__
    return owner_name if own in ("forward", "__call__", "_call_impl") else f"{owner_name}.{own}"
