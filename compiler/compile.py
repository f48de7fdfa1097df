"""One graph through the compiler: ATen graph in, something to call out, with all that happened on the way.

    lower      Target    -> Lowered    the graph is changed, then becomes loops over index expressions and library calls
    plan       Lowered   -> Planned    loops become kernels: what fuses with what, in what order, in which memory
    generate   Planned   -> Generated  kernels become Triton and C++ text
    build      Generated -> Built      kernels are compiled, and the wrapper that launches them can be called

Each stage is a function of what the stage before it made, and gives a new value, which has all of that and what the
stage found out besides. Nothing changes a value that was handed on. The pipeline calls the stages one by one and tells
of each; `compile_graph` calls them in one go for `torch.compile`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, wraps
from threading import Thread
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import torch
from torch.fx import GraphModule

from compiler.capture.autograd.fixed_sizes import fix_sizes
from compiler.capture.autograd.written_back import mark_updates, written_back
from compiler.capture.captured import Implementation, Phase
from compiler.codegen.cpp.product import render_product
from compiler.codegen.cpp.render import render_cpp
from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.same_code import first_of_each_code
from compiler.codegen.triton.render import render_triton
from compiler.codegen.wrapper import is_of_torch, render_wrapper
from compiler.decisions import Decision
from compiler.devices import Device, device_for
from compiler.garbage import garbage_kept
from compiler.ir.nodes import ExternNode, LoopGraph, LoopNode
from compiler.ir.size import Undecided
from compiler.lowering.in_place import update_inputs
from compiler.lowering.streams import refusal_of_streams
from compiler.lowering.unsupported import OpenSizesUnsupported, UnsupportedGraph
from compiler.observers import Observers
from compiler.options import Options
from compiler.passes.layout.choice import LayoutChoice
from compiler.passes.layout.decide import lower_in_layout
from compiler.passes.layout.passed import saved_outputs
from compiler.passes.order import OF_EACH_GRAPH, run
from compiler.passes.padding.choice import PaddingChoice
from compiler.replay.choose import Compiled, replayed_or_not
from compiler.replay.replayed import ReplayedCall
from compiler.runtime.cpp.library import Kernel, compile_kernels
from compiler.runtime.cpp.product_steps import product_launcher
from compiler.runtime.executable import Executable, build_executable
from compiler.schedule.directives import Directives, OtherNames, directives_of
from compiler.schedule.first_seed import counted_from, first_seed
from compiler.schedule.group import Group
from compiler.schedule.memory.lifetimes import read_again
from compiler.schedule.memory.plan import MemoryPlan, plan_memory
from compiler.schedule.products.loops import Product
from compiler.schedule.scheduler import Schedule, schedule

if TYPE_CHECKING:
    from compiler.runtime.triton.graph_launchers import GraphLaunchers
    from compiler.runtime.triton.tuning import Tuning

Given = ParamSpec("Given")
Made = TypeVar("Made", bound="Target")
Launchers = dict[str, Callable[..., None]]


# --- what is handed from stage to stage


@dataclass(frozen=True, eq=False)
class Target:
    """Where a graph is to run, and by which model and options all about it is decided.

    `runs_on` is where the tensors are, `model` the device that decisions and Triton kernels are made for: the same one
    on a GPU; without a GPU, the CPU and the target that was asked for."""

    runs_on: torch.device
    model: Device
    options: Options
    #: What each stage took, by the name of its function.
    seconds: Mapping[str, float] = field(default_factory=dict, kw_only=True)

    @property
    def decides_for(self) -> Device:
        """The device whose model decides and predicts: `model`, unless an option names another one."""
        return self.model if self.options.device_model is None else device_for(self.options.device_model)


@dataclass(frozen=True, eq=False)
class Lowered(Target):
    """A graph as loops and library calls, with what was decided of its calls."""

    loops: LoopGraph
    layouts: tuple[LayoutChoice, ...]
    foldings: tuple[Decision, ...]
    paddings: tuple[PaddingChoice, ...]
    #: Of a forward graph: positions of the outputs that are saved for its backward graph.
    saved: frozenset[int]
    #: Outputs that the caller copies into an input, and that may be written there at once, each with its input.
    written_back: dict[str, str]
    #: Why the graph is planned and no more.
    cannot_run: UnsupportedGraph | None


@dataclass(frozen=True, eq=False)
class Planned(Lowered):
    """Its kernels in the order in which they run, and where each buffer lies."""

    directives: Directives
    schedule: Schedule
    memory: MemoryPlan

    @property
    def groups(self) -> list[Group]:
        return [unit for unit in self.schedule.units if isinstance(unit, Group)]

    @cached_property
    def nodes(self) -> dict[str, LoopNode]:
        """The nodes of all groups, by name."""
        return {member.name: member.node for group in self.groups for member in group.members}


@dataclass(frozen=True, eq=False)
class Generated(Planned):
    """The text of its kernels, by the names of their groups: those that run, and on a CPU their Triton twins."""

    cpp: dict[str, RenderedKernel]
    triton: dict[str, RenderedKernel]

    @cached_property
    def first_of_code(self) -> dict[str, str]:
        """For each generated kernel the first one that is the same but for names: equal layers have equal kernels."""
        return first_of_each_code(self.cpp, self.triton, storage=self.schedule.graph.dtypes)

    @property
    def primary(self) -> dict[str, RenderedKernel]:
        """The kernels that run: Triton's on a GPU, C++ on a CPU."""
        return self.triton if self.runs_on.type == "cuda" else self.cpp


