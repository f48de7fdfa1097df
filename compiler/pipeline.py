"""The compiler's table of contents: a snippet in, a report out.

    capture   run the snippet; TorchDynamo and AOTAutograd give functional ATen graphs
    lower     each graph becomes loops over index expressions, and library calls
    schedule  loops become kernels: what fuses with what, in which order, in which memory
    codegen   kernels become Triton and C++ text, and the wrapper that launches them
    run       the kernels are compiled and run; eager's and their error against float64
    measure   eager and compiled, interleaved; a wrong result has no speed, and is not timed
    profile   each kernel alone, and one call as torch's profiler records it, if asked for
    compare   TorchInductor on the same calls, if asked for
    emulate   the Triton twin of each kernel of a CPU, in Triton's interpreter
    sweep     all of it again at other sizes, if asked for

Each stage fills its part of the report, which is then handed to `on_stage`. A stage that fails is a result too: the
report keeps what the stages before it found. The verdict is there after `measure`; what comes later makes it firmer.
What the stages do to one graph is `compile.py`, without reports, as `torch.compile(f, backend="fusionscope")` has it.
To read on, one file of each folder:

    capture/capture.py      the entry to capture; rewrite/rewriting.py is what is changed before gradients are derived
    lowering/lower.py       the walk over ATen nodes, ir/ what they become; layout/, folding/, padding/ choose before it
    schedule/scheduler.py   the search, schedule/rules/ what it asks, schedule/records/reasons.py all that it may answer
    codegen/program.py      a fused group as phases over one tile, which triton/ and cpp/ print
    runtime/executable.py   the wrapper and its kernels as a function; replay/ makes one CUDA graph of its launches
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from types import MappingProxyType

import torch

from compiler import compile_phases
from compiler import report as rep
from compiler.backend import device_of
from compiler.budget import PLANNED, TIME_LIMIT, Budget, OutOfTime, in_seconds, unstopped
from compiler.capture.called import Called
from compiler.capture.capture import capture
from compiler.capture.captured import Capture, CapturedGraph
from compiler.capture.slow_products import products_in_float32
from compiler.compile import GraphCompilation
from compiler.defects import message_of
from compiler.devices import device_for
from compiler.environment import describe_environment
from compiler.failures import error_of
from compiler.garbage import garbage_kept
from compiler.lease import Lease, TimingTurns
from compiler.options import Options
from compiler.present import (
    note_ranges,
    predicted_us,
    present_captured,
    present_eager,
    present_kernels,
    present_lowered,
    present_replay,
    present_schedule,
)
from compiler.runtime.first_sizes import note_first_sizes
from compiler.runtime.gradients import CheckedCall, check_training
from compiler.runtime.kernel_times import KernelTimes, beside_calls, measure_kernels, note_times
from compiler.runtime.offline import attach_triton, check_by_emulation
from compiler.runtime.trial import call_of_all, measure_entries, note_resources, verify_graph
from compiler.runtime.wrong_results import (
    Checked,
    checked_call,
    gradient_checks,
    graphs_without_times,
    is_wrong,
    withhold_times,
)
from compiler.schedule.describe.schedule import sums_in_any_order
from compiler.shares import (
    CALLS_UNTIMED,
    GRADIENTS_UNCHECKED,
    Shares,
    for_calls,
    kernels_left_out,
    peer_left_out,
    shared_out,
    slow_products,
)
from compiler.snippet_changes import SnippetChanges
from compiler.summary import summarise
from compiler.sweep.running import sweep_sizes
from compiler.sweep.sizes import offered
from compiler.what_if import other_names, outcomes

OnStage = Callable[[rep.Report], None]

#: Stages that are asked for with an earlier one: its verdict does not wait for them.
_PART_OF = {"profile": "measure", "emulate": "run"}


def explore(
    source: str,
    options: Options | None = None,
    on_stage: OnStage | None = None,
    *,
    lease: Lease | None = None,
    changes: SnippetChanges | None = None,
    called: Called | None = None,
) -> rep.Report:
    """Explore a snippet. Never raises for what the snippet does; `report.error` says what went wrong, and where.

    `lease` is held around what is timed, where others time on the device too; see `compiler.lease`. `changes` may be
    made beforehand, in a process that waits for a snippet: it takes a millisecond or two. With `called` nothing of the
    source is run: it is the text around a function of this process, whose call is explored. Where the options ask for
    machine code, the source is a kernel, and nothing of the above happens: see `machine_code/levels.py`.
    """
    told = on_stage or (lambda _: None)
    if options is not None and options.machine_code is not None:
        from compiler.machine_code.levels import explore_kernel

        return explore_kernel(source, options, options.machine_code, told)
    turns, changes = TimingTurns(lease), changes or SnippetChanges()
    run = Exploration(source, options or Options(), told, turns=turns, changes=changes, called=called)
    run.stage("capture", run.capture)
    run.stage("lower", run.lower)
    run.stage("schedule", run.schedule)
    run.stage("codegen", run.codegen)
    run.stage("run", run.run)
    run.stage("measure", run.measure)
    run.stage("profile", run.profile)
    run.stage("compare", run.compare)
    run.stage("emulate", run.emulate)
    if run.options.sweep is not None:
        run.stage("sweep", run.sweep)
    report = run.finish()
    run.changes.give_back()
    return report


def explore_size(
    source: str, options: Options, with_times: bool, *, turns: TimingTurns, changes: SnippetChanges
) -> Exploration:
    """The snippet at one size of a sweep, up to its kernels; with times, run and measured too."""
    run = Exploration(source, options, lambda _: None, is_brief=True, turns=turns, changes=changes)
    run.stage("capture", run.capture)
    run.stage("lower", run.lower)
    run.stage("schedule", run.schedule)
    run.stage("codegen", run.codegen)
    if with_times:
        run.stage("run", run.run)
        run.stage("measure", run.measure)
        run.stage("profile", run.profile)
    return run


@dataclass
class Work:
    """One graph on its way: what was captured, what the compiler made of it, its part of the report."""

    captured: CapturedGraph
    compilation: GraphCompilation
    report: rep.Graph
    failed: bool = False
    checked: Checked = field(default_factory=Checked)
    times: KernelTimes | None = None


@dataclass
class Exploration:
    """The state of one exploration: the report, and the graphs that the stages work on. A brief one leaves out the
    Triton twin of what runs on a CPU."""

    source: str
    options: Options
    on_stage: OnStage
    is_brief: bool = False
    turns: TimingTurns = field(default_factory=TimingTurns)
    work: list[Work] = field(default_factory=list)
    captured: Capture | None = None
    calls: list[CheckedCall] = field(default_factory=list)
    changes: SnippetChanges = field(default_factory=SnippetChanges)
    called: Called | None = None
    dynamo_seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.began = self.turns.clock()
        self.budget = Budget(clock=self.turns.clock).within(self.options.max_seconds)
        self.device = choose_device(self.options)
        self.model = device_for(self.device if self.device.type == "cuda" else self.options.target)
        self.report = rep.Report(
            source=self.source,
            options=self.options.model_dump(mode="json", exclude_none=True),
            environment=describe_environment(self.device, self.model, self.options),
        )

    def stage(self, name: str, step: Callable[[], str | None]) -> None:
        """Run one stage, time it, record how it ended, and publish the report so far."""
        status: rep.StageStatus = "done"
        started = self.turns.clock()
        message = self._reason_to_skip(name)
        if message is not None:
            status = "skipped"
        else:
            try:
                message = step()
            except Exception as error:  # a defect of ours: say so, keep what is there
                status, message = "failed", message_of(error)
                self._remember(error_of(name, error))
        milliseconds = 1e3 * (self.turns.clock() - started)
        self.changes.set_aside()
        if name == "capture" and self.report.error is not None:
            status = "failed"
        self.report.stages.append(rep.Stage(name=name, ms=round(milliseconds, 3), status=status, message=message))
        # Should the next stage be stopped from outside, this is the report.
        self.report.summary = self._summary()
        if not any(stage.name == "measure" for stage in self.report.stages):
            self.report.summary.verdict = ""
        self.on_stage(self.report)

    def _reason_to_skip(self, name: str) -> str | None:
        if name == "sweep":  # it runs the snippet anew, whatever became of it at the size that is written
            return None
        if self.options.produce is not None and _PART_OF.get(name, name) not in self.options.produce:
            return "this stage was not asked for"
        if name != "capture" and not self.alive:
            return "there is no graph to work on"
        if self.shares.are_spent_for(name):
            return f"the {in_seconds(self.options.max_seconds or 0)} of the exploration were up"
        if name in ("measure", "profile") and not self.options.timing.enabled:
            return "timing was turned off"
        if name == "compare" and not self._asks_others:
            return "the peer was not asked for"
        if name == "emulate" and self.device.type == "cuda":
            return "the Triton kernels ran on the GPU"
        return None

    @property
    def _asks_others(self) -> bool:
        return self.options.peer or bool(self.options.contestants)

    @property
    def shares(self) -> Shares:
        return Shares(self.budget)

    def _note(self, message: str) -> None:
        self.report.notes.append(rep.Note(message=message))

    def _remember(self, error: rep.Error) -> None:
        self.report.error = self.report.error or error

    @contextmanager
    def _each(self, work: Work, stage: str) -> Iterator[None]:
        """A defect in one graph does not stop the others."""
        try:
            yield
        except Exception as error:
            work.failed = True
            self._remember(error_of(stage, error))

    @property
    def alive(self) -> list[Work]:
        return [work for work in self.work if not work.failed]

    def capture(self) -> None:
        self.report.sizes = [
            rep.NamedSize(name=size.name, value=size.value, lines=list(size.lines))
            for size in (offered(self.source, self.options) if self.called is None else ())
        ]
        budget = self.shares.capture
        self.captured = captured = capture(self.source, self.options, self.device, budget, self.changes, self.called)
        self.dynamo_seconds = compile_phases.counted()
        self.report.notes += captured.notes
        self.report.output = captured.output
        self.report.error = captured.error
        for graph in captured.graphs:
            compilation = self._compilation_of(graph)
            self.work.append(Work(graph, compilation, present_captured(graph, compilation.runs_on.type)))
        self.report.graphs = [work.report for work in self.work]
        self.report.breaks = captured.breaks
        self.report.compilations = captured.compilations
        present_eager(captured.graphs, self.report.graphs)
        for graph in captured.graphs:
            if graph.runner.has_slow_products:
                self._note(slow_products(graph.name, graph.runner.product_seconds or 0.0))

    def _compilation_of(self, graph: CapturedGraph) -> GraphCompilation:
        """On the exploration's device; or on the CPU, for a graph of CPU tensors alone beside a GPU."""
        runs_on = device_of(graph.aten) if self.device.type == "cuda" else self.device
        model = self.model if runs_on.type == self.device.type else device_for(runs_on)
        return GraphCompilation(runs_on, model, self.options)

    def lower(self) -> None:
        for work in self.alive:
            with self._each(work, "lower"):
                note_first_sizes(work.captured)
                with work.compilation.timed("lower"):
                    work.compilation.lower(work.captured.aten)
                work.captured.lay_inputs_out()
                present_lowered(work.compilation, work.report)
                self._note_unordered_sums(work)

    def _note_unordered_sums(self, work: Work) -> None:
        assert work.compilation.loops is not None
        names = sums_in_any_order(work.compilation.loops)
        if names and work.compilation.runs_on.type == "cuda":
            self._note(f"{', '.join(names)} adds by atomic operations: the last digits may differ from run to run.")

    def schedule(self) -> None:
        # What is fused may be decided by times on the device.
        tunes = self.options.mode == "max-autotune"
        for work in self.alive:
            with self._each(work, "schedule"), self._turn_on_gpu(tunes), garbage_kept():
                work.compilation.other_names = other_names(work.compilation, work.report)
                with work.compilation.timed("plan"):
                    work.compilation.plan()
                present_schedule(work.compilation, work.report)
                note_ranges(work.captured, work.report)

    def _turn_on_gpu(self, is_timed: bool = True) -> AbstractContextManager[None]:
        """A turn around what times calls in order to decide by that, which is done on a GPU alone."""
        return self.turns.turn() if is_timed and self.device.type == "cuda" else nullcontext()

    def codegen(self) -> None:
        for work in self.alive:
            with self._each(work, "codegen"):
                with work.compilation.timed("generate"):
                    work.compilation.generate(wants_triton=True)
                work.report.kernels = present_kernels(work.compilation)
                work.report.predicted_us = predicted_us(work.compilation)
                if self.device.type != "cuda" and not self.is_brief:
                    share = self.shares.assembly.share(1 / len(self.alive))
                    attach_triton(work.compilation, work.report, self.options.target, share)
        self._tell_what_if()

    def run(self) -> None:
        for place, work in enumerate(self.alive):
            with self._each(work, "run"):
                with work.compilation.timed("build"):
                    executable = work.compilation.build(work.captured.phase)
                work.report.wrapper = executable.wrapper
                present_replay(work.compilation, work.report)
                work.captured.runner.implementation = work.compilation.implementation
                share = self.shares.checks.share(1 / (len(self.work) - place))
                work.checked = verify_graph(work.captured, executable, self.report.notes, share)
                self.report.wrong_results += work.checked.wrong
                work.report.errors = work.checked.errors
                note_resources(executable, work.report, work.compilation.model.target)
        self._note_phases()
        self._check_training()
        self._withhold_times()

    def _note_phases(self, peer: Mapping[rep.CompilePhaseName, float] = MappingProxyType({})) -> None:
        compiled = compile_phases.ours(self.dynamo_seconds, [work.compilation.seconds for work in self.work])
        self.report.compile_phases = compile_phases.side_by_side(compiled, peer)

    @property
    def _has_backward(self) -> bool:
        return any(work.captured.phase == "backward" for work in self.work)

    @property
    def _call_seconds(self) -> float:
        """What one call of each graph takes at least, operator by operator."""
        return sum(work.captured.least_seconds for work in self.work)

    def _check_training(self) -> None:
        """The user's own functions with their gradients, once all their graphs run our kernels."""
        assert self.captured is not None
        if len(self.alive) < len(self.work) or not self._has_backward:
            return
        budget = self.shares.checks
        try:
            if not budget.fits(2 * self._call_seconds):
                raise OutOfTime
            # Whether launches are replayed is decided by times of these calls.
            with self._turn_on_gpu(), silenced(), budget.stopping():
                self.calls = check_training(self.captured, self.changes)
        except OutOfTime:
            self._note(GRADIENTS_UNCHECKED)
        except Exception as error:
            what = str(error) if isinstance(error, NotImplementedError) else f"{type(error).__name__}: {error}"
            self._note(f"Gradients were not checked from end to end: {what}.")
        for call in self.calls:
            self.report.gradients += gradient_checks(call)
            self.report.wrong_results += checked_call(call, "compiled").wrong

    def _withhold_times(self) -> set[str]:
        """Take what was measured from graphs whose results are wrong; gives their names."""
        assert self.captured is not None
        wrong = graphs_without_times(self.report.wrong_results, self.captured)
        for graph in self.report.graphs:
            if graph.name in wrong:
                withhold_times(graph)
        return wrong

    @property
    def is_wrong(self) -> bool:
        return is_wrong(self.report.wrong_results, "compiled")

    def measure(self) -> str | None:
        with self.turns.turn():
            return self._measure()

    def _measure(self) -> str | None:
        assert self.captured is not None
        self._withhold_times()
        budget = for_calls(self._for_times)
        if len(self.alive) < len(self.work):
            return "not every graph was compiled, so eager and compiled were not timed against each other"
        if not self.captured.timed_entries:
            return "no compiled call returned, so there is nothing to time"
        try:
            with silenced():
                entries, timing, seconds = self.captured.timed_entries, self.options.timing, 2 * self._call_seconds
                self.report.timing = measure_entries(
                    entries, self.device, timing, self.is_wrong, budget, seconds, self.changes
                )
        except OutOfTime:
            self._note(CALLS_UNTIMED)
        for work in self._right():
            present_replay(work.compilation, work.report)
        return "the compiled calls were not timed: their results are wrong" if self.is_wrong else None

    @property
    def _for_times(self) -> Budget:
        return self.shares.times_before_peer if self._asks_others else self.shares.times

    def _right(self) -> list[Work]:
        """The graphs whose results are not wrong, which alone have times."""
        without_times = self._withhold_times()
        return [work for work in self.alive if work.report.name not in without_times]

    def profile(self) -> None:
        right = self._right()
        with self.turns.turn():
            self._measure_kernels(right, self._for_times)
            if self._disturbed_beside_calls() is not None:
                self._measure_kernels(right, self._for_times)
        self._note_times()
        self._note_left_out(right)
        if self.options.trace:
            with self.turns.turn(), silenced():
                self._record(right)

    def _record(self, right: list[Work]) -> None:
        """What the profiler cannot record is told, and takes nothing from what was measured."""
        assert self.captured is not None
        from compiler.runtime.tracing import call_of_graph, recorded

        entries = self.captured.timed_entries
        calls = [("eager", call_of_all(entries, [entry.eager for entry in entries]))]
        found = ((work.report.name, call_of_graph(work.captured, work.compilation, work.report)) for work in right)
        calls += [(name, call) for name, call in found if call is not None]
        budget = self._for_times
        for name, call in calls:
            try:
                with budget.stopping(), self.changes.in_force():
                    self.report.trace += recorded(call, name, self.device)
            except OutOfTime:
                self._note(f"{name} was not recorded: there was no time left.")
            except Exception as error:
                self._note(f"{name} was not recorded: {type(error).__name__}: {error}")

    def _measure_kernels(self, right: list[Work], budget: Budget) -> None:
        """Each kernel alone; the graphs share what one of them would have."""
        seconds = self.options.timing.max_seconds / max(len(right), 1)
        timing = self.options.timing.model_copy(update={"max_seconds": seconds})
        for work, share in shared_out(budget, right):
            with suppress(OutOfTime), share.stopping():
                work.times = measure_kernels(work.captured, work.compilation, timing, share.share(PLANNED))

    def _note_left_out(self, right: list[Work]) -> None:
        if self.options.max_seconds is not None:
            for sentence in (kernels_left_out(work.report) for work in right if work.captured.inputs is not None):
                if sentence is not None:
                    self._note(sentence)

    @property
    def _of_calls(self) -> list[Work]:
        """The graphs that the timed calls run. Those calls make no gradients."""
        assert self.captured is not None
        names = {name for entry in self.captured.timed_entries for name in entry.graphs}
        return [work for work in self.alive if work.report.name in names and work.captured.phase != "backward"]

    def _disturbed_beside_calls(self) -> str | None:
        measured = {work.report.name: work.times for work in self._of_calls if work.times is not None}
        return beside_calls(measured, self.report.timing, self.device.type)

    def _note_times(self) -> None:
        """Kernels and calls are timed in different moments: where the machine was busy in one of them, both say so, of
        the calls that were raced last, whose times are the report's."""
        why, of_calls = self._disturbed_beside_calls(), {work.report.name for work in self._of_calls}
        for work in self.alive:
            if work.times is not None:
                peak_of = work.compilation.model if work.compilation.runs_on.type == "cuda" else None
                note_times(work.report, work.times, why if work.report.name in of_calls else None, peak_of)

    def compare(self) -> str | None:
        """The others come last: all of ours is published before they begin. Only the sweep has to come after them, as
        it captures anew, and what was compiled before is gone then."""
        assert self.captured is not None
        from compiler.peer.compare import compare_with_peer

        budget = self.shares.peer
        if not budget.fits(self._call_seconds):
            self.report.peer = rep.Peer(message=peer_left_out(self._call_seconds))
            return None
        with silenced():
            timing, is_wrong = self.report.timing, self.is_wrong
            graphs = self.report.graphs
            compared = compare_with_peer(
                self.captured,
                self.options,
                timing,
                is_wrong,
                budget,
                self.turns,
                self.changes,
                graphs,
                self._publish_peer,
            )
        self.report.peer, self.report.timing = compared.peer, compared.timing
        self.report.wrong_results += compared.wrong
        self._note_phases(compared.phases)
        errors = {"eager": self.report.summary.eager_error, "compiled": self.report.summary.compiled_error}
        for one in compared.peer.contestants:
            one.max_error = errors.get(one.name, one.max_error)
        self._note_times()
        return None

    def _publish_peer(self, peer: rep.Peer) -> None:
        """What the peer made is on the page before others are asked, and before anybody is timed."""
        with unstopped():
            self.report.peer = peer
            self.on_stage(self.report)

    def sweep(self) -> str | None:
        """Each size leaves a stage of its own, so that what is known of it is published at once, beside the summary of
        the snippet as it is written."""
        self.report.summary = self._summary()

        def publish(so_far: rep.SweepResult, step: str, seconds: float) -> None:
            self.report.sweep = so_far
            self.report.stages.append(rep.Stage(name=step, ms=round(1e3 * seconds, 3), status="done"))
            self.on_stage(self.report)

        try:
            explore = partial(explore_size, turns=self.turns, changes=self.changes)
            self.report.sweep = sweep_sizes(self.source, self.options, explore, publish, self.began, self.turns.clock)
        except SyntaxError:
            return "the snippet is no Python program, so no size was found in it"
        return self.report.sweep.message

    def emulate(self) -> None:
        """The Triton kernels of what runs on a CPU. No figure of the verdict depends on them, so they come after it."""
        emulated = [work for work in self.alive if work.captured.inputs is not None and work.compilation.executable]
        for work, share in shared_out(self.shares.emulation, emulated):
            with self._each(work, "emulate"):
                assert work.captured.inputs is not None
                with products_in_float32(work.captured.runner.has_slow_products):
                    check_by_emulation(work.compilation, work.report, work.captured.inputs, share)

    def plans(self) -> dict[str, str]:
        """How each Triton kernel goes through its loops, by the kernel's name, or by its graph's and its own."""
        is_one = len(self.work) == 1
        return {
            name if is_one else f"{work.report.name}: {name}": str(kernel.config["plan"])
            for work in self.work
            for name, kernel in work.compilation.triton.items()
        }

    def forget(self) -> None:
        """Let go of the graphs and of what the snippet made: the report is what stays."""
        self.work.clear()
        if self.captured is not None:
            self.captured.forget()

    def finish(self) -> rep.Report:
        self.report.summary = self._summary()
        self._tell_what_if()
        error = self.report.error
        if error is not None:
            ends: dict[str, rep.Status] = {"InternalError": "crashed", TIME_LIMIT: "timeout"}
            self.report.status = ends.get(error.type, "user_error")
        else:
            self.report.status = "wrong_result" if self.report.has_wrong_result else "ok"
        self.on_stage(self.report)
        return self.report

    def _tell_what_if(self) -> None:
        names = [work.compilation.other_names for work in self.work]
        try:
            self.report.what_if = outcomes(self.report, self.options, names)
        except Exception as error:  # a defect of ours, of which the rest of the report knows nothing
            self._remember(error_of("schedule", error))

    def _summary(self) -> rep.Summary:
        checked = [work.checked for work in self.work] + [checked_call(call, "compiled") for call in self.calls]
        return summarise(self.report, checked, self.captured)


@contextmanager
def silenced() -> Iterator[None]:
    """The snippet's own functions run again inside: what they print was shown once already."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        yield


def choose_device(options: Options) -> torch.device:
    """The device that a snippet runs on: what was asked for, else the GPU where there is one."""
    if options.device is not None and options.device.startswith("cuda") and not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
