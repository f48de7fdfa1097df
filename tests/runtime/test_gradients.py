"""Training is checked from end to end: against eager, and against the user's own function in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from compiler.options import Options
from compiler.pipeline import explore
from compiler.report import Report
from compiler.runtime.checking.double_precision import InDoublePrecision
from compiler.runtime.checking.gradients import check_training
from compiler.runtime.executable import Executable
from compiler.stages import running
from tests.capture.programs import captured_source

_GATED = """import torch

layer = torch.nn.Linear(16, 32)
norm = torch.nn.BatchNorm1d(32)


@torch.compile
def gated(x):
    h = norm(layer(x))
    return (h.tanh() * h.sigmoid()).exp().sum()


gated(torch.randn(8, 16, requires_grad=True)).backward()
before = norm.running_mean.clone()
"""


def explored(source: str) -> Report:
    return explore(source, Options.model_validate({"timing": {"enabled": False}}))


def test_every_result_and_gradient_is_checked_by_its_name() -> None:
    report = explored(_GATED)
    assert report.error is None
    found = {check.name: check for check in report.gradients}
    leaves = {"x", "weight", "bias", "norm_weight", "norm_bias"} & {name.rsplit(" ", 1)[-1] for name in found}
    assert "the result" in found and "the gradient of x" in found and len(leaves) >= 3
    for check in report.gradients:
        assert check.entry == "gated" and check.is_correct
    # The bias before a batch norm has no gradient but rounding, which is not made an error by dividing it by zero.
    assert report.summary.compiled_error is not None and report.summary.compiled_error < 1e-6


def test_a_wrong_gradient_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels of every backward graph are replaced by ones that are one part in a thousand off."""
    verify = running.verify_graph

    def spoil(graph: Any, executable: Executable, *more: Any) -> Any:
        if graph.phase == "backward":
            right = graph.runner.implementation
            graph.runner.implementation = lambda inputs: [
                None if value is None else value * 1.001 for value in right(inputs)
            ]
        return verify(graph, executable, *more)

    monkeypatch.setattr(running, "verify_graph", spoil)
    report = explored(_GATED.replace("norm(layer(x))", "layer(x)"))
    wrong = [check for check in report.gradients if not check.is_correct]
    assert {check.name for check in wrong} == {"the gradient of x", "the gradient of weight", "the gradient of bias"}
    told = {one.output: one for one in report.wrong_results}
    assert told.keys() == {check.name for check in wrong} and report.status == "wrong_result"
    assert told["the gradient of x"].message.startswith("The gradient of x of gated has an error of 1.0e-03 against")


def test_convolutions_with_a_bias_are_checked() -> None:
    report = explored("""import torch
layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Tanh(), torch.nn.ConvTranspose2d(8, 4, 3))
torch.compile(layers)(torch.randn(2, 3, 8, 8)).square().sum().backward()
""")
    assert report.error is None and not report.notes
    assert sum(check.name.startswith("the gradient of ") for check in report.gradients) == 4
    assert all(check.is_correct for check in report.gradients)


def test_gradients_of_parameters_with_hooks_are_checked() -> None:
    report = explored("""import torch
layer = torch.nn.Linear(8, 8)
seen = []
layer.weight.register_hook(lambda gradient: gradient * 2)
layer.bias.register_hook(seen.append)
torch.compile(layer)(torch.randn(4, 8)).sum().backward()
layer(torch.randn(4, 8)).sum().backward()
assert len(seen) == 2
""")
    assert report.error is None and not report.notes
    checked = {check.name for check in report.gradients if check.is_correct}
    assert {"the gradient of weight", "the gradient of bias"} <= checked


def test_what_draws_random_numbers_or_is_not_trained_is_not_compared() -> None:
    assert explored(_GATED.replace("h.tanh()", "torch.dropout(h, 0.5, True)")).gradients == []
    assert explored(_GATED.replace(".backward()", "")).gradients == []


@pytest.mark.parametrize("returned", ["loss", "loss.detach()"])
def test_a_step_that_runs_backward_itself_is_told_apart(returned: str) -> None:
    """Its result cannot be differentiated again."""
    report = explored(f"""import torch
layer = torch.nn.Linear(16, 32)
@torch.compile
def step(x):
    loss = layer(x).square().mean()
    loss.backward()
    return {returned}
step(torch.randn(8, 16))
""")
    assert report.error is None and report.gradients == []
    (note,) = report.notes
    assert note.message == "step runs backward itself. So its graphs were checked one by one, not from end to end."


def test_parameters_and_buffers_are_put_back_after_the_check() -> None:
    capture = captured_source(_GATED)
    norm: Any = capture.names["norm"]
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    gradients = norm.weight.grad.clone()
    assert check_training(capture)
    assert before["num_batches_tracked"] == 1
    for name, value in norm.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)
    assert torch.equal(norm.weight.grad, gradients)


def test_a_result_that_one_graph_made_and_another_wrote_to_is_checked_as_it_was_returned() -> None:
    report = explored("""import torch

@torch.compile
def f(x):
    count = torch.arange(8)
    torch._dynamo.graph_break()
    count += 5
    return x * 2, count

f(torch.randn(8, requires_grad=True))[0].sum().backward()
""")
    assert report.error is None and not report.wrong_results
    assert {check.name for check in report.gradients} >= {"result 1", "result 2"}


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = context.saved_tensors
        return gradient * 2 + 0 * x


