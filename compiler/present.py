"""From what the stages made to what the report says: plain data only, each figure named for what it is."""

from __future__ import annotations

import torch

from compiler import report as rep
from compiler.capture.autograd.without_effect import without_effect
from compiler.capture.captured import CapturedGraph
from compiler.capture.describe import describe_fx
from compiler.codegen.rendered import RenderedKernel, kernel_lines
from compiler.codegen.triton.levels import describe_levels
from compiler.codegen.wrapper import call_text
from compiler.compile import Built, Generated, Lowered, Planned
from compiler.ir.nodes import ExternNode, LoopGraph, Removed
from compiler.lowering.library import unseen_in
from compiler.lowering.registry import operator_name
from compiler.lowering.user_kernels import user_kernel
from compiler.passes.folding.fold import describe_folding
from compiler.passes.layout.choice import describe_layout
from compiler.passes.padding.choice import describe_padding
from compiler.passes.rewrite.joint import rewrites_of
from compiler.replay.describe import describe_replay
from compiler.runtime.traffic import EagerCall, eager_traffic
from compiler.schedule.cost.flops import flops_of_call, flops_of_group
from compiler.schedule.cost.kernel import group_cost, sequence_us
from compiler.schedule.cost.moved import moved_by_call
from compiler.schedule.describe.decisions import describe_decisions
from compiler.schedule.describe.schedule import describe_buffers, describe_loops, describe_memory, with_parts
from compiler.schedule.describe.traffic import describe_traffic, execution_of
from compiler.schedule.group import Group
from compiler.schedule.memory.peaks import peak_growths
from compiler.schedule.products.loops import Product
from compiler.schedule.scheduler import context_of
from compiler.schedule.units import UnitGraph


def present_captured(graph: CapturedGraph, device: str) -> rep.Graph:
    return rep.Graph(
        name=graph.name,
        function=graph.function,
        phase=graph.phase,
        calls=graph.runner.calls,
        device=device,
        fx=describe_fx(graph.dynamo) if graph.dynamo is not None else [],
        aten=describe_fx(graph.aten),
        guards=graph.guards,
        breaks=graph.breaks,
        recompiles=graph.recompiles,
        symbols=graph.symbols,
        partner=graph.partner,
        saved=graph.saved,
        recomputed=graph.recomputed,
        rewrites=[*graph.rewrites, *rewrites_of(graph.aten.graph)],
    )


def present_eager(captured: list[CapturedGraph], reports: list[rep.Graph]) -> list[rep.Note]:
    """What eager mode launches and moves for each graph; a backward graph's share is counted with its forward. The
    notes tell of what could not be counted."""
    notes = []
    by_name = {report.name: report for report in reports}
    for graph in captured:
        if graph.dynamo is None:
            continue
        backward = by_name.get(f"{graph.name}_backward")
        traffic = eager_traffic(graph.dynamo, graph.phase == "forward", with_backward=backward is not None)
        if isinstance(traffic, str):
            message = f"How many kernels eager mode launches for {graph.name} is not known: {traffic}."
            notes.append(rep.Note(message=message))
            continue
        forward = by_name[graph.name]
        lines = {node.name: node.lines for node in forward.fx}
        _set_eager(forward, traffic[0], lines)
        if backward is not None and traffic[1] is not None:
            _set_eager(backward, traffic[1], lines)
    return notes


def _set_eager(report: rep.Graph, calls: list[EagerCall], lines: dict[str, list[int]]) -> None:
    launches = [
        rep.LaunchTraffic(
            name=call.operator,
            node=call.node,
            lines=lines.get(call.node or "", []),
            bytes=sum(tensor.read + tensor.written for tensor in call.tensors),
            tensors=[
                rep.TensorTraffic(tensor=one.name, read_bytes=one.read, written_bytes=one.written)
                for one in call.tensors
            ],
            unseen=unseen_in(call.operator),
        )
        for call in calls
    ]
    eager = execution_of(launches)
    report.traffic = rep.Traffic(eager=eager)
    report.eager_kernels, report.eager_bytes = len(launches), eager.bytes


def present_lowered(compilation: Lowered, report: rep.Graph) -> None:
    report.loops = _described(compilation.loops)
    report.layouts = [describe_layout(choice) for choice in compilation.layouts]
    report.foldings = [describe_folding(folding) for folding in compilation.foldings]
    report.paddings = [describe_padding(choice) for choice in compilation.paddings]
    report.removed = [*without_effect(report), *map(_present_removed, compilation.loops.removed)]


def _described(graph: LoopGraph, dead: tuple[str, ...] = ()) -> list[rep.LoopNode]:
    loops = describe_loops(graph, dead)
    for node, told in zip(graph.nodes, loops, strict=True):
        if isinstance(node, ExternNode):
            told.call = call_text(node, graph)
    return loops


def note_ranges(graph: CapturedGraph, report: rep.Graph) -> None:
    """What integers the first call gave: a kernel that goes by an index runs on such alone."""
    names = [node.name for node in graph.aten.graph.find_nodes(op="placeholder")]
    given = dict(zip(names, graph.inputs or (), strict=False))
    for buffer in report.buffers:
        value = given.get(buffer.name)
        if isinstance(value, torch.Tensor) and value.dtype in _INDICES and value.numel():
            buffer.smallest, buffer.largest = (int(found) for found in torch.aminmax(value))


_INDICES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def _present_removed(removed: Removed) -> rep.Removed:
    return rep.Removed(kind=removed.kind, node=removed.node, lines=list(removed.lines), because=removed.because)


