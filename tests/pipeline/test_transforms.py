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
