"""FX graphs in the report's terms: one short line of text a node, and what is known of its result."""

from __future__ import annotations

from typing import Any

import torch

from compiler.capture.autograd.repeated_writes import is_in_place
from compiler.fx.fake_values import hint_of, shown_size
from compiler.fx.lines import lines_of_node
from compiler.report import FxNode

_LONGEST_TEXT = 400


def describe_fx(graph: torch.fx.GraphModule) -> list[FxNode]:
    """Every node of a Dynamo or ATen graph, in order; nodes whose result reaches no output are marked dead."""
    alive = _reaching_output(graph)
    return [_describe(node, node not in alive) for node in graph.graph.nodes]


def _reaching_output(graph: torch.fx.GraphModule) -> set[torch.fx.Node]:
    """Nodes that an output, or a node with an effect of its own, depends on. Inputs are never called dead."""
    waiting = [node for node in graph.graph.nodes if _has_effect(node)]
    alive: set[torch.fx.Node] = set()
    while waiting:
        node = waiting.pop()
        if node not in alive:
            alive.add(node)
            waiting.extend(node.all_input_nodes)
    return alive


def _has_effect(node: torch.fx.Node) -> bool:
    """Dynamo's graph may hold in-place calls (`x.mul_(2)`, `x[0] = y`); dropping one would change the program."""
    if node.op in ("placeholder", "output"):
        return True
    return is_in_place(node) or "out" in node.kwargs or node.is_impure()


def _describe(node: torch.fx.Node, dead: bool) -> FxNode:
    value = _value_of(node)
    described = FxNode(
        name=node.name,
        op=node.op,
        target=_target_name(node),
        args=[argument.name for argument in node.all_input_nodes],
        text=_text(node),
        lines=list(lines_of_node(node)),
        module=_module_path(node),
        dead=dead,
    )
    if isinstance(value, torch.Tensor):
        described.shape = [shown_size(size) for size in value.shape]
        described.dtype = str(value.dtype).removeprefix("torch.")
        if value.layout == torch.strided:
            described.stride = [shown_size(stride) for stride in value.stride()]
        count = hint_of(value.numel())
        # A size that only a run tells has no number here.
        described.bytes = count * value.dtype.itemsize if count >= 0 else None
    return described


def _value_of(node: torch.fx.Node) -> Any:
    """The fake tensor that stands for the node's result: AOTAutograd and Dynamo keep it under different keys."""
    return node.meta.get("val", node.meta.get("example_value"))


def _target_name(node: torch.fx.Node) -> str:
    """`aten.mul.Tensor`, `torch.softmax`, `operator.add`, or the name of a method, a module or an input."""
    target = node.target
    if isinstance(target, str):
        return target
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    module = getattr(target, "__module__", None) or ""
    name = getattr(target, "__name__", str(target))
    return f"{module.removeprefix('_')}.{name}" if module else name


def _text(node: torch.fx.Node) -> str:
    if node.op == "placeholder":
        return node.name
    if node.op == "output":
        return f"return {_argument(node.args[0])}"
    if node.op == "get_attr":
        return str(node.target)
    arguments = [_argument(argument) for argument in node.args]
    arguments += [f"{key}={_argument(value)}" for key, value in node.kwargs.items()]
    text = f"{_short_target(node)}({', '.join(arguments)})"
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " ..."


def _short_target(node: torch.fx.Node) -> str:
    """`mul` for `aten.mul.Tensor` and for `operator.mul`: the types in the text already tell overloads apart."""
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.name.split("::")[-1]
    return _target_name(node).rsplit(".", 1)[-1]


def _argument(value: Any) -> str:
    if isinstance(value, torch.fx.Node):
        return value.name
    if isinstance(value, tuple | list):
        inner = ", ".join(_argument(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, slice):
        parts = ["" if part is None else _argument(part) for part in (value.start, value.stop)]
        return ":".join(parts) + ("" if value.step is None else f":{_argument(value.step)}")
    if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
        return str(value).removeprefix("torch.")
    return repr(value)


def _module_path(node: torch.fx.Node) -> str | None:
    """Path of the innermost nn.Module that the node ran in, such as `c_fc`, from Dynamo's source names."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return None
    path = str(list(stack.values())[-1][0])
    for prefix in ("L['self'].", "L['self']", "self."):
        path = path.removeprefix(prefix)
    if path.startswith(("G['", "L['")):
        path = path[3:].replace("']", "", 1)
    return path.replace("._modules['", ".").replace("_modules['", "").replace("']", "") or None
