"""A matrix product with what is fused into it, on a CPU: kernels before the library's calls, the calls, those after.

It is launched like the one kernel that it is on a GPU: outputs are filled in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.ir.nodes import Layout, TensorArgument
from compiler.runtime.executable import as_planned
from compiler.runtime.host.quick_torch import view
from compiler.schedule.products.loops import Product

Launcher = Callable[..., None]


def product_launcher(
    product: Product, kernel: RenderedKernel, functions: Mapping[str, Launcher], layouts: Mapping[str, Layout]
) -> Launcher:
    """A function of the tensors of `kernel.parameters`; `functions` are its steps by name, `layouts` those of every
    buffer."""

    def run(values: dict[str, torch.Tensor], step: RenderedKernel) -> None:
        functions[step.name](*(values[name] for name in step.parameters))

    def argument(value: Any, values: dict[str, torch.Tensor]) -> Any:
        if not isinstance(value, TensorArgument):
            return value
        layout = value.layout
        return view(values[value.buffer], layout.shape, layout.stride, layout.offset)  # type: ignore[arg-type]

    def launch(*tensors: torch.Tensor) -> None:
        values = dict(zip(kernel.parameters, tensors, strict=True))
        before = kernel.steps[: len(product.before)]
        for step, group in zip(before, product.before, strict=True):
            for name in group.stored:
                values[name] = _empty(layouts[name])
            run(values, step)
        for call in product.calls:
            arguments = [argument(value, values) for value in call.arguments]
            layout = layouts[call.name]
            result = as_planned(call.target(*arguments, **call.keywords), layout.shape, layout.stride)  # type: ignore[arg-type]
            if call.name in product.stored:
                values[call.name].copy_(result)
            values[call.name] = result
        for step in kernel.steps[len(before) :]:
            run(values, step)

    launch.__name__ = kernel.name
    return launch


def _empty(layout: Layout) -> torch.Tensor:
    return torch.empty_strided(layout.shape, layout.stride, dtype=layout.dtype)  # type: ignore[arg-type]
