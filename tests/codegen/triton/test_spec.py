"""The spec of kernels finds what it is for; `call_interpreted` and the table of groups hold every kernel to it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from compiler.codegen.triton.render import render_triton
from compiler.devices import H200
from tests.codegen.triton import groups
from tests.codegen.triton.spec import violations

_STORE = "tl.store(add_ptr + x_index, a, x_mask)"


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("x_index = tl", "other = tl", "x_index is read in line 11, and not assigned before"),
        (", x_mask, other=0)", ")", "the load in line 14 has no mask"),
        (", x_mask)", ")", "the store in line 18 has no mask"),
        ("    tl.store(", f"    {_STORE}\n    tl.store(", "stores at add_ptr + x_index once more"),
    ],
)
def test_a_kernel_that_is_made_wrong_is_told(old: str, new: str, told: str) -> None:
    case = groups.pointwise(torch.float32, 37, 129)
    kernel = render_triton(case.group, case.storage, H200)
    assert violations(kernel) == [] and old in kernel.source
    found = violations(replace(kernel, source=kernel.source.replace(old, new)))
    assert any(told in one for one in found), found
