"""Nodes of the loop IR: what lowering makes and the scheduler fuses.

A `LoopNode` fills one buffer by one loop nest. An `ExternNode` is a library call (a matrix product, or an operator that
we have no lowering for). Buffers are named after the first FX node that they hold (`sin`, `relu_1`), with `buf_` in
front where that would collide with an input, so that kernels read like the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import torch

from compiler.ir.body import Body
from compiler.ir.index import MOST_KEPT, Dim, Index
from compiler.ir.lazy import lazy
from compiler.ir.size import Integer, Symbol, hint, product


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in its buffer: sizes and strides in elements, and the offset of its first element."""

    shape: tuple[Integer, ...]
    stride: tuple[Integer, ...]
    dtype: torch.dtype
    offset: Integer = 0

    @lazy
    def numel(self) -> Integer:
        return product(self.shape)

    @lazy
    def storage_numel(self) -> Integer:
        """Elements that the storage must have for every element of the tensor to lie inside."""
        if self.numel == 0:
            return self.offset
        return self.offset + 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.stride, strict=True))

    @lazy
    def bytes(self) -> int:
        """Bytes of its distinct elements (an expanded dimension, of stride 0, counts once, and windows that overlap
        have no more than they span); where sizes are symbols, in the first call."""
        if self.numel == 0:
            return 0
        distinct = product(hint(size) for size, stride in zip(self.shape, self.stride, strict=True) if stride != 0)
        return min(hint(distinct), hint(self.storage_numel) - hint(self.offset)) * self.dtype.itemsize

    @lazy
    def extent(self) -> tuple[torch.dtype, int, int]:
        """What a cost depends on: the dtype, `bytes`, and elements of the storage; where sizes are symbols, in the
        first call."""
        return self.dtype, self.bytes, hint(self.storage_numel)

    def index(self, position: tuple[Index, ...]) -> Index:
        """Element offset of a point of the tensor."""
        return _offset_of(self.offset, self.stride, position)

    @staticmethod
    def contiguous(shape: tuple[Integer, ...], dtype: torch.dtype) -> Layout:
        strides: list[Integer] = []
        step: Integer = 1
        for size in reversed(shape):
            strides.append(step)
            step = step * (1 if size == 0 else size)
        return Layout(shape, tuple(reversed(strides)), dtype)


# Tensors of one layout are read and written at the same points of the same loops, over and over.
@lru_cache(maxsize=MOST_KEPT)
def _offset_of(start: Integer, strides: tuple[Integer, ...], position: tuple[Index, ...]) -> Index:
    total = Index.number(start)
    for index, stride in zip(position, strides, strict=True):
        total = total + index * stride
    return total


@dataclass(frozen=True)
class LoopNode:
    """One loop nest that stores one buffer.

    for x in space: for r in reduction: body. `x_dims` are in the order of the buffer's storage, slowest first. A node
    without `r_dims` is pointwise; a scan stores at every point of `r_dims`, which it runs through in order. A scatter
    runs over its sources and changes, in place, the buffer `updates`, which no other node reads: its own buffer is that
    memory afterwards. A check computes one truth value, which no node reads and which stays out of memory: where it is
    false, running the loop fails with the message `check`. `origins` names the ATen nodes that it computes, `lines` the
    user's lines."""

    name: str
    layout: Layout
    x_dims: tuple[Dim, ...]
    r_dims: tuple[Dim, ...]
    body: Body
    origins: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    updates: str | None = None
    check: str | None = None
    #: Which of the program's streams it is put on; None for the one that is current where the graph is called.
    stream: int | None = None
    #: Names of nodes that it must follow although it reads nothing of theirs: calls that tell how large tensors are,
    #: and the other parts of what it completes.
    follows: frozenset[str] = frozenset()
    #: The buffer in whose memory it fills a slice, where several nodes fill one buffer: all of them have the layout of
    #: the whole; the last one has its name, and follows the others.
    part_of: str | None = None

    @property
    def is_reduction(self) -> bool:
        return self.body.reduction is not None

    @property
    def is_scatter(self) -> bool:
        return self.updates is not None

    @property
    def is_scan(self) -> bool:
        return self.body.scan is not None

    @property
    def kind(self) -> Literal["pointwise", "reduction", "scan", "scatter"]:
        if self.is_scatter:
            return "scatter"
        return "scan" if self.is_scan else "reduction" if self.is_reduction else "pointwise"

    @property
    def numel(self) -> Integer:
        return product(dim.size for dim in self.x_dims)

    @property
    def reduction_numel(self) -> Integer:
        return product(dim.size for dim in self.r_dims)

    @lazy
    def read_buffers(self) -> frozenset[str]:
        read = frozenset(access.buffer for access in self.body.reads)
        return read if self.updates is None else read | {self.updates}


@dataclass(frozen=True)
class TensorArgument:
    """An argument of a library call: a strided view of a buffer."""

    buffer: str
    layout: Layout


