"""Our kernels and bytes for one program, from fake inputs: nothing is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from bench.fusion.program import LARGE, Program, differentiable
from compiler.capture.autograd.aot import compile_through_aot
from compiler.compile import Planned, Target, lower, plan
from compiler.devices import Device, device_for
from compiler.options import Options
from compiler.schedule.cost.moved import moved_by
from compiler.schedule.group import Group


@dataclass(frozen=True)
class Count:
    """Launches of generated kernels, library calls, and the bytes that all of them read and write."""

    kernels: int
    library_calls: int
    bytes: int

    def __add__(self, other: Count) -> Count:
        return Count(
            self.kernels + other.kernels, self.library_calls + other.library_calls, self.bytes + other.bytes
        )  # fmt: skip

    @property
    def launches(self) -> int:
        return self.kernels + self.library_calls

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def count_ours(program: Program, device: Device | None = None, **knobs: Any) -> Count:
    """What the program becomes on `device` (an H200 unless told) at its large sizes, forward and backward together."""
    return sum((counted(one) for one in schedules_of(program, device, **knobs)), Count(0, 0, 0))


def schedules_of(program: Program, device: Device | None = None, **knobs: Any) -> list[Planned]:
    """The scheduled graphs of a program: one, or forward and backward."""
    return scheduled(
        program.function, lambda: [one.empty(LARGE, "cpu") for one in program.inputs], run, device, **knobs
    )


def scheduled(
    function: Callable[..., Any],
    make_inputs: Callable[[], list[torch.Tensor]],
    call: Callable[[Callable[..., Any], list[torch.Tensor]], Any],
    device: Device | None = None,
    **knobs: Any,
) -> list[Planned]:
    """The scheduled graphs of what `call` does with the compiled function and its inputs, which have no values."""
    done: list[Planned] = []

    def keep(graph: torch.fx.GraphModule, _phase: Any) -> Callable[..., Any]:
        target = Target(torch.device("cpu"), device or device_for("sm_90"), Options(knobs=knobs))
        done.append(plan(lower(graph, target)))
        return _boxed(graph)

    torch._dynamo.reset()
    with FakeTensorMode(allow_non_fake_inputs=True):
        call(torch.compile(function, backend=lambda g, x: compile_through_aot(g, x, keep)), make_inputs())
    return done


def _boxed(graph: torch.fx.GraphModule) -> Callable[[list[Any]], Any]:
    """The graph as AOTAutograd wants to call it: with one list."""

    def call(inputs: list[Any]) -> Any:
        return graph(*inputs)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def run(function: Callable[..., Any], inputs: list[torch.Tensor]) -> None:
    """Call the function and, where an input needs it, ask for gradients."""
    results = function(*inputs)
    with_gradient = [one for one in inputs if one.requires_grad]
    if with_gradient:
        wanted = differentiable(results)
        torch.autograd.grad(wanted, with_gradient, [torch.ones_like(one) for one in wanted])


def counted(compilation: Planned) -> Count:
    layouts = compilation.schedule.graph.buffers
    units = compilation.schedule.units
    groups = sum(isinstance(unit, Group) for unit in units)
    return Count(groups, len(units) - groups, sum(moved_by(unit, layouts).bytes for unit in units))
