"""Tensors that a compiled function reads and that change between its calls, the objects staying the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from compiler.backend import fusionscope


class Mixed(nn.Module):
    """Parameters of its own and of a part of it, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.register_buffer("table", torch.randn(4, 4))
        self.part = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return (self.weight * 2 + self.get_buffer("table")) @ x + self.part(x) + self.part.weight.sin()


def _turn(tensor: Tensor) -> None:
    tensor.data = tensor.data.t().contiguous().t()


#: What gives the very objects other strides or another dtype.
CHANGES: dict[str, Callable[[Mixed], object]] = {
    "a weight's strides": lambda model: _turn(model.weight),
    "a part's strides": lambda model: _turn(model.part.weight),
    "a buffer's strides": lambda model: _turn(model.get_buffer("table")),
    "the dtype of all": lambda model: model.double(),
}


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_changed_weights_are_read_as_they_are(name: str, learns: bool) -> None:
    """Guards of torch 2.11 skip weights whose dictionary has not changed, from the second call on."""
    torch._dynamo.reset()
    model = Mixed()
    compiled = torch.compile(model, backend=fusionscope)
    with torch.set_grad_enabled(learns):
        for _ in range(4):
            x = torch.randn(4, 4)
            torch.testing.assert_close(compiled(x), model(x))
        CHANGES[name](model)
        for _ in range(2):
            x = torch.randn(4, 4, dtype=model.weight.dtype)
            torch.testing.assert_close(compiled(x), model(x))


def test_a_changed_tensor_of_a_dictionary_is_read_as_it_is() -> None:
    torch._dynamo.reset()
    tables = {"first": torch.randn(4, 4)}

    def scaled(x: Tensor) -> Tensor:
        return (tables["first"] * 2) @ x

    compiled = torch.compile(scaled, backend=fusionscope)
    x = torch.randn(4, 4)
    for _ in range(4):
        torch.testing.assert_close(compiled(x), scaled(x))
    _turn(tables["first"])
    torch.testing.assert_close(compiled(x), scaled(x))
