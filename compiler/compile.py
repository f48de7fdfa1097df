"""One graph through the compiler: ATen graph in, something to call out, with all that happened on the way.

`GraphCompilation` keeps what each step made, so that the pipeline can report it step by step and the `torch.compile`
backend can run the same steps in one go.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch.fx import GraphModule

from compiler.capture.autograd.fixed_sizes import fix_sizes
from compiler.capture.autograd.written_back import mark_updates, written_back
from compiler.capture.captured import Implementation, Phase
from compiler.capture.shortcuts.read_outputs import Read, soon_read
from compiler.codegen.cpp.product import render_product
from compiler.codegen.cpp.render import render_cpp
from compiler.codegen.on_host import outputs_for_host
from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.same_code import first_of_each_code
from compiler.codegen.triton.render import render_triton
from compiler.codegen.wrapper import is_of_torch, name_on_host, render_wrapper
from compiler.devices import Device, device_for
from compiler.garbage import garbage_kept
from compiler.ir.nodes import ExternNode, LoopGraph
from compiler.ir.size import Undecided
from compiler.lowering.in_place import update_inputs
from compiler.lowering.streams import refusal_of_streams
from compiler.lowering.unsupported import OpenSizesUnsupported, UnsupportedGraph
from compiler.observers import Observers
from compiler.options import Options
from compiler.passes.folding.fold import Folding
from compiler.passes.layout.choice import LayoutChoice
from compiler.passes.layout.decide import lower_in_layout
from compiler.passes.layout.passed import saved_outputs
from compiler.passes.order import OF_EACH_GRAPH, run
from compiler.passes.padding.choice import PaddingChoice
from compiler.replay.choose import Compiled, Replayed, replayed_or_not
from compiler.replay.decision import ReplayDecision
from compiler.runtime.cpp.library import compile_kernels
from compiler.runtime.cpp.product_steps import product_launcher
from compiler.runtime.executable import Executable, build_executable
from compiler.runtime.host.flat import FlatCall
from compiler.runtime.host.host_values import HostValue, has_host_values, host_value
from compiler.schedule.directives import NO_DIRECTIVES, Directives, OtherNames, directives_of
from compiler.schedule.first_seed import counted_from, first_seed
from compiler.schedule.group import Group
from compiler.schedule.memory.plan import MemoryPlan, plan_memory
from compiler.schedule.memory.read_again import read_again
from compiler.schedule.products.loops import Product
from compiler.schedule.scheduler import Schedule, schedule

if TYPE_CHECKING:
    from compiler.runtime.triton.graph_launchers import GraphLaunchers
    from compiler.runtime.triton.tuning import Tuning


@dataclass
class GraphCompilation:
    """The steps of one graph, each filled in by the function of the same name below.

    `runs_on` is where the tensors are, `model` the device that decisions and Triton kernels are made for: the same one
    on a GPU; without a GPU, the CPU and the target that was asked for. `other_names` are names that the options may
    use besides those of loops and ATen nodes; see `compiler.schedule.directives`.
    """

    runs_on: torch.device
    model: Device
    options: Options
    other_names: OtherNames = field(default_factory=dict)
    directives: Directives = NO_DIRECTIVES
    #: Why the graph is planned and no more.
    cannot_run: UnsupportedGraph | None = None
    loops: LoopGraph | None = None
    #: Of a forward graph: places of the outputs that are saved for its backward graph.
    saved: frozenset[int] = frozenset()
    #: Whether outputs that the caller copies into an input may be written there at once. Whoever calls it more than
    #: once with the same inputs must not want that.
    writes_inputs: bool = False
    #: Those outputs, each with its input.
    written_back: dict[str, str] = field(default_factory=dict)
    layouts: tuple[LayoutChoice, ...] = ()
    foldings: tuple[Folding, ...] = ()
    paddings: tuple[PaddingChoice, ...] = ()
    schedule: Schedule | None = None
    memory: MemoryPlan | None = None
    cpp: dict[str, RenderedKernel] = field(default_factory=dict)
    triton: dict[str, RenderedKernel] = field(default_factory=dict)
    #: Of Triton's kernels that are compiled while the rest is generated.
    launchers: GraphLaunchers | None = None
    executable: Executable | None = None
    #: What was measured of products, in the mode that measures.
    tuning: Tuning | None = None
    #: What is called instead of the executable, or why nothing is.
    replayed: Replayed | ReplayDecision | None = None
    #: What each step took, by the name of its function.
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the seconds of what is done within to those of that step."""
        started = time.perf_counter()
        yield
        self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - started

    @property
    def decides_for(self) -> Device:
        """The device whose model decides and predicts: `model`, unless an option names another one."""
        return self.model if self.options.device_model is None else device_for(self.options.device_model)

    @property
    def groups(self) -> list[Group]:
        assert self.schedule is not None
        return [unit for unit in self.schedule.units if isinstance(unit, Group)]

    @cached_property
    def first_of_code(self) -> dict[str, str]:
        """For each generated kernel the first one that is the same but for names: equal layers have equal kernels."""
        assert self.schedule is not None
        return first_of_each_code(self.cpp, self.triton, storage=self.schedule.graph.dtypes)

    @property
    def primary(self) -> dict[str, RenderedKernel]:
        """The kernels that run: Triton's on a GPU, C++ on a CPU."""
        return self.triton if self.runs_on.type == "cuda" else self.cpp

    def lower(self, graph: GraphModule) -> None:
        if self.runs_on.type == "cuda":
            have_helpers(graph)
        self.cannot_run = refusal_of_streams(graph.graph)
        if self.writes_inputs:
            mark_updates(graph)
        self.saved = saved_outputs(graph)
        changed, self.paddings = run(OF_EACH_GRAPH, graph, self.decides_for, self.options)
        self.loops, self.layouts, self.foldings = lower_in_layout(changed, self.decides_for, self.options)
        self.loops.soon_read = soon_read(graph, self.loops)
        if self.writes_inputs:
            self.written_back = written_back(graph, self.loops)
            update_inputs(self.loops, self.written_back)

    def plan(self) -> None:
        assert self.loops is not None
        self.directives = directives_of(self.loops, self.options, self.other_names)
        if self.tuning is None and self.options.mode == "max-autotune" and self.runs_on.type == "cuda":
            self.tuning = _tuning(self.runs_on, self.decides_for, self.loops)
        measure = None if self.tuning is None else self.tuning.microseconds
        self.schedule = schedule(self.loops, self.decides_for, self.options, self.directives, measure)
        if self.tuning is not None:
            self.schedule = replace(self.schedule, units=tuple(map(self.tuning.tuned, self.schedule.units)))
        self.memory = plan_memory(self.schedule, self.written_back)

    def generate(self, wants_triton: bool, compiles: bool = False) -> None:
        """Render every kernel; Triton's besides C++ only where it is wanted. Raises `cannot_run`.

        On a GPU, what `compiles` has kernels compiled as they come, products first, which take longest."""
        assert self.schedule is not None and self.memory is not None
        if self.cannot_run is not None:
            raise self.cannot_run
        storage = self.schedule.graph.dtypes
        again = read_again(self.schedule)
        groups = self.groups
        if compiles and self.runs_on.type == "cuda":
            self.launchers = self._no_launchers()
            groups = sorted(groups, key=lambda group: not isinstance(group, Product))
        rendered: dict[str, RenderedKernel] = {}
        for group in groups:
            first = first_seed(group)
            if self.runs_on.type != "cuda":
                kernel = self._render_cpp(counted_from(group, first), storage, self.memory)
                self.cpp[group.name] = replace(kernel, first_seed=first)
            if wants_triton:
                kernel = render_triton(counted_from(group, first), storage, self.model, again[group.name])
                kernel = rendered[group.name] = replace(kernel, first_seed=first)
                if self.launchers is not None:
                    self.launchers.add(kernel)
        self.triton = {group.name: rendered[group.name] for group in self.groups if group.name in rendered}

    def _render_cpp(self, group: Group, storage: dict[str, torch.dtype], memory: MemoryPlan) -> RenderedKernel:
        if isinstance(group, Product):
            return render_product(group, storage)
        return render_cpp(group, storage, memory.written_over(group))

    def build(self, phase: Phase = "forward") -> Executable:
        assert self.schedule is not None and self.memory is not None
        wrapper = render_wrapper(self.schedule, self.memory, self.primary, self.runs_on)
        launchers = self._launchers()
        made = self.executable = build_executable(self.schedule, wrapper, launchers, self.runs_on)
        if made.flat is not None and has_host_values(self.runs_on):
            made = self.executable = replace(made, flat=replace(made.flat, for_reader=self.for_reader))
        self.replayed = ReplayDecision("replay.cpu")
        if self.runs_on.type == "cuda":
            parts = self.schedule, self.memory, launchers, self.runs_on, self.model
            graph = Compiled(*parts, saved=self.saved)
            self.replayed = replayed_or_not(made.quickest, graph, self.options.replays, phase)
        return made

    def for_reader(self, reads: Mapping[int, Read]) -> FlatCall | None:
        """What to call where the caller does nothing with the outputs at those places but read their values: it gives
        values for them that are on the host. None where there is nothing better than what is called already."""
        assert self.schedule is not None and self.memory is not None and self.executable is not None
        sent: dict[str, HostValue] = {}
        for place, name in outputs_for_host(self.schedule, self.memory, self.primary, reads).items():
            dtype = self.schedule.graph.buffers[name].dtype
            way = host_value(self.runs_on, dtype, is_truth=reads[place] == "truth" and dtype == torch.bool)
            if way is not None:
                sent[name] = way
        if not sent:
            return None
        wrapper = render_wrapper(self.schedule, self.memory, self.primary, self.runs_on, sent.keys())
        on_host = {name_on_host(name): way for name, way in sent.items()}
        return build_executable(self.schedule, wrapper, self.executable.kernels, self.runs_on, on_host).flat

    @property
    def implementation(self) -> Implementation:
        """What runs the graph: takes and gives flat lists."""
        assert self.executable is not None
        return self.replayed if isinstance(self.replayed, Replayed) else self.executable.flat or self.executable.call

    @property
    def replay_decision(self) -> ReplayDecision | None:
        """How launches reach the device so far; None before there is anything to call."""
        return self.replayed.decision if isinstance(self.replayed, Replayed) else self.replayed

    def _launchers(self) -> dict[str, Callable[..., None]]:
        if self.runs_on.type != "cuda":
            return self._launchers_of_cpu()
        return self._launchers_of_gpu()

    def _launchers_of_gpu(self) -> dict[str, Callable[..., None]]:
        launchers = self.launchers
        if launchers is None:
            launchers = self._no_launchers()
            for kernel in self.primary.values():
                launchers.add(kernel)
        may_be_late = self.launchers is not None and not self._calls_what_may_compile()
        by_name = launchers.all(may_be_late)
        return {name: by_name[kernel.name] for name, kernel in self.primary.items()}

    def _no_launchers(self) -> GraphLaunchers:
        from compiler.runtime.triton.graph_launchers import GraphLaunchers

        assert self.schedule is not None
        device = torch.cuda.current_device() if self.runs_on.index is None else self.runs_on.index
        return GraphLaunchers(self.schedule.graph.dtypes, device)

    def _calls_what_may_compile(self) -> bool:
        """Whether an operator that is not torch's own is called between kernels: what it may compile is not to be
        compiled by the settings of ours."""
        assert self.schedule is not None
        return not all(is_of_torch(unit.target) for unit in self.schedule.units if isinstance(unit, ExternNode))

    def _launchers_of_cpu(self) -> dict[str, Callable[..., None]]:
        assert self.schedule is not None
        products = [group for group in self.groups if isinstance(group, Product)]
        names = {self.primary[group.name].name for group in products}
        kernels = [step for k in self.primary.values() for step in (k.steps if k.name in names else (k,))]
        compiled = compile_kernels(kernels) if kernels else {}
        layouts = self.schedule.graph.buffers
        together = {
            self.primary[g.name].name: product_launcher(g, self.primary[g.name], compiled, layouts) for g in products
        }
        return {kernel.name: together.get(kernel.name) or compiled[kernel.name] for kernel in self.primary.values()}


