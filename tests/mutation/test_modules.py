"""Modules that change their own buffers, and writes that autograd must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from compiler.capture.captured import copy_values
from compiler.options import Options, Timing
from compiler.pipeline import explore


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def fusionscope(function: Callable[..., object]) -> Callable[..., object]:
    return torch.compile(function, backend="fusionscope", dynamic=False)


class MovingAverage(nn.Module):
    """Keeps an average of what it has seen, and how often it was called."""

    average: Tensor
    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(6))
        self.register_buffer("calls", torch.tensor(0))
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.average.lerp_(x.mean(0), 0.1)
            self.calls += 1
        return (x - self.average) * self.scale


class Renormalised(nn.Module):
    """Writes to its own parameter before it uses it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 6))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.weight.div_(self.weight.norm(dim=1, keepdim=True))
        return x @ self.weight.t()


MODULES: dict[str, Callable[[], nn.Module]] = {
    "batch norm": lambda: nn.BatchNorm1d(6),
    "batch norm, cumulative average": lambda: nn.BatchNorm1d(6, momentum=None),
    "batch norm of an affine map": lambda: nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU(inplace=True)),
    "instance norm that tracks": lambda: nn.Sequential(
        nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2, track_running_stats=True)
    ),
    "moving average": MovingAverage,
    "parameter renormalised": Renormalised,
    "in-place activations": lambda: nn.Sequential(
        nn.Linear(6, 6), nn.ELU(inplace=True), nn.Linear(6, 6), nn.Hardtanh(inplace=True)
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_in_training_changes_as_in_eager(name: str) -> None:
    ours = MODULES[name]()
    eager = deepcopy(ours)
    compiled = fusionscope(ours)
    for step in range(3):
        x = torch.randn(4, 6)
        results = []
        for call in (compiled, eager):
            argument = x.clone().requires_grad_()
            result = call(argument)
            (result * result).sum().backward()  # type: ignore[operator]
            results.append((result, argument.grad))
        torch.testing.assert_close(results[0], results[1], msg=partial("step {}: {}".format, step))
    torch.testing.assert_close(ours.state_dict(), eager.state_dict())
    ours_gradients, eager_gradients = ([p.grad for p in module.parameters()] for module in (ours, eager))
    torch.testing.assert_close(ours_gradients, eager_gradients, rtol=1e-4, atol=1e-5)


def test_evaluation_leaves_running_statistics_alone() -> None:
    module = nn.BatchNorm1d(6).eval()
    before = deepcopy(module.state_dict())
    fusionscope(module)(torch.randn(4, 6))
    torch.testing.assert_close(module.state_dict(), before, rtol=0, atol=0)


def test_an_optimiser_step_is_eagers() -> None:
    weights = [torch.randn(3, 4, requires_grad=True) for _ in range(3)]
    copies = [weight.detach().clone().requires_grad_() for weight in weights]
    ours, eager = (torch.optim.AdamW(group, lr=0.1, foreach=True) for group in (weights, copies))

    def step(optimiser: torch.optim.Optimizer) -> None:
        optimiser.step()

    compiled = fusionscope(step)
    for _ in range(3):
        for weight, copy in zip(weights, copies):
            weight.grad = torch.randn(3, 4)
            copy.grad = weight.grad.clone()
        compiled(ours)
        step(eager)
    torch.testing.assert_close(weights, copies)


@pytest.mark.parametrize("write", ["result", "argument"])
@pytest.mark.parametrize("compile_", [lambda function: function, fusionscope], ids=["eager", "compiled"])
def test_writing_to_what_is_saved_for_backward_raises(
    write: str, compile_: Callable[[Callable[..., object]], Callable[..., object]]
) -> None:
    function = (lambda x, y: x.exp()) if write == "result" else (lambda x, y: x * y)
    x, y = torch.randn(4, 6, requires_grad=True), torch.randn(4, 6)
    result = compile_(function)(x, y)
    (result if write == "result" else y).add_(1)  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()  # type: ignore[attr-defined]


def test_a_leaf_that_wants_a_gradient_is_not_written_with_gradients_on() -> None:
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        fusionscope(lambda x: x.add_(1))(torch.randn(3, requires_grad=True))


def test_an_expanded_argument_is_not_written() -> None:
    with pytest.raises(RuntimeError, match="single memory location"):
        fusionscope(lambda x: x.add_(1))(torch.zeros(1, 3).expand(2, 3))


def grown(x: Tensor) -> Tensor:
    x.resize_(6, 4).fill_(2)
    return x * 3


def exchanged(x: Tensor, y: Tensor) -> Tensor:
    x.set_(y)  # type: ignore[call-overload]  # torch declares storages alone
    x.add_(1)
    return x + y


@pytest.mark.parametrize("name", ["resize_", "set_"])
def test_a_storage_that_changes_inside_is_left_to_pytorch_or_refused(name: str) -> None:
    function, sizes = (grown, [(4, 6)]) if name == "resize_" else (exchanged, [(4, 6), (2, 3)])
    expected = [torch.ones(size) for size in sizes]
    given = [torch.ones(size) for size in sizes]
    wanted = function(*expected)
    try:
        result = fusionscope(function)(*given)
    except Exception as error:
        assert name.strip("_") in str(error)
        return
    torch.testing.assert_close([result, *given], [wanted, *expected])


EXPLORED = {
    "writes to its arguments": """
import torch

@torch.compile
def f(x, y):
    x[1:, ::2] = y
    x.t().add_(1)
    return x.t(), x * 2

x = torch.arange(48.0).view(8, 6)
f(x, torch.ones(7, 3))
print("sum", round(x.sum().item(), 3))
""",
    "running statistics": """
import torch

model = torch.nn.BatchNorm1d(6)
compiled = torch.compile(model)
x = torch.arange(48.0).view(8, 6) ** 0.5
compiled(x)
print("mean", [round(v, 4) for v in model.running_mean.tolist()])
""",
}


@pytest.mark.parametrize("name", EXPLORED)
def test_an_exploration_prints_what_the_snippet_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = EXPLORED[name]
    options = Options(device="cpu", timing=Timing(enabled=True, min_runs=3), training=False)
    report = explore(source, options)
    assert report.error is None, report.error
    assert report.status == "ok"
    assert report.summary is not None and report.summary.compiled_error is not None
    assert report.summary.compiled_error <= 1e-5
    exec(compile(source.replace("@torch.compile", "").replace("torch.compile(model)", "model"), name, "exec"), {})
    assert report.output.strip() == capsys.readouterr().out.strip()


OVERLAPPING = """
import torch

@torch.compile
def f(x, y):
    x.add_(1)
    return x * y

base = torch.arange(24.0).view(4, 6)
print("sum", f(base[:3], base[1:]).sum().item())
"""


def test_a_write_to_arguments_that_overlap_is_left_to_eager_mode_and_said() -> None:
    report = explore(OVERLAPPING, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok" and report.output.strip() == "sum 3042.0"
    assert any("share memory" in note.message for note in report.notes)


def test_copied_arguments_share_memory_as_the_originals_do() -> None:
    base = torch.arange(30.0)
    x, y, z = base[6:], base[:24].view(4, 6).t(), torch.ones(3)
    (a, b), named = copy_values(([x, y], {"again": x, "other": z}))
    assert named["again"] is a
    assert named["other"].data_ptr() != z.data_ptr()
    assert (a.stride(), b.stride()) == (x.stride(), y.stride())
    assert a.data_ptr() - b.data_ptr() == x.data_ptr() - y.data_ptr()
    a.zero_()
    torch.testing.assert_close(b.t().flatten(), torch.cat([torch.arange(6.0), torch.zeros(18)]))
    torch.testing.assert_close(base, torch.arange(30.0))