@dataclass(frozen=True, eq=False)
class Built(Generated):
    """Its kernels compiled, and what calls them."""

    executable: Executable
    #: What is called instead of the executable, or why nothing is.
    replayed: ReplayedCall | Decision

    @property
    def implementation(self) -> Implementation:
        """What runs the graph: takes and gives flat lists."""
        executable = self.executable
        return self.replayed if isinstance(self.replayed, ReplayedCall) else executable.flat or executable.call

    @property
    def replay_decision(self) -> Decision:
        """How launches reach the device so far."""
        return self.replayed.decision if isinstance(self.replayed, ReplayedCall) else self.replayed


def _extended(kind: type[Made], before: Target, **found: Any) -> Made:
    """What a stage makes: all that the value before it has, and what it found out."""
    return kind(**{one.name: getattr(before, one.name) for one in fields(before)}, **found)


def _timed(stage: Callable[Given, Made]) -> Callable[Given, Made]:
    """The stage, which leaves the seconds that it took in what it makes."""

    @wraps(stage)
    def run_timed(*given: Given.args, **named: Given.kwargs) -> Made:
        started = time.perf_counter()
        made = stage(*given, **named)
        return replace(made, seconds={**made.seconds, stage.__name__: time.perf_counter() - started})

    return run_timed


# --- the stages


@_timed
def lower(graph: GraphModule, target: Target, writes_inputs: bool = False) -> Lowered:
    """With `writes_inputs`, outputs that the caller copies into an input may be written there at once. Whoever calls
    the graph more than once with the same values gives it copies of its inputs."""
    if target.runs_on.type == "cuda":
        have_helpers(graph)
    cannot_run = refusal_of_streams(graph.graph)
    if writes_inputs:
        mark_updates(graph)
    changed, paddings = run(OF_EACH_GRAPH, graph, target.decides_for, target.options)
    loops, layouts, foldings = lower_in_layout(changed, target.decides_for, target.options)
    back = written_back(graph, loops) if writes_inputs else {}
    update_inputs(loops, back)
    return _extended(
        Lowered,
        target,
        loops=loops,
        layouts=layouts,
        foldings=foldings,
        paddings=paddings,
        saved=saved_outputs(graph),
        written_back=back,
        cannot_run=cannot_run,
    )


@_timed
def plan(lowered: Lowered, other_names: OtherNames | None = None, tuning: Tuning | None = None) -> Planned:
    """`other_names` are names that the options may use besides those of loops and ATen nodes; see
    `compiler.schedule.directives`. `tuning` is made anew where the mode measures."""
    options, device = lowered.options, lowered.decides_for
    directives = directives_of(lowered.loops, options, other_names or {})
    if tuning is None and options.mode == "max-autotune" and lowered.runs_on.type == "cuda":
        tuning = _tuning(lowered.runs_on, device, lowered.loops)
    measure = None if tuning is None else tuning.microseconds
    scheduled = schedule(lowered.loops, device, options, directives, measure)
    if tuning is not None:
        scheduled = replace(scheduled, units=tuple(map(tuning.tuned, scheduled.units)))
    memory = plan_memory(scheduled, lowered.written_back)
    return _extended(Planned, lowered, directives=directives, schedule=scheduled, memory=memory)


@_timed
def generate(planned: Planned, wants_triton: bool, launchers: GraphLaunchers | None = None) -> Generated:
    """Render every kernel; Triton's besides C++ only where it is wanted. Raises `cannot_run`.

    With `launchers` kernels are compiled as they come, products first, which take longest."""
    if planned.cannot_run is not None:
        raise planned.cannot_run
    storage = planned.schedule.graph.dtypes
    again = read_again(planned.schedule.units, planned.schedule.graph.output_buffers)
    groups = planned.groups
    if launchers is not None:
        groups = sorted(groups, key=lambda group: not isinstance(group, Product))
    cpp: dict[str, RenderedKernel] = {}
    triton: dict[str, RenderedKernel] = {}
    for group in groups:
        first = first_seed(group)
        own = counted_from(group, first)
        if planned.runs_on.type != "cuda":
            cpp[group.name] = replace(_render_cpp(own, storage, planned.memory), first_seed=first)
        if wants_triton:
            kernel = replace(render_triton(own, storage, planned.model, again[group.name]), first_seed=first)
            triton[group.name] = kernel
            if launchers is not None:
                launchers.add(kernel)
    in_order = {group.name: triton[group.name] for group in planned.groups if group.name in triton}
    return _extended(Generated, planned, cpp=cpp, triton=in_order)


