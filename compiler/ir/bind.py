"""The values of symbols in one call, and what sizes are then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from compiler.ir.formulas import Real, value_of
from compiler.ir.nodes import Layout, LoopGraph
from compiler.ir.size import Integer, Opaque, Size, SizeAtom, Symbol, known

#: Numbers by the names of symbols.
Symbols = Mapping[str, Any]


def symbols_of_call(graph: LoopGraph, inputs: Sequence[Any]) -> Symbols:
    """The value of every symbol in a call with these inputs."""
    return {symbol.name: _part(inputs[place], part) for symbol, (place, part) in graph.symbols.items()}


def _part(value: Any, part: str) -> Any:
    """`.shape[1]` or `.stride(1)` of a tensor; of a plain number, itself."""
    if not part:
        return value if isinstance(value, float) else int(value)
    dim = int("".join(c for c in part if c.isdigit()))
    return int(value.shape[dim] if part.startswith(".shape") else value.stride(dim))


def number_in_call(value: Size | Real, symbols: Symbols) -> int | float:
    """What an argument or a result that is no tensor is in a call."""
    return evaluate(value, symbols) if isinstance(value, Size) else value_of(value.text, symbols)


def numbers(sizes: Iterable[Integer], symbols: Symbols) -> tuple[int, ...]:
    return tuple(evaluate(size, symbols) for size in sizes)


def elements_of_storage(layout: Layout, symbols: Symbols) -> int:
    """How many its storage has in a call."""
    shape, stride = numbers(layout.shape, symbols), numbers(layout.stride, symbols)
    return known(Layout(shape, stride, layout.dtype, evaluate(layout.offset, symbols)).storage_numel)


def evaluate(value: Integer, symbols: Symbols) -> int:
    """Its value where each symbol has the value given by its name."""
    if isinstance(value, int):
        return value

    def of_atom(atom: SizeAtom) -> int:
        if isinstance(atom, Symbol):
            return symbols[atom.name]
        if isinstance(atom, Opaque):
            return int(value_of(atom.text, symbols))
        return evaluate(atom.numerator, symbols) // evaluate(atom.divisor, symbols)

    return sum(coefficient * prod(map(of_atom, monomial)) for monomial, coefficient in value.terms)
