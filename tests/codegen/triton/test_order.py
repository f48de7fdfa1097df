"""Loads stand before arithmetic, each after what its place needs; loops may load ahead."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from compiler.codegen.triton.render import plan_tile, render_plan
from compiler.devices import H200
from compiler.runtime.interpreter.interpreter import interpret
from compiler.runtime.triton.offline import compile_offline
from compiler.schedule.tiles.plan import SplitPlan
from tests.compile_program import compile_program


def test_loads_stand_before_arithmetic_and_after_what_their_places_need() -> None:
    def program(x: Tensor, place: Tensor, y: Tensor) -> Tensor:
        return torch.sin(x) + torch.cos(y[place % 64])

    inputs = (torch.zeros(64), torch.zeros(64, dtype=torch.int64), torch.zeros(64))
    (kernel,) = compile_program(program, *inputs).triton.values()
    lines = kernel.source.splitlines()
    at = {text: next(n for n, line in enumerate(lines) if text in line) for text in ("(x_ptr", "(place_ptr", "(y_ptr")}
    arithmetic = next(n for n, line in enumerate(lines) if "libdevice.sin" in line)
    assert at["(place_ptr"] < at["(y_ptr"] < arithmetic and at["(x_ptr"] < arithmetic


@pytest.mark.parametrize("target", ["sm_75", "sm_90"])
def test_a_loop_that_loads_ahead_computes_the_same(target: str) -> None:
    x = torch.randn(3, 50304)
    compilation = compile_program(lambda x: torch.logsumexp(x, -1), x)
    storage = {name: layout.dtype for name, layout in compilation.schedule.graph.buffers.items()}
    (group,) = compilation.groups
    plan = plan_tile(group, storage, H200)
    assert isinstance(plan, SplitPlan)
    kernel = render_plan(replace(plan.alone, stages=3))
    assert "num_stages=3" in kernel.source
    (output,) = group.stored
    tensors = {name: x if name != output else torch.zeros(3) for name in kernel.parameters}
    interpret(kernel, [tensors[name] for name in kernel.parameters])
    torch.testing.assert_close(tensors[output], torch.logsumexp(x, -1))
    result = compile_offline(kernel, storage, target)
    assert result.error is None and result.spills == 0
    assert ("cp.async" in result.ptx) is (target == "sm_90")
