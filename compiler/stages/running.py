"""Whether the kernels are right: those that run here, and the Triton twins of those of a CPU."""

from __future__ import annotations

from dataclasses import replace

from torch.utils.checkpoint import CheckpointError

from compiler.budget import Budget, OutOfTime
from compiler.capture.diagnosis.errors import in_short
from compiler.capture.program.output import silenced
from compiler.capture.slow_products import products_in_float32
from compiler.compile import Built, Generated, build
from compiler.present import present_replay
from compiler.runtime.checking.gradients import CheckedCall, check_training
from compiler.runtime.checking.wrong_results import checked_call, gradient_checks
from compiler.runtime.trial import note_resources, verify_graph
from compiler.stages.exploration import Exploration
from compiler.stages.graphs import Graphs, Work
from compiler.stages.offline import check_by_emulation
from compiler.stages.shares import GRADIENTS_UNCHECKED, shared_out

_CHECKPOINTED = (
    "PyTorch runs a checkpointed block again for its gradients, and finds other dtypes in it once values are float64"
)


def run(exploration: Exploration, graphs: Graphs[Generated]) -> Graphs[Built]:
    """The kernels are compiled and run; eager's and their error against float64."""
    done: list[Work[Built]] = []
    for position, work in enumerate(graphs.work):
        with exploration.each("run", work.captured):
            share = exploration.share("checks").share(1 / (len(graphs.work) - position))
            done.append(_run_graph(exploration, work, share))
    built, report = graphs.after(done), exploration.report
    report.compile_phases = built.compile_phases()
    for call in _trained_calls(exploration, built):
        checked = checked_call(call, "compiled")
        exploration.checked.append(checked)
        report.gradients += gradient_checks(call)
        report.wrong_results += checked.wrong
    built.withhold_times(report)
    return built


def _run_graph(exploration: Exploration, work: Work[Generated], budget: Budget) -> Work[Built]:
    ahead = exploration.ahead.get(work.report.name)
    seconds = 0.0 if ahead is None else ahead.result()
    built = build(work.compilation, work.captured.phase)
    built = replace(built, seconds={**built.seconds, "build": built.seconds["build"] + seconds})
    work.report.wrapper = built.executable.wrapper
    present_replay(built, work.report)
    work.captured.runner.implementation = built.implementation
    report = exploration.report
    checked = verify_graph(work.captured, built.executable, report.notes, budget)
    exploration.checked.append(checked)
    report.wrong_results += checked.wrong
    work.report.errors = checked.errors
    note_resources(built.executable, work.report, built.model.target)
    return work.after(built)


def _trained_calls(exploration: Exploration, graphs: Graphs[Built]) -> list[CheckedCall]:
    """The user's own functions with their gradients, once all their graphs run our kernels."""
    if not graphs.are_whole or not graphs.has_backward:
        return []
    budget = exploration.share("checks")
    try:
        if not budget.fits(2 * graphs.call_seconds):
            raise OutOfTime
        # Whether launches are replayed is decided by times of these calls.
        with exploration.turn_on_gpu(), silenced(), budget.stopping():
            return check_training(graphs.capture, exploration.changes, exploration.note)
    except OutOfTime:
        exploration.note(GRADIENTS_UNCHECKED)
    except CheckpointError:
        exploration.note(f"Gradients were not checked from end to end: {_CHECKPOINTED}.")
    except Exception as error:
        what = str(error) if isinstance(error, NotImplementedError) else in_short(error)
        exploration.note(f"Gradients were not checked from end to end: {what.rstrip('.')}.")
    return []


def emulate(exploration: Exploration, graphs: Graphs[Built]) -> None:
    """The Triton kernels of what runs on a CPU. No figure of the verdict depends on them, so they come after it."""
    emulated = [work for work in graphs.work if work.captured.inputs is not None]
    for work, share in shared_out(exploration.share("emulation"), emulated):
        with exploration.each("emulate", work.captured):
            assert work.captured.inputs is not None
            with products_in_float32(work.captured.runner.has_slow_products):
                check_by_emulation(work.compilation, work.report, work.captured.inputs, share)
