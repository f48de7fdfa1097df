"""What guards say of open sizes is used, and where kernels for every size cannot be made, those of the call are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.compile import observed_compilations
from compiler.lowering import eager as eager_sizes
from compiler.options import Options, Timing
from compiler.pipeline import explore


def broadcast_by_a_quotient(x: Tensor) -> Any:
    """`x.shape[0] // 5` is one, without a word of it in the shape."""
    part = x.reshape(1, -1, 5)[:, :, 3:]
    return part.expand(1, 3, 2), part + torch.arange(6.0).view(1, 3, 2)


def rows_of_a_square(x: Tensor) -> Any:
    """25 rows, which are all elements of a square; counted from the end, too."""
    rows = x.reshape(25, 1, -1).clone()
    rows[-18] = 1
    return x.abs() / (rows + 1)


def reshaped_and_as_it_was(x: Tensor) -> Any:
    """The reshape is a view, and both are returned."""
    half = x.view(1, 8, -1) / 2
    return half, half.reshape(4, -1), half.diagonal(1, -2, -1), half.diagonal(1, -2, -1)[:1]


def steps_of_a_power(x: Tensor) -> Any:
    """`x.shape[0]` is five, by a guard on its fifth; the step is a formula of it that is no polynomial."""
    length = x.shape[0]
    x.view(length // 5, 5).expand(1, 5)
    step = 2 ** int(math.log2(length))
    return x[::step] * 2, x.new_ones(step)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend="fusionscope", dynamic=True, fullgraph=True)


def shared(tensors: tuple[Tensor, ...]) -> list[int]:
    """For each tensor, the place of the first one in the same memory."""
    places = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    return [places.index(place) for place in places]


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (broadcast_by_a_quotient, lambda: torch.arange(10.0)[::2]),
        (rows_of_a_square, lambda: torch.randn(5, 5).mT),
        (reshaped_and_as_it_was, lambda: torch.randn(4, 130)),
        (steps_of_a_power, lambda: torch.randn(5)),
    ],
    ids=["a quotient that is one", "a square that is 25", "views of quotients", "a logarithm of a known size"],
)
def test_what_a_guard_says_of_a_size_is_used(function: Callable[..., Any], make: Callable[[], Tensor]) -> None:
    x = make()
    given, expected = compiled(function)(x), function(x)
    given, expected = (found if isinstance(found, tuple) else (found,) for found in (given, expected))
    for ours, eager in zip(given, expected, strict=True):
        torch.testing.assert_close(ours, eager)
        assert ours.stride() == eager.stride()
    assert shared(given) == shared(expected)


def test_a_size_that_no_formula_tells_is_that_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the root of a size cannot be written as a formula, every size has kernels of its own."""

    def no_text(expression: Any) -> str:
        raise NotImplementedError(str(expression))

    monkeypatch.setattr(eager_sizes, "python_text", no_text)

    def by_the_root(x: Tensor) -> Tensor:
        return x.view(int(x.shape[0] ** 0.5), -1).softmax(-1) * x.shape[0]

    call = compiled(by_the_root)
    inputs = [torch.randn(size, requires_grad=True) for size in (16, 25, 16)]
    with observed_compilations(lambda _: made.append(1)):
        made: list[int] = []
        for x in inputs:
            ours, eager = call(x), by_the_root(x)
            torch.testing.assert_close(ours, eager)
            gradients = (torch.autograd.grad(result.sin().sum(), x)[0] for result in (ours, eager))
            torch.testing.assert_close(*gradients)
    assert len(made) == 4, "a forward and a backward graph for each of two sizes"


def test_what_eager_moves_is_counted_without_fixing_a_size() -> None:
    """The gradient of `fold` is called at another size than it was traced with. torch's decomposition of `unfold` asks
    for the numbers of sizes, and its kernel was made for those of the trace."""
    report = explore(
        "import torch\nimport torch.nn.functional as F\n@torch.compile\ndef f(x):\n"
        "    columns = F.unfold(x, 3, padding=1, stride=2)\n"
        "    return F.fold(columns, x.shape[-2:], 3, padding=1, stride=2)\n"
        "for size in (8, 10):\n    f(torch.randn(2, 4, size, size, requires_grad=True))\n",
        Options(device="cpu", training=True, timing=Timing(enabled=False)),
    )
    assert report.status == "ok" and not report.wrong_results
    first, second = (graph.eager_bytes for graph in report.graphs if graph.phase == "forward")
    assert second is not None and first is not None and second > first
