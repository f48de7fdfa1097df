"""A matrix product with what is fused into it, on a CPU: the library's calls, and kernels before and after it.

The tiles are for GPUs. A CPU's library has the better product, so what a GPU does in one kernel is done in steps.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from compiler.codegen.cpp.render import render_cpp
from compiler.codegen.rendered import RenderedKernel
from compiler.ir.nodes import ExternNode, TensorArgument
from compiler.lowering.registry import operator_name
from compiler.schedule.products.loops import Product


def render_product(product: Product, storage: dict[str, torch.dtype]) -> RenderedKernel:
    """The steps around the calls, as one kernel with the parameters that a GPU's kernel has; there may be none."""
    groups = [replace(group, name=f"{product.name}_before_{n}") for n, group in enumerate(product.before, start=1)]
    if product.after is not None:
        groups.append(product.after)
    steps = tuple(render_cpp(group, storage) for group in groups)
    order = "" if not steps else " before this one" if product.after is not None else " after this one"
    note = "".join(f"// The library's {_text_of(call)} runs{order}.\n" for call in product.calls)
    parameters = tuple(dict.fromkeys((*product.read_buffers, *sorted(product.stored))))
    lines = tuple((line + len(product.calls), nodes) for step in steps[-1:] for line, nodes in step.lines)
    config = steps[-1].config if steps else {}
    return RenderedKernel(
        product.name, "cpp", note + "\n".join(step.source for step in reversed(steps)), parameters, lines, config,
        steps=steps,
    )  # fmt: skip


def _text_of(call: ExternNode) -> str:
    tensors = ", ".join(a.buffer for a in call.arguments if isinstance(a, TensorArgument))
    return f"{operator_name(call.target)}({tensors})"
