"""Folding what follows convolutions, where the device model says that it pays.

Saved is a pass over the result, where there would be one: its bytes read and written, and a launch. Paid is the filter,
read and written once more, in a launch of its own if it is large. That the library adds bias, sum and ReLU for nothing
is ASSUMED.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler import report
from compiler.decisions import Decision
from compiler.devices import Device
from compiler.fx.notes import COMPUTED_FOR, STANDS_FOR, all_lines_noted
from compiler.ir.library_calls import FUSED_CONVOLUTION
from compiler.options import Options
from compiler.passes.folding.chains import Chain, Epilogue, find_epilogue
from compiler.passes.price import copy_us, start_us
from compiler.passes.writing import call_like, calls_of, copied
from compiler.schedule.rules.batch import MOST_EARLY

aten = torch.ops.aten

#: What reads the result from memory.
CALLS = (aten.convolution.default, FUSED_CONVOLUTION)
#: The name of this pass in the knob `disable`.
KNOB = "folding"


#: The verdict on a convolution that takes what follows it. The nodes of a record are the convolution first, the ReLU
#: last.
FOLDED = "folded"


def fold(
    graph: GraphModule, device: Device, options: Options, contiguous: frozenset[str] = frozenset()
) -> tuple[GraphModule, tuple[Decision, ...]]:
    """A copy of `graph` in which convolutions took what follows them, or `graph` itself where none did. `contiguous`
    names those that do not work channels-last."""
    if device.kind == "cpu" or KNOB in options.disabled_rules:
        return graph, ()
    if not any(map(find_epilogue, calls_of(graph, aten.relu.default))):
        return graph, ()
    copy = copied(graph)
    records = []
    for relu in calls_of(copy, aten.relu.default):
        found = find_epilogue(relu)
        if found is not None:
            record = _weigh(found, device, found.chain.convolution.name in contiguous)
            records.append(record)
            if record.verdict == FOLDED:
                _Writer(found).write()
    return copy if any(record.verdict == FOLDED for record in records) else graph, tuple(records)


def _weigh(found: Epilogue, device: Device, is_contiguous: bool) -> Decision:
    chains = [found.chain, *([found.added] if isinstance(found.added, Chain) else [])]
    saved = copy_us(2 * _bytes(found.relu), device) if _is_a_pass(found.relu) else 0.0
    filters = [_bytes(chain.convolution.args[1]) for chain in chains]
    launches = start_us(device) * sum(size > MOST_EARLY for size in filters)
    paid = launches + 1e6 * 2 * sum(filters) / device.bandwidth
    nodes = [*(node for chain in chains for node in chain.nodes), *found.sums, found.relu]
    reason = "folding.layout" if is_contiguous else "folding.filter" if paid < saved else "folding.slower"
    return Decision(reason, {"saved_us": saved, "filter_us": paid}, _names(nodes), all_lines_noted(nodes))


def describe_folding(folding: Decision) -> report.FoldingDecision:
    return report.FoldingDecision(
        **folding.told(),
        nodes=list(folding.nodes),
        predicted_saved_us=round(folding.numbers["saved_us"], 3),
        predicted_filter_us=round(folding.numbers["filter_us"], 3),
    )


def _is_a_pass(relu: Node) -> bool:
    """Whether a kernel would have to write the result for a library call. For loops alone it would not: they compute it
    where they read it; and what the graph returns is stored in eager's strides by a kernel in any case."""
    is_returned = any(user.op == "output" for user in relu.users)
    return not is_returned and any(user.target in CALLS for user in relu.users)


def _bytes(node: Any) -> int:
    value = node.meta["val"]
    return int(value.numel()) * int(value.dtype.itemsize)


class _Writer:
    """Writes the folded call in the place of an epilogue's ReLU."""

    def __init__(self, found: Epilogue) -> None:
        self.graph, self.found = found.relu.graph, found

    def write(self) -> None:
        relu, chain, added = self.found.relu, self.found.chain, self.found.added
        with self.graph.inserting_before(relu):
            weight, shift = self._folded(chain)
            if isinstance(added, Chain):
                second, second_shift = self._folded(added)
                shift = self._call(aten.add.Tensor, shift, second_shift)
                others = added.convolution.args[3:]
                added_node = self._call(aten.convolution.default, added.convolution.args[0], second, None, *others)
                added_node.meta[STANDS_FOR] = added_node.meta[COMPUTED_FOR] = _names(added.nodes)
                added_node.meta["val"] = added.convolution.meta["val"]
            else:
                added_node = added  # type: ignore[assignment]
            channels, dtype = weight.meta["val"].shape[0], relu.meta["val"].dtype
            bias = self._cast(self._call(aten.expand.default, shift, [channels, 1, 1]), dtype)
            bias = self._call(aten.view.default, self._call(aten.clone.default, bias), [channels])
        image, _, _, *geometry = chain.convolution.args
        gone = [node for one in (chain, added) if isinstance(one, Chain) for node in one.nodes]
        relu.meta[STANDS_FOR] = _names((*chain.nodes, *self.found.sums))
        relu.target = FUSED_CONVOLUTION
        relu.args = (image, weight, bias, added_node, *geometry[:3])
        for node in sorted((*gone, *self.found.sums), reverse=True):
            self.graph.erase_node(node)

    def _folded(self, chain: Chain) -> tuple[Node, Node]:
        """The filter times the chain's factors, and the chain's sum, a float32 number for each channel or for all."""
        bias, weight = chain.convolution.args[2], chain.convolution.args[1]
        channels = chain.convolution.meta["val"].shape[1]
        scale: Any = None
        shift: Any = None
        if isinstance(bias, Node):
            shift = self._call(aten.view.default, self._cast(bias, torch.float32), [channels, 1, 1])
        for step in chain.steps:
            operand = self._operand(step.operand)
            if step.kind in ("mul", "div"):
                target = aten.mul.Tensor if step.kind == "mul" else aten.div.Tensor
                scale = self._call(target, self._number(1.0) if scale is None else scale, operand)
                shift = None if shift is None else self._call(target, shift, operand)
            elif step.kind != "cast":
                target = aten.add.Tensor if step.kind == "add" else aten.sub.Tensor
                shift = self._call(target, self._number(0.0) if shift is None else shift, operand)
        shift = self._number(0.0) if shift is None else shift
        assert isinstance(weight, Node)
        if scale is None:
            return weight, shift
        factors = self._call(aten.unsqueeze.default, scale, -1)
        scaled = self._call(aten.mul.Tensor, self._cast(weight, torch.float32), factors)
        return self._cast(scaled, weight.meta["val"].dtype), shift

    def _operand(self, operand: Any) -> Any:
        if not isinstance(operand, Node):
            return operand
        operand = self._cast(operand, torch.float32)
        if len(operand.meta["val"].shape) == 4:
            return self._call(aten.squeeze.dim, operand, 0)
        missing = 3 - len(operand.meta["val"].shape)
        for _ in range(missing):
            operand = self._call(aten.unsqueeze.default, operand, 0)
        return operand

    def _number(self, value: float) -> Node:
        device = self.found.relu.meta["val"].device
        return self._call(aten.full.default, [1, 1, 1], value, dtype=torch.float32, device=device)

    def _cast(self, node: Node, dtype: torch.dtype) -> Node:
        if node.meta["val"].dtype == dtype:
            return node
        return self._call(aten._to_copy.default, node, dtype=dtype)

    def _call(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        return call_like(self.found.relu, target, *args, **kwargs)


def _names(nodes: Iterable[Node]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes)
