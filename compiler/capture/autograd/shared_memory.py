"""Inputs that share memory, one of which is written to.

    def step(x, y):
        x.add_(1)
        return y * 2        y may be a view of x: eager's result has the 1 in it, where they overlap

AOTAutograd turns writes into values, which is right where no other input has the memory that is written. It looks at
that once, when it compiles, and Dynamo's guards see later whether two inputs are one tensor, not whether they overlap.
So each call of a graph that writes to an input looks where its inputs lie. A call in which a written one overlaps
another is left to Dynamo's graph, which does what eager does, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import torch

from compiler.capture.autograd.overlaps import may_overlap
from compiler.capture.captured import extent_of
from compiler.capture.torch_internals import is_made_of_tensors

Graph = Callable[..., Any]
_address = torch.Tensor.data_ptr


class OverlappingWrite(Exception):
    """An input is written to that overlaps another one in the call under compilation."""

    def __init__(self) -> None:
        super().__init__("Inputs share memory, and one of them is written to, so the graph is left to eager mode.")


def refuse_merged_inputs(part: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> None:
    """Raise `OverlappingWrite` where AOTAutograd has put one input in the place of several of one storage."""
    storages = [x.untyped_storage()._cdata for x in example_inputs if isinstance(x, torch.Tensor) and _has_address(x)]
    if len(set(storages)) < len(storages) and len(part.graph.find_nodes(op="placeholder")) < len(example_inputs):
        raise OverlappingWrite


def where_written_apart(compiled: Graph, eager: Graph, written: Sequence[int], example_inputs: Sequence[Any]) -> Graph:
    """`compiled` for calls in which no input at a position of `written` overlaps another one, `eager` for others."""
    positions = [position for position, value in enumerate(example_inputs) if isinstance(value, torch.Tensor)]
    if not written or len(positions) < 2 or any(not _has_address(example_inputs[position]) for position in positions):
        return compiled
    changed = frozenset(written)
    is_fixed = all(_is_fixed(example_inputs[position]) for position in positions)
    tensors_of = itemgetter(*positions)
    is_written = [position in changed for position in positions]
    seen: list[int] | None = None

    def call(*inputs: Any) -> Any:
        nonlocal seen
        tensors = tensors_of(inputs)
        addresses = list(map(_address, tensors))
        if addresses != seen:
            if _overlap(tensors, is_written, addresses):
                return eager(*inputs)
            seen = addresses if is_fixed else None
        return compiled(*inputs)

    return call


def _has_address(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not is_made_of_tensors(tensor)


def _is_fixed(tensor: torch.Tensor) -> bool:
    """Whether guards hold the sizes and strides, so that the address alone tells where the tensor lies."""
    return all(isinstance(number, int) for number in (*tensor.shape, *tensor.stride()))


def _overlap(tensors: Sequence[torch.Tensor], is_written: Sequence[bool], addresses: Sequence[int]) -> bool:
    """Whether a written tensor may have an element of memory that another one has too."""
    spans = sorted((start, start + _bytes_spanned(tensors[n]), n) for n, start in enumerate(addresses))
    open_spans: list[tuple[int, int]] = []
    for start, end, n in spans:
        if start == end:
            continue
        open_spans = [(other_end, other) for other_end, other in open_spans if other_end > start]
        for _, other in open_spans:
            if (is_written[n] or is_written[other]) and may_overlap(tensors[n], tensors[other]):
                return True
        open_spans.append((end, n))
    return False


def _bytes_spanned(tensor: torch.Tensor) -> int:
    """From the first element's first byte to the last one's last, 0 of a tensor without elements."""
    return extent_of(tensor) * tensor.element_size() if tensor.numel() else 0
