"""Which scores a mask leaves out: what the fused operator is told, and what it would get wrong.

By hand, a row of scores that is masked altogether becomes NaN (filled with minus infinity) or the mean of all values
(filled with a finite number). The fused kernels give zeros or NaN for such a row, each as it likes. So, unless no row
can be empty, empty rows attend to everything in the fused operator, and what eager gives is put in their place
afterwards; the gradients are eager's too, since the operator gets no gradient from those rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.fx import Node

from compiler.fx.fake_values import outside_fake_mode
from compiler.passes.rewrite.attention import Attention, BooleanMask
from compiler.passes.rewrite.calls import tensor_of
from compiler.passes.rewrite.constants import constant_of
from compiler.passes.rewrite.patterns import attended_by, is_lower_triangle, leaves_no_row_empty, leaves_nothing_out
from compiler.passes.rewrite.reasons import NotLegalError
from compiler.passes.rewrite.repeated import distinct
from compiler.passes.rewrite.writer import Writer

#: A row whose highest bias is lower than this is shifted, so that it is 0, where gradients are wanted.
_FAR = -1000.0


@dataclass
class MaskPlan:
    """`is_causal` stands for a lower triangle; `attended` is boolean, true where a score counts; `bias` is added.
    `fill` is what empty rows were filled with by hand, None where no row can be empty."""

    is_causal: bool = False
    attended: list[BooleanMask] | None = None
    biases: list[tuple[Node, float]] | None = None
    fill: float | None = None
    #: Whether minus infinity was added and not filled in: by hand, queries and keys of an empty row get NaN then.
    is_added: bool = False

    def describe(self) -> str:
        if self.is_causal:
            return "The mask is the lower triangle, so the kernel skips what is above it."
        kinds = [name for name, found in (("the mask", self.attended), ("the bias", self.biases)) if found]
        if not kinds:
            return "No score is masked."
        told = f"{' and '.join(kinds)} is handed on".capitalize()
        return told + ("; rows that it masks altogether get what eager gives." if self.fill is not None else ".")


def plan_masks(found: Attention) -> MaskPlan:
    """What of the masks has to be handed on. Raises NotLegalError where empty rows could not be made right."""
    masks, biases = _masks_that_mask(found), []
    has_unknown_bias = is_added = False
    for bias, factor in found.biases:
        _check_bias(bias, found)
        known = constant_of(bias, found.product)
        if known is not None and not distinct(known).any():
            continue
        if known is not None and _is_mask(known, factor, found):
            masks.append(BooleanMask(bias, False, -math.inf))
            is_added = True
            continue
        biases.append((bias, factor))
        has_unknown_bias |= known is None or not bool(torch.isfinite(distinct(known)).all())
        is_added |= has_unknown_bias
    fill = next((mask.fill for mask in masks), None)
    if fill is not None and any(mask.fill != fill for mask in masks):
        raise NotLegalError("mask.mixed_fills", "one mask fills in minus infinity and another a finite number")
    if fill not in (None, -math.inf) and has_unknown_bias:
        raise NotLegalError("mask.mixed_fills", "the bias may hold minus infinity")
    if masks and not biases and _are_lower_triangle(masks, found):
        return MaskPlan(is_causal=True)
    is_full = not has_unknown_bias and (not masks or _no_row_is_empty(masks, found))
    if not is_full and found.dropout and fill not in (None, -math.inf):
        raise NotLegalError("mask.mixed_fills", "rows that are masked altogether go through dropout")
    if not is_full and is_added and found.masks and wants_gradient(found):
        raise NotLegalError("mask.mixed_fills", "minus infinity is both filled in and added, and gradients are wanted")
    return MaskPlan(False, masks, biases, None if is_full else -math.inf if fill is None else fill, is_added)


def wants_gradient(found: Attention) -> bool:
    result = tensor_of(found.result)
    return result is not None and result.requires_grad


def _check_bias(bias: Node, found: Attention) -> None:
    value, query = tensor_of(bias), tensor_of(found.query.node)
    assert value is not None and query is not None
    if value.requires_grad:
        raise NotLegalError("mask.learned", f"{bias.name} requires a gradient")
    is_exact = value.is_floating_point() and torch.promote_types(value.dtype, query.dtype) == query.dtype
    if value.dim() and not is_exact:  # a scalar does not widen
        raise NotLegalError("mask.wider_dtype", f"{bias.name} is {value.dtype}".replace("torch.", ""))


def _masks_that_mask(found: Attention) -> list[BooleanMask]:
    """The boolean masks but for those that leave nothing out, in no call."""
    known = ((mask, _known_attended([mask], found)) for mask in found.masks)
    return [mask for mask, attended in known if attended is None or not leaves_nothing_out(attended)]


def _is_mask(known: torch.Tensor, factor: float, found: Attention) -> bool:
    """Whether what is added leaves scores out and does nothing else. A finite number that is added to a row of which
    nothing else is left tells what the scores of that row were, so there must be no such row."""
    attended = attended_by(known)
    if attended is None or factor <= 0:
        return False
    if bool((distinct(known) == -math.inf).any()):
        return True
    is_alone = not found.masks and len(found.biases) == 1
    return is_alone and factor >= 1 and leaves_no_row_empty(attended)


def _are_lower_triangle(masks: list[BooleanMask], found: Attention) -> bool:
    """Whether exactly the scores on and below the diagonal of the scores count, whatever the call."""
    joined = _known_attended(masks, found)
    return joined is not None and is_lower_triangle(joined, found.query.sizes()[-2], found.key.sizes()[-2])


def _no_row_is_empty(masks: list[BooleanMask], found: Attention) -> bool:
    joined = _known_attended(masks, found)
    return joined is not None and leaves_no_row_empty(joined)


def _known_attended(masks: list[BooleanMask], found: Attention) -> torch.Tensor | None:
    """Which scores count, where every mask is the same in each call; the size is one where that repeats."""
    joined = torch.ones((), dtype=torch.bool, device="cpu")
    with outside_fake_mode():
        for mask in masks:
            known = constant_of(mask.node, found.product)
            attended = None if known is None else attended_by(known)
            if attended is None:
                return None
            joined = joined & (attended if mask.keeps or _is_added(mask) else ~attended)
    return joined


def _is_added(mask: BooleanMask) -> bool:
    value = tensor_of(mask.node)
    return value is not None and value.dtype != torch.bool


def write_masks(
    plan: MaskPlan, dtype: torch.dtype, is_training: bool, writer: Writer
) -> tuple[Node | None, Node | None]:
    """Join masks and biases into the one argument that the operator has for them, in the dtype of the queries. That
    mask, and which rows of it are empty."""
    attended = _write_attended(plan.attended or [], writer)
    bias: Node | None = None
    for node, factor in plan.biases or []:
        value = tensor_of(node)
        assert value is not None
        term = node if value.dtype == dtype else writer.call("to", node, dtype)
        term = term if factor == 1.0 else writer.call(torch.mul, term, factor)
        bias = term if bias is None else writer.call(torch.add, bias, term)
    if attended is not None and bias is not None:
        bias, attended = writer.call(torch.where, attended, bias, -math.inf), None
    return _with_empty_rows(plan, attended, bias, is_training, writer)


def _write_attended(masks: list[BooleanMask], writer: Writer) -> Node | None:
    joined: Node | None = None
    for mask in masks:
        if _is_added(mask):
            term = writer.call(torch.eq, mask.node, 0)
        else:
            term = mask.node if mask.keeps else writer.call(torch.logical_not, mask.node)
        joined = term if joined is None else writer.call(torch.logical_and, joined, term)
    return joined


def _with_empty_rows(
    plan: MaskPlan, attended: Node | None, bias: Node | None, is_training: bool, writer: Writer
) -> tuple[Node | None, Node | None]:
    """Let rows that attend to nothing attend to everything, and say which they are.

    The kernels' backward passes take exp(score - log of the sum), which has no digits left for the sum where a whole
    row is near -1e9. Softmax is the same when a row is shifted, so such a row is.
    """
    mask = bias if attended is None else attended
    if plan.fill is None:
        return mask, None
    if attended is not None:
        empty = writer.call(torch.logical_not, writer.call(torch.any, attended, -1, True))
        return writer.call(torch.logical_or, attended, empty), empty
    highest = writer.call(torch.amax, mask, -1, True)
    empty = writer.call(torch.eq, highest, -math.inf)
    if is_training:
        is_near = writer.call(torch.logical_or, writer.call(torch.gt, highest, _FAR), empty)
        mask = writer.call(torch.sub, mask, writer.call(torch.where, is_near, 0.0, highest))
    return writer.call(torch.where, empty, 0.0, mask), empty