def have_helpers(graph: GraphModule) -> None:
    """Start what is done beside this process's own passes: what Triton makes once, and, where the graph is one of many
    kernels, other processes that compile."""
    from compiler.runtime.triton.compile_helpers import start_helpers_for
    from compiler.runtime.triton.setup import begin_setting_up

    begin_setting_up()
    start_helpers_for(len(graph.graph.nodes))


def _tuning(device: torch.device, model: Device, loops: LoopGraph) -> Tuning:
    """Imported here: it loads Triton's launcher, for which there may be no use."""
    from compiler.runtime.triton.tuning import Tuning

    return Tuning(device, model, loops.buffers)


def compile_graph(
    graph: GraphModule, options: Options, device: torch.device, phase: Phase = "forward"
) -> Implementation:
    """Compile one functional ATen graph for `device`; the result takes and gives flat lists. What of it may outlive the
    next call depends on the `phase`: nothing of an inference graph but its outputs.

    Where kernels for every size of a call cannot be made, guards fix the sizes of this one."""
    try:
        return _compiled(graph, options, device, phase)
    except (Undecided, OpenSizesUnsupported):
        if not fix_sizes(graph):
            raise
        return _compiled(graph, options, device, phase)


def _compiled(graph: GraphModule, options: Options, device: torch.device, phase: Phase) -> Implementation:
    compilation = GraphCompilation(device, device_for(device), options, writes_inputs=True)
    steps: dict[str, Callable[[], object]] = {
        "lower": lambda: compilation.lower(graph),
        "plan": compilation.plan,
        "generate": lambda: compilation.generate(wants_triton=device.type == "cuda", compiles=True),
        "build": lambda: compilation.build(phase),
    }
    try:
        with garbage_kept():
            for name, step in steps.items():
                with compilation.timed(name):
                    step()
    except BaseException:
        if compilation.launchers is not None:
            compilation.launchers.abandon()
        raise
    _observers.tell(compilation)
    return compilation.implementation


_observers: Observers[GraphCompilation] = Observers()


def observed_compilations(observe: Callable[[GraphCompilation], object]) -> AbstractContextManager[None]:
    """Within, `observe` gets each graph that `compile_graph` has compiled, in any thread."""
    return _observers.with_one_more(observe)
