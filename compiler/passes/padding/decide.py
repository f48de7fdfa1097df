"""Which products are padded: weighed one by one, each with a record.

In a training step the joint graph is changed before it is split, so that what is saved is padded once for both sides;
any other graph when it is compiled. Either way the record stays at the product's node until the report is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from compiler.devices import Device, device_for
from compiler.fx.fake_values import device_of, hint_of
from compiler.fx.notes import COMPUTED_FOR, PADDING, lines_noted
from compiler.options import Options
from compiler.passes.layout.passed import has_gradients
from compiler.passes.padding.choice import KNOB, PaddingChoice
from compiler.passes.padding.write import PLACES, PRODUCTS, Product, Writer, copied_for, copy_of, may_be_apart
from compiler.passes.price import LINE, WORTH, alignment, apart_us, copy_us, counting, padded, product_us
from compiler.passes.writing import copied

#: Products of fewer multiplications take little longer than a launch, and so do copies.
LEAST_PRODUCTS = 1 << 30
#: With fewer rows or columns the library has kernels of another kind: 1 row of 50,257 columns takes 29 us, 32 rows 116.
FEWEST = 8


def pad_joint(joint: GraphModule, options: Options, target: str | None = None) -> None:
    """Pad products of the joint graph of a training step in place, where that is expected to pay. Decisions are for the
    device that the graph runs on, or for `target` where that is named."""
    device = device_for(options.device_model or target or device_of(joint))
    if _pad(_candidates(joint.graph), Writer(joint.graph, is_captured=False), device, options):
        joint.graph.lint()
        joint.recompile()


def pad_products(graph: GraphModule, device: Device, options: Options) -> tuple[GraphModule, tuple[PaddingChoice, ...]]:
    """A copy of a captured graph with its products padded, or `graph` itself where none is, and all records. What was
    decided with a joint graph stays."""
    if has_gradients(graph) or not _candidates(graph.graph):
        return graph, _records(graph.graph)
    copy = copied(graph)
    is_changed = _pad(_candidates(copy.graph), Writer(copy.graph, is_captured=True), device, options)
    return copy if is_changed else graph, _records(copy.graph)


def _pad(candidates: Iterable[Node], writer: Writer, device: Device, options: Options) -> bool:
    """Whether any of them was padded. One that is changes the operands of those behind it: each is read in its turn."""
    is_changed = False
    for node in candidates:
        product = Product.of(node)
        choice = None if product is None else _weigh(product, writer, device, options)
        if product is None or choice is None:
            continue
        if choice.verdict != "kept":
            node = writer.pad(product, choice.padded) if choice.verdict == "padded" else writer.take_apart(product)
            is_changed = True
        node.meta[PADDING] = choice
    return is_changed


def _candidates(graph: Graph) -> list[Node]:
    """The products of half matrices that are large enough, and have a size that eight does not divide."""
    nodes = (node for node in graph.nodes if node.op == "call_function" and node.target in PRODUCTS)
    return [node for node in nodes if _is_candidate(Product.of(node))]


def _is_candidate(product: Product | None) -> bool:
    if product is None:
        return False
    left, right = _value(product.left), _value(product.right)
    if left is None or right is None or left.dtype not in (torch.float16, torch.bfloat16) or left.dtype != right.dtype:
        return False
    rows, inner, columns = sizes = [hint_of(size) for size in product.sizes]
    if min(rows, columns) < FEWEST or rows * inner * columns < LEAST_PRODUCTS:
        return False
    return any(counts and size % 8 for size, counts in zip(sizes, counting(left, right), strict=True))


def _weigh(product: Product, writer: Writer, device: Device, options: Options) -> PaddingChoice | None:
    """The record of a product, None where the device has no tensor cores that one is known of."""
    left, right = product.left.meta["val"], product.right.meta["val"]
    if device.kind == "cpu" or not device.half_product_flops:
        return None
    if not all(isinstance(size, int) for size in product.sizes):
        return PaddingChoice("padding.open_sizes", sizes=product.sizes, padded=product.sizes)
    sizes, counts = product.sizes, counting(left, right)
    wide: Any = tuple(padded(size) if matters else size for size, matters in zip(sizes, counts, strict=True))
    least = min(alignment(size) for size, matters in zip(sizes, counts, strict=True) if matters)
    if wide == sizes:
        return None
    copies = tuple(writer.copies(product, wide))
    kept_us = product_us(sizes, least, left.dtype.itemsize, device)
    padded_us = product_us(wide, alignment(0), left.dtype.itemsize, device)
    copies_us = sum(copy_us(copy.bytes, device) for copy in copies)
    apart = _by_rows_apart(product, kept_us, writer, device)
    if apart is not None and (apart.saved_us or 0.0) > max(kept_us - padded_us - copies_us, (1 - WORTH) * kept_us):
        return replace(apart, reason=_unless_disabled("padding.apart", options))
    pays = padded_us + copies_us < WORTH * kept_us
    reason = _unless_disabled("padding.padded" if pays else "padding.slower", options)
    numbers = {"kept_us": kept_us, "padded_us": padded_us, "copies_us": copies_us}
    return PaddingChoice(reason, numbers, sizes=sizes, padded=wide, copies=copies)


def _unless_disabled(reason: str, options: Options) -> str:
    return "policy.disabled" if KNOB in options.disabled_rules else reason


def _by_rows_apart(product: Product, kept_us: float, writer: Writer, device: Device) -> PaddingChoice | None:
    """What it would take by rows that lie apart; None where that cannot be, or where no caller gets the result: a wider
    one costs its readers nothing."""
    if not writer.is_captured or not product.is_returned or not may_be_apart(product):
        return None
    rows, inner, columns = product.sizes
    itemsize = product.left.meta["val"].dtype.itemsize
    wider = inner if product.bias is None else inner + LINE
    copies = () if product.bias is None else (copy_of(product.left, "left"), copy_of(product.right, "right"))
    us = apart_us((rows, wider, columns), itemsize, device)
    copies_us = sum(copy_us(copy.bytes, device) for copy in copies)
    numbers = {"kept_us": kept_us, "padded_us": us, "copies_us": copies_us}
    return PaddingChoice("padding.apart", numbers, sizes=product.sizes, padded=product.sizes, copies=copies)


def _records(graph: Graph) -> tuple[PaddingChoice, ...]:
    """Those of a graph's nodes, by the names that these have in the report, with the user's lines."""
    found = []
    for node in graph.nodes:
        choice: PaddingChoice | None = node.meta.get(PADDING)
        if choice is not None and node.target in PLACES:
            (name,) = node.meta.get(COMPUTED_FOR, (node.name,))
            copies = tuple(replace(copy, node=copied_for(node, copy.what) or name) for copy in choice.copies)
            found.append(replace(choice, nodes=(name,), copies=copies, lines=lines_noted(node)))
    return tuple(found)


def _value(node: Node) -> torch.Tensor | None:
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) else None
