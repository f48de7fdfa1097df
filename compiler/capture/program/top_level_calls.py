"""Which functions and modules a snippet calls at top level, and with what: for snippets that compile nothing."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from compiler.capture.captured import copy_call
from compiler.capture.program.called import Called
from compiler.capture.torch_internals import is_compiled_function, noting_differentiation
from compiler.capture.torch_state import CallState
from compiler.wording import SNIPPET_FILE

_OBSERVER = "__fusionscope_observe__"
_LOCATION = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_NOT_OBSERVED = ("super", "locals", "globals", "exec", "eval")


@dataclass
class TopLevelCall:
    """The first call of one callable from the snippet's top level. It `is_of_object` where a method was called, or an
    object of a class of the snippet's. It `differentiates` where one of its calls asks for gradients itself, as a step
    of training does; it `is_differentiated` where the top level does so later. It `has_hooks` where it asks of a tensor
    what only one with a gradient does. `kinds` has one entry for
    all of its calls that are alike but for values. `state` is what the call found of torch, such as autocast, gradients
    aside."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    state: CallState
    is_of_object: bool = False
    has_tensors: bool = True
    differentiates: bool = False
    is_differentiated: bool = False
    has_hooks: bool = False
    kinds: set[Any] = field(default_factory=set)


#: By callable.
Calls = dict[tuple[int, int], TopLevelCall]


@dataclass(frozen=True)
class Trainer:
    """A function of the snippet, or its top level, in which autograd ran backward, and what its names were then."""

    code: types.CodeType
    names: dict[str, Any]

    def within(self, tree: ast.Module) -> ast.FunctionDef | None:
        """Its text in that program; None for the top level and for what is no plain function."""
        functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        location = self.code.co_firstlineno, self.code.co_name
        return next((node for node in functions if (_first_line(node), node.name) == location), None)

    @property
    def is_top_level(self) -> bool:
        return self.code.co_name == "<module>"


