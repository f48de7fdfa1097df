"""Run a compiled graph on the snippet's inputs: check its results, and time it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from compiler import report as rep
from compiler.budget import PLANNED, UNLIMITED, Budget, OutOfTime, in_seconds
from compiler.capture.captured import Capture, CapturedGraph, EntryCall, copy_values
from compiler.capture.reference import is_random, reference_run
from compiler.capture.rounding_noise import RoundingNoise
from compiler.capture.slow_products import products_in_float32
from compiler.codegen.rendered import lines_through
from compiler.fx.fake_values import is_undefined
from compiler.ir.nodes import ExternNode
from compiler.lowering.tree_calls import TreeCall, function_of
from compiler.lowering.user_kernels import launches_alone
from compiler.options import Timing
from compiler.runtime.checking.gradients import DRAWS
from compiler.runtime.checking.judge import TOLERANCE, judge, judge_forms
from compiler.runtime.checking.rewrite_check import error_of_rewrite
from compiler.runtime.checking.wrong_results import Checked, checked_graph, worst_of
from compiler.runtime.executable import CompiledGraph, Executable, build_executable
from compiler.runtime.timing.measure import measure
from compiler.runtime.triton.offline import ptx_lines, source_file
from compiler.schedule.scheduler import Schedule
from compiler.snippet_changes import SnippetChanges

#: What a reader can do about it.
MORE_TIME = "Allow more time (`max_seconds`), or use smaller sizes."
#: About how much longer a graph takes in float64 than in float32. One that takes longer still is stopped.
EXACT_SHARE = 3.0
#: A graph that is made while calls are timed has no kernels, and what runs in no graph is eager mode.
COMPILED_AGAIN = (
    "The calls were not timed: some of them were compiled anew, as a guard failed on what differs from the calls of "
    "the snippet, such as a Python number, a cache that the first call fills, or a mode that was set later. Keep a "
    "number that changes in a tensor, or outside of the compiled function, and call again what was changed."
)
NOT_COMPILED = (
    "The calls were not timed: made again, a compiled function ran none of its graphs, as guards or branches of Python "
    "depend on what earlier calls had changed."
)
NOT_ALIKE = (
    "The calls were not timed: they did not all run the same graphs, as guards or branches of Python depend on what "
    "differs from call to call, such as a flag or a random number."
)


def verify_graph(
    graph: CapturedGraph, executable: Executable, notes: list[rep.Note], budget: Budget = UNLIMITED
) -> Checked:
    """The compiled graph beside eager, both against the same graph in float64, on its first inputs.

    A graph that draws random numbers is run, and only dtypes and shapes are compared: the compiled kernels draw other
    numbers than eager. What does not fit into the budget is left out, with a note: the comparison first, then the run
    of the kernels too.
    """
    if graph.inputs is None:
        notes.append(rep.Note(message=f"{graph.name} was compiled but never called, so it was not checked."))
        return Checked()
    in_float32, seconds = graph.runner.has_slow_products, graph.seconds_for_values
    left_out = f"Kernels of {graph.name} were not run"
    try:
        with torch.no_grad(), _in_time(budget, seconds), products_in_float32(in_float32):
            compiled = list(executable.call(copy_values(graph.inputs)))
        if is_random(graph):
            return _checked_forms(graph, compiled, notes)
        left_out = f"{graph.name} was not compared with float64"
        with torch.no_grad(), _in_time(budget, EXACT_SHARE * seconds):
            checked = _compared(graph, graph.inputs, compiled, in_float32)
    except OutOfTime:
        first = in_seconds(graph.runner.eager_seconds or 0.0)
        message = f"{left_out}: its first call took {first} operator by operator. {MORE_TIME}"
        notes.append(rep.Note(message=message))
        return Checked()
    try:
        with torch.no_grad(), budget.stopping():
            return _with_rewrites(graph, checked, notes)
    except OutOfTime:
        message = f"The rewritten part of {graph.name} was not compared with the original. {MORE_TIME}"
        notes.append(rep.Note(message=message))
        return checked


@contextmanager
def _in_time(budget: Budget, seconds: float) -> Iterator[None]:
    """Raises `OutOfTime` at once where what follows takes longer for certain, else when the budget is spent."""
    if not budget.fits(seconds):
        raise OutOfTime
    with budget.stopping():
        yield


def _checked_forms(graph: CapturedGraph, compiled: list[Any], notes: list[rep.Note]) -> Checked:
    message = (
        f"{graph.name} draws random numbers; compiled and eager draw different ones, so their results were not "
        "compared element by element."
    )
    notes.append(rep.Note(message=message))
    returned = _returned(graph)
    expected = [value.meta.get("val") if isinstance(value, torch.fx.Node) else value for value in returned]
    names = [str(value) for value in returned]
    return Checked(wrong=checked_graph(graph.name, graph.function, names, judge_forms(compiled, expected)).wrong)


def _compared(graph: CapturedGraph, inputs: list[Any], compiled: list[Any], in_float32: bool) -> Checked:
    """What the kernels gave beside eager, both against float64. `in_float32`: eager's products are those of float32,
    rounded, as the compiled call's were. What holds whatever the memory held is not compared."""
    reference = reference_run(graph, copy_values(inputs), torch.float64)
    with products_in_float32(in_float32):
        eager = reference_run(graph, copy_values(inputs), None)
    returned = _returned(graph)
    defined = [not is_undefined(value) for value in returned]

    def known(values: list[Any]) -> list[Any]:
        return list(compress(values, defined)) if len(values) == len(defined) else values

    judgements = judge(known(compiled), known(reference), known(eager), perturbed=map(known, _perturbed(graph, inputs)))
    return checked_graph(graph.name, graph.function, [str(value) for value in known(returned)], judgements)


