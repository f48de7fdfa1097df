"""The recording backend: keeps every graph that Dynamo hands over, and runs it by ATen until told otherwise."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from compiler.capture.autograd.aot import JointPass, compile_through_aot
from compiler.capture.autograd.repeated_writes import write_to_repeated_memory
from compiler.capture.autograd.shared_memory import OverlappingWrite
from compiler.capture.autograd.training import recomputed_in_backward, saved_for_backward
from compiler.capture.captured import (
    Capture,
    CapturedGraph,
    EntryCall,
    GraphRunner,
    Implementation,
    Phase,
    RewriteCheck,
)
from compiler.capture.diagnosis.errors import in_short, line_of_error, name_lines
from compiler.capture.recording.ledger import Ledger
from compiler.capture.recording.torch_trace import TraceListener, bytecode_seen, current_compile_id
from compiler.capture.torch_internals import (
    breaks_the_graph,
    forget_guarded_objects,
    is_dynamo_control_flow,
    recompile_limit,
)
from compiler.fx.lines import function_of_text, lines_of_text
from compiler.report import Note

if TYPE_CHECKING:
    from compiler.passes.rewrite.rewriting import Rewriting

Backend = Callable[..., Callable[..., Any]]


@dataclass(frozen=True)
class FailedCall:
    """A call of a compiled callable that raised, so that the same can be tried without compilation."""

    eager: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: Exception | None = None


class Recorder:
    """Fills a `Capture` while the snippet runs; what torch tells of each compilation it enters in its ledger."""

    def __init__(self, capture: Capture, change_joint: JointPass = lambda _: None) -> None:
        self.capture = capture
        self._change_joint = change_joint
        self.ledger = Ledger()
        self.failed: FailedCall | None = None
        self.failures: list[Exception] = []
        #: Names of what was called where no call can be made again, and where PyTorch compiles nothing.
        self.passed_on: set[str] = set()
        #: Whether a graph was not compiled for what it writes to.
        self.has_left_to_eager = False
        self._entries: list[EntryCall] = []
        self._compilation_of: dict[str, str] = {}
        self._forward_count = 0
        self._backends: dict[int, Backend] = {}
        self._finished = False

    def backend(self, custom: Any = None) -> Backend:
        """A backend for torch.compile. A `custom` one of the user is called for what it prints, and not used.

        It is one for all that is compiled with the same: Dynamo runs code again only with the backend it was made by.
        """
        if id(custom) in self._backends:
            return self._backends[id(custom)]

        def fusionscope_recorder(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], **_: Any) -> Any:
            if custom is not None and not self._finished:
                self._call_custom(custom, graph, example_inputs)
            found = write_to_repeated_memory(graph)
            if found is not None:
                return self._left_to_eager(graph, *found)
            name = f"graph_{self._forward_count}"
            self._forward_count += 1
            compilation = current_compile_id()
            rewritings: list[tuple[Rewriting, RewriteCheck | None]] = []

            def note_rewriting(found: Rewriting) -> None:
                rewritings.append((found, RewriteCheck(graph, found.graph) if found.graph is not graph else None))

            def record(part: torch.fx.GraphModule, phase: Phase) -> Implementation:
                runner, made = self._record(name, compilation, graph, part, phase)
                if phase != "backward":
                    rewriting, made.rewrite_check = rewritings[0]
                    made.rewrites = rewriting.records
                return runner

            try:
                compiled = compile_through_aot(graph, example_inputs, record, note_rewriting, self._change_joint)
                check = rewritings[0][1]
                return compiled if check is None else check.watching(compiled)
            except OverlappingWrite as refusal:
                self.has_left_to_eager = True
                self.note(str(refusal))
                return graph.forward
            except Exception as error:
                if is_dynamo_control_flow(error) or (breaks_the_graph(error) and not _functions_given(graph)):
                    raise
                self._give_up(graph, error)
                return graph.forward

        self._backends[id(custom)] = fusionscope_recorder
        return fusionscope_recorder

    def _give_up(self, graph: torch.fx.GraphModule, error: Exception) -> None:
        """A graph that cannot be captured is run as Dynamo left it, so that the snippet goes on."""
        self.failures.append(error)
        if line_of_error(error) is None:
            # It arises in graphs of torch's own making. Those of operators that take functions are the likeliest.
            suspects = _functions_given(graph)
            name_lines(error, next((lines_of_text(node.meta.get("stack_trace")) for node in suspects), ()))
        name = self._function(graph) or "a function"
        said = in_short(error)
        self.note(f"A graph of {name} could not be captured and ran without compilation: {said}.", line_of_error(error))

    def _left_to_eager(self, graph: torch.fx.GraphModule, call: torch.fx.Node, what: str) -> Any:
        self.has_left_to_eager = True
        lines = lines_of_text(call.meta.get("stack_trace"))
        self.note(
            f"`{call.name}` writes {what}. Compiled, it would give other values, or eager mode refuses it, so its "
            "graph was left to eager mode.",
            lines[-1] if lines else None,
        )
        return graph.forward

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """While the snippet runs: enter what Dynamo and AOTAutograd tell of themselves in the ledger."""
        with TraceListener(self.ledger.record).listening(), bytecode_seen(self.ledger.code_rewritten):
            yield

    def guards_chosen(self, guards: Sequence[Any]) -> Sequence[bool]:
        """Called by Dynamo with the guards of each compilation; a replay's are nothing new."""
        if not self._finished:
            self._telling(lambda: self.ledger.guards_chosen(guards))
        forget_guarded_objects(guards)
        return [True] * len(guards)

    @contextlib.contextmanager
    def during(self, entry: EntryCall, call: FailedCall) -> Iterator[None]:
        """While a compiled callable runs: graphs made meanwhile are its own, and a failure is remembered."""
        self._entries.append(entry)
        self.ledger.trail.restart()
        try:
            yield
        except Exception as error:
            self.failed = replace(call, error=error)
            raise
        finally:
            self.ledger.trail.restart()
            self._entries.pop()

    def note(self, message: str, line: int | None = None) -> None:
        """State something once."""
        if all(message != known.message for known in self.capture.notes):
            self.capture.notes.append(Note(message=message, line=line))

    def pass_on(self, name: str) -> None:
        """Say of a call why it is no entry."""
        self.passed_on.add(name)
        self.note(
            f"{name} was called within torch.vmap, torch.func.grad or their like. PyTorch compiles nothing there, so "
            "that call is not shown. Compile around them, as in torch.compile(torch.vmap(f))."
        )

    def finish(self) -> None:
        """Give each graph its guards and symbols, and the breaks and recompilations of its compilation."""
        parts = (
            self._attach_guards,
            self._attach_breaks,
            self._attach_recompiles,
            self._attach_training,
            self._attach_compilations,
            self._note_limit,
        )
        for part in parts:
            self._telling(part)
        for graph in self.capture.graphs:
            graph.runner.on_call = None
        self._finished = True

    def _telling(self, part: Callable[[], object]) -> None:
        """Do a part of what only describes a compilation: where it fails, the graphs are worth more than it."""
        try:
            part()
        except Exception as error:
            self.note(f"Part of torch's record of this capture could not be read: {type(error).__name__}: {error}")

    def _record(
        self, name: str, compilation: str, dynamo: torch.fx.GraphModule, aten: torch.fx.GraphModule, phase: Phase
    ) -> tuple[GraphRunner, CapturedGraph]:
        backward = phase == "backward"
        graph = CapturedGraph(
            name=f"{name}_backward" if backward else name,
            phase=phase,
            function=self._function_of_graph(name) if backward else self._function(dynamo),
            dynamo=None if backward else dynamo,
            aten=aten,
            runner=GraphRunner(aten),
            partner=name if backward else None,
        )
        if self._finished:
            # A replay met sizes or state of its own: it runs, and the report stays as it was made.
            if any(node.op == "call_function" for node in aten.graph.nodes):
                self.capture.made_later.append(graph.runner)
            return graph.runner, graph
        self.capture.graphs.append(graph)
        self._compilation_of[graph.name] = compilation
        if not backward:
            self.ledger.graph_made(name, compilation)
        graph.runner.on_call = lambda: self._ran(graph)
        # A backward graph is made later, by autograd, for the entries that made its forward graph.
        owners = self._entries or [entry for entry in self.capture.entries if name in entry.graphs]
        for entry in owners:
            entry.has_compiled = True
            if graph.name not in entry.graphs:
                entry.graphs.append(graph.name)
        return graph.runner, graph

    def _ran(self, graph: CapturedGraph) -> None:
        if graph.phase != "backward":
            self.ledger.trail.ran(graph.name)
        for entry in self._entries:
            if graph.name not in entry.graphs:
                entry.graphs.append(graph.name)

    def _function_of_graph(self, name: str) -> str | None:
        return next((graph.function for graph in self.capture.graphs if graph.name == name), None)

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
                "the graphs were still captured.",
                line_of_error(error),
            )
        else:
            self.note(f"The snippet's own backend {name} was called for what it prints; its result was not used.")

    def _forward_graphs(self) -> list[CapturedGraph]:
        return [graph for graph in self.capture.graphs if graph.phase != "backward"]

    def _attach_guards(self) -> None:
        for graph in self._forward_graphs():
            graph.guards = self.ledger.guards_of(self._compilation_of[graph.name])
            graph.symbols = self.ledger.symbols_of(self._compilation_of[graph.name])

    def _attach_compilations(self) -> None:
        self.capture.compilations = self.ledger.compilations()

    def _attach_breaks(self) -> None:
        self.capture.breaks = self.ledger.breaks()
        for graph in self._forward_graphs():
            graph.breaks = [found for found in self.capture.breaks if graph.name in found.before]

    def _attach_recompiles(self) -> None:
        by_name = {graph.name: graph for graph in self.capture.graphs}
        for recompile in self.ledger.recompiles():
            self.capture.recompiles += 1
            graph = by_name.get(recompile.graph or "")
            if graph is not None:
                recompile.function = graph.function or recompile.function
                graph.recompiles.append(recompile)

    def _attach_training(self) -> None:
        """Link each forward graph with its backward graph, and say what the one keeps for the other."""
        by_name = {graph.name: graph for graph in self.capture.graphs}
        for backward in self.capture.graphs:
            forward = by_name.get(backward.partner or "")
            if backward.phase == "backward" and forward is not None:
                forward.partner = backward.name
                backward.saved = saved_for_backward(forward.aten, backward.aten)
                backward.recomputed = recomputed_in_backward(forward.aten, backward.aten)

    def _note_limit(self) -> None:
        """Say so where Dynamo gave up on a function: the calls after that are in no graph."""
        limit = recompile_limit()
        for graph in self.capture.graphs:
            if len(self.ledger.compilations_of_frame(self._compilation_of[graph.name])) >= limit:
                self.note(
                    f"{graph.function or graph.name} was compiled {limit} times, which is the most that Dynamo allows: "
                    "a call that fits none of these runs without compilation."
                )


def _functions_given(graph: torch.fx.GraphModule) -> list[torch.fx.Node]:
    """Calls of operators that take functions, as `torch.cond` and `while_loop` are."""
    return [node for node in graph.graph.nodes if isinstance(node.target, torch._ops.HigherOrderOperator)]
