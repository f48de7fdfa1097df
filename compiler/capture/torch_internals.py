"""Every use of torch that is not public, in one place: what each is, why it is needed, and what stands in if it goes.

Checked with torch 2.11 and 2.13. `torch._dynamo.optimize` and `torch._dynamo.backends.common.aot_autograd`, which are
documented despite the underscore, are used where they are needed.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class TraceRecord:
    """One artifact of torch's structured trace: `compile_id` is "frame/compilation", as in Dynamo's own logs."""

    name: str
    compile_id: str
    payload: str


class TraceListener(logging.Handler):
    """Collects graph breaks and recompilations from the logger `torch.__trace`.

    It is what `tlparse` reads from files. Nothing public tells of a break in a frame that made no graph, or which
    compilation a failed guard led to. Without it, a report would have no breaks and no recompilations.
    """

    WANTED = frozenset({"dynamo_graph_break_reason", "recompile_reasons"})

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[TraceRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None) or {}
        name = (metadata.get("artifact") or {}).get("name")
        if name in self.WANTED:
            compile_id = f"{metadata.get('frame_id')}/{metadata.get('frame_compile_id')}"
            self.records.append(TraceRecord(name, compile_id, str(getattr(record, "payload", ""))))

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        logger = logging.getLogger("torch.__trace")
        level = logger.level
        logger.addHandler(self)
        logger.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.setLevel(level)


@contextlib.contextmanager
def quiet_logs() -> Iterator[None]:
    """Keep torch's log off the snippet's output: it repeats, with stacks of torch, what the report says.

    A snippet that turns logs on itself (`torch._logging.set_logs`) gets new handlers with that, and its logs.
    """
    loggers = [logging.getLogger(name) for name in ("torch", *logging.root.manager.loggerDict) if _is_of_torch(name)]
    handlers = [
        handler
        for logger in loggers
        for handler in logger.handlers
        if isinstance(handler, logging.StreamHandler) and logger.name != "torch.__trace"
    ]
    for handler in handlers:
        handler.addFilter(_drop)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_drop)


def _is_of_torch(logger_name: str) -> bool:
    return logger_name == "torch" or logger_name.startswith("torch.")


def _drop(_record: logging.LogRecord) -> bool:
    return False


def payload_texts(payload: str) -> list[str]:
    """The texts in a trace artifact: torch writes one string as it is and several as a JSON list."""
    with contextlib.suppress(ValueError):
        loaded = json.loads(payload)
        if isinstance(loaded, list):
            return [str(item) for item in loaded]
    return [payload]


def current_compile_id() -> str:
    """Frame and compilation ("2/0") of the compilation under way: all that a graph, its guards and its trace share."""
    return str(torch._guards.CompileContext.current_compile_id())


def recompile_limit() -> int:
    """How often Dynamo compiles one function before it leaves its further calls uncompiled."""
    return int(torch._dynamo.config.recompile_limit)


def is_dynamo_control_flow(error: Exception) -> bool:
    """Whether an exception in a backend is Dynamo's own signal, such as to trace once more, and must reach it."""
    return type(error).__module__ == "torch._dynamo.exc"


def reset_dynamo() -> None:
    """Forget compiled code of earlier captures, which library modules (nn.Sequential) would otherwise keep.

    `torch.compiler.reset` does the same and also resets Inductor, which it imports for that.
    """
    torch._dynamo.reset()


@functools.cache
def skip_files_of(package: str) -> None:
    """Keep Dynamo from compiling the capture machinery when it lies between two compiled functions of the user."""
    from torch._dynamo import trace_rules

    trace_rules.add(package)


def mark_as_wrapper(wrapper: Callable[..., Any]) -> None:
    """Tell Dynamo that `wrapper`, made by functools.wraps of a compiled function, is itself that compiled function.

    Dynamo checks the id to tell a real compiled function from one whose attributes were merely copied.
    """
    if hasattr(wrapper, "_torchdynamo_wrapper_id"):
        wrapper._torchdynamo_wrapper_id = id(wrapper)


def replace_forward(module: torch.nn.Module, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put `wrap` around what an OptimizedModule calls; setting `forward` on it does not touch the user's module."""
    module.forward = wrap(module.forward)


def user_frames(error: BaseException) -> Sequence[traceback.FrameSummary]:
    """Frames of the user that Dynamo was tracing when it raised: they are in no traceback, since they never ran."""
    return getattr(error, "real_stack", None) or ()


def lazy_backward_off() -> contextlib.AbstractContextManager[Any]:
    """Have AOTAutograd compile a backward graph with its forward one, also where nothing calls it."""
    return torch._functorch.config.patch(force_non_lazy_backward_lowering=True)  # type: ignore[no-any-return]


def outside_fake_mode() -> contextlib.AbstractContextManager[Any]:
    """Let a graph be compiled with tensors that have values: AOTAutograd calls a compiler while every tensor operation
    of its own gives fake tensors, and refuses the real ones that a graph holds (the index of `x[[1, 2]]`)."""
    return torch._subclasses.fake_tensor.unset_fake_temporarily()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class GuardFacts:
    """What Dynamo's own guard object says: its kind, the expression of its subject, its code, where it arose."""

    kind: str
    name: str
    code: tuple[str, ...]
    frames: tuple[traceback.FrameSummary, ...]
    subject: Any


def guard_facts(guard: Any) -> GuardFacts:
    """Read a guard handed to `guard_export_fn`. `subject` is the guarded object if it still lives."""
    subject = guard.obj_weakref() if callable(guard.obj_weakref) else None
    name = guard.name() if callable(guard.name) else guard.name
    return GuardFacts(
        kind=guard.create_fn_name(),
        name=name,
        code=tuple(guard.code_list or ()),
        frames=tuple(guard.user_stack or ()),
        subject=subject,
    )


def default_device() -> torch.device | None:
    """The device set by torch.set_default_device, or None. `torch.get_default_device` cannot tell "cpu" from unset."""
    return getattr(torch.utils._device, "CURRENT_DEVICE", None)
