"""Scatters that change an input of the caller's where it lies.

    cache.index_copy_(2, index, new)        start = cache; result = start, changed at `index`; cache.copy_(result)

A functional graph copies the input, changes the copy, and has the caller copy that back: three passes over a tensor of
which one row was to be written. Where nothing else reads the input, the scatter updates the input itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.ir.nodes import LoopGraph, LoopNode


def update_inputs(graph: LoopGraph, written_back: Mapping[str, str]) -> None:
    """Change `graph` so. `written_back` has the outputs that the caller copies into an input, each with that."""
    nodes = {node.name: node for node in graph.nodes if isinstance(node, LoopNode)}
    for output, given in written_back.items():
        chain = _chain(nodes, output)
        if len(chain) < 2 or not _is_copy(chain[-1], given) or graph.buffers[output] != graph.buffers[given]:
            continue
        inner = {node.name for node in chain[1:]}
        readers = {name: {n.name for n in graph.nodes if name in n.read_buffers} for name in (given, *inner)}
        if readers.pop(given) != {chain[-1].name} or any(len(found) > 1 for found in readers.values()):
            continue
        if inner & graph.output_buffers:
            continue
        first, start = chain[-2], chain[-1]
        graph.nodes[:] = [
            replace(node, updates=given) if node is first else node for node in graph.nodes if node is not start
        ]
        del graph.buffers[start.name]


def _chain(nodes: Mapping[str, LoopNode], output: str) -> list[LoopNode]:
    """The scatter that makes an output, those that changed the same memory before it, and what fills that first."""
    chain: list[LoopNode] = []
    name: str | None = output
    while name is not None and name in nodes:
        chain.append(nodes[name])
        name = chain[-1].updates
    return chain


def _is_copy(node: LoopNode, given: str) -> bool:
    """Whether a loop does no more than to copy the input `given`, element by element in its place."""
    instructions = node.body.instructions
    if [i.op for i in instructions] != ["load", "store"] or node.r_dims or node.updates is not None:
        return False
    load, store = instructions
    return load.buffer == given and load.index == store.index and not load.operands
