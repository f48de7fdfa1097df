"""Sizes and strides of a report's buffers as numbers, of the first call where they are formulas."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from compiler.report import Buffer, Graph, Kernel, SizeText
from compiler.whole_numbers import whole_number


class UnknownSizeError(ValueError):
    """A size is no formula of sizes that are known."""


@dataclass(frozen=True)
class Layout:
    """Where a tensor lies: sizes and strides in elements, and torch's name of its dtype."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str

    @property
    def extent(self) -> int:
        """Elements of memory from its first one to its last."""
        if 0 in self.shape:
            return 0
        return 1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))


def symbols_of(graph: Graph, kernel: Kernel) -> dict[str, int]:
    """The open sizes of a graph, with their values in the first call."""
    known = {one.name: int(one.value) for one in graph.symbols if one.value is not None and _is_whole(one.value)}
    return {**known, **kernel.sizes}


def layout_of(buffer: Buffer, symbols: Mapping[str, int]) -> Layout:
    """Raises `UnknownSizeError`."""
    shape = numbers(buffer.shape, symbols)
    stride = numbers(buffer.stride, symbols) if buffer.stride or not shape else _dense(shape)
    return Layout(shape, stride, buffer.dtype)


def numbers(sizes: Sequence[SizeText], symbols: Mapping[str, int]) -> tuple[int, ...]:
    """Raises `UnknownSizeError`."""
    return tuple(number(size, symbols) for size in sizes)


def number(size: SizeText, symbols: Mapping[str, int]) -> int:
    """The value of a size; of a formula, for these values of its symbols. Raises `UnknownSizeError`."""
    if isinstance(size, int):
        return size
    try:
        found = whole_number(ast.parse(size, mode="eval").body, symbols)
    except (SyntaxError, RecursionError, ValueError):
        found = None
    if found is None:
        raise UnknownSizeError(f"The size {size[:80]!r} is not known without a call.")
    return found


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _is_whole(text: str) -> bool:
    return text.lstrip("-").isdigit()
