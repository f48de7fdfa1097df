"""Choosing the layout of a graph's convolutions: lower it with all of them channels-last, and weigh each region.

    1. candidates   convolutions of images that eager has contiguous, where the library would keep channels-last
    2. lowering     all of them channels-last; what hangs together by loops is one region
    3. weighing     per region: what the library gains, against the conversions of what enters and leaves it
    4. again        without the regions that lose, until all that are left pay; and without the convolutions that would
                    pay but are exact in eager alone, which a knob lets go

Before it, the passes of `passes/order.py` that depend on the layout are made. Every convolution of images is in one
record, whatever was decided; one that becomes a loop is in a second one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.decisions import Decision
from compiler.devices import Device
from compiler.fx.fake_values import strides_of_result
from compiler.fx.notes import BACKWARD, FORWARD, IS_DEPTHWISE_LOOP, STANDS_FOR, all_lines_noted
from compiler.ir.library_calls import FUSED_CONVOLUTION
from compiler.ir.nodes import LoopGraph, LoopNode
from compiler.ir.size import Integer
from compiler.lowering.channels_last import ChannelsLast, Conversion, channels_last_strides, lies_alike
from compiler.lowering.convolutions import is_pixel_product, is_window_product
from compiler.lowering.lower import lower
from compiler.options import Options
from compiler.passes.folding.fold import CALLS, FOLDED, fold
from compiler.passes.layout.choice import MOVED, LayoutChoice
from compiler.passes.layout.passed import Passed
from compiler.passes.layout.patches import KNOB as PATCHES
from compiler.passes.layout.rounding import Rounding, rounding_of
from compiler.passes.layout.training import (
    convolution_of,
    kept_by_forward,
    moved_by_forward,
    price_of_backward,
    strides_of_saved,
)
from compiler.passes.order import IN_EACH_LAYOUT, run
from compiler.passes.price import (
    Convolution,
    Price,
    copy_us,
    precision_of,
    price_of,
    price_of_gradients,
    price_of_rounding,
    start_us,
    takes_windows,
    windows_us,
)
from compiler.schedule.cost.kernel import group_cost
from compiler.schedule.rules.batch import MOST_EARLY
from compiler.schedule.units import single

aten = torch.ops.aten

#: The name of this pass in the knob `disable`, and the knob by which convolutions may become less exact.
KNOB, KNOB_OF_ROUNDING = "layout", "tf32"


def lower_in_layout(
    graph: GraphModule, device: Device, options: Options
) -> tuple[LoopGraph, tuple[LayoutChoice, ...], tuple[Decision, ...]]:
    """The loops of `graph` for `device`, with the layouts that are expected to be fastest and with what convolutions
    take of what follows them, and why both are so. The library's kernels that go on from a convolution are
    channels-last: one that stays contiguous takes nothing. A backward graph's convolutions lie as those that they are
    the gradients of."""
    if BACKWARD in graph.meta:
        loops, choices = _laid_out_as_forward(graph, graph.meta[BACKWARD], device, options)
        return loops, choices, ()
    passed: Passed | None = graph.meta.get(FORWARD)
    contiguous: frozenset[str] = frozenset()
    while True:
        folded, foldings = fold(graph, device, options, contiguous)
        folded, others = run(IN_EACH_LAYOUT, folded, device, options)
        found_loops, choices = _laid_out(folded, foldings, device, options, passed)
        last = {
            name
            for choice in choices
            if choice.verdict == MOVED or choice.reason == "layout.eager"
            for name in choice.nodes
        }
        found = {folding.nodes[0] for folding in foldings if folding.verdict == FOLDED} - last
        if not found:
            loops = found_loops or lower(folded, device=device)
            if passed is not None:
                passed.choices, passed.strides = choices, strides_of_saved(graph, loops, passed.own_outputs)
            return loops, (*choices, *others), foldings
        contiguous |= found


def _laid_out(
    graph: GraphModule, foldings: Sequence[Decision], device: Device, options: Options, passed: Passed | None
) -> tuple[LoopGraph | None, tuple[LayoutChoice, ...]]:
    """The loops of `graph` with the layouts of its convolutions, None where all lie as in eager, and why they do."""
    choices, prices, less_exact = _candidates(graph, device, options, passed)
    batches = "batch" not in options.disabled_rules
    folded = {folding.nodes[0]: folding for folding in foldings if folding.verdict == FOLDED}
    while prices:
        windows = [node for node in prices if _takes_windows(node, device, options)]
        layouts = ChannelsLast(prices, None, None if passed is None else passed.own_outputs, windows)
        loops = lower(graph, layouts, device)
        weighed = _weigh(layouts, prices, folded, _Conversions(loops, layouts, device, batches))
        losing = [choice for choice in weighed if choice.verdict != MOVED]
        if options.takes_tf32:
            weighed = [_rounded(choice, less_exact) for choice in weighed]
        else:
            moved = (choice for choice in weighed if choice.verdict == MOVED)
            losing += [kept for choice in moved for kept in _kept_exact(choice, less_exact)]
        choices += losing
        if not losing:
            return loops, (*weighed, *choices)
        lost = {name for choice in losing for name in choice.nodes}
        prices = {node: price for node, price in prices.items() if _name(node) not in lost}
    return None, tuple(choices)


def _kept_exact(choice: LayoutChoice, less_exact: Mapping[Node, Rounding]) -> Iterator[LayoutChoice]:
    """The record of the convolutions of a region which stay as they are since the library is exact there alone."""
    nodes = [node for node in less_exact if _name(node) in choice.nodes]
    if nodes:
        numbers = {**choice.numbers, **_errors_of(nodes, less_exact)}
        names = tuple(map(_name, nodes))
        yield replace(choice, reason="layout.precision", nodes=names, lines=all_lines_noted(nodes), numbers=numbers)


def _rounded(choice: LayoutChoice, less_exact: Mapping[Node, Rounding]) -> LayoutChoice:
    """The record of a region that moves, which says so where it is less exact than eager."""
    nodes = [node for node in less_exact if _name(node) in choice.nodes]
    if choice.verdict != MOVED or not nodes:
        return choice
    return replace(choice, reason="layout.rounded", numbers={**choice.numbers, **_errors_of(nodes, less_exact)})


def _errors_of(nodes: Sequence[Node], less_exact: Mapping[Node, Rounding]) -> dict[str, Any]:
    """The largest errors of these, in either layout."""
    found = [less_exact[node] for node in nodes]
    return {
        "kept_error": max(rounding.kept_error for rounding in found),
        "moved_error": max(rounding.moved_error for rounding in found),
        "errors": "measured" if all(rounding.is_measured for rounding in found) else "predicted",
        "knob": KNOB_OF_ROUNDING,
    }


def _laid_out_as_forward(
    graph: GraphModule, passed: Passed, device: Device, options: Options
) -> tuple[LoopGraph, tuple[LayoutChoice, ...]]:
    """The loops of a backward graph, and the decisions on its convolutions, which were taken with the forward graph."""
    moved = {passed.gradients[name].name for name in moved_by_forward(passed)}
    prices = {
        node: price_of_gradients(convolution_of(node), device, bool(node.args[10][0])) or Price(0.0, 0.0)
        for node in graph.graph.find_nodes(op="call_function", target=aten.convolution_backward.default)
        if node.name in moved
    }
    names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    inputs = {names[position]: strides for position, strides in passed.strides_taken.items()}
    kept = kept_by_forward(passed)
    if not prices and not inputs:
        return lower(graph, device=device), kept
    layouts = ChannelsLast(prices, inputs)
    loops = lower(graph, layouts, device)
    costs = _Conversions(loops, layouts, device, "batch" not in options.disabled_rules)
    weighed = [replace(choice, reason="layout.channels_last") for choice in _weigh(layouts, prices, {}, costs)]
    return loops, (*weighed, *kept)


def _candidates(
    graph: GraphModule, device: Device, options: Options, passed: Passed | None
) -> tuple[list[LayoutChoice], dict[Node, Price], dict[Node, Rounding]]:
    """The records of the convolutions that stay, one for each reason; the others, which may move, with their prices;
    and those of them that would be less exact. Where a backward graph is to follow, the gradients' calls are in the
    price of a convolution."""
    kept: dict[str, list[Node]] = defaultdict(list)
    prices: dict[Node, Price] = {}
    less_exact: dict[Node, Rounding] = {}
    for node in graph.graph.nodes:
        if node.target not in (aten.convolution.default, FUSED_CONVOLUTION) or len(node.meta["val"].shape) != 4:
            continue
        found = _priced(node, device, options, passed)
        if isinstance(found, str):
            kept[found].append(node)
            continue
        prices[node], rounding = found
        if rounding is not None and not rounding.is_rounded:
            less_exact[node] = rounding
    records = [_record(reason, nodes, {"device": device.name, "knob": KNOB}) for reason, nodes in kept.items()]
    return records, prices, less_exact


def _priced(node: Node, device: Device, options: Options, passed: Passed | None) -> tuple[Price, Rounding | None] | str:
    """What the convolution takes in either layout, and its gradients, and where TF32 is taken how it is rounded; or the
    id of the reason for which it stays."""
    if KNOB in options.disabled_rules:
        return "policy.disabled"
    image, weight, *_, is_transposed, _, groups = _values(node)
    result = node.meta["val"]
    if not all(isinstance(size, int) for value in (image, weight, result) for size in (*value.shape, *value.stride())):
        return "layout.open_sizes"
    wanted = channels_last_strides(result.shape)
    if lies_alike(result.shape, result.stride(), wanted):
        return "layout.eager"
    image_size, filter_size, size = (tuple(value.shape) for value in (image, weight, result))
    convolution = Convolution(image_size, filter_size, size, groups, image.dtype, is_transposed)
    has_gradients = passed is not None and _name(node) in passed.gradients
    price, rounding = price_of(convolution, device), None
    if precision_of(convolution, device) == "tf32":
        if has_gradients:
            return "layout.gradients"
        rounding = rounding_of(convolution, _values(node))
        if not rounding.is_rounded_if_moved:  # then matrix units have no part in it
            return "layout.library"
        if not rounding.is_rounded:
            price = price_of_rounding(convolution, device)
    is_known = price is not None and (not has_gradients or price_of_gradients(convolution, device, True) is not None)
    if price is None or not is_known or not _stays_channels_last(node, wanted):
        return "layout.library"
    if _takes_windows(node, device, options):
        price = replace(price, channels_last=windows_us(convolution, device))
    if IS_DEPTHWISE_LOOP in node.meta and not _is_read_channels_last(node):
        # A loop is as fast in either layout.
        price = Price(price.channels_last, price.channels_last)
    price = replace(price, channels_last=price.channels_last - _spared(node, device))
    return price + price_of_backward(convolution, _name(node), passed, device), rounding


def _is_read_channels_last(node: Node, steps: int = 3) -> bool:
    """Whether the channels are brought to the last place a few calls after it, as for a normalisation of them."""
    return any(
        (user.target is aten.permute.default and list(user.args[1]) == [0, 2, 3, 1])  # type: ignore[arg-type]
        or (steps > 1 and _is_read_channels_last(user, steps - 1))
        for user in node.users
    )


def _spared(node: Node, device: Device) -> float:
    """Microseconds of the pass over the result that a product of pixels and channels makes needless, where loops are
    all that reads it: they are computed with it."""
    _, weight, _, stride, padding, _, is_transposed, _, groups = _values(node)
    result = node.meta["val"]
    if not is_pixel_product(weight.shape, result.dtype, stride, padding, is_transposed, groups):
        return 0.0
    if len(node.users) != 1 or any(user.op == "output" or user.target in CALLS for user in node.users):
        return 0.0
    return copy_us(2 * result.numel() * result.dtype.itemsize, device)


def _takes_windows(node: Node, device: Device, options: Options) -> bool:
    """Whether a convolution that moves becomes a product over the windows of the image."""
    if node.target is not aten.convolution.default or PATCHES in options.disabled_rules:
        return False
    image, weight, _, _, _, dilation, is_transposed, _, groups = _values(node)
    if not is_window_product(weight.shape, image.dtype, dilation, is_transposed, groups):
        return False
    image_size, filter_size, size = (tuple(value.shape) for value in (image, weight, node.meta["val"]))
    return takes_windows(Convolution(image_size, filter_size, size, groups, image.dtype), device)


def _stays_channels_last(node: Node, wanted: Sequence[Integer]) -> bool:
    """Whether ATen gives the result channels-last where image and filter are."""
    arguments = _values(node)
    strides = {position: channels_last_strides(arguments[position].shape) for position in (0, 1)}
    return lies_alike(node.meta["val"].shape, strides_of_result(aten.convolution.default, arguments, strides), wanted)


def _values(node: Node) -> tuple[Any, ...]:
    """What `aten.convolution` takes, with the fake tensor of each node."""
    values: tuple[Any, ...] = torch.fx.node.map_arg(node.args, lambda argument: argument.meta["val"])
    if node.target is FUSED_CONVOLUTION:
        image, weight, _, _, *geometry = values
        return (image, weight, None, *geometry, False, [0, 0], 1)
    return values


def _weigh(
    layouts: ChannelsLast, prices: dict[Node, Price], folded: Mapping[str, Decision], costs: _Conversions
) -> list[LayoutChoice]:
    """What each region of a lowering gains and costs. What was folded can be so channels-last only."""
    members: dict[str, list[Node]] = defaultdict(list)
    for node in prices:
        members[layouts.region_of(node.name)].append(node)
    found = []
    for region, nodes in members.items():
        taken = [folded[name] for name in map(_name, nodes) if name in folded]
        kept_us = sum(prices[node].contiguous for node in nodes) + sum(one.numbers["saved_us"] for one in taken)
        library_us = sum(prices[node].channels_last for node in nodes) + sum(one.numbers["filter_us"] for one in taken)
        conversions_us = sum(costs.microseconds(conversion) for conversion in costs.of(region))
        moved_us = library_us + conversions_us
        numbers = {
            "kept_us": kept_us, "moved_us": moved_us, "conversions_us": conversions_us,
            "conversions": len(costs.of(region)), "bytes": sum(map(costs.bytes, costs.of(region))),
        }  # fmt: skip
        found.append(LayoutChoice(
            "layout.channels_last" if moved_us < kept_us else "layout.slower",
            numbers, tuple(map(_name, nodes)), all_lines_noted(nodes),
            tuple(name for name, own in layouts.moved.items() if layouts.region_of(own) == region),
            tuple((conversion, costs.bytes(conversion)) for conversion in costs.of(region)),
        ))  # fmt: skip
    return found


class _Conversions:
    """The copies that a lowering made at the edges of its regions, and what they cost.

    A copy of what a loop makes is fused into that loop: it costs its bytes once more if others read what it was made
    of, and nothing otherwise. Any other is a kernel; that of a small filter, which waits for nothing, shares the launch
    of another one where `batches`."""

    def __init__(self, loops: LoopGraph, layouts: ChannelsLast, device: Device, batches: bool) -> None:
        self.loops, self.layouts, self.device, self.batches = loops, layouts, device, batches
        self._nodes = {node.name: node for node in loops.nodes if isinstance(node, LoopNode)}
        self._readers: dict[str, int] = defaultdict(int)
        for node in loops.nodes:
            for buffer in node.read_buffers:
                self._readers[buffer] += 1
        self._by_region: dict[str, list[Conversion]] = defaultdict(list)
        for conversion in layouts.conversions:
            if conversion.name in self._nodes:
                self._by_region[self._region(conversion)].append(conversion)

    def _region(self, conversion: Conversion) -> str:
        moved = self.layouts.moved
        return self.layouts.region_of(moved.get(conversion.name) or moved[conversion.source])

    def of(self, region: str) -> list[Conversion]:
        return self._by_region[region]

    def bytes(self, conversion: Conversion) -> int:
        """Read and written, as a kernel of its own would."""
        return 2 * self.loops.buffers[conversion.name].bytes

    def microseconds(self, conversion: Conversion) -> float:
        if conversion.source in self._nodes:
            is_read = self._readers[conversion.source] > 1 or conversion.source in self.loops.output_buffers
            return 1e6 * self.loops.buffers[conversion.name].bytes / self.device.bandwidth if is_read else 0.0
        cost = group_cost(single(self._nodes[conversion.name]), self.loops.buffers, self.device)
        is_small = self.loops.buffers[conversion.name].bytes <= MOST_EARLY
        shares = self.batches and conversion.what == "filter" and is_small
        return cost.microseconds - self.device.alone_us - (start_us(self.device) if shares else 0.0)


def _record(reason: str, nodes: Sequence[Node], numbers: dict[str, Any]) -> LayoutChoice:
    return LayoutChoice(reason, numbers, tuple(map(_name, nodes)), all_lines_noted(nodes))


def _name(convolution: Node) -> str:
    """The name that it has in the graph as it was captured."""
    stands_for: tuple[str, ...] = convolution.meta.get(STANDS_FOR, (convolution.name,))
    return stands_for[0]