def _with_rewrites(graph: CapturedGraph, checked: Checked, notes: list[rep.Note]) -> Checked:
    """With what is wrong with the graph that was written, where parts of it were replaced."""
    wrong = _error_of_rewrite(graph, notes)
    if wrong is None:
        return checked
    error = math.inf if wrong.error is None else wrong.error
    worst = worst_of([checked, Checked(compiled_error=error, allowed_error=wrong.tolerance)])
    return replace(worst, wrong=[*checked.wrong, wrong], errors=checked.errors)


def _returned(graph: CapturedGraph) -> list[Any]:
    """The nodes and constants that a graph returns."""
    return list(tree_leaves(graph.aten.graph.output_node().args[0]))


def _perturbed(graph: CapturedGraph, inputs: list[Any]) -> Iterator[list[Any]]:
    """The outputs in float64 with what each operator rounds, drawn at random."""
    double = torch.finfo(torch.float64).eps
    for seed in range(DRAWS):
        yield reference_run(graph, copy_values(inputs), torch.float64, RoundingNoise(double, seed))


def _error_of_rewrite(graph: CapturedGraph, notes: list[rep.Note]) -> rep.WrongResult | None:
    """What a rewrite of the captured graph changed: beyond rounding in float64, that is an error of the result."""
    error = error_of_rewrite(graph.rewrite_check) if graph.rewrite_check is not None else None
    allowed = TOLERANCE[torch.float64]
    if error is None or error <= allowed:
        return None
    lines = [line for record in graph.rewrites if record.verdict == "replaced" for line in record.lines]
    message = f"The rewritten part of {graph.name} differs from the original: in float64 by {error:.1e}."
    notes.append(rep.Note(message=message, line=lines[-1] if lines else None))
    known = {"error": error, "tolerance": allowed} if math.isfinite(error) else {}
    return rep.WrongResult(
        contestant="compiled",
        graph=graph.name,
        entry=graph.function,
        output="what was replaced",
        message=message,
        **known,  # type: ignore[arg-type]  # two of the fields that are numbers
    )


def measure_entries(
    entries: Sequence[EntryCall],
    device: torch.device,
    timing: Timing,
    is_wrong: bool,
    budget: Budget,
    expected_seconds: float,
    changes: SnippetChanges,
) -> rep.TimingResult:
    """Eager against compiled: one call of every callable that the snippet compiled, with fresh arguments each time
    only where a call changes them. What gives a wrong result is not timed. Raises `OutOfTime` where one call of each
    takes longer than the budget; `expected_seconds` is what is known of it before."""
    with _in_time(budget, expected_seconds):
        calls: dict[str, Callable[[], object]] = {"eager": call_of_all(entries, [entry.eager for entry in entries])}
        if not is_wrong:
            calls["compiled"] = call_of_all(entries, [entry.compiled for entry in entries])
        return measure(calls, device, timing, budget.share(PLANNED), changes)


def call_of_all(entries: Sequence[EntryCall], functions: Sequence[Callable[..., object]]) -> Callable[[], object]:
    """One call of each function on the arguments of its entry."""
    calls = [(function, *entry.copy_arguments()) for entry, function in zip(entries, functions, strict=True)]

    def call() -> None:
        for function, args, kwargs in calls:
            function(*args, **kwargs)

    return call


