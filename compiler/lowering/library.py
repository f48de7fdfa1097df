"""Operators that stay library calls on purpose: matrix products, convolutions, attention and sorting."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload

from compiler.fx.notes import IS_DEPTHWISE_LOOP
from compiler.ir.library_calls import BY_ROWS_APART, FUSED_CONVOLUTION
from compiler.lowering.builder import Builder
from compiler.lowering.convolutions import convolution
from compiler.lowering.registry import LOWERINGS, overloads

aten = torch.ops.aten

PRODUCTS = (
    "mm bmm addmm baddbmm addbmm _scaled_mm _scaled_mm_v2 _grouped_mm _scaled_grouped_mm addmv _int_mm mv dot vdot"
    " _weight_int8pack_mm _weight_int4pack_mm_for_cpu _sparse_semi_structured_mm"
)
CONVOLUTIONS = "convolution convolution_backward _convolution convolution_overrideable"
ATTENTION = (
    "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention"
    " _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_fused_attention_overrideable"
    " _scaled_dot_product_flash_attention_backward _scaled_dot_product_efficient_attention_backward"
    " _scaled_dot_product_cudnn_attention_backward _scaled_dot_product_flash_attention_for_cpu_backward"
)

SORTING = "sort topk kthvalue median nanmedian mode argsort msort"
#: Draws that take as many random numbers as they need, or every one of them into account.
DRAWS = "multinomial randperm poisson binomial _standard_gamma _sample_dirichlet"
#: Operators whose result has as many elements as the values say.
CHOOSING = "nonzero masked_select unique_consecutive unique_dim _unique _unique2 unique_dim_consecutive bincount"
CHECKS = "_functional_assert_async _functional_assert_scalar _assert_tensor_metadata"

REASONS = {
    PRODUCTS: "A matrix product is a library call: cuBLAS and oneDNN are tuned for every size of it.",
    CONVOLUTIONS: "A convolution is a library call: cuDNN and oneDNN choose its algorithm by its sizes.",
    ATTENTION: "Attention is a library call: its kernel keeps the scores on the chip by an algorithm of its own.",
    SORTING: "Sorting is a library call: every element may have to go past every other, which no one loop does.",
    DRAWS: "PyTorch's own generator draws it, as `torch.manual_seed` sets it: one number may take several draws.",
    CHOOSING: "How many elements it gives is known only when it has run, so it is a library call.",
    CHECKS: "A check has no result that a loop could compute; it stays a call.",
}

#: What such a call moves besides its arguments and results, as far as anything outside of it can tell.
UNSEEN = {
    PRODUCTS: "A matrix product reads each operand again for every tile of the result across it, from caches or from "
    "memory: which tiles the library takes is not known.",
    CONVOLUTIONS: "A convolution may rearrange its tensors in a workspace, and reads them again for each tile: the "
    "library chooses how, and does not tell.",
    ATTENTION: "Attention reads keys and values again for each block of queries, from caches or from memory: how large "
    "the library's blocks are is not known.",
    SORTING: "A sort goes over its data several times, with a second copy in memory: how often is the library's own.",
    CHOOSING: "It goes over its data more than once, to count and then to write.",
}
_OF_FALLBACKS = "It may be several kernels, with results between them in memory."

_UNSEEN_BY_NAME = {f"aten.{name}": sentence for names, sentence in UNSEEN.items() for name in names.split()}


def unseen_in(operator: str, is_fallback: bool = False) -> str:
    """What a call of the operator (`aten.mm`) may move besides; nothing for one that is a single pass."""
    packet = ".".join(operator.split(".")[:2])
    return _UNSEEN_BY_NAME.get(packet, _OF_FALLBACKS if is_fallback else "")


def _register() -> None:
    for names, reason in REASONS.items():
        for name in names.split():
            packet = getattr(aten, name, None)
            for overload in overloads(packet) if packet is not None else []:
                LOWERINGS[overload] = _call(overload, reason)


def _call(target: Any, reason: str) -> Any:
    def library_call(build: Builder, *args: Any, **kwargs: Any) -> Any:
        node, layouts = build.node, build.channels_last
        is_loop = node is not None and IS_DEPTHWISE_LOOP in node.meta
        if is_loop or (layouts is not None and node in layouts.convolutions):
            return convolution(build, target, args, reason)
        return build.extern(target, args, kwargs, is_fallback=False, reason=reason)

    return library_call


#: Calls of our own: a convolution with what was folded into it, and a product into rows that do not start in whole
#: vectors.
OWN_CALLS = {
    FUSED_CONVOLUTION: _call(FUSED_CONVOLUTION, REASONS[CONVOLUTIONS]),
    BY_ROWS_APART: _call(BY_ROWS_APART, REASONS[PRODUCTS]),
}
_register()


def without_aliases(target: OpOverload[..., Any]) -> OpOverload[..., Any]:
    """The variant of a view operator that copies: a library call's result must own its memory, or the plan that reuses
    buffers would not know that its argument is still read."""
    if not any(returned.alias_info is not None for returned in target._schema.returns):
        return target
    namespace, name = target._schema.name.split("::")
    packet = getattr(getattr(torch.ops, namespace), f"{name}_copy", None)
    copying = None if packet is None else getattr(packet, target._overloadname, None)
    return target if copying is None else copying
