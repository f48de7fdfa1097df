"""What torch tells of a compilation while it is under way: its structured trace, the bytecode before and after, how the
compilation is numbered, why graphs broke. And how its logs are kept off the snippet's output, which would repeat that.

A report shows all of it, and nothing documented has it: the trace is what `tlparse` reads from files, the hook on
bytecode what PyTorch's own documentation uses. What else is used of Dynamo stands in `torch_internals.py`; each name
that is taken from torch has its row in `tests/capture/torch_names.py`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch


@dataclass(frozen=True, eq=False)
class TraceRecord:
    """One record of torch's structured trace: `compile_id` is "frame/compilation", as in Dynamo's own logs.

    `facts` are its fields and `stack` the user's frames, where it has any; `payload` is its text.
    """

    name: str
    compile_id: str
    payload: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    stack: tuple[tuple[str, int, str], ...] = ()


class TraceListener(logging.Handler):
    """Hands on what Dynamo and AOTAutograd tell the logger `torch.__trace` of each compilation.

    It is what `tlparse` reads from files. Nothing public tells of a break in a frame that made no graph, which
    compilation a failed guard led to, or which sizes became symbols. Without it, a report would have none of these.
    """

    #: Named artifacts, and kinds of records that are not artifacts.
    WANTED = frozenset(
        "dynamo_graph_break_reason recompile_reasons dynamo_start dynamo_output_graph dynamo_cpp_guards_str "
        "aot_joint_graph aot_forward_graph aot_backward_graph aot_inference_graph "
        "create_symbol symbolic_shape_specialization guard_added guard_added_fast".split()
    )

    def __init__(self, on_record: Callable[[TraceRecord], None]) -> None:
        super().__init__(logging.DEBUG)
        self._on_record = on_record

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None) or {}
        kind = next((name for name in metadata if name in self.WANTED), None)
        name = kind or (metadata.get("artifact") or {}).get("name")
        if name not in self.WANTED:
            return
        compile_id = f"{metadata.get('frame_id')}/{metadata.get('frame_compile_id')}"
        facts = metadata[kind] if kind and isinstance(metadata[kind], dict) else {}
        frames = facts.get("user_stack") or facts.get("stack") or ()
        payload = str(getattr(record, "payload", None) or "")
        self._on_record(TraceRecord(name, compile_id, payload, facts, _frames(frames)))

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        # torch keeps the level of this logger at DEBUG. To set it would empty what all loggers of the process remember.
        logger = logging.getLogger("torch.__trace")
        logger.addHandler(self)
        try:
            with _metadata_unwritten():
                yield
        finally:
            logger.removeHandler(self)


@contextlib.contextmanager
def _metadata_unwritten() -> Iterator[None]:
    """Where the trace has a listener, AOTAutograd writes its metadata as text too, with the traced tensors in it. For
    one of a class that wraps others, that asks the class for numbers, which no traced tensor has: the graph broke."""
    from torch._functorch._aot_autograd import graph_capture, graph_compile

    with (
        mock.patch.object(graph_capture, "dataclass_repr", lambda *_: ""),
        mock.patch.object(graph_compile, "dataclass_repr", lambda *_: ""),
    ):
        yield


def _frames(frames: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, int, str], ...]:
    """(file, line, function) of each frame of a trace record, which names files by number, so as to be short."""
    from torch._logging.structured import INTERN_TABLE

    files = {number: file for file, number in INTERN_TABLE.items()}
    return tuple((files.get(frame.get("filename", -1), ""), int(frame["line"]), str(frame["name"])) for frame in frames)


def payload_texts(payload: str) -> list[str]:
    """The texts in a trace artifact: torch writes one string as it is and several as a JSON list."""
    with contextlib.suppress(ValueError):
        loaded = json.loads(payload)
        if isinstance(loaded, list):
            return [str(item) for item in loaded]
    return [payload]


@contextlib.contextmanager
def bytecode_seen(on_code: Callable[[str, types.CodeType, types.CodeType], None]) -> Iterator[None]:
    """Call `on_code` with compile id, code before and code after, whenever Dynamo has rewritten a function.

    The hook is what PyTorch's own documentation uses to look at bytecode. Without it a report would show none.
    """
    from torch._dynamo.convert_frame import register_bytecode_hook

    handle = register_bytecode_hook(lambda before, after: on_code(current_compile_id(), before, after))
    try:
        yield
    finally:
        handle.remove()


def current_compile_id() -> str:
    """Frame and compilation ("2/0") of the compilation under way: all that a graph, its guards and its trace share."""
    return str(torch._guards.CompileContext.current_compile_id())


def graph_break_reasons() -> dict[str, int]:
    """Why Dynamo broke graphs in this process, each reason with how often; a reset of Dynamo does not begin anew."""
    return {str(reason): count for reason, count in torch._dynamo.utils.counters["graph_break"].items()}


@contextlib.contextmanager
def quiet_logs() -> Iterator[None]:
    """Keep torch's log off the snippet's output: it repeats, with stacks of torch, what the report says.

    A snippet that turns logs on itself (`torch._logging.set_logs`) gets new handlers with that, and its logs.
    """
    from torch._logging._internal import handlers as of_torch

    traces = logging.getLogger("torch.__trace").handlers
    handlers = [handler for handler in of_torch if handler not in traces]
    for handler in handlers:
        handler.addFilter(_drop)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_drop)


def _drop(_record: logging.LogRecord) -> bool:
    return False