def _first_line(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _frame_of_snippet() -> types.FrameType | None:
    """The innermost frame of the snippet's code."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename != SNIPPET_FILE:
        frame = frame.f_back
    return frame


@dataclass
class CallObserver:
    """Keeps, by callable, the first call that passed it a tensor, or else the first call; `calls` is in the order of
    the last such calls. What they compute on is on `device`. The `trainer` is what asked for gradients last; none where
    the snippet takes gradients of gradients, which PyTorch refuses of a compiled graph."""

    device: torch.device
    calls: Calls = field(default_factory=dict)
    trainer: Trainer | None = None
    _differentiates_again: bool = False
    _running: list[TopLevelCall] = field(default_factory=list)

    def __call__(self, function: Any, name: str) -> Any:
        called = _observed(function)
        if called is None:
            return function

        def observed(*args: Any, **kwargs: Any) -> Any:
            call = self._note(called, name, args, kwargs)
            self._running.append(call)
            try:
                with self._noting_calls_of([*args, *kwargs.values()]) as before:
                    result = function(*args, **kwargs)
            finally:
                self._running.pop()
            if before and (call.differentiates or any(isinstance(x, torch.Tensor) for x in tree_leaves(result))):
                self.calls = before
            return result

        return observed

    @contextlib.contextmanager
    def _noting_calls_of(self, passed: Sequence[Any]) -> Iterator[Calls]:
        """Within, the first call of each of these functions and modules is noted; gives what was noted before, once
        there is one. What is called with a function and gives no tensor, as a benchmark of it does, is no more than
        the way to that call."""
        waiting, before = {code: one for one in passed if (code := _code_of(one)) is not None}, Calls()
        if not waiting or sys.getprofile() is not None:
            yield before
            return

        def look(frame: types.FrameType, event: str, _: Any) -> None:
            one = waiting.get(frame.f_code) if event == "call" else None
            if one is None or (isinstance(one, torch.nn.Module) and _first_argument(frame) is not one):
                return
            del waiting[frame.f_code]
            args, kwargs = _arguments(frame)
            before.update({} if before else self.calls)
            if isinstance(one, torch.nn.Module):
                self._note(one, type(one).__name__, args[1:], kwargs)
            else:
                self._note(one, one.__name__, args, kwargs)
            if not waiting:
                sys.setprofile(None)

        sys.setprofile(look)
        try:
            yield before
        finally:
            if sys.getprofile() is look:
                sys.setprofile(None)

    def note_differentiation(self, again: bool) -> None:
        """Autograd begins a backward pass, of which another can follow: what runs now asks for it."""
        self._differentiates_again |= again
        frame = _frame_of_snippet()
        if self._differentiates_again:
            self.trainer = None
        elif frame is not None:
            self.trainer = Trainer(frame.f_code, dict(frame.f_locals))
        if self._running:
            self._running[-1].differentiates = True
            return
        for call in self.calls.values():
            call.is_differentiated = True

    def note_hook(self) -> None:
        if self._running:
            self._running[-1].has_hooks = True

    def _note(self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TopLevelCall:
        has_tensors = any(isinstance(value, torch.Tensor) for value in tree_leaves((args, kwargs)))
        key = _key(function)
        call, kind = self.calls.get(key), _kind_of(args, kwargs)
        if call is None or (has_tensors and not call.has_tensors):
            args, kwargs = copy_call((args, kwargs))
            is_of_object = isinstance(function, types.MethodType) or "." in name
            call = TopLevelCall(name, function, args, kwargs, _state_on(self.device), is_of_object, has_tensors)
        if has_tensors:
            self.calls.pop(key, None)
        if has_tensors or not call.has_tensors:
            call.kinds.add(kind)
        self.calls[key] = call
        return call

    def last_call(self) -> TopLevelCall | None:
        """The last one that trains, or else that passed a tensor; one of an object only where there is no other. What
        is called on an object is often a helper, such as a meter that is told a loss."""
        latest = list(reversed(self.calls.values()))
        calls = [call for call in latest if call.differentiates] or [call for call in latest if call.has_tensors]
        return next((call for call in calls if not call.is_of_object), calls[0] if calls else None)

    def names_beside(self, chosen: TopLevelCall) -> list[str]:
        """Of all else that was called with tensors, apart from objects."""
        others = (call for call in self.calls.values() if call.has_tensors and not call.is_of_object)
        return list(dict.fromkeys(call.name for call in others if call.name not in ("", chosen.name)))

    def call_of(self, function: Any) -> TopLevelCall | None:
        """A call of that function, with tensors or without."""
        return self.calls.get(_key(function))

    def last_call_of_object(self) -> TopLevelCall | None:
        """The last call of a method, with tensors or without."""
        return next((call for call in reversed(self.calls.values()) if call.is_of_object), None)


def _code_of(passed: Any) -> types.CodeType | None:
    """Of a function of the snippet, or a module's; None of all else."""
    function = type(passed).forward if isinstance(passed, torch.nn.Module) else passed
    is_known = isinstance(function, types.FunctionType) and (function is not passed or is_of_snippet(passed))
    return function.__code__ if is_known else None


def _first_argument(frame: types.FrameType) -> Any:
    return frame.f_locals.get(frame.f_code.co_varnames[0]) if frame.f_code.co_argcount else None


def _arguments(frame: types.FrameType) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a frame that begins was called with."""
    names, rest, more, values = inspect.getargvalues(frame)
    count = frame.f_code.co_argcount
    args = (*(values[name] for name in names[:count]), *(values[rest] if rest else ()))
    return args, {name: values[name] for name in names[count:]} | (values[more] if more else {})


def _kind_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What compiled code goes by: shapes, dtypes, and switches such as `causal=True`. Numbers may be those of steps."""

    def kind(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.dtype, None if leaf.is_nested else tuple(leaf.shape)
        return leaf if isinstance(leaf, bool | str) else type(leaf)

    return tuple(kwargs), tuple(map(kind, tree_leaves((args, kwargs))))


def _state_on(device: torch.device) -> CallState:
    return replace(CallState.current(device), grad=True, inference=False)


@contextlib.contextmanager
def observing_top_level_calls(tree: ast.Module, names: dict[str, Any], device: torch.device) -> Iterator[None]:
    """Have every call at top level pass what it calls through an observer: `f(x)` -> `observe(f, "f")(x)`. It sees
    what the program does that runs within."""
    names[_OBSERVER] = observer = CallObserver(device)
    _TopLevel().visit(tree)
    with noting_differentiation(observer.note_differentiation, observer.note_hook):
        yield


def note_call(names: dict[str, Any], called: Called) -> None:
    """As if a program with these names had made that call."""
    args, kwargs = copy_call((called.args, called.kwargs))
    state, differentiates = _state_on(called.device), called.differentiates
    call = TopLevelCall(called.name, called.function, args, kwargs, state, differentiates=differentiates)
    names[_OBSERVER] = CallObserver(called.device, {_key(called.function): call})


def top_level_calls(names: dict[str, Any]) -> CallObserver:
    """What was observed of the program that has left these names; nothing where it took the observer away."""
    observer = names.get(_OBSERVER)
    return observer if isinstance(observer, CallObserver) else CallObserver(torch.device("cpu"))


class _TopLevel(ast.NodeTransformer):
    """A `main` without parameters belongs to the top level: it cannot be explored itself."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        arguments = node.args
        takes = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        is_main = node.name == "main" and not any(takes) and not node.decorator_list
        return self.generic_visit(node) if is_main else node

    def _is_left(self, node: ast.AST) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _is_left

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id in _NOT_OBSERVED):
            location = {name: getattr(node.func, name) for name in _LOCATION}
            observer, name = ast.Name(_OBSERVER, ast.Load(), **location), ast.Constant(_name(node.func), **location)
            node.func = ast.Call(observer, [node.func, name], [], **location)
        return node


def _name(function: ast.expr) -> str:
    """`sim.step`; of what has no name the attribute alone, as in `.step`, or nothing."""
    if isinstance(function, ast.Attribute):
        return f"{_name(function.value)}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def _observed(function: Any) -> Callable[..., Any] | None:
    """What is called: a module, or a function or method of the snippet's; None for all else. An object of one of its
    classes is called by its method `__call__`. What is compiled keeps its first call by itself. Of what TorchScript has
    made, Dynamo reads the Python. `torch._dynamo.explain(f)` is called as `f` would be."""
    of_torch = isinstance(function, types.FunctionType) and str(function.__module__).startswith("torch.")
    if of_torch and function.__qualname__ == "explain.<locals>.inner":
        function = inspect.getclosurevars(function).nonlocals.get("f")
    if isinstance(function, torch.jit.ScriptFunction):
        return getattr(function, "_torchdynamo_inline", None)
    if isinstance(function, types.FunctionType) and is_compiled_function(function):
        return None
    inner = function.func if isinstance(function, functools.partial) else function
    if isinstance(inner, torch.nn.Module) or is_of_snippet(inner):
        return function  # type: ignore[no-any-return]
    method = inspect.getattr_static(type(function), "__call__", None)
    return types.MethodType(method, function) if is_of_snippet(method) else None


def is_of_snippet(function: Any) -> bool:
    """Whether it is a function or method that the snippet defines, as it is or decorated. A generator or coroutine
    computes nothing when it is called, and counts as none."""
    plain = function.__func__ if isinstance(function, types.MethodType) else function
    if not isinstance(plain, types.FunctionType):
        return False
    own = inspect.unwrap(plain)
    if not isinstance(own, types.FunctionType) or inspect.isgeneratorfunction(own) or inspect.iscoroutinefunction(own):
        return False
    return own.__code__.co_filename == SNIPPET_FILE


def _key(function: Any) -> tuple[int, int]:
    """A method is another object each time that it is asked for."""
    is_method = isinstance(function, types.MethodType)
    return (id(function.__self__), id(function.__func__)) if is_method else (0, id(function))
