"""Programs of `torch.func`, whose graphs open and close transforms node by node."""

from __future__ import annotations

import pytest
import torch

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