@dataclass(frozen=True)
class ExternNode:
    """A call of `target` (an ATen operator) on whole tensors.

    `arguments` and `keywords` hold TensorArgument wherever the call wants a tensor, nested in lists and tuples as the
    operator wants them. `outputs` are the buffers that it returns, in order, None where an output is not a tensor.
    `is_fallback` marks an operator that we have no lowering for, in contrast to what a library does best.
    `reason` says in one sentence why it is a library call. `crosses_devices` marks one that has a tensor on another
    device than the graph's.
    """

    name: str
    target: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    outputs: tuple[tuple[str, Layout] | None, ...]
    origins: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    is_fallback: bool = False
    returns_sequence: bool = False
    reason: str = ""
    crosses_devices: bool = False
    #: Whether a product of float32 may round its operands to TensorFloat-32 for tensor cores, as torch's settings were
    #: when the graph was lowered.
    allows_tf32: bool = False
    #: As of a loop.
    stream: int | None = None
    follows: frozenset[str] = frozenset()
    #: Sizes that are known once it has run, each with the output that tells it and what of that output it is
    #: (`.shape[0]`; nothing for an output that is the number itself).
    sizes: tuple[tuple[Symbol, int, str], ...] = ()
    #: Names of all nodes that it computes, where one call took the place of several.
    covers: tuple[str, ...] = ()

    # The arguments hold lists, so identity is by name, which is unique in a graph.
    def __hash__(self) -> int:
        return hash(self.name)

    @lazy
    def tensor_arguments(self) -> tuple[TensorArgument, ...]:
        return tuple(_tensors_in([*self.arguments, *self.keywords.values()]))

    @lazy
    def read_buffers(self) -> frozenset[str]:
        return frozenset(argument.buffer for argument in self.tensor_arguments)

    @lazy
    def needed(self) -> frozenset[str]:
        """What must be there before: the buffers that it reads, and what it must follow besides."""
        return self.read_buffers | self.follows

    @lazy
    def produced(self) -> frozenset[str]:
        """The buffers that it fills, and the nodes that it took the place of."""
        return frozenset((*self.write_buffers, *self.covers))

    @lazy
    def write_buffers(self) -> tuple[str, ...]:
        return tuple(output[0] for output in self.outputs if output is not None)

    @lazy
    def stored(self) -> frozenset[str]:
        """The buffers that it brings to memory."""
        return frozenset(self.write_buffers)

    @lazy
    def names(self) -> frozenset[str]:
        """Its own name, and those of the nodes that it took the place of."""
        return frozenset((self.name, *self.covers))

    @property
    def nodes(self) -> tuple[ExternNode]:
        """Itself, as a group has several."""
        return (self,)


def _tensors_in(values: Any) -> Iterator[TensorArgument]:
    for value in values:
        if isinstance(value, TensorArgument):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors_in(value)


Node = LoopNode | ExternNode


@dataclass(frozen=True)
class GraphOutput:
    """One output of the graph: a view of a buffer, a tensor without elements, which has a layout and no buffer, or a
    plain Python value."""

    buffer: str | None
    layout: Layout | None
    value: Any = None
    #: Of the whole view: whether eager reads what is in memory conjugated, or with the other sign.
    is_conjugated: bool = False
    is_negated: bool = False
    #: The position of an earlier output that is this very tensor.
    repeats: int | None = None


RemovedKind = Literal["dead", "common_subexpression", "constant", "view", "cast", "copy"]


@dataclass(frozen=True)
class Removed:
    """A node of the ATen graph that became no loop, and why there was nothing to do for it."""

    kind: RemovedKind
    node: str
    lines: tuple[int, ...]
    because: str


@dataclass
class LoopGraph:
    """A lowered graph: nodes in an order that respects data, and the buffers between them.

    `buffers` gives the layout of every buffer's storage, inputs included; `inputs` are in the order of the graph's
    placeholders (None for one that is not a tensor). `symbols` tells for each size that is known only in a call how the
    wrapper finds it: the position of an input, and what of that input it is (`.shape[0]`; nothing for a plain integer).
    """

    nodes: list[Node] = field(default_factory=list)
    buffers: dict[str, Layout] = field(default_factory=dict)
    inputs: list[str | None] = field(default_factory=list)
    outputs: list[GraphOutput] = field(default_factory=list)
    #: Small CPU tensors held by the graph (lifted constants), by buffer name.
    constants: dict[str, torch.Tensor] = field(default_factory=dict)
    symbols: dict[Symbol, tuple[int, str]] = field(default_factory=dict)
    #: Conditions on sizes (0 or 1 in a call) that must hold, each with what to say where it does not.
    size_checks: list[tuple[Integer, str]] = field(default_factory=list)
    #: Buffers on another device than the graph's: on the CPU, beside a GPU.
    elsewhere: frozenset[str] = frozenset()
    #: Nodes of the ATen graph that became none of `nodes`.
    removed: tuple[Removed, ...] = ()

    @property
    def dtypes(self) -> dict[str, torch.dtype]:
        """What every buffer holds."""
        return {name: layout.dtype for name, layout in self.buffers.items()}

    @property
    def output_buffers(self) -> frozenset[str]:
        return frozenset(output.buffer for output in self.outputs if output.buffer is not None)
