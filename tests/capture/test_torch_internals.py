"""What is used of torch beyond its public interface still answers as `torch_internals` reads it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.overrides

from compiler.capture import torch_internals
from compiler.capture.torch_internals import GuardFacts, guard_facts
from compiler.options import Options
from compiler.pipeline import explore


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch_internals.reset_dynamo()
    yield
    torch_internals.reset_dynamo()


def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n


def compiled_scaled(**settings: Any) -> Any:
    return torch._dynamo.optimize("aot_eager", **settings)(scaled)


def test_guards_tell_kind_name_code_line_and_value() -> None:
    read: list[GuardFacts] = []

    def choose(entries: Any) -> list[bool]:
        read.extend(map(guard_facts, entries))
        return [True] * len(entries)

    compiled_scaled(guard_filter_fn=choose, dynamic=False)(torch.ones(3), 2)
    by_name = {facts.name: facts for facts in read}
    assert by_name["L['n']"].value == 2 and by_name["L['n']"].code == ("L['n'] == 2",)
    assert by_name["L['n']"].frames[-1].name == "scaled"
    assert by_name["L['x']"].kind == "TENSOR_MATCH" and isinstance(by_name["L['x']"].value, torch.Tensor)
    state = next(facts for facts in read if facts.kind == "GRAD_MODE")
    assert state.value is torch_internals.NO_VALUE


def test_signatures() -> None:
    from torch._dynamo.convert_frame import register_bytecode_hook
    from torch._logging.structured import INTERN_TABLE

    assert {"guard_filter_fn", "nopython", "dynamic"} <= set(inspect.signature(torch._dynamo.optimize).parameters) | {
        name for name in inspect.signature(torch._dynamo.eval_frame._optimize).parameters
    }
    assert list(inspect.signature(register_bytecode_hook).parameters) == ["hook"]
    assert isinstance(INTERN_TABLE, dict)
    assert torch_internals.recompile_limit() > 0
    assert isinstance(torch._functorch.config.force_non_lazy_backward_lowering, bool)


def test_torch_keeps_nothing_of_ours_for_the_life_of_the_process() -> None:
    torch.overrides.get_ignored_functions.cache_clear()
    report = explore("import torch\ntorch.overrides.get_ignored_functions()", Options(produce=("capture",)))
    assert report.error is not None and report.error.type == "NothingToExplore", report.error
    assert torch.compile in torch.overrides.get_ignored_functions(), "an exploration replaces it for a time"
