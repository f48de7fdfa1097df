"""Programs of `torch.func`, whose graphs open and close transforms node by node."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compiler.options import Options, Timing
from compiler.pipeline import explore

TRANSFORMED = ("vmap(f)", "vmap(grad(f))", "jacrev(f)", "jacfwd(f)", "hessian(f)")


@pytest.mark.parametrize("transformed", TRANSFORMED)
def test_a_transformed_function_is_explored_and_leaves_no_transform_open(transformed: str) -> None:
    source = (
        "import torch\nfrom torch.func import *\ndef f(x):\n    return (x**2).sum() + x.prod()\n"
        f"torch.compile({transformed})(torch.randn(5, 3))\n"
    )
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok", report.error
    assert torch._C._functorch.peek_interpreter_stack() is None
    ones = torch.ones(2)
    assert torch.equal(torch.func.jvp(torch.sin, (ones,), (ones,))[1], ones.cos())


class Computing(TorchDispatchMode):
    """Counts the calls of eager mode that compute elements."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        is_free = func.is_view or func._opname in ("is_same_size", "_has_same_storage_numel", "_efficientzerotensor")
        self.count += not is_free
        return func(*args, **(kwargs or {}))


def test_kernels_of_gradients_of_gradients_are_counted_as_eager_mode_launches_them() -> None:
    """Explored without gradients: those that the function takes itself were None then, and nothing was counted."""

    def squared(y: torch.Tensor) -> torch.Tensor:
        return (y.sin() ** 2).sum()

    source = (
        "import torch\nfrom torch.func import *\ndef squared(y):\n    return (y.sin() ** 2).sum()\n"
        "def f(x):\n    return hessian(squared)(x), jvp(grad(squared), (x,), (x,))\nf(torch.randn(5))\n"
    )
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    x = torch.randn(5)
    with Computing() as counted:
        torch.func.hessian(squared)(x), torch.func.jvp(torch.func.grad(squared), (x,), (x,))
    assert report.summary.eager_kernels == counted.count


def test_a_write_to_a_part_within_vmap_is_explored() -> None:
    """A tensor that `vmap` wraps has no parts outside of it, where writes to repeated memory are searched for."""
    source = (
        "import torch\ndef first(a, b):\n    a = a.clone()\n    a[0] = b.sum()\n    return a.cumsum(0)\n"
        "torch.compile(torch.vmap(first, in_dims=(1, 0), out_dims=1))(torch.randn(3, 5), torch.randn(5, 2))\n"
    )
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok" and len(report.graphs) == 1, report.error


@pytest.mark.parametrize(("number", "dynamic"), [("2", False), ("0.3", False), ("True", False), ("2", True)])
def test_a_number_beside_tensors_within_vmap_is_in_their_kernel(number: str, dynamic: bool) -> None:
    source = (
        "import torch\ndef f(x, y):\n    distance = lambda a, b: torch.exp(-((a - b) ** 2).sum() / NUMBER)\n"
        "    return torch.vmap(torch.vmap(distance, (None, 0)), (0, None))(x, y)\n"
        f"torch.compile(f, dynamic={dynamic})(torch.randn(5, 3), torch.randn(6, 3))\n"
    )
    report = explore(source.replace("NUMBER", number), Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok" and [kernel.kind for kernel in report.graphs[0].kernels] == ["cpp"], report.error
    assert report.summary.compiled_error is not None and report.summary.compiled_error < 1e-5
