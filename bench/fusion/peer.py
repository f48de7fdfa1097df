"""TorchInductor's kernels and bytes for one program, by its own count, without building or running what it generates.

Launches are read from the wrapper that it writes, so that what it leaves to a library or to eager PyTorch counts too:
where it reduces along two axes at once, the wrapper adds up the parts by a `.sum` of its own. Bytes are those that its
scheduler counts for each of its fused nodes: every buffer once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config
from torch._inductor.graph import GraphLowering
from torch._inductor.scheduler import NopKernelSchedulerNode
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from bench.fusion.count import Count, run
from bench.fusion.program import LARGE, Program
from compiler.fx.fake_values import hint_of


def count_peer(program: Program) -> Count:
    """What TorchInductor makes of the program for the GPU `cuda:0`, real or pretended, in its default mode."""
    counts: list[Count] = []

    def generate_only(graph: Any) -> Any:
        wrapper, _ = graph.codegen()
        launched = list(_launches(wrapper.value))
        with V.set_graph_handler(graph):
            moved = sum(_bytes_of(node) for node in graph.scheduler.nodes)
        counts.append(Count(launched.count("kernel"), launched.count("library"), moved))
        return SimpleNamespace(__file__="", call=lambda _: results_of(graph.module))

    torch._dynamo.reset()
    with ExitStack() as stack:
        stack.enter_context(inductor_config.patch(SETTINGS))
        stack.enter_context(mock.patch.object(GraphLowering, "compile_to_module", generate_only))
        stack.enter_context(functorch_config.patch(AOT_SETTINGS))
        stack.enter_context(FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True))
        run(torch.compile(program.function), [one.empty(LARGE, "cuda") for one in program.inputs])
    return sum(counts, Count(0, 0, 0))


#: What would time candidates or compute with real tensors has none here.
SETTINGS = {
    "shape_padding": False,
    "joint_graph_constant_folding": False,
    "fx_graph_cache": False,
    "force_disable_caches": True,
    "compile_threads": 1,
}
AOT_SETTINGS = {"enable_autograd_cache": False, "force_non_lazy_backward_lowering": True}


def _launches(module: str) -> Iterator[str]:
    """For each launch in the wrapper of a generated module what it is: "kernel" or "library"."""
    tree = ast.parse(module)
    (wrapper,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "call")
    for node in ast.walk(wrapper):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name = ast.unparse(node.func)
        if name.endswith(".run"):
            yield "kernel"
        elif name.startswith(("extern_kernels.", "torch.ops.", "aten.")) or node.func.attr in ("sum", "copy_"):
            yield "library"


def _bytes_of(node: Any) -> int:
    return 0 if isinstance(node, NopKernelSchedulerNode) else int(node.get_read_write_buffers_sizes())


def results_of(graph: torch.fx.GraphModule) -> list[Any]:
    """Empty tensors as the graph returns them."""
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    results = []
    for node in output.args[0]:
        value = node.meta.get("val") if isinstance(node, torch.fx.Node) else node
        if isinstance(value, torch.Tensor):
            shape, stride = ([hint_of(size) for size in sizes] for sizes in (value.shape, value.stride()))
            value = torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)
        results.append(value)
    return results
