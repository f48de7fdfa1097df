"""From the snippet to kernels: capture, lower, schedule and codegen, each graph on its own."""

from __future__ import annotations

from compiler import compile_phases
from compiler import report as rep
from compiler.capture.capture import capture as run_snippet
from compiler.capture.captured import CapturedGraph
from compiler.compile import GraphCompilation
from compiler.devices import device_for
from compiler.fx.fake_values import device_of
from compiler.garbage import garbage_kept
from compiler.present import (
    note_ranges,
    predicted_us,
    present_captured,
    present_eager,
    present_kernels,
    present_lowered,
    present_schedule,
)
from compiler.runtime.first_sizes import note_first_sizes
from compiler.schedule.describe.schedule import sums_in_any_order
from compiler.stages.exploration import Exploration
from compiler.stages.graphs import Graphs, Work
from compiler.stages.offline import attach_triton
from compiler.stages.shares import slow_products
from compiler.sweep.sizes import offered
from compiler.what_if import other_names


def capture(exploration: Exploration) -> None:
    """Run the snippet; TorchDynamo and AOTAutograd give functional ATen graphs."""
    source, options, called = exploration.source, exploration.options, exploration.called
    report = exploration.report
    budget = exploration.shares.capture
    captured = run_snippet(source, options, exploration.device, budget, exploration.changes, called)
    dynamo_seconds = compile_phases.counted()
    report.sizes = [
        rep.NamedSize(name=size.name, value=size.value, lines=list(size.lines))
        for size in (offered(source, options) if called is None else ())
    ]
    report.notes += captured.notes
    report.output = captured.output
    report.error = captured.error
    compiled = [(graph, _compilation_of(graph, exploration)) for graph in captured.graphs]
    work = [Work(graph, one, present_captured(graph, one.runs_on.type)) for graph, one in compiled]
    exploration.graphs = Graphs(captured, tuple(work), dynamo_seconds)
    report.graphs = [one.report for one in work]
    report.breaks = captured.breaks
    report.compilations = captured.compilations
    present_eager(captured.graphs, report.graphs)
    for graph in captured.graphs:
        if graph.runner.has_slow_products:
            exploration.note(slow_products(graph.name, graph.runner.product_seconds or 0.0))


def _compilation_of(graph: CapturedGraph, exploration: Exploration) -> GraphCompilation:
    """On the exploration's device; or on the CPU, for a graph of CPU tensors alone beside a GPU."""
    device = exploration.device
    runs_on = device_of(graph.aten) if device.type == "cuda" else device
    model = exploration.model if runs_on.type == device.type else device_for(runs_on)
    return GraphCompilation(runs_on, model, exploration.options)


def lower(exploration: Exploration, graphs: Graphs) -> Graphs:
    """Each graph becomes loops over index expressions, and library calls."""
    for work in graphs.alive:
        with exploration.each(work, "lower"):
            note_first_sizes(work.captured)
            with work.compilation.timed("lower"):
                work.compilation.lower(work.captured.aten)
            work.captured.lay_inputs_out()
            present_lowered(work.compilation, work.report)
            _note_unordered_sums(exploration, work)
    return graphs


def _note_unordered_sums(exploration: Exploration, work: Work) -> None:
    assert work.compilation.loops is not None
    names = sums_in_any_order(work.compilation.loops)
    if names and work.compilation.runs_on.type == "cuda":
        exploration.note(f"{', '.join(names)} adds by atomic operations: the last digits may differ from run to run.")


def schedule(exploration: Exploration, graphs: Graphs) -> Graphs:
    """Loops become kernels: what fuses with what, in which order, in which memory."""
    # What is fused may be decided by times on the device.
    tunes = exploration.options.mode == "max-autotune"
    for work in graphs.alive:
        with exploration.each(work, "schedule"), exploration.turn_on_gpu(tunes), garbage_kept():
            work.compilation.other_names = other_names(work.compilation, work.report)
            with work.compilation.timed("plan"):
                work.compilation.plan()
            present_schedule(work.compilation, work.report)
            note_ranges(work.captured, work.report)
    return graphs


def codegen(exploration: Exploration, graphs: Graphs) -> Graphs:
    """Kernels become Triton and C++ text."""
    for work in graphs.alive:
        with exploration.each(work, "codegen"):
            with work.compilation.timed("generate"):
                work.compilation.generate(wants_triton=True)
            work.report.kernels = present_kernels(work.compilation)
            work.report.predicted_us = predicted_us(work.compilation)
            if exploration.device.type != "cuda" and not exploration.is_brief:
                share = exploration.shares.assembly.share(1 / len(graphs.alive))
                attach_triton(work.compilation, work.report, exploration.options.target, share)
    exploration.tell_what_if()
    return graphs
