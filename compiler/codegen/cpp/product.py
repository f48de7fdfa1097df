"""A matrix product with what is fused into it, on a CPU: the library's call, and kernels before and after it.

The tiles are for GPUs. A CPU's library has the better product, so what a GPU does in one kernel is done in steps.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from compiler.codegen.cpp.render import render_cpp
from compiler.codegen.rendered import RenderedKernel
from compiler.ir.nodes import TensorArgument
from compiler.lowering.registry import operator_name
from compiler.schedule.products import Product


def render_product(product: Product, storage: dict[str, torch.dtype]) -> RenderedKernel:
    """The steps around the call, as one kernel with the parameters that a GPU's kernel has."""
    groups = [replace(group, name=f"{product.name}_before_{n}") for n, group in enumerate(product.before, start=1)]
    if product.after is not None:
        groups.append(product.after)
    steps = tuple(render_cpp(group, storage) for group in groups)
    tensors = ", ".join(a.buffer for a in product.call.arguments if isinstance(a, TensorArgument))
    place = "before this one" if product.after is not None else "after this one"
    note = f"// The library's {operator_name(product.call.target)}({tensors}) runs {place}.\n"
    parameters = tuple(dict.fromkeys((*product.read_buffers, *sorted(product.stored))))
    shown = steps[-1]
    lines = tuple((line + 1, nodes) for line, nodes in shown.lines)
    return RenderedKernel(
        product.name, "cpp", note + "\n".join(step.source for step in reversed(steps)), parameters, lines, shown.config,
        steps=steps,
    )  # fmt: skip
