"""A first call imports nothing that it does not use, and what was left out for that is there where it is asked for."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, fx
from torch._dynamo import utils as dynamo_utils
from torch._dynamo.variables.higher_order_ops import LocalMapWrappedHigherOrderVariable as Wrapped
from torch._export import utils as export_utils

from compiler.capture.shortcuts.while_captured import shorten_captures_for
from compiler.capture.torch_internals import unlogged_aot_autograd
from compiler.lowering import decompositions

FIRST_CALL = """
import sys
import torch
from torch import nn
from compiler.capture.autograd.aot import compile_through_aot
from compiler.capture.shortcuts.while_captured import shorten_captures_for

def backend(graph, inputs):
    return compile_through_aot(graph, inputs, lambda part, phase: part.forward)

shorten_captures_for(backend)
before = set(sys.modules)
model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.LayerNorm(4)).eval()
with torch.no_grad():
    torch.compile(model, backend=backend)(torch.ones(2, 4))
print(sorted(name for name in set(sys.modules) - before if name.startswith(("torch._inductor", "torch.distributed"))))
"""


def test_a_first_call_imports_neither_the_peer_nor_tensors_over_many_devices() -> None:
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", FIRST_CALL], capture_output=True, text=True, cwd=root, check=False)
    assert ran.returncode == 0, ran.stderr
    imported = ran.stdout
    assert "torch._inductor.ir'" not in imported and "torch._inductor.scheduler" not in imported
    assert "torch.distributed.tensor.experimental" not in imported


def doubled(graph: fx.GraphModule, inputs: list[Any]) -> Any:
    return lambda *given: [2 * one for one in graph.forward(*given)]


def through_aot(function: Any, *inputs: Any) -> Any:
    def backend(graph: fx.GraphModule, given: Any) -> Any:
        settings = {name: doubled for name in ("fw_compiler", "bw_compiler", "inference_compiler")}
        return unlogged_aot_autograd(**settings)(graph, given)

    torch._dynamo.reset()
    return torch.compile(function, backend=backend)(*inputs)


def test_it_does_what_aot_autograd_does() -> None:
    x = torch.ones(3, requires_grad=True)
    dynamo_utils.counters.clear()
    result = through_aot(lambda x: (x * 3).sum(), x)
    result.backward()
    assert result.item() == 18
    assert x.grad is not None and x.grad.tolist() == [6, 6, 6]
    assert dynamo_utils.counters["aot_autograd"] == {"total": 1, "ok": 1}


def test_a_failure_is_counted_and_raised() -> None:
    def fails(*_: Any) -> Any:
        raise ZeroDivisionError

    graph = fx.symbolic_trace(lambda x: (x + 1,))
    counted = dynamo_utils.counters["aot_autograd"]
    failed = counted["not_ok"]
    with pytest.raises(ZeroDivisionError):
        unlogged_aot_autograd(fw_compiler=fails, bw_compiler=fails, inference_compiler=fails)(graph, [torch.ones(2)])
    assert counted["not_ok"] == failed + 1


def test_lists_of_tensors_are_taken() -> None:
    def graph(xs: list[Tensor]) -> tuple[Tensor]:
        return (xs[0] + xs[1],)

    settings = {name: doubled for name in ("fw_compiler", "bw_compiler", "inference_compiler")}
    traced = fx.symbolic_trace(graph)
    compiled = unlogged_aot_autograd(**settings)(traced, [[torch.ones(2), torch.ones(2)]])
    assert compiled([torch.ones(2), torch.ones(2)])[0].tolist() == [4, 4]


def test_where_a_log_is_asked_for_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def logs() -> Any:
        asked.append("log")
        return nullcontext()

    import torch._inductor.debug

    monkeypatch.setattr(torch._inductor.debug, "enable_aot_logging", logs)
    graph = fx.symbolic_trace(lambda x: (x + 1,))
    settings = {name: doubled for name in ("fw_compiler", "bw_compiler", "inference_compiler")}
    unlogged_aot_autograd(**settings)(graph, [torch.ones(2)])
    assert asked == []
    monkeypatch.setenv("TORCH_COMPILE_DEBUG", "1")
    unlogged_aot_autograd(**settings)(graph, [torch.ones(2)])
    assert asked == ["log"]


def test_the_function_that_local_map_wraps_is_known_where_that_is_on() -> None:
    seen: list[Any] = []

    def backend(graph: fx.GraphModule, _: Any) -> Any:
        seen.append(Wrapped.should_wrap_in_hop(torch.add))
        with mock.patch.object(Wrapped, "_enabled", True):
            from torch.distributed.tensor.experimental._func_map import _local_map_wrapped

            seen.append(Wrapped.should_wrap_in_hop(_local_map_wrapped))
            seen.append(Wrapped.should_wrap_in_hop(torch.add))
        return graph.forward

    shorten_captures_for(backend)
    torch._dynamo.reset()
    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))
    assert seen == [False, True, False]


def test_the_table_is_that_of_operators_looked_up_for_each_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    of_once = decompositions._table.__wrapped__()
    looked_up = export_utils._materialize_cpp_cia_ops
    with mock.patch.object(decompositions, "_operators_looked_up_once", nullcontext):
        of_each = decompositions._table.__wrapped__()
    assert list(of_once) == list(of_each)
    assert export_utils._materialize_cpp_cia_ops is looked_up
