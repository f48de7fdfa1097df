"""What a compiled function with convolutions must have in common with eager: values, by float64, and strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import leaves, to_double


def check_as_eager(function: Callable[..., Any], backend: Any, inputs: Callable[[], list[torch.Tensor]]) -> None:
    """Results and strides are those of eager; what is changed in place is fresh for each."""
    torch._dynamo.reset()
    with torch.no_grad():
        eager, exact = function(*inputs()), function(*to_double(inputs()))
        found = torch.compile(function, backend=backend, dynamic=False)(*inputs())
    assert is_correct(found, exact, eager)
    strides = [[value.stride() for _, value in leaves(results)] for results in (found, eager)]
    assert strides[0] == strides[1]
