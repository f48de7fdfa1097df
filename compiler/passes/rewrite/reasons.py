"""What a rewrite decided, and why: the one closed list.

A rewrite that is not legal is a value with a reason, never a silent no: the reader wrote something that looks like
attention and learns what stands between it and the fused operator. `sentence` is for a learner, `remedy` says what the
author can do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """What was decided, as one sentence, and what a reader can do about it, where there is something to do."""

    id: str
    sentence: str
    remedy: str = ""


_SDPA = "torch.nn.functional.scaled_dot_product_attention"

REASONS: dict[str, Reason] = {
    reason.id: reason
    for reason in (
        Reason(
            "attention.replaced",
            "Softmax of a scaled product of queries and keys, times the values, is attention: nothing else reads the "
            "scores or the weights, so one library kernel computes it and neither of them reaches memory.",
        ),
        Reason(
            "call.mask_of_ones",
            "The mask that attention is called with is the same in every call and leaves no score out, so the call is "
            "made without it: no mask has to be made or read, and a faster kernel may be taken.",
        ),
        Reason(
            "call.mask_is_causal",
            "The mask that attention is called with is the lower triangle in every call, so is_causal says it instead: "
            "no mask has to be made or read, and the kernel skips what is above the diagonal.",
        ),
        Reason(
            "call.mask_written_out",
            "The last dimension of the mask is expanded or strided, which none of torch's fused kernels takes: it is "
            "written out once, so that the scores need not be in memory.",
        ),
        Reason(
            "call.mask_varies",
            "The mask that attention is called with depends on what the call is given, so the kernel has to read it.",
            "Pass no mask where none is needed, and is_causal=True for the lower triangle.",
        ),
        Reason(
            "call.mask_of_other_form",
            "The mask that attention is called with is the same in every call, but it is neither full nor the lower "
            "triangle, which are all that a kernel can be told without one.",
        ),
        Reason(
            "call.mask_beside_causal",
            "The call has a mask and is_causal, which torch takes for a mistake in some kernels and not in others.",
            "Join the lower triangle into the mask.",
        ),
        Reason(
            "call.heads_where_they_are",
            "Keys and values were repeated for each group of the queries' heads. The kernel reads them where they are, "
            "once it is told (enable_gqa), so no copy is made.",
        ),
        Reason(
            "call.heads_of_another_kernel",
            "Keys and values are repeated for each group of the queries' heads, and told of the groups, torch would "
            "take another kernel.",
        ),
        Reason(
            "scores.read_elsewhere",
            "The scores are read by something else than the softmax, so they have to be in memory anyway.",
            "Drop the other reader, or compute it in a pass of its own.",
        ),
        Reason(
            "weights.read_elsewhere",
            "The attention weights are read by something else than the product with the values (they may be returned), "
            "so they have to be in memory anyway.",
            "Do not return the weights where nobody needs them.",
        ),
        Reason(
            "scores.other_operation",
            "Something other than a scale, a mask, a bias or a cast lies between the product and the softmax, which "
            "the fused operator has no argument for.",
        ),
        Reason(
            "weights.other_operation",
            "Something other than dropout or a cast lies between the softmax and the product with the values, which "
            "the fused operator has no argument for.",
        ),
        Reason(
            "softmax.not_last_dimension",
            "The softmax does not run along the keys, which attention normalises over.",
            "Take the softmax over the last dimension of the scores.",
        ),
        Reason(
            "scale.not_a_number",
            "The scores are scaled by a tensor or by a number that changes from call to call; the fused operator takes "
            "a fixed number.",
            "Multiply the queries by it instead.",
        ),
        Reason(
            "scale.not_positive",
            "A fused kernel takes the largest score before it scales, so the scale has to be positive and finite.",
            "Negate the queries instead.",
        ),
        Reason(
            "mask.learned",
            "A gradient is wanted of the bias that is added to the scores, and the kernels give none.",
        ),
        Reason(
            "mask.wider_dtype",
            "The bias is of a wider dtype than the queries and would have to be rounded to theirs.",
            "Make the bias in the dtype of the queries.",
        ),
        Reason(
            "mask.not_boolean",
            "The mask that fills scores is not boolean, or what it fills in is no fixed number.",
            "Compare the mask with a number first (mask == 0), and fill in a number.",
        ),
        Reason(
            "mask.weak_fill",
            "The number that masks a score is not so low that its weight is surely zero: the scores' dtype tells "
            "numbers near it apart.",
            "Fill in float('-inf').",
        ),
        Reason(
            "mask.mixed_fills",
            "Several masks with different numbers, or a finite one with a bias or with dropout, give rows that are "
            "masked altogether other weights than the fused operator could.",
            "Join the masks into one, and fill in float('-inf').",
        ),
        Reason(
            "dtype.mixed",
            "Queries, keys, values and result are not of one floating-point dtype, or the scores are narrower.",
            "Cast queries, keys and values to one dtype before.",
        ),
        Reason("device.mixed", "Queries, keys, values and masks are not on one device."),
        Reason(
            "shape.rank",
            "The fused operator takes (batch, length, depth) or (batch, heads, length, depth), in this order.",
            "Reshape queries, keys and values to four dimensions.",
        ),
        Reason(
            "memory.changed_meanwhile",
            "Something between the first product and the last writes to a tensor or changes a mode, so computing all "
            "of it at the end might read other values.",
            "Move the in-place operation out of the middle.",
        ),
        Reason(
            "layout.not_kept",
            "The result of eager mode has strides that the fused operator's result would have to be rearranged for.",
        ),
        Reason(
            "kernel.none",
            "None of torch's fused attention kernels takes these arguments on this device (dropout on a CPU, values of "
            "another depth than the queries), or only one that is slower than the products (a head that is too wide).",
            f"See which of them {_SDPA} would take.",
        ),
        Reason(
            "one_hot.sum",
            "Each row of this matrix holds one number or a few, and zeros otherwise, as in the gradient of cross "
            "entropy: what a row sums to is known from those alone, so no pass over the matrix is needed for it.",
        ),
        Reason(
            "picked.rows",
            "Each row gets one number back, since the numbers were picked from the rows in turn: no addition has to be "
            "atomic, and every element can ask whether it is the place, so that nothing is filled first.",
        ),
        Reason(
            "pooling.bytes",
            "The gradient of a maximum over windows needs where each one lay. Windows that do not overlap save it as a "
            "place in the window, one byte, instead of a place in the image, eight.",
        ),
    )
}


class NotLegalError(Exception):
    """Raised while a match is examined: the id of the reason, and what exactly it was found in."""

    def __init__(self, reason: str, detail: str = "") -> None:
        if reason not in REASONS:
            raise KeyError(f"{reason!r} is not in the closed list of reasons")
        super().__init__(reason)
        self.reason, self.detail = reason, detail
