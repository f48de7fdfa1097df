"""torch.compile(backend="fusionscope") with the compiler behind it: what once ended in an exception instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import fusionscope


def _named_like_the_wrapper(empty: Tensor, view: Tensor, inputs: Tensor) -> Tensor:
    return torch.cat([(empty + view).t().reshape(-1), inputs.reshape(-1)]).cumsum(0) + empty.sum()


def _square(x: Tensor) -> Tensor:
    return x @ x.t() + 5 * torch.eye(5)


CASES: dict[str, Callable[[Tensor], Tensor]] = {
    # The index is a tensor with values that the graph holds.
    "a list as an index": lambda x: x[[1, 2]] + 1,
    # The check of the result is a call for its effect.
    "a factorisation that checks": lambda x: torch.linalg.cholesky(_square(x)) + 1,
    "an inverse": lambda x: torch.linalg.inv(_square(x)),
    # Two fusions of one round, each without a cycle, and with one if both were made.
    "fusions that order each other": lambda x: F.grid_sample(
        x.expand(2, 3, 5, 5), x[:, :2].expand(2, 5, 5, 2) / 3, align_corners=False
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name: str) -> None:
    torch._dynamo.reset()
    x = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(torch.compile(CASES[name], backend=fusionscope)(x), CASES[name](x))


def test_inputs_named_like_what_the_wrapper_calls() -> None:
    torch._dynamo.reset()
    tensors = [torch.randn(3, 4) for _ in range(3)]
    compiled = torch.compile(_named_like_the_wrapper, backend=fusionscope)
    torch.testing.assert_close(compiled(*tensors), _named_like_the_wrapper(*tensors))


def test_an_input_that_is_a_slice_goes_to_a_library_call() -> None:
    torch._dynamo.reset()
    x = torch.randn(6, 4)[2:]
    compiled = torch.compile(lambda x: x.t() @ x[:, 1:], backend=fusionscope)
    torch.testing.assert_close(compiled(x), x.t() @ x[:, 1:])


def _raises(backend: Any) -> bool:
    torch._dynamo.reset()
    try:
        torch.compile(torch.linalg.cholesky, backend=backend)(-torch.eye(3))
    except torch.linalg.LinAlgError:
        return True
    return False


def test_a_failed_check_raises_as_in_eager() -> None:
    """AOTAutograd of torch 2.11 and 2.12 takes the check out of the graph, so that no backend ever sees it."""
    is_kept = not torch.__version__.startswith(("2.11.", "2.12."))
    assert _raises(fusionscope) == _raises("aot_eager") == is_kept
