"""Inputs are called as the user calls them."""

from __future__ import annotations

import pytest
import torch

from compiler.backend import fusionscope
from compiler.capture.autograd.naming import user_name
from compiler.options import Options, Timing
from compiler.pipeline import explore


@pytest.mark.parametrize(
    ("placeholder", "name"),
    [
        ("l_x_", "x"),
        ("L_x_", "x"),
        ("l_self_modules_fc_parameters_weight_", "fc_weight"),
        ("l_self_modules_block_modules_norm_buffers_running_mean_", "block_norm_running_mean"),
        ("g_model_modules_0_parameters_bias_", "model_0_bias"),
        ("l_w_gate_", "w_gate"),
        ("l_", "l"),
    ],
)
def test_user_name(placeholder: str, name: str) -> None:
    assert user_name(placeholder) == name


def test_letters_outside_of_ascii_are_spelled() -> None:
    source = """import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ω = torch.nn.Parameter(torch.randn(8))
        self.größe = torch.nn.Linear(8, 8)
    def forward(self, ψ, 数, Ω):
        return self.größe(self.ω * ψ) + 数 - Ω
torch.compile(Model())(torch.randn(8), torch.randn(8), torch.randn(8))
"""
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok", report.error
    names = {node.name for node in report.graphs[0].aten if node.op == "placeholder"}
    assert names == {"omega", "grose_weight", "grose_bias", "psi", "ideograph_6570", "omega_1"}


def test_the_check_of_a_factorisation_shifts_no_names() -> None:
    """It is a call with an effect, whose token is an input before all others."""
    source = """import torch
@torch.compile
def likelihood(noise, rows, targets):
    root = torch.linalg.cholesky(rows @ rows.T + noise.exp() * torch.eye(4))
    return (torch.cholesky_solve(targets, root) * rows.sin()).sum()
given = [torch.tensor(1.0), torch.randn(4, 4), torch.randn(4, 1)]
likelihood(*(x.requires_grad_() for x in given)).backward()
"""
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok", report.error
    forward, backward = ({n.name: n.shape for n in graph.aten if n.op == "placeholder"} for graph in report.graphs)
    given = {"noise": [], "rows": [4, 4], "targets": [4, 1]}
    assert given.items() <= forward.items()
    assert {name: shape for name, shape in backward.items() if name in given}.items() <= given.items()
    assert {"noise", "rows"} <= backward.keys()


def test_a_tensor_may_be_called_as_torch_calls_a_size() -> None:
    def product(s77: torch.Tensor, s27: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(s77) * s27.sin() * x * x.shape[0]

    compiled = torch.compile(product, backend=fusionscope, dynamic=True)
    for rows in (3, 5):
        given = (torch.randn(()), torch.randn(()), torch.randn(rows, rows + 2))
        torch.testing.assert_close(compiled(*given), product(*given))


def test_a_tensor_may_be_called_as_torch_calls_a_late_size() -> None:
    def selected(u0: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x[x > 0]) * u0

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(selected, backend=fusionscope, fullgraph=True)
        for rows in (3, 5):
            given = (torch.randn((), requires_grad=True), torch.randn(rows, 4))
            result = compiled(*given)
            torch.testing.assert_close(result, selected(*given))
            result.sum().backward()
            expected = selected(*given)
            torch.testing.assert_close(given[0].grad, torch.autograd.grad(expected.sum(), given[0])[0])