class RunsCounted:
    """Which graphs the compiled calls of a snippet run while they are timed: a guard may lead them to others than those
    of the snippet's first call, to a new graph, or to none."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._before = {graph.name: graph.runner.calls for graph in capture.graphs}
        self._calls = 0

    def of(self, entries: Sequence[EntryCall]) -> list[EntryCall]:
        """The entries, the first of which counts its compiled calls."""
        first, *others = entries

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            return first.compiled(*args, **kwargs)

        return [replace(first, compiled=counted), *others]

    def why_no_times(self) -> str | None:
        """Note the graphs that each call of all entries ran, equally often; or why the times are none of theirs."""
        capture, self._capture.timed_graphs = self._capture, set()
        if any(runner.calls for runner in capture.made_later):
            return COMPILED_AGAIN
        counts = {graph.name: graph.runner.calls - self._before[graph.name] for graph in capture.graphs}
        ran = {name for name, count in counts.items() if count}
        if not all(ran & set(entry.graphs) for entry in capture.timed_entries if entry.graphs):
            return NOT_COMPILED
        if any(count % self._calls for count in counts.values()):
            return NOT_ALIKE
        capture.timed_graphs = ran
        return None


def note_resources(executable: Executable, report: rep.Graph, target: str) -> None:
    """Registers, spills, shared memory and PTX of each kernel that was compiled for a GPU and loaded there."""
    for kernel in report.kernels:
        launch: Any = executable.kernels.get(kernel.name)
        registers, spills = getattr(launch, "registers", None), getattr(launch, "spills", None)
        if registers is not None and spills is not None:
            kernel.registers, kernel.spills = registers, 4 * spills
            kernel.shared_bytes = getattr(launch, "shared_bytes", None)
        ptx = getattr(launch, "ptx", None)
        if ptx is not None and kernel.same_as is None:
            lines = lines_through(ptx_lines(ptx, source_file(launch.kernel)), kernel.lines)
            kernel.also.append(rep.KernelArtifact(language="ptx", target=target, source=ptx, lines=lines))


class _Recorder:
    """Stands in for a launcher, or a call of the user's, during one call of the wrapper and keeps what it gets: of a
    kernel tensors, then sizes."""

    def __init__(self, launch: Callable[..., Any]) -> None:
        self._run = launch
        self.__name__ = getattr(launch, "__name__", "")
        self.arguments: tuple[Any, ...] | None = None

    def __call__(self, *arguments: Any) -> Any:
        self.arguments = arguments
        return self._run(*arguments)


def record_arguments(compilation: CompiledGraph, inputs: list[Any]) -> dict[str, tuple[Any, ...]]:
    """The tensors and sizes that each kernel is launched with in one call of the graph."""
    recorders = {name: _Recorder(launch) for name, launch in compilation.executable.kernels.items()}
    _record(compilation, inputs, compilation.schedule, recorders)
    return {name: recorder.arguments for name, recorder in recorders.items() if recorder.arguments is not None}


def users_launches(compilation: CompiledGraph, inputs: list[Any]) -> dict[str, Callable[[], None]]:
    """What launches each Triton kernel of the snippet's own as one call of the graph does, by the loop node."""
    executable, schedule = compilation.executable, compilation.schedule
    targets = {unit.name: unit.target for unit in schedule.units if isinstance(unit, ExternNode)}
    own = {name: call for name, call in targets.items() if isinstance(call, TreeCall) and function_of(call) is not None}
    if not own:
        return {}
    calls: dict[str, Any] = {name: _Recorder(call) for name, call in own.items()}
    units = (
        replace(unit, target=calls[unit.name]) if isinstance(unit, ExternNode) and unit.name in calls else unit
        for unit in schedule.units
    )
    _record(compilation, inputs, replace(schedule, units=tuple(units)), executable.kernels)
    return {name: launches_alone(call, calls[name].arguments) for name, call in own.items()}


def _record(
    compilation: CompiledGraph, inputs: list[Any], schedule: Schedule, kernels: Mapping[str, Callable[..., Any]]
) -> None:
    with torch.no_grad():
        build_executable(schedule, compilation.executable.wrapper, kernels, compilation.runs_on).call(
            copy_values(inputs)
        )


@dataclass(frozen=True)
class Launch:
    """The tensors of one launch as they were before it and after it, and the sizes that it was given, by the names of
    the kernel's parameters: the same kernel in another language may have them in another order, or fewer."""

    before: dict[str, torch.Tensor]
    after: dict[str, torch.Tensor]
    sizes: dict[str, int]


def record_launches(compilation: CompiledGraph, inputs: list[Any], names: set[str]) -> dict[str, Launch]:
    """The launches of the kernels `names` in one call of the graph. Later kernels may work in the same memory, so all
    is copied but inputs of the graph that it does not change."""
    executable, schedule = compilation.executable, compilation.schedule
    given = {*schedule.graph.inputs, *schedule.graph.constants} - set(compilation.written_back.values())
    launches: dict[str, Launch] = {}

    def recorder(name: str, launch: Callable[..., None]) -> Callable[..., None]:
        parameters = compilation.primary[name].parameters
        atoms = [atom.name for atom in compilation.primary[name].sizes]

        def snapshot(tensors: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
            named = dict(zip(parameters, tensors, strict=True))
            # Parts of one tensor stay parts of one.
            return named | copy_values({p: t for p, t in named.items() if p not in given})  # type: ignore[no-any-return]

        def call(*arguments: Any) -> None:
            tensors, sizes = arguments[: len(parameters)], arguments[len(parameters) :]
            before = snapshot(tensors)
            launch(*arguments)
            launches[name] = Launch(before, snapshot(tensors), dict(zip(atoms, sizes, strict=True)))

        return call if name in names else launch

    kernels = {name: recorder(name, launch) for name, launch in executable.kernels.items()}
    _record(compilation, inputs, schedule, kernels)
    return launches
