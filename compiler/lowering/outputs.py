"""What a graph returns: views of buffers by eager's strides, which share memory where eager's do and nowhere else.

    y = aten.sin(x);  v = aten.t(y);  return y, v   ->   one buffer, seen by two strides
    w = aten.repeat(x, [1, 1]);       return w      ->   a buffer of its own, though its readers would need none

A caller may write through one result and read another, or ask for their strides, so both are part of what a graph
means. How a tensor lies inside of a graph is nobody's concern; where that is not as it must be returned, it is copied
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch.fx

from compiler.ir.nodes import GraphOutput, Layout
from compiler.lowering.aliases import conjugates, from_owner, is_negated
from compiler.lowering.builder import Builder
from compiler.lowering.eager import EagerTensor, eager_tensors
from compiler.lowering.strides import is_dense, overlaps, with_eager_strides
from compiler.lowering.values import TensorValue


class Outputs:
    """Makes a graph's outputs when all of its nodes have their `values`. `eager` has what eager mode's values look
    like, and `visit` gives a view its value anew, when that of what it views has changed."""

    def __init__(
        self,
        build: Builder,
        values: dict[torch.fx.Node, Any],
        eager: Mapping[torch.fx.Node, Any],
        visit: Callable[[torch.fx.Node], None],
    ) -> None:
        self.build, self.values, self.eager, self.visit = build, values, eager, visit
        #: The node whose memory each buffer is, as far as the caller gets to see it.
        self.owners: dict[str, torch.fx.Node] = {}
        #: The outputs that are returned as they lie: saved for a backward graph.
        self.saved: set[torch.fx.Node] = set()

    def note_saved(self, results: Sequence[Any]) -> None:
        """Which of the results are read by a backward graph alone, and so may lie as they do."""
        laid_out = self.build.channels_last
        if laid_out is not None and laid_out.own_outputs is not None:
            self.saved = _only_saved(results, laid_out.own_outputs)

    def output(self, result: torch.fx.Node) -> GraphOutput:
        """A view of a buffer with eager's strides. Outputs share a buffer where they share memory in eager, and nowhere
        else: what owns its memory there is copied if it stands for a part of another's here."""
        empty = self._without_elements(result)
        if empty is not None:
            return empty
        owner, *viewed_from = from_owner(result)
        if isinstance(self.values[owner], TensorValue):
            self.values[owner] = owned = self._with_memory(owner, self.owners)
            assert owned.buffer is not None
            self.owners[owned.buffer] = owner
            viewed = self._viewed_as_eager(owned, owner, viewed_from)
            if viewed is not None and self._is_read_otherwise(owner, viewed_from):
                return viewed
            for view in viewed_from:
                self.visit(view)
            if viewed is not None and not self._is_laid_out_as_eager(result, owned.buffer):
                return viewed
        value = self._with_memory(result, None)
        layout = value.layout()
        assert layout is not None
        return GraphOutput(value.buffer, with_eager_strides(layout, self.eager_of(result)))

    def _without_elements(self, result: torch.fx.Node) -> GraphOutput | None:
        """An output of which there is nothing to compute: the wrapper makes the tensor, and no call that would be
        counted beside kernels."""
        value, fake = self.values[result], self.eager_of(result)
        is_made = value.buffer is not None and value.buffer not in self.build.graph.inputs
        if is_made or 0 not in value.shape or from_owner(result)[0].op == "placeholder":
            return None
        if fake is None or fake.device.type != self.build.device.type:
            return None
        return GraphOutput(None, with_eager_strides(Layout.contiguous(value.shape, value.dtype), fake))

    def _viewed_as_eager(
        self, owned: TensorValue, owner: torch.fx.Node, viewed: Sequence[torch.fx.Node]
    ) -> GraphOutput | None:
        """The last of `viewed` by eager's strides in the memory of `owner`, if that memory is laid out as eager's."""
        base, layout = self.eager_of(owner), owned.layout()
        last = self.eager_of(viewed[-1]) if viewed else None
        if base is None or layout is None or last is None:
            return None
        stride = with_eager_strides(layout, base).stride
        if (stride, layout.offset, base.storage_offset()) != (base.stride(), 0, 0):
            return None
        where = Layout(last.shape, last.stride(), last.dtype, last.storage_offset())
        return GraphOutput(owned.buffer, where, None, conjugates(viewed), is_negated(viewed))

    def _is_read_otherwise(self, owner: torch.fx.Node, viewed: Sequence[torch.fx.Node]) -> bool:
        """Whether one of `viewed` reads the memory of `owner` as what no loop can: as another dtype, as `.imag` does,
        conjugated or negated."""
        seen = [eager.dtype for eager in map(self.eager_of, (owner, *viewed)) if eager is not None]
        return conjugates(viewed) or is_negated(viewed) or len(set(seen)) > 1

    def _is_laid_out_as_eager(self, view: torch.fx.Node, buffer: str) -> bool:
        """Whether the strides of a view of a buffer can be told here, and are eager's: where sizes are open, neither
        need be."""
        value, fake = self.values[view], self.eager_of(view)
        layout = value.layout() if value.buffer == buffer else None
        return layout is not None and (fake is None or with_eager_strides(layout, fake).stride == fake.stride())

    def _with_memory(self, node: torch.fx.Node, owners: dict[str, torch.fx.Node] | None) -> TensorValue:
        """The node's value as strides in a buffer, eager's if possible, and one that no other of `owners` has."""
        self.build.node, self.build.eager = node, self.eager[node]
        value, fake = self.values[node], self.eager_of(node)
        layout = value.layout()
        if layout is not None and self.build.lies_elsewhere(value):
            return value  # no loop could read it there, to give it other strides
        wanted = Layout.contiguous(value.shape, value.dtype)
        if fake is not None and not overlaps(value.shape, fake.stride()):
            wanted = replace(wanted, stride=fake.stride())
        if node in self.saved and layout is not None and is_dense(layout.shape, layout.stride):
            wanted = replace(wanted, stride=layout.stride)
        if layout is not None and value.buffer is not None:
            is_free = owners is None or owners.get(value.buffer, node) is node
            found = with_eager_strides(layout, fake)
            if is_free and (fake is None or found.stride == fake.stride() or found == wanted):
                return self.build.where_eager_has_it(value)
        copy = self.build.copied(value, wanted, label="" if value.buffer is None else "copy")
        if self.build.channels_last is not None:
            self.build.channels_last.converted_back(value, copy, "output", node.name)
        if fake is not None:
            self.build.eager_of.setdefault(id(copy), fake)
        return self.build.where_eager_has_it(copy)

    def eager_of(self, node: torch.fx.Node) -> EagerTensor | None:
        """What eager mode's tensor looks like, of a node that gives one; else what is known of the node's value."""
        tensors = eager_tensors(self.eager[node])
        return tensors[0] if len(tensors) == 1 else self.build.eager_of.get(id(self.values[node]))


def _only_saved(results: Sequence[Any], own: int) -> set[torch.fx.Node]:
    """The outputs after the first `own`, and what owns their memory, where none of the first shares it."""
    chains = [from_owner(result) if isinstance(result, torch.fx.Node) else [] for result in results]
    returned = {chain[0] for chain in chains[:own] if chain}
    return {node for chain in chains[own:] if chain and chain[0] not in returned for node in (chain[0], chain[-1])}