def _render_cpp(group: Group, storage: dict[str, torch.dtype], memory: MemoryPlan) -> RenderedKernel:
    if isinstance(group, Product):
        return render_product(group, storage)
    return render_cpp(group, storage, memory.written_over(group))


@_timed
def build(generated: Generated, phase: Phase = "forward", launchers: GraphLaunchers | None = None) -> Built:
    """`launchers` are those that `generate` was given."""
    schedule, memory, runs_on = generated.schedule, generated.memory, generated.runs_on
    wrapper = render_wrapper(schedule, memory, generated.primary, runs_on)
    kernels = _on_gpu(generated, launchers) if runs_on.type == "cuda" else _on_cpu(generated)
    executable = build_executable(schedule, wrapper, kernels, runs_on)
    replayed: ReplayedCall | Decision = Decision("replay.cpu")
    if runs_on.type == "cuda":
        compiled = Compiled(schedule, memory, kernels, runs_on, generated.model, saved=generated.saved)
        replayed = replayed_or_not(executable.quickest, compiled, generated.options.replays, phase)
    return _extended(Built, generated, executable=executable, replayed=replayed)


# --- what launches the kernels


@contextmanager
def compiled_beside(planned: Planned) -> Iterator[GraphLaunchers | None]:
    """On a GPU, what compiles kernels while the rest is generated, and is given up where that fails."""
    if planned.runs_on.type != "cuda":
        yield None
        return
    launchers = _no_launchers(planned)
    try:
        yield launchers
    except BaseException:
        launchers.abandon()
        raise


def _no_launchers(planned: Planned) -> GraphLaunchers:
    from compiler.runtime.triton.graph_launchers import GraphLaunchers

    device = torch.cuda.current_device() if planned.runs_on.index is None else planned.runs_on.index
    return GraphLaunchers(planned.schedule.graph.dtypes, device)


def _on_gpu(generated: Generated, begun: GraphLaunchers | None) -> Launchers:
    launchers = begun
    if launchers is None:
        launchers = _no_launchers(generated)
        for kernel in generated.primary.values():
            launchers.add(kernel)
    # What an operator of the user's may compile between kernels is not to be compiled by the settings of ours.
    calls = [unit.target for unit in generated.schedule.units if isinstance(unit, ExternNode)]
    by_name = launchers.all(begun is not None and all(map(is_of_torch, calls)))
    return {name: by_name[kernel.name] for name, kernel in generated.primary.items()}


def build_ahead(generated: Generated, after: Future[float] | None) -> Future[float]:
    """Compile in a thread what `build` then finds compiled on a CPU; gives the seconds that it took. `after` is what is
    compiled before it: the other cores are for what goes on meanwhile. It is no thread of a pool: a process that was
    forked would have the pool without its threads."""
    seconds: Future[float] = Future()

    def compile_all() -> None:
        if after is not None:
            after.result()
        started = time.perf_counter()
        try:
            with suppress(Exception):  # which `build` comes upon too, and tells
                _cpp_functions(generated)
        finally:
            seconds.set_result(time.perf_counter() - started)

    Thread(target=compile_all, name="build ahead", daemon=True).start()
    return seconds


def _products(generated: Generated) -> dict[str, Product]:
    named = ((generated.primary[group.name].name, group) for group in generated.groups if isinstance(group, Product))
    return dict(named)


def _cpp_functions(generated: Generated) -> dict[str, Kernel]:
    products, primary = _products(generated), generated.primary.values()
    kernels = [step for kernel in primary for step in (kernel.steps if kernel.name in products else (kernel,))]
    return compile_kernels(kernels) if kernels else {}


def _on_cpu(generated: Generated) -> Launchers:
    primary, layouts = generated.primary, generated.schedule.graph.buffers
    products, compiled = _products(generated), _cpp_functions(generated)
    return {
        kernel.name: product_launcher(products[kernel.name], kernel, compiled, layouts)
        if kernel.name in products
        else compiled[kernel.name]
        for kernel in primary.values()
    }


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


# --- in one go


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
    with garbage_kept():
        planned = plan(lower(graph, Target(device, device_for(device), options), writes_inputs=True))
        with compiled_beside(planned) as launchers:
            generated = generate(planned, device.type == "cuda", launchers)
            built = build(generated, phase, launchers)
    _observers.tell(built)
    return built.implementation


_observers: Observers[Built] = Observers()


def observed_compilations(observe: Callable[[Built], object]) -> AbstractContextManager[None]:
    """Within, `observe` gets each graph that `compile_graph` has compiled, in any thread."""
    return _observers.with_one_more(observe)
