"""AOTAutograd as both the recording backend and the `fusionscope` backend use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from compiler.capture.captured import Implementation, Phase
from compiler.capture.draws import restore_values
from compiler.capture.lines import lines_of_text
from compiler.capture.naming import input_names, name_inputs
from compiler.capture.torch_internals import generators_as_tensors, outside_fake_mode

#: Makes something that runs a graph. AOTAutograd calls it with one list if it has `_boxed_call`.
GraphCompiler = Callable[[torch.fx.GraphModule, Phase], Implementation]


def compile_through_aot(
    graph: torch.fx.GraphModule, example_inputs: Sequence[Any], compile_graph: GraphCompiler
) -> Callable[..., Any]:
    """Functionalise, decompose and split Dynamo's graph, and have `compile_graph` compile each part.

    `compile_graph` is called once for "inference", or for "forward" and, when the first gradient is asked for, for
    "backward". Every graph that it gets has static sizes and its nodes' lines in `meta["lines"]`.
    """
    # Imported here: lowering reads captured graphs, so capture must not need lowering to be imported.
    from compiler.lowering.decompositions import decompositions

    specialise_sizes(example_inputs)
    names = input_names(graph)

    def compile_phase(part: torch.fx.GraphModule, _inputs: Sequence[Any], phase: Phase) -> Implementation:
        name_inputs(part, names)
        restore_values(part)
        make_static(part)
        attach_lines(part)
        with outside_fake_mode():
            return compile_graph(part, phase)

    backend = aot_autograd(
        fw_compiler=partial(compile_phase, phase="forward"),
        bw_compiler=partial(compile_phase, phase="backward"),
        inference_compiler=partial(compile_phase, phase="inference"),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    with generators_as_tensors():
        return backend(graph, example_inputs)


def specialise_sizes(example_inputs: Sequence[Any]) -> None:
    """Turn every symbolic size into its value, by int(), which leaves the guard that another size compiles anew."""
    for value in example_inputs:
        if isinstance(value, torch.SymInt):
            int(value)
        elif isinstance(value, torch.Tensor) and value.layout == torch.strided:
            for size in (*value.shape, *value.stride(), value.storage_offset()):
                int(size)


def make_static(graph: torch.fx.GraphModule) -> None:
    """Replace symbolic sizes in `meta["val"]`, and nodes that only compute a size, by ints."""
    for node in graph.graph.nodes:
        if "val" in node.meta:
            node.meta["val"] = torch.utils._pytree.tree_map(_static, node.meta["val"])
    removed = False
    for node in reversed(list(graph.graph.nodes)):
        if node.op == "call_function" and type(node.meta.get("val")) is int:
            node.replace_all_uses_with(node.meta["val"])
            graph.graph.erase_node(node)
            removed = True
    for node in graph.graph.nodes:
        removed |= _inline_size_inputs(node)
    if removed:
        graph.recompile()


def _inline_size_inputs(node: torch.fx.Node) -> bool:
    """A plain int among the inputs stays an input, but what used it now uses the value that it is guarded to have."""
    sizes = {
        argument: argument.meta["val"]
        for argument in node.all_input_nodes
        if argument.op == "placeholder" and type(argument.meta.get("val")) is int
    }
    if not sizes or node.op == "output":
        return False

    def inline(argument: torch.fx.Node) -> Any:
        return sizes.get(argument, argument)

    node.args = torch.fx.map_arg(node.args, inline)
    node.kwargs = torch.fx.map_arg(node.kwargs, inline)
    return True


def _static(value: Any) -> Any:
    if isinstance(value, torch.SymInt):
        return int(value)
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return value
    numbers = (*value.shape, *value.stride(), value.storage_offset())
    if all(type(number) is int for number in numbers):
        return value
    sizes, strides = [int(size) for size in value.shape], [int(stride) for stride in value.stride()]
    with value.fake_mode:  # type: ignore[attr-defined]
        return torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)


def attach_lines(graph: torch.fx.GraphModule) -> None:
    """Give every node its lines; one that torch left without a stack has those of what it reads."""
    for node in graph.graph.nodes:
        lines = lines_of_text(node.meta.get("stack_trace"))
        if not lines and node.op == "call_function":
            lines = next((read.meta["lines"] for read in node.all_input_nodes if read.meta.get("lines")), ())
        node.meta["lines"] = lines
