"""Snippets from tests/snippets, captured once each on the CPU."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch

from compiler.capture import Capture, CapturedGraph, capture
from compiler.options import Options

SNIPPETS = Path(__file__).parent.parent / "snippets"
CPU = torch.device("cpu")
#: What is said of a node by addresses, and its value, of which `told` tells.
NOT_TOLD = ("val", "from_node", "nn_module_stack", "fwd_nn_module_stack")


def told(value: Any) -> Any:
    """What is known of a node's value: of tensors all but the address."""
    if isinstance(value, torch.Tensor):
        sizes = tuple(value.shape), value.stride(), value.storage_offset()
        return *map(str, sizes), value.dtype, str(value.device), value.requires_grad
    return tuple(map(told, value)) if isinstance(value, tuple | list) else value


def source_of(prefix: str) -> str:
    (path,) = SNIPPETS.glob(f"{prefix}_*.py")
    return path.read_text()


@functools.cache
def captured(prefix: str) -> Capture:
    return capture(source_of(prefix), Options(), CPU)


def captured_source(source: str, **options: object) -> Capture:
    return capture(source, Options.model_validate(options), CPU)


def targets(graph: CapturedGraph) -> list[str]:
    return [str(node.target) for node in graph.aten.graph.nodes if node.op == "call_function"]


def lines(graph: CapturedGraph) -> list[int]:
    """The innermost line of each operator, in order and each once."""
    innermost = [node.meta["lines"][-1] for node in graph.aten.graph.nodes if node.op == "call_function"]
    return list(dict.fromkeys(innermost))
