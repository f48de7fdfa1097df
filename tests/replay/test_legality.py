"""Which graphs may be recorded at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from compiler.ir.nodes import ExternNode, Layout, LoopGraph, TensorArgument
from compiler.options import Options
from compiler.replay.legality import FEWEST_LAUNCHES, obstacle, written_inputs
from tests.compile_program import compile_program


def products(x: torch.Tensor) -> torch.Tensor:
    for _ in range(FEWEST_LAUNCHES):
        x = torch.relu(x @ x)
    return x


def then_nonzero(x: torch.Tensor) -> torch.Tensor:
    return products(x)[: torch.linalg.inv(x).shape[0]] + torch.linalg.inv(x)


X = torch.randn(8, 8)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (products, None),
        (lambda x: products(x) * torch.rand(8), None),
        (lambda x: x + 1, "replay.few_launches"),
        (then_nonzero, "replay.unknown_call"),
        (lambda x: products(x) * torch.randperm(8), "replay.unknown_call"),
    ],
)
def test_what_may_be_recorded(program: Callable[..., Any], reason: str | None) -> None:
    schedule = compile_program(program, X).schedule
    why = obstacle(schedule)
    assert (why.reason if why else None) == reason
    assert why is None or why.message


def test_what_the_library_ends_with_an_activation_may_be_recorded() -> None:
    def layers(x: torch.Tensor) -> torch.Tensor:
        for _ in range(FEWEST_LAUNCHES):
            x = torch.relu(torch.addmm(x[0], x, x))
            x = torch.nn.functional.gelu(torch.addmm(x[0], x, x), approximate="tanh")
        return x

    schedule = compile_program(layers, torch.randn(2048, 2048, dtype=torch.bfloat16)).schedule
    assert {str(unit.target) for unit in schedule.units if isinstance(unit, ExternNode)} == {
        "aten._addmm_activation.default", "addmm_gelu"
    }  # fmt: skip
    assert obstacle(schedule) is None


def test_open_sizes_are_not_recorded() -> None:
    why = obstacle(compile_program(products, X, dynamic=True).schedule)
    assert why is not None and why.reason == "replay.open_sizes"


def test_inputs_that_a_graph_writes_to_are_known() -> None:
    layout = Layout.contiguous((8,), torch.float32)
    x, state = TensorArgument("x", layout), TensorArgument("state", layout)
    written = ExternNode("copy_", torch.ops.aten.copy_.default, (state, x), {}, (("copy_", layout),))
    read = ExternNode("dot", torch.ops.aten.dot.default, (x, state), {}, (("dot", layout),))
    assert written_inputs(LoopGraph(nodes=[read], inputs=[None, "x", "state"])) == frozenset()
    assert written_inputs(LoopGraph(nodes=[read, written], inputs=[None, "x", "state"])) == {2}


@pytest.mark.parametrize(("dropout", "crosses", "reason"), [
    (0.0, False, None), (0.1, False, "replay.random_call"), (0.0, True, "replay.other_device"),
])  # fmt: skip
def test_attention_and_other_devices(dropout: float, crosses: bool, reason: str | None) -> None:
    layout = Layout.contiguous((1, 2, 8, 16), torch.float16)
    operands = tuple(TensorArgument(name, layout) for name in "qkv")
    target = torch.ops.aten._scaled_dot_product_flash_attention.default
    call = ExternNode("attention", target, (*operands, dropout), {}, (("attention", layout),), crosses_devices=crosses)
    schedule = compile_program(products, X).schedule
    why = obstacle(replace(schedule, units=(*schedule.units, call)))
    assert (why.reason if why else None) == reason
    assert why is None or why.message


def test_the_mode_and_the_option_agree() -> None:
    assert Options(mode="reduce-overhead", cuda_graphs="auto").replays == "on"
    assert Options(mode="reduce-overhead", cuda_graphs="off").replays == "off"
    assert Options(cuda_graphs="on").replays == "on"
    assert Options().replays == Options().cuda_graphs
