"""The one list of passes, in the order in which they run, and the level at which each one does.

    before gradients   `rewrite.rewriting`, of Dynamo's graph: attention written by hand, masks and heads of torch's own
    with gradients     `WITH_GRADIENTS`, of the joint graph of a training step, before it is split; then `pad_joint`
    of each graph      `OF_EACH_GRAPH`, of what is compiled, forward, backward or neither
    in each layout     `fold`, then `IN_EACH_LAYOUT`, for each choice of the convolutions that are channels-last, which
                       `layout.decide` makes as it lowers what comes of them to loops

A pass takes a graph and gives another one, or the same where it changes nothing, with its decisions. A graph is never
changed that is not the pass's own copy, but for joint graphs, which AOTAutograd hands over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch.fx import GraphModule

from compiler.devices import Device
from compiler.options import Options
from compiler.passes.complex_numbers.conjugates import conjugate_as_copied, conjugate_numbers
from compiler.passes.complex_numbers.write import in_real_numbers
from compiler.passes.folding.bias import with_bias_apart
from compiler.passes.layout.depthwise import with_depthwise_loops
from compiler.passes.layout.patches import with_products
from compiler.passes.padding.decide import pad_products
from compiler.passes.rewrite.joint import lay_gradients_out, save_short_indices, save_what_is_searched
from compiler.passes.rewrite.one_hot import sum_one_hots
from compiler.passes.rewrite.picked_numbers import add_along_rows

Pass = Callable[[GraphModule, Device, Options], tuple[GraphModule, tuple[Any, ...]]]

WITH_GRADIENTS: tuple[Callable[[GraphModule], object], ...] = (
    save_short_indices,  # where maxima over windows lie
    save_what_is_searched,  # for its maximum
    add_along_rows,  # gradients of numbers that were picked from rows
    sum_one_hots,  # sums of rows of one number, which the pass before makes too
    lay_gradients_out,  # for cuDNN's attention
)

OF_EACH_GRAPH: tuple[Pass, ...] = (
    conjugate_numbers,  # which gradients of products by one have
    conjugate_as_copied,  # conjugates that are copied
    in_real_numbers,  # complex numbers as pairs
    pad_products,  # matrices of sizes that eight does not divide
)

IN_EACH_LAYOUT: tuple[Pass, ...] = (
    with_products,  # convolutions of windows that do not overlap
    with_depthwise_loops,  # convolutions with a filter for each channel
    with_bias_apart,  # of the convolutions that are left, and of float32 products
)


def run(
    passes: Iterable[Pass], graph: GraphModule, device: Device, options: Options
) -> tuple[GraphModule, tuple[Any, ...]]:
    """What comes of a graph by these passes, one after another, and all that they decided."""
    decisions: tuple[Any, ...] = ()
    for change in passes:
        graph, decided = change(graph, device, options)
        decisions += decided
    return graph, decisions
