"""`cuda` in a snippet means the worker's device: on a worker without a GPU it becomes the CPU, line by line."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from typing import Any

import torch

#: The name under which a rewritten snippet finds the stand-in for torch.cuda.
STAND_IN = "__fusionscope_cuda__"

_CUDA = re.compile(r"^cuda(:\d+)?$")


class CudaStandIn:
    """The functions of `torch.cuda` that would raise without a GPU and that a script calls without needing one."""

    class Event:
        """Times on the CPU, where work is done when the call returns."""

        def __init__(self, *_: Any, **__: Any) -> None:
            self._seconds = 0.0

        def record(self, *_: Any) -> None:
            self._seconds = time.perf_counter()

        def elapsed_time(self, end: CudaStandIn.Event) -> float:
            return 1000 * (end._seconds - self._seconds)

        def synchronize(self) -> None:
            """Nothing is ever under way on the CPU."""

        wait = query = synchronize

    synchronize = staticmethod(lambda *_: None)
    set_device = staticmethod(lambda *_: None)
    current_device = staticmethod(lambda: 0)
    get_device_name = staticmethod(lambda *_: "cpu")
    get_device_capability = staticmethod(lambda *_: (0, 0))
    memory_allocated = staticmethod(lambda *_: 0)
    max_memory_allocated = staticmethod(lambda *_: 0)
    memory_reserved = staticmethod(lambda *_: 0)
    reset_peak_memory_stats = staticmethod(lambda *_: None)
    empty_cache = staticmethod(lambda: None)


class _CudaToCpu(ast.NodeTransformer):
    """Rewrites what names CUDA, and keeps the place of everything, so that lines stay the author's.

    "cuda:0" -> "cpu"         x.cuda() -> x.cpu()                         pin_memory=True -> pin_memory=False
    torch.cuda.synchronize -> the stand-in's      assert torch.cuda.is_available() -> pass
    """

    def __init__(self) -> None:
        self.lines: set[int] = set()

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and _CUDA.match(node.value):
            return self._replaced(node, ast.Constant("cpu"))
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        first = node.values[0] if node.values else None
        if isinstance(first, ast.Constant) and str(first.value) == "cuda:":
            return self._replaced(node, ast.Constant("cpu"))
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            function = ast.copy_location(ast.Attribute(node.func.value, "cpu", ast.Load()), node.func)
            return self._replaced(node, ast.Call(function, [], []))
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self.generic_visit(node)
        if node.arg == "pin_memory":
            node.value = self._replaced(node.value, ast.Constant(False))
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        if any(isinstance(part, ast.Attribute) and part.attr == "is_available" for part in ast.walk(node.test)):
            self.lines.add(node.lineno)
            return ast.copy_location(ast.Pass(), node)
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        owner = node.value
        is_torch_cuda = (
            isinstance(owner, ast.Attribute)
            and owner.attr == "cuda"
            and isinstance(owner.value, ast.Name)
            and owner.value.id == "torch"
        )
        if is_torch_cuda and hasattr(CudaStandIn, node.attr):
            stand_in = ast.copy_location(ast.Name(STAND_IN, ast.Load()), node)
            return self._replaced(node, ast.Attribute(stand_in, node.attr, ast.Load()))
        return node

    def _replaced(self, old: ast.expr, new: ast.expr) -> ast.expr:
        self.lines.add(old.lineno)
        return ast.copy_location(new, old)


def may_name_cuda(source: str) -> bool:
    """Whether a snippet has any of the words that are looked for in its tree: most have none, and a walk is slow."""
    return any(word in source for word in ("cuda", "pin_memory", "is_available"))


def cuda_to_cpu(tree: ast.Module) -> list[int]:
    """Rewrite a snippet for the CPU in place; the lines that were changed."""
    rewriter = _CudaToCpu()
    rewriter.visit(tree)
    return sorted(rewriter.lines)


def _names_a_device(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and re.match(r"^(cuda|cpu)(:\d+)?$", node.value) is not None
    return isinstance(node, ast.Attribute) and node.attr in ("cuda", "cpu", "set_default_device")


def is_gpu_wanted(tree: ast.Module, device: torch.device) -> bool:
    """Whether tensors of a snippet that names no device must be made on the GPU for the snippet to run there."""
    return device.type == "cuda" and not any(map(_names_a_device, ast.walk(tree)))


def makes_tensors_in_functions(tree: ast.Module) -> bool:
    """Whether a function of the snippet makes a tensor without saying where, and so needs the default device.

    Where none does, compiled functions are called without a default device: it costs every eager operator time.
    """
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda))
    makers = (makers_of_tensors(one) for one in functions if getattr(one, "name", "") not in _SET_UP)
    return any(all(keyword.arg != "device" for keyword in call.keywords) for calls in makers for call in calls)


def makers_of_tensors(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls of functions that make tensors from nothing, by their names."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return (call for call in calls if _name_of(call.func) in _FACTORIES)


def _name_of(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


#: Functions that run before anything is compiled.
_SET_UP = frozenset({"__init__", "get_inputs", "get_init_inputs"})
_FACTORIES = frozenset(
    "arange as_tensor empty eye full hann_window linspace logspace normal ones rand randint randn randperm "
    "scalar_tensor tensor tril_indices triu_indices zeros".split()
)
