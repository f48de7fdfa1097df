"""From the snippet to kernels: capture, lower, schedule and codegen, each graph on its own."""

from __future__ import annotations

import torch

from compiler import compile_phases
from compiler import report as rep
from compiler.capture.capture import capture as run_snippet
from compiler.capture.captured import CapturedGraph
from compiler.compile import Generated, Lowered, Planned, Target, build_ahead, generate, plan
from compiler.compile import lower as lower_graph
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
from compiler.refusals import refusals_of
from compiler.runtime.first_sizes import note_first_sizes
from compiler.schedule.describe.schedule import sums_in_any_order
from compiler.stages.exploration import Exploration
from compiler.stages.graphs import Graphs, Work
from compiler.stages.offline import attach_triton
from compiler.stages.shares import slow_products
from compiler.sweep.sizes import offered
from compiler.what_if import other_names


def capture(exploration: Exploration) -> Graphs[Target]:
    """Run the snippet; TorchDynamo and AOTAutograd give functional ATen graphs."""
    source, options, called = exploration.source, exploration.options, exploration.called
    report = exploration.report
    budget = exploration.share("capture")
    captured = run_snippet(source, options, exploration.device, budget, exploration.changes, called)
    dynamo_seconds = compile_phases.counted()
    is_on_gpu = any(device_of(graph.aten).type == "cuda" for graph in captured.graphs)
    if exploration.device.type == "cuda" and captured.graphs and not is_on_gpu:
        captured.device = torch.device("cpu")
        exploration.take_device(captured.device)
    report.sizes = [
        rep.NamedSize(name=size.name, value=size.value, lines=list(size.lines))
        for size in (offered(source, options) if called is None else ())
    ]
    report.notes += captured.notes
    report.output = captured.output
    report.error = captured.error
    exploration.capture = captured
    compiled = [(graph, _target_of(graph, exploration)) for graph in captured.graphs]
    work = [Work(graph, one, present_captured(graph, one.runs_on.type)) for graph, one in compiled]
    report.graphs = [one.report for one in work]
    report.breaks = captured.breaks
    report.compilations = captured.compilations
    report.notes += present_eager(captured.graphs, report.graphs)
    for graph in captured.graphs:
        if graph.runner.has_slow_products:
            exploration.note(slow_products(graph.name, graph.runner.product_seconds or 0.0))
    return Graphs(captured, tuple(work), dynamo_seconds)


def _target_of(graph: CapturedGraph, exploration: Exploration) -> Target:
    """On the exploration's device; or on the CPU, for a graph of CPU tensors alone beside a GPU."""
    device = exploration.device
    runs_on = device_of(graph.aten) if device.type == "cuda" else device
    model = exploration.model if runs_on.type == device.type else device_for(runs_on)
    return Target(runs_on, model, exploration.options)


def lower(exploration: Exploration, graphs: Graphs[Target]) -> Graphs[Lowered]:
    """Each graph becomes loops over index expressions, and library calls."""
    done: list[Work[Lowered]] = []
    for work in graphs.work:
        with exploration.each("lower", work.captured):
            note_first_sizes(work.captured)
            lowered = lower_graph(work.captured.aten, work.compilation, writes_inputs=True)
            work.captured.lay_inputs_out()
            present_lowered(lowered, work.report)
            _note_unordered_sums(exploration, lowered)
            done.append(work.after(lowered))
    return graphs.after(done)


def _note_unordered_sums(exploration: Exploration, lowered: Lowered) -> None:
    names = sums_in_any_order(lowered.loops)
    if names and lowered.runs_on.type == "cuda":
        verb = "adds" if len(names) == 1 else "add"
        exploration.note(f"{', '.join(names)} {verb} by atomic operations: the last digits may differ from run to run.")


def schedule(exploration: Exploration, graphs: Graphs[Lowered]) -> Graphs[Planned]:
    """Loops become kernels: what fuses with what, in which order, in which memory."""
    # What is fused may be decided by times on the device.
    tunes = exploration.options.mode == "max-autotune"
    done: list[Work[Planned]] = []
    for work in graphs.work:
        with exploration.each("schedule", work.captured), exploration.turn_on_gpu(tunes), garbage_kept():
            names = exploration.other_names[work.report.name] = other_names(work.compilation, work.report)
            planned = plan(work.compilation, names)
            present_schedule(planned, work.report)
            note_ranges(work.captured, work.report)
            done.append(work.after(planned))
    return graphs.after(done)


def codegen(exploration: Exploration, graphs: Graphs[Planned]) -> Graphs[Generated]:
    """Kernels become Triton and C++ text."""
    done: list[Work[Generated]] = []
    for work in graphs.work:
        with exploration.each("codegen", work.captured):
            generated = generate(work.compilation, wants_triton=True)
            work.report.kernels = present_kernels(generated)
            work.report.refusals = refusals_of(work.report)
            work.report.predicted_us = predicted_us(generated)
            if exploration.device.type != "cuda" and not exploration.is_brief:
                if exploration.wants("run"):
                    last = next(reversed(exploration.ahead.values()), None)
                    exploration.ahead[work.report.name] = build_ahead(generated, last)
                share = exploration.share("assembly").share(1 / len(graphs.work))
                attach_triton(generated, work.report, exploration.options.target, share)
            done.append(work.after(generated))
    exploration.tell_what_if()
    return graphs.after(done)
