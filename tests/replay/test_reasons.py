"""Every reason for and against a replay is reached, most by the example on its page.

The example runs with a recorder that pretends, so without a GPU. Where the page says what the host and the device take
a call, that is what the recorder says was measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.compile import Generated
from compiler.decisions import REASONS, Decision
from compiler.ir.nodes import ExternNode, Layout, TensorArgument
from compiler.options import Options, StageName
from compiler.pipeline import explore
from compiler.replay.choose import Compiled, replayed_or_not
from compiler.replay.price import Copies, Times, weigh
from compiler.replay.replayed import ReplayedCall
from tests.compile_program import compile_program
from tests.replay.pretended import HOST_BOUND, PretendedRecorder, pretended

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reasons"


def example_of(reason: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", (PAGES / f"{reason}.md").read_text(encoding="utf-8"), re.DOTALL)
    return str(code)


def watched(reason: str, monkeypatch: pytest.MonkeyPatch, recorder: PretendedRecorder, written: bool) -> ReplayedCall:
    """The example of a page, with its function called through the recorder."""
    made: list[ReplayedCall] = []

    def compiled(function: Callable[..., Any] | None = None, options: dict[str, Any] | None = None) -> Any:
        if function is None:
            return lambda function: compiled(function, options)

        def call(inputs: list[Any]) -> list[Any]:
            result = function(*inputs)
            return result if isinstance(result, list) else [result]

        choice = (options or {}).get("cuda_graphs", "auto")
        made.append(pretended(call, recorder, (0,) if written else (), choice)[0])
        return lambda *inputs: made[0](list(inputs))

    monkeypatch.setattr(torch, "compile", compiled)
    exec(example_of(reason), {})
    return made[0]


def times_on_page(reason: str) -> Times | None:
    found = re.search(r"host of `(\d+)` us and a device of `(\d+)` us", (PAGES / f"{reason}.md").read_text())
    return None if found is None else Times(float(found[1]), float(found[2]))


BY_EXAMPLE = (
    "replayed gaps asked_for watching device_bound behind slower no_faster inputs_move overlapping failed".split()
)


@pytest.mark.parametrize("name", BY_EXAMPLE)
def test_the_example_of_a_page_leaves_its_reason(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = f"replay.{name}"
    recorder = PretendedRecorder(times_on_page(reason), "operation not permitted" if name == "failed" else None)
    if name == "no_faster":
        recorder.replay_times = replace(HOST_BOUND, elapsed_us=900)
    call = watched(reason, monkeypatch, recorder, written=name == "inputs_move")
    assert call.decision.reason == reason and call.decision.message
    assert (call.decision.verdict == "replayed") == (call.given is not None)


def products(x: torch.Tensor) -> torch.Tensor:
    for _ in range(6):
        x = torch.relu(x @ x)
    return x


def asked_of(compilation: Generated, **given: Any) -> Decision:
    """What is decided of a graph before its first call, were it on a GPU."""
    schedule, memory = given.get("schedule") or compilation.schedule, compilation.memory
    graph = Compiled(schedule, memory, {}, torch.device("cuda", 0), given.get("model") or compilation.model)
    found = replayed_or_not(lambda inputs: [], graph, given.get("choice", "auto"), given.get("phase", "inference"))
    assert not isinstance(found, ReplayedCall)
    return found


def with_call(compilation: Generated, **fields: Any) -> Any:
    """The schedule with a call of attention as well."""
    layout = Layout.contiguous((1, 2, 8, 16), torch.float16)
    operands = tuple(TensorArgument(name, layout) for name in "qkv")
    target = torch.ops.aten._scaled_dot_product_flash_attention.default
    dropout = fields.pop("dropout", 0.0)
    call = ExternNode("attention", target, (*operands, dropout), {}, (("attention", layout),), lines=(7,), **fields)
    return replace(compilation.schedule, units=(*compilation.schedule.units, call))


def test_what_no_example_alone_leaves() -> None:
    made = compile_program(products, torch.randn(8, 8))
    found = {
        "off": asked_of(made, choice="off"),
        "memory": asked_of(made, model=replace(made.model, memory_bytes=2**10)),
        "other_device": asked_of(made, schedule=with_call(made, crosses_devices=True)),
        "random_call": asked_of(made, schedule=with_call(made, dropout=0.1)),
    }
    assert found["other_device"].lines == found["random_call"].lines == (7,)
    assert found["random_call"].nodes == ("attention",)
    found["few_launches"] = asked_of(compile_program(lambda x: torch.relu(x @ x), torch.randn(8, 8)))
    calls = compile_program(lambda x: torch.linalg.inv(products(x)), torch.eye(8))
    found["unknown_call"] = asked_of(calls)
    found["open_sizes"] = asked_of(compile_program(products, torch.randn(8, 8), dynamic=True))
    idle_before = Times(450.0, 770.0, is_idle_before=True)
    found["idle_between"] = weigh(idle_before, 16, Copies(2, 4096), 4e12, is_of_step=True)
    assert {name: decision.reason for name, decision in found.items()} == {name: f"replay.{name}" for name in found}
    assert all(decision.message for decision in found.values())
    assert {*found, *BY_EXAMPLE, "cpu"} == {reason.split(".")[1] for reason in REASONS if reason.startswith("replay.")}


def test_a_report_of_a_cpu_says_that_there_is_nothing_to_record() -> None:
    stages: tuple[StageName, ...] = ("capture", "lower", "schedule", "codegen", "run")
    report = explore(example_of("replay.cpu"), Options(device="cpu", produce=stages))
    (graph,) = report.graphs
    assert graph.replay is not None and (graph.replay.verdict, graph.replay.reason) == ("one_by_one", "replay.cpu")
    assert graph.replay.message and graph.replay.option == "auto" and graph.replay.launched is None
    assert (graph.replay.launches, graph.replay.library_calls) == (1, 1)