def present_schedule(compilation: Planned, report: rep.Graph) -> None:
    loops = with_parts(compilation.loops, compilation.schedule.graph)
    report.loops = _described(loops, compilation.schedule.dead)
    context = context_of(UnitGraph(LoopGraph()), compilation.decides_for, compilation.options, compilation.directives)
    growths = peak_growths(compilation.schedule, compilation.memory)
    describe_decisions(compilation.schedule, report, context, growths)
    report.buffers = describe_buffers(compilation.schedule, compilation.memory)
    sizes = {buffer.name: buffer.bytes for buffer in report.buffers}
    for saved in report.saved:
        saved.bytes = saved.bytes or sizes.get(saved.input, 0)
    report.memory = describe_memory(compilation.schedule, compilation.memory)
    report.traffic = describe_traffic(compilation.schedule, report.traffic.eager if report.traffic else None)
    report.floor_bytes = report.traffic.floor_bytes


def present_replay(compilation: Built, report: rep.Graph) -> None:
    """How launches have reached the device so far."""
    report.replay = describe_replay(compilation.schedule, compilation.replayed, compilation.options.replays)


def present_kernels(compilation: Generated) -> list[rep.Kernel]:
    """Every kernel in the order in which they run."""
    return [
        _present_group(unit, compilation) if isinstance(unit, Group) else _present_library_call(unit, compilation)
        for unit in compilation.schedule.units
    ]


def predicted_us(compilation: Generated) -> float | None:
    """What the generated kernels of a graph are expected to take one after another; None where there is none."""
    device, layouts = compilation.decides_for, compilation.schedule.graph.buffers
    costs = [group_cost(group, layouts, device) for group in compilation.groups]
    return round(sequence_us(costs, device) - device.alone_us - device.gap_us, 3) if costs else None


def _present_group(group: Group, compilation: Generated) -> rep.Kernel:
    nodes, layouts = compilation.nodes, compilation.schedule.graph.buffers
    rendered = compilation.primary[group.name]
    device, model = compilation.decides_for, compilation.model
    cost = group_cost(group, layouts, device)
    dtypes = compilation.schedule.graph.dtypes
    first = compilation.first_of_code[group.name]
    names, left_out = [member.name for member in group.members], group.produced.difference(group.computed)
    computed = [nodes[name] for name in group.computed if name in nodes]
    return rep.Kernel(
        name=group.name,
        kind=rendered.language,
        nodes=names,
        left_out=[name for name in names if name in left_out],
        computes_again=[node.name for node in computed if node.name not in group.produced],
        origins=list(dict.fromkeys(origin for node in computed for origin in node.origins)),
        source=rendered.source,
        language="python" if rendered.language == "triton" else "cpp",
        lines=kernel_lines(rendered, nodes),
        user_lines=sorted({line for node in computed for line in node.lines}),
        reads=[name for name in rendered.parameters if name not in group.stored],
        writes=[name for name in rendered.parameters if name in group.stored],
        bytes=cost.bytes,
        flops=flops_of_group(group),
        grid=_grid(rendered),
        config={key: value for key, value in rendered.config.items() if key != "grid"},
        sizes={atom.name: atom.hint for atom in rendered.sizes},
        updates=list(rendered.updates),
        steps=_steps(group, rendered) if isinstance(group, Product) else [],
        descriptors=[
            rep.TileDescriptor(buffer=one.parameter, shape=one.shape, strides=one.strides, tile=one.tile)
            for one in rendered.descriptors
        ],
        predicted_us=round(cost.microseconds - device.alone_us - device.gap_us, 3),
        same_as=first if first != group.name else None,
        levels=describe_levels(group, dtypes, layouts, model) if model.kind == "cuda" else None,
    )


def _grid(rendered: RenderedKernel) -> list[int] | None:
    grid = rendered.config.get("grid")
    return list(grid) if isinstance(grid, tuple) else None


def _steps(product: Product, kernel: RenderedKernel) -> list[rep.KernelStep]:
    """What a product's launch does on a CPU: see `compiler/runtime/cpp/product_steps.py`."""
    if kernel.language != "cpp":
        return []
    functions = [rep.KernelStep(function=step.name, buffers=list(step.parameters)) for step in kernel.steps]
    before = len(product.before)
    calls = [rep.KernelStep(call=call.name) for call in product.calls]
    return [*functions[:before], *calls, *functions[before:]]


def _present_library_call(node: ExternNode, compilation: Generated) -> rep.Kernel:
    reads = list(dict.fromkeys(argument.buffer for argument in node.tensor_arguments))
    name = operator_name(node.target)
    call = f"{name}({', '.join(reads)})"
    source = f"{', '.join(node.write_buffers)} = {call}" if node.write_buffers else call
    kernel = rep.Kernel(
        name=name,
        kind="extern",
        nodes=list(node.covers or (node.name,)),
        origins=list(node.origins),
        source=source if not node.reason else f"# {node.reason}\n{source}",
        user_lines=list(node.lines),
        reads=reads,
        writes=list(node.write_buffers),
        bytes=moved_by_call(node, compilation.schedule.graph.buffers).bytes,
        flops=flops_of_call(node),
    )
    add_user_kernel(kernel, node)
    return kernel


def add_user_kernel(kernel: rep.Kernel, node: ExternNode) -> None:
    """The text and the launch of a call that launches a Triton kernel of the snippet's own."""
    users = user_kernel(node)
    if users is None:
        return
    kernel.source, kernel.grid = users.source, users.grid
    kernel.lines = [rep.KernelLine(line=line, nodes=[node.name], user_lines=[own]) for line, own in users.lines.items()]
    kernel.own = rep.UserKernel(
        function=users.name,
        arguments=[rep.UserArgument(type=kind, is_divisible=even) for kind, even in users.arguments],
        constants=users.constants,
        launch=users.launch,
        problem=users.problem,
    )
