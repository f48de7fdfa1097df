"""What torch tells of a compilation is still told, and in the form that `torch_trace` reads."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from compiler.capture.recording.torch_trace import TraceListener, TraceRecord, bytecode_seen
from compiler.capture.torch_internals import reset_dynamo


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    reset_dynamo()
    yield
    reset_dynamo()


def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n


def compiled_scaled() -> Any:
    return torch._dynamo.optimize("aot_eager")(scaled)


def test_the_trace_tells_of_graphs_guards_symbols_and_recompilations() -> None:
    records: list[TraceRecord] = []
    with TraceListener(records.append).listening():
        compiled = compiled_scaled()
        compiled(torch.ones(3), 2)
        compiled(torch.ones(3), 5)
    names = {record.name for record in records}
    wanted = {"dynamo_start", "dynamo_output_graph", "dynamo_cpp_guards_str", "aot_inference_graph"}
    assert wanted | {"recompile_reasons", "create_symbol"} <= names
    assert {record.compile_id for record in records} == {"0/0", "0/1"}
    (symbol,) = [record for record in records if record.name == "create_symbol"]
    assert symbol.facts["source"] == "L['n']" and symbol.facts["val"] == "5" and "oo" in symbol.facts["vr"]
    start = next(record for record in records if record.name == "dynamo_start")
    assert start.stack[-1] == (__file__, scaled.__code__.co_firstlineno, "scaled")


def test_nothing_is_told_once_listening_has_ended() -> None:
    records: list[TraceRecord] = []
    with TraceListener(records.append).listening():
        pass
    compiled_scaled()(torch.ones(3), 2)
    assert records == []


def test_bytecode_is_seen_before_and_after() -> None:
    seen: list[tuple[str, types.CodeType, types.CodeType]] = []
    with bytecode_seen(lambda *code: seen.append(code)):
        compiled_scaled()(torch.ones(3), 2)
    compiled_scaled()(torch.ones(4), 2)
    ((compile_id, before, after),) = seen
    assert compile_id == "0/0" and before is scaled.__code__
    assert any(name.startswith("__compiled_fn") for name in after.co_names)
