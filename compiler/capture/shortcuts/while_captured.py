"""Shorten what Dynamo does during a capture, without changing its results.

    tensors without values     each call is run with them, to learn the sizes of what it gives: once for equal inputs
    open sizes                 the formula of equal operands made once (`formulas_once.py`)
    results to be remembered   made again to be checked: once for each kind (`kinds_checked_once.py`)
    texts of graphs            for a log: only where that is on
    names of functions         of each line, from the tokens of its file, for a log: only where that is on
    settings                   each found at once (`settings_at_hand.py`)
    maps over many devices     not imported to learn that a function is none, where none is asked for
    search for garbage         held back, as behind it (`compiler/garbage.py`)

What Dynamo captures, guards and says stays the same, which `tests/capture/test_while_captured.py` holds, but for guards
of torch 2.11, which miss changes of weights and are made to see them (`guards_see_changed_tensors`). Nothing of it is
documented; what Dynamo captures for other backends in the same process is left as it is.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any
from unittest import mock

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from compiler.accelerators import is_on
from compiler.capture.shortcuts.formulas_once import formulas_once
from compiler.capture.shortcuts.kinds_checked_once import kinds_checked_once
from compiler.capture.shortcuts.settings_at_hand import settings_at_hand
from compiler.capture.shortcuts.written_again import alike, is_of_torch, is_sized, is_whole, like, memory_of
from compiler.capture.torch_internals import guards_see_changed_tensors
from compiler.garbage import garbage_kept


@functools.cache
def shorten_captures_for(backend: Callable[..., Any]) -> None:
    """Have Dynamo capture that way where it captures for `backend`."""
    from torch._dynamo import convert_frame

    by_torch = convert_frame._compile

    @functools.wraps(by_torch)
    def compile_frame(*args: Any, **kwargs: Any) -> Any:
        if not any(getattr(arg, "compiler_fn", arg) is backend for arg in args if callable(arg)):
            return by_torch(*args, **kwargs)
        with ExitStack() as stack:
            stack.enter_context(guards_see_changed_tensors())
            for name, shorten in _WAYS.items():
                if is_on(name):
                    stack.enter_context(shorten())
            return by_torch(*args, **kwargs | {"skip": kwargs.get("skip", 0) + 1})  # this frame is none of the user's

    convert_frame._compile = compile_frame


def _names_as_asked() -> ExitStack:
    from torch._dynamo import output_graph, symbolic_convert

    stack = ExitStack()
    logs = output_graph.trace_call_log, symbolic_convert.trace_call_log, symbolic_convert.trace_source_log
    if not any(log.isEnabledFor(logging.DEBUG) for log in logs):
        stack.enter_context(mock.patch.object(symbolic_convert, "get_funcname", lambda *_: None))
    return stack


def _graphs_as_asked() -> ExitStack:
    from torch._functorch._aot_autograd import graph_compile
    from torch._logging._internal import trace_log

    stack = ExitStack()
    logs = graph_compile.aot_joint_log, graph_compile.aot_graphs_log
    if trace_log.handlers or any(log.isEnabledFor(logging.INFO) for log in logs):
        return stack
    for name, nothing in (("_log_joint_graph", None), ("_log_fw_bw_graphs", (None, None))):
        if hasattr(graph_compile, name):  # since release 2.13
            stack.enter_context(mock.patch.object(graph_compile, name, lambda *_, nothing=nothing: nothing))
    return stack


def _wrapped_as_asked() -> Any:
    """Each function that is met may be the one that `local_map` wraps, which a program has to turn on: to compare them,
    torch imports what tensors over many devices are made of."""
    from torch._dynamo.variables.higher_order_ops import LocalMapWrappedHigherOrderVariable as Wrapped

    by_torch = Wrapped.should_wrap_in_hop
    return mock.patch.object(Wrapped, "should_wrap_in_hop", lambda value: Wrapped._enabled and by_torch(value))


def _values_known() -> Any:
    """A call whose inputs are like those of an earlier one is not run: it gives tensors without values like those."""
    from torch._dynamo import utils

    by_torch = utils.run_node
    known: dict[Hashable, tuple[list[Any], Any] | None] = {}

    def run_node(tracer: Any, node: fx.Node, args: Any, kwargs: Any, module: Any) -> Any:
        if node.op not in ("call_function", "call_method") or not is_of_torch(node.target):
            return by_torch(tracer, node, args, kwargs, module)
        inputs, structure = tree_flatten((args, kwargs))
        tensors = [_told_apart(value) for value in inputs]
        of_inputs = None if _is_special() or not any(tensors) else alike(inputs, tensors)
        if of_inputs is None:
            return by_torch(tracer, node, args, kwargs, module)
        key = id(tracer.fake_mode), node.op, node.target, structure, of_inputs, torch.is_grad_enabled()
        found = known.get(key)
        if found is not None:
            return tree_unflatten([like(value, None) for value in found[0]], found[1])
        versions = [value._version for value in inputs if isinstance(value, torch.Tensor)]
        made = by_torch(tracer, node, args, kwargs, module)
        if key not in known:
            values, of_values = tree_flatten(made)
            is_new = versions == [value._version for value in inputs if isinstance(value, torch.Tensor)]
            is_known = is_new and _may_be_known(values, inputs)
            # Others than those that are given, which may be changed.
            known[key] = ([like(value, None) for value in values], of_values) if is_known else None
        return made

    return mock.patch.object(utils, "run_node", run_node)


def _is_special() -> bool:
    """Whether a call may depend on more than its inputs, or does not count what writes to them."""
    return torch._C._is_any_autocast_enabled() or torch.is_inference_mode_enabled()


def _told_apart(value: Any) -> Any:
    """What stands for a tensor without values in a key; none for one whose number is known."""
    return id(value) if type(value) is FakeTensor and value.constant is None else None


def _may_be_known(values: Sequence[Any], inputs: Sequence[Any]) -> bool:
    """Whether the results are tensors of which no more is to know than their sizes, each of memory of its own."""
    if not values or not all(is_sized(value) and value.constant is None for value in values):
        return False
    taken = {memory_of(value) for value in inputs if isinstance(value, torch.Tensor)}
    memory = [memory_of(value) for value in values]
    return (
        taken.isdisjoint(memory)
        and len(set(memory)) == len(memory)
        and all(is_whole(value) and not (value.requires_grad or value.is_conj() or value.is_neg()) for value in values)
    )


#: Each gives a context within which a capture is made in less time.
_WAYS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "garbage_kept": garbage_kept,
    "settings_at_hand": settings_at_hand,
    "formulas_once": formulas_once,
    "kinds_checked_once": kinds_checked_once,
    "values_known": _values_known,
    "names_as_asked": _names_as_asked,
    "graphs_as_asked": _graphs_as_asked,
    "wrapped_as_asked": _wrapped_as_asked,
}
