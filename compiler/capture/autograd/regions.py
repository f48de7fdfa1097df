"""Regions that a user marks to be compiled once (`torch.compiler.nested_compile_region`) become part of their graph.

    y = invoke_subgraph(region_0, "region_0", x);  z = y[0] + 1      ->      sin = aten.sin(x);  z = sin + 1

AOTAutograd leaves a call of a graph of its own for each. What is in it fuses with what stands around it, so it is
written out; each call is compiled for itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

REGION = torch.ops.higher_order.invoke_subgraph


def write_out_regions(part: torch.fx.GraphModule) -> None:
    """Replace each region in a functional ATen graph by its nodes, those of regions inside it too."""
    found = False
    while (call := next((node for node in part.graph.nodes if _is_region_that_fits(part, node)), None)) is not None:
        _write_out(part, call)
        found = True
    if found:
        part.graph.eliminate_dead_code(_is_needed)
        part.recompile()


def _is_needed(node: torch.fx.Node) -> bool:
    """Nothing is taken out but what the regions left over: their graphs, and their results as tuples."""
    return node.op != "get_attr" and node.target is not operator.getitem


def _is_region_that_fits(part: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    """Whether the call's arguments are of the very sizes that the region was traced with: one graph may serve calls
    whose symbols have other names."""
    if node.target is not REGION:
        return False
    inputs = _graph_of(part, node).graph.find_nodes(op="placeholder")
    return [_looks(read) for read in inputs] == [_looks(given) for given in node.args[2:]]


def _looks(value: Any) -> str:
    value = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
    if not isinstance(value, torch.Tensor):
        return str(value)
    return f"{tuple(value.shape)} {value.stride()} {value.dtype} {value.device}"


def _graph_of(part: torch.fx.GraphModule, call: torch.fx.Node) -> torch.fx.GraphModule:
    region = call.args[0]
    assert isinstance(region, torch.fx.Node)
    graph = part.get_submodule(str(region.target))
    assert isinstance(graph, torch.fx.GraphModule)
    return graph


def _write_out(part: torch.fx.GraphModule, call: torch.fx.Node) -> None:
    region = _graph_of(part, call)
    made: dict[torch.fx.Node, Any] = {}
    inputs = region.graph.find_nodes(op="placeholder")
    made.update(zip(inputs, call.args[2:], strict=True))
    with part.graph.inserting_before(call):
        for node in region.graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            made[node] = copy = part.graph.node_copy(node, made.__getitem__)
            if node.op == "get_attr":
                copy.target = _held_by(part, f"{call.name}_{node.target}", _attribute(region, str(node.target)))
            if not copy.meta.get("stack_trace"):
                copy.meta["stack_trace"] = call.meta.get("stack_trace")
    _hand_on(call, _outputs(region), made.__getitem__)


def _outputs(region: torch.fx.GraphModule) -> tuple[Any, ...]:
    results: Any = region.graph.output_node().args[0]
    return tuple(results) if isinstance(results, list | tuple) else (results,)


def _hand_on(call: torch.fx.Node, results: tuple[Any, ...], made: Callable[[torch.fx.Node], Any]) -> None:
    """What takes a result out of the call's tuple gets that result."""
    values = [made(result) if isinstance(result, torch.fx.Node) else result for result in results]
    for user in list(call.users):
        place: Any = user.args[1]
        value = values[place]
        if isinstance(value, torch.fx.Node):
            user.replace_all_uses_with(value)
        else:
            for reader in list(user.users):
                _put(reader, user, value)
        call.graph.erase_node(user)
    call.graph.erase_node(call)


def _put(reader: torch.fx.Node, of: torch.fx.Node, value: Any) -> None:
    """A result that is no tensor (None, for an input without a gradient) in the place of the node that took it."""

    def put(argument: torch.fx.Node) -> Any:
        return value if argument is of else argument

    reader.args = torch.fx.map_arg(reader.args, put)
    reader.kwargs = torch.fx.map_arg(reader.kwargs, put)


def _attribute(region: torch.fx.GraphModule, path: str) -> Any:
    value: Any = region
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _held_by(part: torch.fx.GraphModule, wanted: str, value: Any) -> str:
    name, number = wanted.replace(".", "_"), 0
    while hasattr(part, name):
        number += 1
        name = f"{wanted}_{number}".replace(".", "_")
    setattr(part, name, value)
    return name
