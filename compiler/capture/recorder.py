"""The recording backend: keeps every graph that Dynamo hands over, and runs it by ATen until told otherwise."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compiler.capture.aot import compile_through_aot
from compiler.capture.captured import Capture, CapturedGraph, EntryCall, GraphRunner, Implementation, Phase
from compiler.capture.errors import line_of_error
from compiler.capture.lines import function_of_text
from compiler.capture.observations import distinct_breaks, report_break, report_guards, report_recompile
from compiler.capture.torch_internals import (
    TraceListener,
    TraceRecord,
    current_compile_id,
    is_dynamo_control_flow,
    recompile_limit,
)
from compiler.report import GraphBreak, Guard, Note

Backend = Callable[..., Callable[..., Any]]


@dataclass(frozen=True)
class FailedCall:
    """A call of a compiled callable that raised, so that the same can be tried without compilation."""

    eager: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Recorder:
    """Fills a `Capture` while the snippet runs.

    Graphs, guards and trace records come at different moments of one compilation; its id ties them together, which
    `finish` does once the snippet has ended.
    """

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.listener = TraceListener()
        self.failed: FailedCall | None = None
        self.failures: list[Exception] = []
        self._entries: list[EntryCall] = []
        self._compilation_of: dict[str, str] = {}
        self._guards: dict[str, list[Guard]] = {}
        self._forward_count = 0
        self._finished = False

    def backend(self, custom: Any = None) -> Backend:
        """A backend for torch.compile. A `custom` one of the user is called for what it prints, and not used."""

        def fusionscope_recorder(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], **_: Any) -> Any:
            if custom is not None and not self._finished:
                self._call_custom(custom, graph, example_inputs)
            name = f"graph_{self._forward_count}"
            self._forward_count += 1
            compilation = current_compile_id()

            def record(part: torch.fx.GraphModule, phase: Phase) -> Implementation:
                return self._record(name, compilation, graph, part, phase)

            try:
                return compile_through_aot(graph, example_inputs, record)
            except Exception as error:
                if is_dynamo_control_flow(error):
                    raise
                self._give_up(graph, error)
                return graph.forward

        return fusionscope_recorder

    def _give_up(self, graph: torch.fx.GraphModule, error: Exception) -> None:
        """A graph that cannot be captured is run as Dynamo left it, so that the snippet goes on."""
        self.failures.append(error)
        name = self._function(graph) or "a function"
        self.note(
            f"A graph of {name} could not be captured and ran without compilation: {type(error).__name__}: {error}"
        )

    def guards_exported(self, guards: Any) -> None:
        """Called by Dynamo after each compilation with the guards under which its code may run."""
        self._guards[current_compile_id()] = report_guards(guards)

    @contextlib.contextmanager
    def during(self, entry: EntryCall, call: FailedCall) -> Iterator[None]:
        """While a compiled callable runs: graphs made meanwhile are its own, and a failure is remembered."""
        self._entries.append(entry)
        try:
            yield
        except Exception:
            self.failed = call
            raise
        finally:
            self._entries.pop()

    def note(self, message: str, line: int | None = None) -> None:
        """State something once."""
        if all(message != known.message for known in self.capture.notes):
            self.capture.notes.append(Note(message=message, line=line))

    def finish(self) -> None:
        """Give each graph its guards, and the breaks and recompilations of its compilation."""
        for graph in self.capture.graphs:
            if graph.phase != "backward":
                graph.guards = self._guards.get(self._compilation_of[graph.name], [])
        self._attach_breaks()
        self._attach_recompiles()
        self._note_limit()
        self._finished = True

    def _record(
        self, name: str, compilation: str, dynamo: torch.fx.GraphModule, aten: torch.fx.GraphModule, phase: Phase
    ) -> GraphRunner:
        backward = phase == "backward"
        graph = CapturedGraph(
            name=f"{name}_backward" if backward else name,
            phase=phase,
            function=self._function(dynamo),
            dynamo=None if backward else dynamo,
            aten=aten,
            runner=GraphRunner(aten),
        )
        if self._finished:
            # A replay met sizes or state of its own: it runs, and the report stays as it was made.
            return graph.runner
        self.capture.graphs.append(graph)
        self._compilation_of[graph.name] = compilation
        # A backward graph is made later, by autograd, for the entries that made its forward graph.
        owners = self._entries or [entry for entry in self.capture.entries if name in entry.graphs]
        for entry in owners:
            if graph.name not in entry.graphs:
                entry.graphs.append(graph.name)
        return graph.runner

    def _function(self, graph: torch.fx.GraphModule) -> str | None:
        names = (function_of_text(node.meta.get("stack_trace")) for node in graph.graph.nodes)
        name = next((name for name in names if name), None)
        if name in (None, "forward", "<lambda>") and self._entries:
            return self._entries[-1].name
        return name

    def _call_custom(self, custom: Any, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> None:
        name = getattr(custom, "__name__", type(custom).__name__)
        try:
            custom(copy.deepcopy(graph), list(example_inputs))
        except Exception as error:
            self.note(
                f"The snippet's own backend {name} failed with {type(error).__name__}: {error}; "
                "the graphs were captured all the same.",
                line_of_error(error),
            )
        else:
            self.note(f"The snippet's own backend {name} was called for what it prints; its result was not used.")

    def _attach_breaks(self) -> None:
        found = [(r, report_break(r.payload)) for r in self.listener.records if r.name == "dynamo_graph_break_reason"]
        self.capture.graph_breaks = len(distinct_breaks(item for _, item in found))
        owned: dict[str, list[GraphBreak]] = {}
        seen: set[tuple[int | None, str | None]] = set()
        for record, item in found:
            if (item.line, item.kind) in seen:
                continue
            graph = self._graph_of(record)
            if graph is not None:
                seen.add((item.line, item.kind))
                owned.setdefault(graph.name, []).append(item)
        for graph in self.capture.graphs:
            graph.breaks = distinct_breaks(owned.get(graph.name, []))

    def _attach_recompiles(self) -> None:
        for record in self.listener.records:
            if record.name != "recompile_reasons":
                continue
            self.capture.recompiles += 1
            graph = self._graph_of(record)
            if graph is not None:
                earlier = self._guards_of_frame(record.compile_id)
                graph.recompiles.append(report_recompile(record.payload, graph.function or graph.name, earlier))

    def _note_limit(self) -> None:
        """Say so where Dynamo gave up on a function: the calls after that are in no graph."""
        limit = recompile_limit()
        for graph in self.capture.graphs:
            if len(self._compilations_of_frame(self._compilation_of[graph.name])) >= limit:
                self.note(
                    f"{graph.function or graph.name} was compiled {limit} times, which is the most that Dynamo allows: "
                    "a call that fits none of these runs without compilation."
                )

    def _compilations_of_frame(self, compile_id: str) -> set[str]:
        frame = compile_id.split("/")[0]
        return {compilation for compilation in self._compilation_of.values() if compilation.split("/")[0] == frame}

    def _guards_of_frame(self, compile_id: str) -> list[Guard]:
        frame = compile_id.split("/")[0]
        return [guard for key, guards in self._guards.items() if key.split("/")[0] == frame for guard in guards]

    def _graph_of(self, record: TraceRecord) -> CapturedGraph | None:
        """The graph of that compilation; where it made none (a break before any operator), the last one before it."""
        graphs = [graph for graph in self.capture.graphs if graph.phase != "backward"]
        for graph in graphs:
            if self._compilation_of[graph.name] == record.compile_id:
                return graph
        frame = _as_numbers(record.compile_id)
        earlier = [graph for graph in graphs if _as_numbers(self._compilation_of[graph.name]) < frame]
        return earlier[-1] if earlier else graphs[0] if graphs else None


def _as_numbers(compile_id: str) -> tuple[int, ...]:
    return tuple(int(part) for part in compile_id.split("/") if part.isdigit())
