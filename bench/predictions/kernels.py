"""The kernels that one recorded graph is measured by: those of its schedule, and both sides of every choice."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch

from bench.predictions.programs import RecordedGraph
from compiler.capture.captured import clone_with_strides, copy_values
from compiler.codegen.cpp.render import render_cpp
from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.triton.render import render_triton
from compiler.compile import Generated, Target, build, generate, lower
from compiler.compile import plan as plan_graph
from compiler.devices import Device
from compiler.ir.nodes import Layout
from compiler.ir.size import hint
from compiler.options import FUSION_KINDS, Options
from compiler.runtime.executable import build_executable
from compiler.schedule.group import Group
from compiler.schedule.records.choices import Choice, observed_choices

#: Choices of one graph that are measured: all that the scheduler refused, and of the others a random sample.
MOST_CHOICES = 8

#: Of a kernel: does the schedule run it, or is it only a part of a choice?
Role = Literal["scheduled", "alternative"]


@dataclass
class MeasuredKernel:
    """One kernel, however many choices it is a part of."""

    group: Group
    rendered: RenderedKernel
    role: Role = "alternative"

    @property
    def source_digest(self) -> str:
        return hashlib.sha256(self.rendered.source.encode()).hexdigest()[:16]


@dataclass
class PlannedGraph:
    """A graph with its kernels by name. `maker` gives the buffers their values: where choices are measured it runs
    every node by itself, so that each buffer exists."""

    recorded: RecordedGraph
    maker: Generated
    kernels: dict[str, MeasuredKernel] = field(default_factory=dict)
    #: Each choice with the names of its kernels, those apart and those together.
    choices: list[tuple[Choice, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    #: Why a kernel could not be made, by its name.
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def rendered(self) -> list[RenderedKernel]:
        """All that must be compiled."""
        return [*self.maker.primary.values(), *(kernel.rendered for kernel in self.kernels.values())]

    @property
    def layouts(self) -> dict[str, Layout]:
        """Of every buffer, by name."""
        return self.maker.schedule.graph.buffers


def plan(recorded: RecordedGraph, device: torch.device, model: Device) -> PlannedGraph:
    """Schedule the graph for `model`, keep what the scheduler weighed, and render all kernels of it."""
    weighed: list[Choice] = []
    lowered = lower(recorded.aten, Target(device, model, Options()))
    with observed_choices(weighed.append):
        scheduled = plan_graph(lowered)
    choices = _sample(list(dict.fromkeys(weighed))) if recorded.program.has_choices else []
    apart = plan_graph(replace(lowered, options=Options(knobs={"disable": FUSION_KINDS}))) if choices else scheduled
    maker = generate(apart, wants_triton=device.type == "cuda")
    planned = PlannedGraph(recorded, maker)
    names = _Names(planned, [*scheduled.groups, *maker.groups])
    for group in scheduled.groups:
        planned.kernels[names.of(group)].role = "scheduled"
    for choice in choices:
        sides = [tuple(names.of(group) for group in side) for side in (choice.apart, choice.together)]
        planned.choices.append((choice, sides[0], sides[1]))
    return planned


def _sample(choices: list[Choice]) -> list[Choice]:
    """The refused ones, and others up to `MOST_CHOICES`, in the order in which they were weighed."""
    refused = [choice for choice in choices if not choice.is_taken]
    taken = [choice for choice in choices if choice.is_taken]
    kept = random.Random(0).sample(taken, min(len(taken), max(MOST_CHOICES - len(refused), 0)))
    return [choice for choice in choices if choice in refused or choice in kept]


class _Names:
    """Gives each distinct group of a graph a name of its own and renders it once."""

    def __init__(self, planned: PlannedGraph, named: Iterable[Group]) -> None:
        self.planned = planned
        self.storage = {name: layout.dtype for name, layout in planned.layouts.items()}
        self.known: dict[Any, str] = {}
        # A kernel of the same name and text is compiled once.
        self.usual = {_key(group): group.name for group in named}

    def of(self, group: Group) -> str:
        if _key(group) not in self.known:
            name = self.usual.get(_key(group), "kernel")
            if name in self.planned.kernels or name == "kernel":
                name = f"{name}_number_{len(self.known)}"
            named = replace(group, name=name)
            self.planned.kernels[name] = MeasuredKernel(named, self._rendered(named))
            self.known[_key(group)] = name
        return self.known[_key(group)]

    def _rendered(self, group: Group) -> RenderedKernel:
        if self.planned.maker.runs_on.type == "cuda":
            return render_triton(group, self.storage, self.planned.maker.model)
        return render_cpp(group, self.storage)


def _key(group: Group) -> Any:
    """What two groups have in common that are the same kernel; their names may differ."""
    return group.space, group.members, group.stored, group.single_pass, group.is_cooperative


def buffer_values(planned: PlannedGraph) -> dict[str, torch.Tensor]:
    """What every buffer of the graph holds that is in memory in a run by `maker`, by name.

    Values are the real ones: an index is one that exists, and data is as compressible as the program's own."""
    compilation = planned.maker
    executable = build(compilation).executable
    given = {*compilation.schedule.graph.inputs, *compilation.schedule.graph.constants}
    values: dict[str, torch.Tensor] = {}

    def keeping(name: str) -> Any:
        launch, parameters = executable.kernels[name], compilation.primary[name].parameters

        def call(*arguments: Any) -> None:
            launch(*arguments)
            for parameter, tensor in zip(parameters, arguments, strict=False):
                if parameter not in values:
                    values[parameter] = tensor if parameter in given else clone_with_strides(tensor)

        return call

    kernels = {name: keeping(name) for name in executable.kernels}
    run = build_executable(compilation.schedule, executable.wrapper, kernels, compilation.runs_on)
    with torch.no_grad():
        run.call(copy_values(planned.recorded.inputs))
    for name in {name for kernel in planned.rendered for name in kernel.parameters} - values.keys():
        # Between library calls alone, where a kernel takes the place of one of them.
        values[name] = _made_up(planned.layouts[name], compilation.runs_on)
    return values


def _made_up(layout: Layout, device: torch.device) -> torch.Tensor:
    """A tensor of normal numbers, or of zeros where its dtype has none."""
    shape, stride = [hint(size) for size in layout.shape], [hint(step) for step in layout.stride]
    tensor = torch.empty_strided(shape, stride, dtype=layout.dtype, device=device)
    return tensor.normal_() if layout.dtype.is_floating_point else tensor.zero_()


def arguments_of(kernel: RenderedKernel, values: Mapping[str, torch.Tensor]) -> tuple[Any, ...]:
    """What the kernel is launched with: its tensors, then the sizes of the first call."""
    return *(values[name] for name in kernel.parameters), *(atom.hint for atom in kernel.sizes)
