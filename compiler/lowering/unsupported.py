"""What a graph may ask for that is not compiled, with the user's line and what to do about it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
import torch.fx

from compiler.fx.notes import lines_noted
from compiler.ir.size import Symbol
from compiler.lowering.eager import UnknownSize, describe
from compiler.lowering.late_sizes import NUMBER
from compiler.lowering.registry import operator_name


class LoweringError(Exception):
    """The graph holds something that is no functional ATen graph of tensors."""


class UnsupportedGraph(LoweringError):
    """The graph asks for what is not compiled. `message` says what, for the user, `line` where, `hint` what to do."""

    def __init__(self, message: str, line: int | None, hint: str) -> None:
        super().__init__(f"{message}. {hint}")
        self.message, self.line, self.hint = message, line, hint


class OpenSizesUnsupported(UnsupportedGraph):
    """No kernel can be made for every value of a size, as it could be for each of them."""


_BREAK_INSTEAD = (
    "Leave torch._dynamo.config.capture_dynamic_output_shape_ops and capture_scalar_outputs off: the graph then breaks "
    "there, and the code before and after is compiled. Or take an operator of a fixed size, such as torch.where or "
    "torch.nonzero_static."
)

FIXED_INSTEAD = (
    "Compile for fixed sizes (torch.compile(dynamic=False), torch._dynamo.mark_static), or leave "
    "torch._dynamo.config.capture_scalar_outputs off where the size comes from `.item()`."
)


#: Of operators that take functions, such as `torch.cond`.
_ONE_SHAPE_INSTEAD = (
    "Have its functions give tensors of one shape, whichever runs and however often, and no Python numbers: "
    "torch.where, or a mask over a tensor of the largest size. Or keep the call in eager mode by "
    "torch.compiler.disable."
)

CALL_OUTSIDE = "Call it before or after the compiled function, or wrap it with torch.library.custom_op."


def unsupported_at(
    node: torch.fx.Node, message: str, hint: str, kind: type[UnsupportedGraph] = UnsupportedGraph
) -> UnsupportedGraph:
    """The refusal of a graph for one of its nodes, whose line it names."""
    lines = lines_noted(node)
    return kind(message, lines[-1] if lines else None, hint)


def described(node: torch.fx.Node) -> Any:
    """What eager mode's value of a node looks like. Raises UnsupportedGraph where only a run could tell its size, or
    the number that it is, unless that is a whole one, which is told as a size is."""
    val = node.meta.get("val")
    if node.target is NUMBER and isinstance(val, torch.SymFloat | torch.SymBool) and node.users:
        kind = "float" if isinstance(val, torch.SymFloat) else "truth value"
        message = f"{operator_name(node.target)} gives a {kind} that is known only when it has run"
        raise unsupported_at(node, f"{message}, for which no kernel can be made", _BREAK_INSTEAD)
    try:
        value = describe(val)
        if _is_guessed(node, value):
            raise UnknownSize("PyTorch puts down one element, whatever the values")
        return value
    except UnknownSize as size:
        name = operator_name(node.target)
        message = f"{name} gives a size that is known only when it has run ({size}), for which no kernel can be made"
        raise unsupported_at(node, message, _BREAK_INSTEAD) from None
    except NotImplementedError as size:
        raise unsupported_at(node, str(size), FIXED_INSTEAD, OpenSizesUnsupported) from None


def refuse_unknown_sizes(node: torch.fx.Node, unknown: Collection[Symbol]) -> None:
    """Raises UnsupportedGraph where a node has a size that nothing before it and no result of its own tells."""
    if unknown:
        name, size = operator_name(node.target), min(symbol.name for symbol in unknown)
        message = f"{name} gives a size that is known only when it has run ({size}), for which no kernel can be made"
        takes_functions = isinstance(node.target, torch._ops.HigherOrderOperator)
        raise unsupported_at(node, message, _ONE_SHAPE_INSTEAD if takes_functions else _BREAK_INSTEAD)


def _is_guessed(node: torch.fx.Node, value: Any) -> bool:
    """Whether the size in a graph is not the size of a run: before 2.13, torch's fake `_unique` (of the gradient of
    `index_fill`) has one element."""
    if node.target is not torch.ops.aten._unique.default:
        return False
    values = node.args[0].meta["val"] if isinstance(node.args[0], torch.fx.Node) else None
    return values is not None and value[0].shape == (1,) and values.numel() != 1
