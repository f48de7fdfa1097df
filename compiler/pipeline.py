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
What they do to one graph is `compile.py`: Target -> Lowered -> Planned -> Generated -> Built, without reports, as
`torch.compile(f, backend="fusionscope")` has it.
To read on, one file of each folder:

    stages/compiling.py     what the first four stages do to each graph, and stages/exploration.py how a stage is run
    capture/capture.py      the entry to capture; passes/order.py lists what is changed of a graph before loops
    lowering/lower.py       the walk over ATen nodes, ir/ what they become
    schedule/scheduler.py   the search, schedule/rules/ what it asks, decisions.py all that it may answer
    schedule/program/       a fused group as phases over one tile, which codegen/triton/ and codegen/cpp/ print
    runtime/executable.py   the wrapper and its kernels as a function; replay/ makes one CUDA graph of its launches
"""

from __future__ import annotations

from functools import partial

from compiler import report as rep
from compiler.capture.program.called import Called
from compiler.compile import Generated, Target
from compiler.lease import Lease, TimingTurns
from compiler.options import Options
from compiler.snippet_changes import SnippetChanges
from compiler.stages.comparing import compare
from compiler.stages.compiling import capture, codegen, lower, schedule
from compiler.stages.exploration import Exploration, OnStage
from compiler.stages.graphs import Graphs, Timed, plans_of
from compiler.stages.measuring import measure, profile
from compiler.stages.running import emulate, run
from compiler.sweep.running import Explored, sweep_sizes


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
    if not isinstance(source, str):
        raise TypeError("explore() takes the text of a program; fusionscope.explain(function)(x) explores a call")
    if not isinstance(options, Options | None):
        raise TypeError(f"the options are an Options, as in Options(device='cpu'), not a {type(options).__name__}")
    told = on_stage or (lambda _: None)
    if options is not None and options.machine_code is not None:
        from compiler.machine_code.levels import explore_kernel

        return explore_kernel(source, options, options.machine_code, told)
    turns, changes = TimingTurns(lease), changes or SnippetChanges()
    exploration = Exploration(source, options or Options(), told, turns=turns, changes=changes, called=called)
    graphs = compile_graphs(exploration)
    built = exploration.stage("run", run, graphs, otherwise=graphs.none)
    built = exploration.stage("measure", measure, built, otherwise=built)
    timed = exploration.stage("profile", profile, built, otherwise=Timed(built))
    exploration.stage("compare", compare, timed, otherwise=None)
    exploration.stage("emulate", emulate, built, otherwise=None)
    if exploration.options.sweep is not None:
        exploration.stage("sweep", sweep, otherwise=None)
    report = exploration.finish()
    exploration.changes.give_back()
    return report


def compile_graphs(exploration: Exploration) -> Graphs[Generated]:
    """From the snippet to the text of its kernels."""
    nothing: Graphs[Target] = Graphs(exploration.capture)
    captured = exploration.stage("capture", capture, otherwise=nothing)
    lowered = exploration.stage("lower", lower, captured, otherwise=captured.none)
    planned = exploration.stage("schedule", schedule, lowered, otherwise=lowered.none)
    return exploration.stage("codegen", codegen, planned, otherwise=planned.none)


def explore_size(
    source: str, options: Options, with_times: bool, *, turns: TimingTurns, changes: SnippetChanges
) -> Explored:
    """The snippet at one size of a sweep, up to its kernels; with times, run and measured too."""
    exploration = Exploration(source, options, lambda _: None, is_brief=True, turns=turns, changes=changes)
    graphs = compile_graphs(exploration)
    if with_times:
        built = exploration.stage("run", run, graphs, otherwise=graphs.none)
        built = exploration.stage("measure", measure, built, otherwise=built)
        exploration.stage("profile", profile, built, otherwise=Timed(built))
    return Explored(exploration.report, plans_of(graphs), exploration.forget)


def sweep(exploration: Exploration) -> None:
    """Each size leaves a stage of its own, so that what is known of it is published at once, beside the summary of the
    snippet as it is written."""
    report, turns = exploration.report, exploration.turns
    exploration.summarise()

    def publish(so_far: rep.SweepResult, step: str, seconds: float) -> None:
        report.sweep = so_far
        report.stages.append(rep.Stage(name=step, ms=round(1e3 * seconds, 3), status="done"))
        exploration.on_stage(report)

    try:
        explored = partial(explore_size, turns=turns, changes=exploration.changes)
        began = exploration.began
        report.sweep = sweep_sizes(exploration.source, exploration.options, explored, publish, began, turns.clock)
        exploration.remark(report.sweep.message)
    except SyntaxError:
        exploration.remark("the snippet is no Python program, so no size was found in it")
