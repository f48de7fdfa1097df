"""Bind a graph of loops to one call: replace every symbolic size by its number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from compiler.ir.body import Body
from compiler.ir.formulas import Real, value_of
from compiler.ir.index import Dim, FloorDiv, Index, Indirect
from compiler.ir.nodes import GraphOutput, Layout, LoopGraph, LoopNode, Node, TensorArgument
from compiler.ir.size import Integer, Opaque, Size, SizeAtom, Symbol

Symbols = Mapping[str, int]


def symbols_of_call(graph: LoopGraph, inputs: Sequence[Any]) -> dict[str, Any]:
    """The value of every symbol in a call with these inputs."""
    return {symbol.name: _part(inputs[place], part) for symbol, (place, part) in graph.symbols.items()}


def _part(value: Any, part: str) -> Any:
    """`.shape[1]` or `.stride(1)` of a tensor; of a plain number, itself."""
    if not part:
        return value if isinstance(value, float) else int(value)
    dim = int("".join(c for c in part if c.isdigit()))
    return int(value.shape[dim] if part.startswith(".shape") else value.stride(dim))


def bind(graph: LoopGraph, symbols: Symbols) -> LoopGraph:
    """The graph with numbers for sizes."""
    if not graph.symbols:
        return graph
    return replace(
        graph,
        nodes=[_node(node, symbols) for node in graph.nodes],
        buffers={name: _layout(layout, symbols) for name, layout in graph.buffers.items()},
        outputs=[
            GraphOutput(o.buffer, None if o.layout is None else _layout(o.layout, symbols), _argument(o.value, symbols))
            for o in graph.outputs
        ],
        symbols={},
    )


def _node(node: Node, symbols: Symbols) -> Node:
    if isinstance(node, LoopNode):
        return _loop(node, symbols)
    return replace(
        node,
        arguments=_argument(node.arguments, symbols),
        keywords={key: _argument(value, symbols) for key, value in node.keywords.items()},
        outputs=tuple(None if o is None else (o[0], _layout(o[1], symbols)) for o in node.outputs),
    )


def _loop(node: LoopNode, symbols: Symbols) -> LoopNode:
    def bound(dim: Dim) -> Dim:
        return Dim(dim.name, evaluate(dim.size, symbols))

    x_dims, r_dims = tuple(map(bound, node.x_dims)), tuple(map(bound, node.r_dims))
    dims = dict(zip((*node.x_dims, *node.r_dims), (*x_dims, *r_dims), strict=True))
    instructions = tuple(
        i if i.index is None else replace(i, index=_index(i.index, dims, symbols)) for i in node.body.instructions
    )
    layout = _layout(node.layout, symbols)
    return replace(node, layout=layout, x_dims=x_dims, r_dims=r_dims, body=Body(instructions))


def _index(index: Index, dims: Mapping[Dim, Dim], symbols: Symbols) -> Index:
    total = Index.number(evaluate(index.offset, symbols))
    for atom, coefficient in index.terms:
        if isinstance(atom, Dim):
            value = Index.of(dims[atom])
        elif isinstance(atom, Indirect):
            value = Index.of(Indirect(atom.value, evaluate(atom.size, symbols)))
        else:
            numerator = _index(atom.numerator, dims, symbols)
            divisor = evaluate(atom.divisor, symbols)
            value = numerator // divisor if isinstance(atom, FloorDiv) else numerator % divisor
        total = total + value * evaluate(coefficient, symbols)
    return total


def _layout(layout: Layout, symbols: Symbols) -> Layout:
    return Layout(_numbers(layout.shape, symbols), _numbers(layout.stride, symbols), layout.dtype,
                  evaluate(layout.offset, symbols))  # fmt: skip


def _numbers(sizes: Sequence[Integer], symbols: Symbols) -> tuple[int, ...]:
    return tuple(evaluate(size, symbols) for size in sizes)


def _argument(value: Any, symbols: Symbols) -> Any:
    if isinstance(value, TensorArgument):
        return TensorArgument(value.buffer, _layout(value.layout, symbols))
    if isinstance(value, Size):
        return evaluate(value, symbols)
    if isinstance(value, Real):
        return value_of(value.text, symbols)
    if isinstance(value, list | tuple):
        return type(value)(_argument(item, symbols) for item in value)
    return value


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