def autocast(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return torch.as_tensor(layer(x)).float().tanh()


def written(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = layer(x) * 1.5
    y[:, 0] = 0.25
    y.mul_(torch.full((8,), 3.0)).add_(x.sum())
    return y


def masked(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The least number of the values' own dtype, which is float64 here, in a tensor of the default one."""
    scores = layer(x)
    return F.softmax(torch.max(scores, torch.full((), torch.finfo(scores.dtype).min)), -1)


def grouped(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Two groups of rows, each with weights of its own."""
    assert isinstance(layer, nn.Linear)
    ends = torch.tensor([1, 4], dtype=torch.int32)
    return F.grouped_mm(x, torch.stack([layer.weight.t(), -layer.weight.t()]), offs=ends) + layer.bias


FUNCTIONS: dict[str, Callable[[nn.Module, torch.Tensor], torch.Tensor]] = {
    "softmax": lambda layer, x: F.softmax(layer(x), -1),
    "layer_norm": lambda layer, x: F.layer_norm(F.gelu(layer(x)), (8,)),
    "loss": lambda layer, x: F.cross_entropy(layer(x), torch.arange(4)),
    "custom": lambda layer, x: Doubled.apply(layer(x)),
    "bfloat16": lambda layer, x: layer(x).to(torch.bfloat16).exp().float(),
    "autocast": autocast,
    "written": written,
    "masked": masked,
    "grouped": grouped,
    "convolution": lambda layer, x: F.conv1d(layer(x)[:, None], layer.weight[:, None, :3], layer.bias),  # type: ignore[arg-type, index, operator]
    "tensordot": lambda layer, x: torch.tensordot(layer(x), layer.weight, 1),  # type: ignore[arg-type]
    "inner": lambda layer, x: torch.inner(layer(x) @ layer.weight, layer.weight),  # type: ignore[operator, arg-type]
    "vecdot": lambda layer, x: torch.linalg.vecdot(layer(x), layer.bias),  # type: ignore[arg-type]
    "multi_dot": lambda layer, x: torch.linalg.multi_dot([layer(x), layer.weight, x.mT]),  # type: ignore[list-item]
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_float32_is_run_in_float64(name: str) -> None:
    """Against the same function of float64 parameters; what remains is that gradients are rounded to float32."""
    torch.manual_seed(3)
    function = FUNCTIONS[name]
    layer, x = nn.Linear(16, 8), torch.randn(4, 16, requires_grad=True)
    with InDoublePrecision() as mode:
        with mode.calling():
            result = function(layer, x)
        with mode.differentiating():
            ours = torch.autograd.grad(result.sum(), [x, *layer.parameters()])
    wide, wide_x = nn.Linear(16, 8).double(), x.detach().double().requires_grad_()
    wide.load_state_dict(layer.state_dict())
    rows = wide(wide_x)
    in_steps: dict[str, torch.Tensor] = {
        "bfloat16": rows.exp(),
        "autocast": rows.tanh(),
        "masked": F.softmax(rows, -1),
        "grouped": torch.cat([rows[:1], 2 * wide.bias - rows[1:]]),
    }
    exact = in_steps[name] if name in in_steps else function(wide, wide_x)
    assert result.dtype == torch.float64
    torch.testing.assert_close(result, exact, rtol=1e-12, atol=1e-12)
    wanted = torch.autograd.grad(exact.sum(), [wide_x, *wide.parameters()])
    for gradient, reference in zip(ours, wanted, strict=True):
        torch.testing.assert_close(gradient.double(), reference, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_a_recurrent_network_is_run_in_float64(kind: Callable[[int, int], nn.Module]) -> None:
    torch.manual_seed(3)
    network, x = kind(16, 8), torch.randn(4, 16)
    with InDoublePrecision() as mode, mode.calling():
        result = network(x * 1)[0]
    assert result.dtype == torch.float64
    torch.testing.assert_close(result, network.double()(x.double())[0], rtol=1e-12, atol=1e-12)


def test_what_is_written_to_is_written_in_its_own_dtype() -> None:
    x = torch.zeros(4)
    with InDoublePrecision():
        same = x.add_(torch.full((4,), 0.1, dtype=torch.float64))
    assert same is x and x.dtype == torch.float32
    torch.testing.assert_close(x, torch.full((4,), 0.1))


VIEWS = {
    "two of one tensor": "f(h[:3], h[3:]).backward()",
    "places in memory": "f(w, torch.as_strided(w, (3, 4), (4, 1))).backward()",
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_checked_from_end_to_end(name: str) -> None:
    report = explored(
        "import torch\n@torch.compile\ndef g(x):\n    return x.tanh()\n"
        "@torch.compile\ndef f(a, b):\n    return (torch.as_strided(a, (3, 3), (4, 1)) * b[:, :3]).square().sum()\n"
        "h = g(torch.randn(6, 4, requires_grad=True))\n"
        f"w = torch.randn(6, 8)[3:, ::2].requires_grad_()\n{VIEWS[name]}\n"
    )
    assert report.status == "ok" and not report.notes
    assert "f" in {check.entry for check in report.gradients}


def test_a_checkpointed_block_that_float64_changes_is_no_fault_of_the_snippet() -> None:
    report = explored(
        "import torch\nfrom torch.utils.checkpoint import checkpoint\nw = torch.ones(12, requires_grad=True)\n"
        "def block(t):\n    return (t * w).sin()\n"
        "def f(x):\n    return checkpoint(block, x, use_reentrant=False)\n"
        "torch.compile(f)(torch.ones(3, 12, requires_grad=True)).sum().backward()\n"
    )
    assert report.status == "ok"
    (note,) = (note.message for note in report.notes if "end to end" in note.message)
    assert "runs a checkpointed block again" in note and "metadata" not in note
