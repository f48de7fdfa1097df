"""Shorten what Dynamo does during a capture, without changing its results.

    open sizes                 the formula of equal operands made once (`formulas_once.py`)
    names of functions         of each line, from the tokens of its file, for a log: only where that is on
    graphs                     written as text, for logs of training steps and for `torch.export`: only for those
    maps over many devices     not imported to learn that a function is none, where none is asked for
    metrics                    guards timed once, and with what is in the caches; no settings of TorchInductor
    states of generators       made once, not twelve empty tensors for each graph
    search for garbage         held back, as behind it (`compiler/garbage.py`)

What Dynamo captures, guards and says stays the same, which `tests/capture/test_while_captured.py` holds, but for guards
of torch 2.11, which miss changes of weights and are made to see them (`guards_see_changed_tensors`), for writes to
numbers, which Dynamo may lose (`writes_to_numbers_kept`), and for floats of modules, which are fixed until they change
(`numbers_of_modules_fixed`). Nothing of it is documented; what Dynamo captures for other backends in the same process
is left as it is.
"""

from __future__ import annotations

import functools
import logging
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any
from unittest import mock

from torch import fx
from torch._logging._internal import trace_log

from compiler.accelerators import is_on
from compiler.capture.shortcuts.formulas_once import formulas_once
from compiler.capture.torch_internals import guards_see_changed_tensors, writes_to_numbers_kept
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
            stack.enter_context(writes_to_numbers_kept())
            stack.enter_context(numbers_of_modules_fixed())
            for name, shorten in _WAYS.items():
                if is_on(name):
                    stack.enter_context(shorten())
            return by_torch(*args, **kwargs | {"skip": kwargs.get("skip", 0) + 1})  # this frame is none of the user's

    convert_frame._compile = compile_frame


def numbers_of_modules_fixed() -> AbstractContextManager[Any]:
    """Within, a float of a module (`self.eps`, `dropout.p`) is guarded by its value, and open once a later call finds
    another.

    With `dynamic=True` Dynamo makes an input of each. AOTAutograd's pass that turns floats into tensors then finds that
    an operator wants a number, such as the `eps` of a layer norm, and Dynamo begins again with that fixed: all models
    of layers are traced twice. Integers of modules are fixed by torch itself. A float that does change is compiled for
    once more, as it is without `dynamic=True`."""
    from torch._dynamo import config
    from torch._dynamo.variables.builder import VariableBuilder

    by_torch = VariableBuilder.wrap_symfloat

    def wrap(builder: VariableBuilder, value: float) -> Any:
        if not builder.source.guard_source.is_unspecialized_nn_module():  # type: ignore[union-attr]
            return by_torch(builder, value)
        with mock.patch.object(config, "assume_static_by_default", True):
            return by_torch(builder, value)

    return mock.patch.object(VariableBuilder, "wrap_symfloat", wrap)


def _names_as_asked() -> ExitStack:
    from torch._dynamo import output_graph, symbolic_convert

    stack = ExitStack()
    logs = output_graph.trace_call_log, symbolic_convert.trace_call_log, symbolic_convert.trace_source_log
    if not any(log.isEnabledFor(logging.DEBUG) for log in logs):
        stack.enter_context(mock.patch.object(symbolic_convert, "get_funcname", lambda *_: None))
    return stack


def _graphs_as_asked() -> ExitStack:
    """Dynamo writes the graph before a break that depends on data, for `torch.export`, and again for each function that
    the break lies in."""
    from torch._dynamo import symbolic_convert
    from torch._functorch._aot_autograd import graph_compile

    by_torch = fx.GraphModule.print_readable

    def print_readable(graph: fx.GraphModule, *args: Any, **settings: Any) -> str:
        is_for_export = sys._getframe(1).f_globals is vars(symbolic_convert)
        return "" if is_for_export else by_torch(graph, *args, **settings)

    stack = ExitStack()
    stack.enter_context(mock.patch.object(fx.GraphModule, "print_readable", print_readable))
    logs = graph_compile.aot_joint_log, graph_compile.aot_graphs_log
    if not trace_log.handlers and not any(log.isEnabledFor(logging.INFO) for log in logs):
        stack.enter_context(mock.patch.object(graph_compile, "_log_joint_graph", lambda *_: None))
        stack.enter_context(mock.patch.object(graph_compile, "_log_fw_bw_graphs", lambda *_: (None, None)))
    return stack


def _wrapped_as_asked() -> Any:
    """Each function that is met may be the one that `local_map` wraps, which a program has to turn on: to compare them,
    torch imports what tensors over many devices are made of."""
    from torch._dynamo.variables.higher_order_ops import LocalMapWrappedHigherOrderVariable as Wrapped

    by_torch = Wrapped.should_wrap_in_hop
    return mock.patch.object(Wrapped, "should_wrap_in_hop", lambda value: Wrapped._enabled and by_torch(value))


def _guards_timed_warm() -> Any:
    """Dynamo times guards for its own metrics (`guard_latency_us`), and writes over megabytes of memory before: a tenth
    of the first call of a small function."""
    from torch._dynamo import guards

    def time_once(root: Any, values: Any, _runs: int) -> float:
        started = time.perf_counter()
        root.check(values)
        return 1e6 * (time.perf_counter() - started)

    return mock.patch.object(guards, "profile_guard_manager", time_once)


def _inductor_left_out() -> Any:
    """Dynamo's metrics (`inductor_config`) copy hundreds of settings of TorchInductor and write them as text."""
    from torch._dynamo import utils

    return mock.patch.object(utils, "_scrubbed_inductor_config_for_logging", lambda: None)


def _no_states() -> Any:
    """AOTAutograd makes the states of generators, which nobody has set, through fake mode: a seventh of its time with a
    small function. Graphs share them here."""
    from torch._decomp.decompositions_for_rng import PhiloxState

    known = vars(PhiloxState())

    def reset(state: Any) -> None:
        vars(state).update(known)

    return mock.patch.object(PhiloxState, "reset", reset)


#: Each gives a context within which a capture is made in less time.
_WAYS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "garbage_kept": garbage_kept,
    "formulas_once": formulas_once,
    "names_as_asked": _names_as_asked,
    "graphs_as_asked": _graphs_as_asked,
    "wrapped_as_asked": _wrapped_as_asked,
    "guards_timed_warm": _guards_timed_warm,
    "inductor_left_out": _inductor_left_out,
    "no_states": _no_states,
}
