"""Find what there is to explore in a snippet that has run.

In this order: what it compiled and called; what it compiled only; `Model` with `get_inputs`; a step of what trains; a
function or module that it called, or else a method; the last function or module that it defined; what it computes at
top level.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from compiler.capture.program.called import computes_nothing
from compiler.capture.program.device import makes_tensors_in_functions
from compiler.capture.program.inputs import choose_inputs, required_parameters
from compiler.capture.program.output import silenced
from compiler.capture.program.script import Script, script_of
from compiler.capture.program.snippet import Snippet, parse_snippet
from compiler.capture.program.top_level_calls import (
    CallObserver,
    TopLevelCall,
    is_of_snippet,
    top_level_calls,
)
from compiler.capture.recording.intercept import Interception
from compiler.capture.recording.recorder import Recorder
from compiler.options import Options
from compiler.wording import SNIPPET_FILE, listed


class NothingToExploreError(Exception):
    """The snippet defines nothing that could be compiled, or nothing by the name that was asked for."""


class Explorer:
    """Calls what a snippet compiled or defined and did not call itself."""

    def __init__(self, snippet: Snippet, interception: Interception, recorder: Recorder, options: Options) -> None:
        self._snippet = snippet
        self._interception = interception
        self._recorder = recorder
        self._options = options
        self._device = recorder.capture.device

    def explore(self) -> None:
        """Make sure that something was captured, or raise what stands in the way."""
        if self._options.entry is not None:
            self._explore_named(self._options.entry)
        elif self._interception.compiled:
            self._explore_compiled()
        elif "Model" in self._snippet.names and callable(self._snippet.names.get("get_inputs")):
            self._explore_model()
        elif self._options.inputs is None and self._explores_training():
            pass
        elif self._options.inputs is None and (call := self._calls.last_call()) is not None:
            self._note_choice(call)
            self._explore_call(call)
        else:
            self._explore_last_defined()
        if self._options.training is True:
            self._differentiate_all("as asked")

    @property
    def _calls(self) -> CallObserver:
        return top_level_calls(self._snippet.names)

    def _explore_compiled(self) -> None:
        called = self._names_called()
        for name, compiled, eager in self._interception.compiled:
            if not called:
                self._call_on_chosen_inputs(compiled, eager)
            elif name not in called:
                self._recorder.note(f"{name} was compiled but never called on its own, so nothing of its own is shown.")

    def _names_called(self) -> set[str]:
        return {entry.name for entry in self._recorder.capture.entries} | self._recorder.passed_on

    def _explore_named(self, name: str) -> None:
        if name not in self._snippet.names:
            names = [part.name for part in self._snippet.tree.body if isinstance(part, ast.FunctionDef | ast.ClassDef)]
            known = f"it defines {', '.join(names)}" if names else "it defines no function and no class"
            raise NothingToExploreError(f"The snippet defines no {name!r}; {known}.")
        target = self._snippet.names[name]
        for compiled_name, compiled, eager in self._interception.compiled:
            if target is compiled or target is eager or (name == compiled_name and not callable(target)):
                if compiled_name not in self._names_called():
                    self._call_on_chosen_inputs(compiled, eager)
                return
        self._explore_lone(target)

    def _explore_model(self) -> None:
        """`Model(*get_init_inputs())` on `get_inputs()`: the form of KernelBench, which calls without gradients."""
        names: dict[str, Any] = self._snippet.names
        initial = names["get_init_inputs"]() if callable(names.get("get_init_inputs")) else []
        model = names["Model"](**initial) if isinstance(initial, dict) else names["Model"](*initial)
        inputs = names["get_inputs"]()
        if self._device.type == "cuda":
            model = model.to(self._device)
            inputs = torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(self._device), inputs)
        compiled = self._interception.explored(model)
        if isinstance(inputs, dict):
            self._call(compiled, [], inputs)
        else:
            self._call(compiled, list(inputs), {})

    def _note_choice(self, call: TopLevelCall) -> None:
        """Say what of the snippet is not explored."""
        others = self._calls.names_beside(call)
        if others:
            self._recorder.note(
                f"The snippet calls {listed([*others, call.name])}. Only {call.name} was explored, the last "
                f"{'that trains' if call.differentiates else 'of them'}: torch.compile in the code chooses others."
            )
        if len(call.kinds) > 1:
            self._recorder.note(
                f"The snippet calls {call.name} with {len(call.kinds)} kinds of arguments: they differ in shape, dtype "
                f"or a switch. Only its first call was explored: with torch.compile({call.name}) in the code, all are."
            )

    def _explore_call(self, call: TopLevelCall) -> None:
        compiled = self._interception.explored(call.function)
        wants_gradients = call.differentiates or call.is_differentiated or call.has_hooks
        with call.state.entered(), silenced():
            self._call(compiled, list(call.args), call.kwargs, differentiates=wants_gradients)
        if call.is_differentiated:
            self._differentiate_all("since the snippet asks for gradients after it")
        own = inspect.unwrap(call.function)
        if own is not call.function and not self._recorder.capture.graphs:
            # What is around it, such as a tracer of torch.fx, cannot be compiled.
            self._explore_call(replace(call, function=own))

    def _explore_last_defined(self) -> None:
        """On inputs that are chosen, unless the snippet called it without any tensor."""
        names = self._snippet.names
        target = self._last_defined(_can_be_explored)
        call = self._calls.last_call_of_object() if target is None else self._calls.call_of(target)
        if call is not None and self._options.inputs is None:
            self._explore_call(call)
        elif target is not None:
            self._explore_lone(target)
        elif self._options.inputs is None and (script := script_of(self._tree_as_written().body, names)):
            self._explore_script(script, names, *script.define(names))
        else:
            self._explore_maker(self._tree_as_written())

    def _tree_as_written(self) -> ast.Module:
        """What has run was changed, so that its calls were observed."""
        return parse_snippet(self._snippet.source, self._device).tree

    def _explores_training(self) -> bool:
        """One step of what trains, where no call is that step: of a loop, or with tensors that nobody passed it."""
        trainer, call = self._calls.trainer, self._calls.last_call()
        if trainer is None:
            return False
        tree, names = self._tree_as_written(), self._snippet.names
        if trainer.is_top_level:
            script = script_of(tree.body, names)
        elif (function := trainer.within(tree)) is not None and not _must_stay(function):
            names = {**names, **trainer.names}
            self._recorder.capture.scopes.append(names)
            script = script_of(function.body, names, function)
        else:
            return False
        if script is None or not script.trains:
            return False
        if not trainer.is_top_level and not script.is_pass_of_loop and call is not None and call.has_tensors:
            return False  # that call is the step
        try:
            defined = script.define(names)
        except Exception:  # what sets it up cannot be done twice
            return False
        with call.state.entered() if call is not None and call.differentiates else nullcontext():
            self._explore_script(script, names, *defined)
        return True

    def _explore_script(
        self, script: Script, names: dict[str, Any], function: Callable[..., Any], arguments: list[Any]
    ) -> None:
        """What a script, or a function that trains, computes by itself, as one function."""
        self._interception.needs_default_device = makes_tensors_in_functions(ast.Module([script.function], []))
        (first, last), takes = script.lines, ", ".join(script.parameters)
        lines = f"line {first}" if first == last else f"lines {first} to {last}"
        what = f"one pass of its last loop, {lines}," if script.is_pass_of_loop else lines
        name = script.name
        why = "The script calls nothing that can be explored."
        if script.trains and name == "script":
            why = "The script trains at its top level."
        elif script.trains:
            why = (
                f"{name} trains in a loop." if script.is_pass_of_loop else f"{name} trains, on tensors it finds itself."
            )
        self._recorder.note(f"{why} So {what} became a function, `{name}({takes})`.", first)
        modules = script.modules(names)
        if modules:
            self._recorder.note(f"It runs backward several times. So {listed(modules)} were compiled each by itself.")
        for module in modules:
            names[module] = self._interception.explored(names[module])
        with silenced():
            called = function if modules else self._interception.explored(function)
            self._call(called, arguments, {}, differentiates=script.differentiates)

    def _explore_maker(self, tree: ast.Module) -> None:
        """The last function that takes nothing, such as `main`, since it may make tensors itself."""
        maker = self._last_defined(_takes_nothing)
        if maker is not None:
            defined_again = [node for node in tree.body if getattr(node, "name", None) == maker.__name__]
            exec(compile(ast.Module(defined_again, []), SNIPPET_FILE, "exec", dont_inherit=True), self._snippet.names)
            calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
            is_called = any(getattr(called, "id", "") == maker.__name__ for called in calls)
            with silenced() if is_called else nullcontext():
                self._explore_lone(self._snippet.names.get(maker.__name__, maker))
        if not (self._recorder.capture.graphs or self._recorder.capture.breaks):
            if any(isinstance(node, ast.AsyncFunctionDef) for node in tree.body):
                raise NothingToExploreError("The snippet computes in coroutines alone, and these are not explored.")
            raise NothingToExploreError("The snippet defines no function and no module to explore.")

    def _explore_lone(self, target: Any) -> None:
        if isinstance(target, type) and issubclass(target, torch.nn.Module):
            target = target()
        if isinstance(target, torch.nn.Module) and self._device.type == "cuda":
            target = target.to(self._device)
        if not callable(target):
            raise NothingToExploreError(f"{target!r} is neither a function nor a module.")
        if computes_nothing(target):
            name = getattr(target, "__name__", type(target).__name__)
            raise NothingToExploreError(f"A call of {name} computes nothing: it only makes a coroutine or a generator.")
        self._call_on_chosen_inputs(self._interception.explored(target), target)

    def _last_defined(self, fits: Callable[[Any], bool]) -> Any:
        """The last value of the top level that fits, in the order of the source; None where there is none."""
        values = [self._snippet.names.get(name) for name in _defined_names(self._snippet.tree)]
        return next((value for value in reversed(values) if fits(value)), None)

    def _call_on_chosen_inputs(self, compiled: Callable[..., Any], eager: Callable[..., Any]) -> None:
        chosen = choose_inputs(eager, self._snippet, self._options, self._device)
        for note in chosen.notes:
            self._recorder.note(note.message, self._line_of(eager))
        self._call(compiled, chosen.arguments, {})

    def _line_of(self, function: Callable[..., Any]) -> int | None:
        """The line of the snippet that names the parameters; a function begins at its first decorator."""
        code = getattr(getattr(function, "forward", function), "__code__", None)
        if code is None or code.co_filename != SNIPPET_FILE:
            return None
        first = code.co_firstlineno
        same = [
            one for one in ast.walk(self._snippet.tree) if isinstance(one, ast.FunctionDef) and one.name == code.co_name
        ]
        return min((one.lineno for one in same if one.lineno >= first), default=first)

    def _call(
        self, compiled: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], *, differentiates: bool = False
    ) -> None:
        """Call what the snippet did not call compiled: nobody asks for gradients then, unless the request or the
        function itself does."""
        with torch.set_grad_enabled(differentiates or self._options.training is True):
            compiled(*args, **kwargs)

    def _differentiate_all(self, why: str) -> None:
        """Ask for the gradients of everything that an entry returns, where the snippet did not."""
        for entry in list(self._recorder.capture.entries):
            graphs = [graph for graph in self._recorder.capture.graphs if graph.name in entry.graphs]
            if any(graph.phase == "backward" and graph.runner.calls for graph in graphs):
                continue
            args, kwargs = entry.copy_arguments()
            results = torch.utils._pytree.tree_leaves(entry.compiled(*args, **kwargs))
            wanted = [result for result in results if isinstance(result, torch.Tensor) and result.requires_grad]
            if wanted:
                torch.autograd.backward([result.sum() for result in wanted])
                self._recorder.note(f"The backward graph of {entry.name} was called with gradients of one, {why}.")


def _must_stay(function: ast.FunctionDef) -> bool:
    """Whether its text means something else elsewhere."""
    return any(
        isinstance(node, ast.Nonlocal | ast.Global | ast.Yield | ast.YieldFrom)
        or (isinstance(node, ast.Name) and node.id in ("super", "__class__"))
        for node in ast.walk(function)
    )


def _defined_names(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))


def _takes_nothing(value: Any) -> bool:
    """Whether it is a function of the snippet's without required parameters."""
    return is_of_snippet(value) and not required_parameters(value)


def _can_be_explored(value: Any) -> bool:
    """Whether it is a module, a class of modules that takes no arguments, or a function that may take tensors."""
    if isinstance(value, torch.nn.Module):
        return True
    if isinstance(value, type):
        return issubclass(value, torch.nn.Module) and len(required_parameters(value.__init__)) <= 1
    return is_of_snippet(value) and bool(required_parameters(value))
