"""Whether a rewritten graph computes what Dynamo captured: both are run in float64 on what the snippet gave them.

A graph is otherwise checked against its own ATen form, which comes after the rewrite and would be as wrong as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from compiler.capture.captured import RewriteCheck, copy_values
from compiler.capture.reference import draws, raise_precision
from compiler.runtime.checking.verify import relative_error, typical_scale_of

#: What is smaller than this share of a typical result or gradient is measured beside that share. Gradients of an
#: attention's keys in a fresh model may cancel to 1e-11 of the others, of which two orders of summing in float64 keep
#: five digits.
SMALLEST = 1e-4


def error_of_rewrite(check: RewriteCheck) -> float | None:
    """How far results of the two graphs are apart, as `relative_error` has it, and their gradients where autograd
    recorded the call; None if they were never called, or if they draw random numbers."""
    if check.inputs is None:
        return None
    before, draws = run_in_double(check.captured, check.inputs, check.is_recorded)
    after, _ = run_in_double(check.rewritten, check.inputs, check.is_recorded)
    return None if draws else relative_error(after, before, smallest=SMALLEST * typical_scale_of(before))


def run_in_double(graph: torch.fx.GraphModule, inputs: Sequence[Any], with_gradients: bool) -> tuple[list[Any], bool]:
    """Results of Dynamo's graph in float64, then, if wanted, the gradients of its inputs for a fixed gradient of each
    result; and whether it drew random numbers. `inputs` are not changed."""
    values = [_leaf(value) for value in copy_values(tuple(inputs))]
    mode = _InDouble()
    with torch.set_grad_enabled(with_gradients), mode:
        results = tree_leaves(graph(*[_as_used(value) for value in values]))
        wanted = [value for value in values if isinstance(value, torch.Tensor) and value.requires_grad]
        traced = [value for value in results if isinstance(value, torch.Tensor) and value.requires_grad]
        gradients: Sequence[Any] = ()
        if wanted and traced:
            gradients = torch.autograd.grad(traced, wanted, [_seed(value) for value in traced], allow_unused=True)
    return [*tree_map_only(torch.Tensor, torch.Tensor.detach, results), *gradients], mode.draws


def _leaf(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return raise_precision(value.detach()).clone().requires_grad_(value.requires_grad)


def _as_used(value: Any) -> Any:
    """What the graph may change in place, which autograd forbids for a leaf."""
    return value.view_as(value) if isinstance(value, torch.Tensor) and value.requires_grad else value


def _seed(result: torch.Tensor) -> torch.Tensor:
    """A gradient that is not the same everywhere, so that a mistake in one place is not made up for in another."""
    steps = torch.arange(result.numel(), dtype=result.dtype, device=result.device)
    return (1 + steps % 7).view(result.shape)


class _InDouble(TorchDispatchMode):
    """Every floating dtype that an operator names, and every floating result, becomes float64."""

    def __init__(self) -> None:
        super().__init__()
        self.draws = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.draws |= draws(func, args, kwargs or {})
        raised, named = tree_map_only(torch.dtype, raise_precision, (args, kwargs or {}))
        return tree_map(raise_precision, func(*raised, **named))
