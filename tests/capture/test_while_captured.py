"""A capture that is made shorter is the same capture: graph, sizes, lines, guards. And only ours is."""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, fx, nn
from torch._dynamo import output_graph, symbolic_convert
from torch._functorch._aot_autograd import graph_compile

from compiler.capture.recording.torch_trace import TraceListener
from compiler.capture.shortcuts import while_captured
from compiler.capture.shortcuts.while_captured import numbers_of_modules_fixed, shorten_captures_for
from compiler.capture.torch_internals import guards_see_changed_tensors
from tests.capture.programs import told
from tests.capture.test_traced_once import Blocks


def captured(function: Callable[..., Any], x: Tensor, is_ours: bool, is_open: bool = False) -> list[str]:
    """All that is said of each node of Dynamo's graphs, and their guards."""
    found: list[str] = []

    def backend(graph: fx.GraphModule, _: Any) -> Any:
        for node in graph.graph.nodes:
            value, lines = node.meta.get("example_value"), node.meta.get("stack_trace")
            is_shared = [
                other.name
                for other in graph.graph.nodes
                if isinstance(value, Tensor) and isinstance(other.meta.get("example_value"), Tensor)
                if other.meta["example_value"].untyped_storage()._cdata == value.untyped_storage()._cdata
            ]
            layers = [name for name, _ in node.meta.get("nn_module_stack", {}).values()]
            found.append(f"{node.format_node()} {told(value)} {type(value)} {is_shared} {lines} {layers}")
        return graph.forward

    if is_ours:
        shorten_captures_for(backend)
    torch._dynamo.reset()
    listener = TraceListener(lambda record: found.append(f"{record.name} {record.payload}"))
    # The differences, in both.
    with listener.listening(), guards_see_changed_tensors(), numbers_of_modules_fixed():
        torch.compile(function, backend=backend, dynamic=is_open)(x)
    assert any("dynamo_cpp_guards_str" in one for one in found)
    return [
        re.sub("0x[0-9a-f]+|(?<=builtins_dict___)[0-9]+|[0-9.]+ us", "", one)
        for one in found
        if "dynamo_start" not in one
    ]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("learns", [False, True])
def test_layers_are_captured_the_same(is_open: bool, learns: bool) -> None:
    model, x = Blocks(), torch.randn(2, 5, 16)
    with torch.set_grad_enabled(learns):
        assert captured(model, x, True, is_open) == captured(model, x, False, is_open)


def test_a_capture_for_another_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Any:
        raise AssertionError("shortened")

    def ours(graph: fx.GraphModule, _: Any) -> Any:
        return graph.forward

    shorten_captures_for(ours)
    monkeypatch.setitem(while_captured._WAYS, "names_as_asked", refuse)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(torch.sin, backend="eager")(torch.ones(3)), torch.ones(3).sin())


def test_names_of_functions_are_looked_up_for_the_log_that_tells_them() -> None:
    by_torch = symbolic_convert.get_funcname
    with while_captured._names_as_asked():
        assert symbolic_convert.get_funcname(__file__, 1) is None
    log = output_graph.trace_call_log
    level = log.level
    log.setLevel(logging.DEBUG)
    try:
        with while_captured._names_as_asked():
            assert symbolic_convert.get_funcname is by_torch
    finally:
        log.setLevel(level)


def test_graphs_of_a_training_step_are_written_for_the_log_that_tells_them() -> None:
    by_torch = graph_compile._log_joint_graph
    with while_captured._graphs_as_asked():
        assert graph_compile._log_joint_graph is not by_torch
    with TraceListener(lambda _: None).listening(), while_captured._graphs_as_asked():
        assert graph_compile._log_joint_graph is by_torch


def test_a_graph_is_not_written_for_each_function_that_a_break_lies_in() -> None:
    class Inner(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1 if x.sum() > 0 else x

    def ours(graph: fx.GraphModule, _: Any) -> Any:
        return graph.forward

    shorten_captures_for(ours)
    torch._dynamo.reset()
    by_torch, written = fx.Graph.python_code, []

    def counted(graph: fx.Graph, *args: Any, **settings: Any) -> Any:
        written.append(settings.get("verbose", False))
        return by_torch(graph, *args, **settings)

    with mock.patch.object(fx.Graph, "python_code", counted):
        x = torch.ones(3)
        assert torch.equal(torch.compile(nn.Sequential(Inner(), Inner()), backend=ours)(x), x + 2)
    assert written and not any(written)


def test_states_of_generators_are_as_torch_makes_them() -> None:
    make = torch._decomp.decompositions_for_rng.PhiloxState
    by_torch = vars(make())
    with while_captured._no_states():
        by_ours = vars(make())
    assert by_ours.keys() == by_torch.keys() == vars(make()).keys()
    for name, value in by_torch.items():
        same = (
            value.numel() == by_ours[name].numel() == 0 if isinstance(value, torch.Tensor) else value == by_ours[name]
        )
        assert same, name


def scaled(x: Tensor, factor: int) -> Tensor:
    return x * factor


def for_us_and_for_another() -> None:
    def ours(graph: fx.GraphModule, _: Any) -> Any:
        return graph.forward

    shorten_captures_for(ours)
    torch._dynamo.reset()
    torch.compile(scaled, backend=ours)(torch.ones(3), 2)
    torch._dynamo.optimize("eager")(scaled)(torch.ones(3), 3)


def test_guards_are_timed_as_they_are_and_then_by_torch_again(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[object] = []

    def by_torch(*given: object) -> float:
        timed.append(given)
        return 1.0

    monkeypatch.setattr(torch._dynamo.guards, "profile_guard_manager", by_torch)
    for_us_and_for_another()
    assert len(timed) == 1


def test_metrics_of_one_compilation_do_without_inductors_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(
        torch._dynamo.utils, "add_compilation_metrics_to_chromium", lambda metrics: told.append(metrics.inductor_config)
    )
    for_us_and_for_another()
    assert len(told) == 2
    assert told[0] is None
    assert "max_autotune" in told[1]


def test_garbage_is_searched_again_after_a_capture_that_failed() -> None:
    searched: list[bool] = []

    def failing(graph: fx.GraphModule, _: Any) -> Any:
        searched.append(gc.isenabled())
        raise RuntimeError("not today")

    shorten_captures_for(failing)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="not today"):
        torch.compile(lambda x: x + 1, backend=failing)(torch.ones(3))
    assert searched == [False] and gc.isenabled()
