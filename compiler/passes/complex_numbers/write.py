"""Which of a graph's readers of complex numbers read pairs of real ones instead.

Pairs are written beside the complex tensors, which stay where a library call, or the caller, wants them; what nobody
reads any more goes away. A complex tensor that the graph is given, or that a library call makes, has parts only where
it is small beside what it is combined with: its parts are copied out of it first.

What the caller gets views of is written to memory once, as eager has it, and viewed there: `y`, `y.imag` and
`y.conj()` are one tensor's memory to whoever writes through one of them. Loops read the parts all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from compiler.devices import Device
from compiler.fx.fake_values import hint_of
from compiler.fx.notes import COMPUTED_FOR
from compiler.lowering.aliases import from_owner, viewed_by
from compiler.options import Options
from compiler.passes.complex_numbers.operators import ENDS, RULES, SOURCES, Call, Pair, conjugate, view_as_real
from compiler.passes.writing import call_beside, copied

aten = torch.ops.aten

_COMPLEX = (torch.complex64, torch.complex128)

#: How many times as many elements what a given tensor is combined with has at the least.
_FEW = 4


def in_real_numbers(graph: GraphModule, device: Device, options: Options) -> tuple[GraphModule, tuple[()]]:
    """A copy of a functional graph in which loops compute with the parts of complex numbers, or `graph` itself where
    there are none that they could compute with."""
    if not any(node.target in SOURCES for node in graph.graph.nodes):
        return graph, ()
    copy = copied(graph)
    if not _Writer(copy.graph).run():
        return graph, ()
    copy.graph.eliminate_dead_code()
    copy.graph.lint()
    copy.recompile()
    return copy, ()


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.parts: dict[Node, Pair] = {}
        #: The parts of tensors that lie in memory as they are: read out of a copy.
        self.whole: dict[Node, Pair] = {}

    def run(self) -> bool:
        """Whether anything reads parts now."""
        is_changed = False
        nodes = list(self.graph.nodes)
        views = _views_for_the_caller(self.graph)
        for node in nodes:
            if node.op == "output":
                is_changed |= self._outputs([node, *views])
            elif node.op == "call_function":
                is_changed |= self._visit(node)
        return is_changed

    def _visit(self, node: Node) -> bool:
        """Write the parts of a complex tensor, or put what is computed of parts in the place of a real one."""
        if node.target in ENDS and isinstance(node.args[0], Node) and node.args[0] in self.parts:
            result: Any = self._by_rule(ENDS[node.target], node)
            if result is None:
                return False
            result.meta["val"] = node.meta["val"]  # with the strides that eager's has
            node.replace_all_uses_with(result)
            return True
        rule = SOURCES.get(node.target) or (RULES.get(node.target) if _is_complex(node) else None)
        if rule is not None and self._may_be_in_parts(node):
            found = self._by_rule(rule, node)
            if isinstance(found, Pair) and found.imaginary is not None:
                self.parts[node] = found
        return False

    def _may_be_in_parts(self, node: Node) -> bool:
        if not _is_complex(node):
            return False
        complex_ones = [source for source in node.all_input_nodes if _is_complex(source)]
        if not complex_ones:
            return node.target in SOURCES
        if not any(source in self.parts for source in complex_ones):
            return False
        apart = [source for source in complex_ones if source not in self.parts]
        return all(_FEW * _elements(source) <= _elements(node) for source in apart)

    def _by_rule(self, rule: Any, node: Node) -> Any:
        with self.graph.inserting_before(node):
            call = self._call_for(node)
            arguments = torch.fx.node.map_arg(node.args, lambda source: self._argument(source, call))
            return rule(call, *arguments, **node.kwargs)

    def _argument(self, source: Node, call: Call) -> Any:
        if not _is_complex(source):
            return source
        found = self.parts.get(source) or self.whole.get(source)
        if found is None:
            found = self.whole[source] = self._parts_of_whole(source, call)
        return found

    def _parts_of_whole(self, source: Node, call: Call) -> Pair:
        """Of a tensor that the graph is given, or of what is made of it."""
        rule = RULES.get(source.target)
        if rule is not None:
            arguments = torch.fx.node.map_arg(source.args, lambda other: self._argument(other, call))
            found = rule(call, *arguments, **source.kwargs)
            if isinstance(found, Pair):
                return found
        # Only memory that nothing says to conjugate has a real view.
        is_conjugated = source.meta["val"].is_conj()
        memory = call(aten._conj.default, source) if is_conjugated else source
        both = call(aten.view_as_real.default, memory)
        pair = Pair(call(aten.select.int, both, -1, 0), call(aten.select.int, both, -1, 1))
        return conjugate(call, pair) if is_conjugated else pair

    def _outputs(self, readers: Sequence[Node]) -> bool:
        """Complex results that loops compute, and their views, are views of the memory that they write."""
        in_memory: dict[Node, Node] = {}
        for reader in readers:
            for result in list(reader.all_input_nodes):
                if result not in self.parts or viewed_by(result) is not None or not _is_dense(result):
                    continue
                if result not in in_memory:
                    in_memory[result] = self._written(result)
                reader.replace_input_with(result, in_memory[result])
        return bool(in_memory)

    def _written(self, result: Node) -> Node:
        with self.graph.inserting_before(result):
            call = self._call_for(result)
            return call(aten.view_as_complex.default, view_as_real(call, self.parts[result]))

    def _call_for(self, stands_for: Node) -> Call:
        def call(target: Any, *arguments: Any, **settings: Any) -> Node:
            node = call_beside(stands_for, target, *arguments, name=f"{stands_for.name}_part", **settings)
            node.meta.setdefault(COMPUTED_FOR, (stands_for.name,))
            return node

        return call


def _views_for_the_caller(graph: Graph) -> list[Node]:
    """Views of complex memory, or as complex numbers, that only the caller reads: copies of those that are returned.

    A real view whose memory nobody else gets needs none: there it makes no difference what else lies beside it.
    """
    output = graph.output_node()
    chains = [from_owner(result) for result in output.all_input_nodes]
    owners = [chain[0] for chain in chains]
    views: dict[Node, Node] = {}
    for chain in chains:
        result, owner = chain[-1], chain[0]
        is_alone = owners.count(owner) == 1 and _is_complex(owner) and not _is_complex(result)
        if is_alone or not any(map(_is_complex, chain)):
            continue
        with graph.inserting_before(output):
            for view in chain[1:]:
                if view not in views:
                    views[view] = graph.node_copy(view, lambda source: views.get(source, source))
        output.replace_input_with(result, views.get(result, result))
    return list(views.values())


def _is_complex(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return isinstance(value, torch.Tensor) and value.dtype in _COMPLEX


def _is_dense(node: Node) -> bool:
    value = node.meta["val"]
    return bool(value.is_contiguous()) and not value.is_conj()


def _elements(node: Node) -> int:
    return prod(map(hint_of, node.meta["val"].shape))
