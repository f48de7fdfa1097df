"""What a maximum over windows saves for its gradient: positions of four bytes, and eager's gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations


def saved_by(compiled: list[Built]) -> set[torch.dtype]:
    """The dtypes of what the backward graph gets."""
    forward, backward = (one.schedule.graph for one in compiled)
    return {backward.buffers[name].dtype for name in backward.inputs if name is not None and name not in forward.inputs}


@pytest.mark.parametrize(
    "windows",
    [
        {"kernel_size": 2},
        {"kernel_size": (2, 3), "stride": (3, 5), "padding": (1, 0), "dilation": (1, 2), "ceil_mode": True},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 12},
    ],
    ids=str,
)
def test_a_window_saves_positions_of_four_bytes(windows: dict[str, Any]) -> None:
    x = torch.randint(0, 9, (2, 3, 17, 26)).float()  # with equal elements, of which the first is the largest
    ours, eagers = x.clone().requires_grad_(), x.clone().requires_grad_()
    compiled: list[Built] = []
    with observed_compilations(compiled.append):
        result = torch.compile(lambda x: F.max_pool2d(x, **windows), backend=fusionscope)(ours)
        wanted = F.max_pool2d(eagers, **windows)
        gradient = torch.randn_like(wanted)
        result.backward(gradient)
    wanted.backward(gradient)
    assert torch.equal(result, wanted)
    torch.testing.assert_close(ours.grad, eagers.grad)
    assert torch.int32 in saved_by(compiled) and torch.int64 not in saved_by(compiled)


def test_sizes_of_a_call_leave_the_numbers_as_they_are() -> None:
    compiled = torch.compile(lambda x: F.max_pool2d(x, 2), backend=fusionscope, dynamic=True)
    for size in (8, 13):
        ours = torch.randn(2, size, size + 3).requires_grad_()
        eagers = ours.detach().clone().requires_grad_()
        for one, function in ((ours, compiled), (eagers, lambda x: F.max_pool2d(x, 2))):
            function(one).sin().sum().backward()
        torch.testing.assert_close(ours.grad, eagers.grad)


def test_a_gradient_of_windows_in_the_forward_pass_has_one_itself() -> None:
    def gradient_of_windows(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        windows = ([3, 3], [2, 2], [1, 1], [1, 1], False)
        positions = torch.ops.aten.max_pool2d_with_indices(x, *windows)[1]
        return torch.ops.aten.max_pool2d_with_indices_backward(gradient, x, *windows, positions)

    compiled = torch.compile(gradient_of_windows, backend=fusionscope)
    gradient, x = torch.randn(1, 2, 2, 3, requires_grad=True), torch.randn(1, 2, 3, 6)
    found, wanted = (
        torch.autograd.grad(function(gradient, x).square().sum(), gradient)
        for function in (compiled, gradient_of_windows)
    )
    torch.testing.assert_close(found, wanted)
