"""Estimate how much rounding may change a result: float64 with a little noise in every step that rounds.

Each operator's result is off by a random part of its dtype's epsilon, as another order of a sum or another
approximation of a sine would make it, and so is each operand of a reduction. A cancellation, a division by a small
number and a step such as `round` show in what comes out (stochastic arithmetic, after La Porte and Vignes, 1974).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

_DOUBLE = (torch.float64, torch.complex128)
_SINGLE = torch.finfo(torch.float32).eps


def epsilon_of(values: Iterable[Any]) -> float:
    """The largest epsilon of the dtypes of floating-point tensors, at most bfloat16's: what is quantised to fewer bits
    is rounded once, and not at every step. That of float64 where there is none."""
    tensors = [leaf for leaf in tree_leaves(list(values)) if isinstance(leaf, torch.Tensor)]
    epsilons = [torch.finfo(t.dtype).eps for t in tensors if t.is_floating_point() or t.is_complex()]
    return min(max(epsilons, default=torch.finfo(torch.float64).eps), torch.finfo(torch.bfloat16).eps)


class RoundingNoise(TorchDispatchMode):
    """Within `with RoundingNoise(epsilon, seed):` every operator on float64 gives results that are off by a random part
    of `epsilon`, which may be set anew before each operator. Operators that only move values (views), those that write
    to their arguments, and whole numbers, which no rounding touches, are left alone.

    The noise is the same for the same seed; torch's own generators are not touched.
    """

    #: `torch.cond` and its like run without noise within.
    supports_higher_order_operators = True

    def __init__(self, epsilon: float, seed: int) -> None:
        super().__init__()
        self.epsilon = epsilon
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = [leaf for leaf in tree_leaves((args, kwargs)) if _is_double(leaf)]
        result = function(*args, **kwargs)
        if not given or not _rounds(function):
            return result
        made = [leaf for leaf in tree_leaves(result) if _is_double(leaf)]
        terms = _terms(given, made)
        if terms >= 2:
            scale = self._scale(terms)
            noisy_args, noisy_kwargs = tree_map(lambda leaf: self._off(leaf, scale), (args, kwargs))
            result = function(*noisy_args, **noisy_kwargs)
        held = {_memory(leaf) for leaf in given}
        return tree_map(lambda leaf: self._blurred(leaf, held), result)

    def _scale(self, terms: float) -> float:
        """What the rounding of a sum of so many terms comes to beside one of them: it grows with their root. Sums of
        half types are formed in float32."""
        return max(self.epsilon, min(self.epsilon, _SINGLE) * terms**0.5 / 2)

    def _blurred(self, leaf: Any, held: set[int]) -> Any:
        """The result itself, changed where it lies, so that its strides stay; one that lies in an operand's memory, or
        in which elements share memory, stays as it is."""
        if _is_double(leaf) and _memory(leaf) not in held and not _is_expanded(leaf):
            leaf.copy_(self._off(leaf, self.epsilon))
        return leaf

    def _off(self, leaf: Any, scale: float) -> Any:
        if not _is_double(leaf):
            return leaf
        if leaf.is_complex():
            return torch.view_as_complex(self._off(torch.view_as_real(leaf.resolve_conj()), scale).contiguous())
        noise = torch.empty(leaf.shape, dtype=torch.float64, device=leaf.device)
        noise.uniform_(-1, 1, generator=self._generator(leaf.device))
        is_whole = (leaf == leaf.round()) & (leaf.abs() * self.epsilon < 1)
        return torch.where(is_whole, leaf, leaf * (1 + scale * noise))

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]


def _is_double(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dtype in _DOUBLE and leaf.layout == torch.strided


def _rounds(function: Any) -> bool:
    """Whether an operator computes new values: it is no view, and writes to no argument."""
    if not isinstance(function, torch._ops.OpOverload):
        return False
    schema = function._schema
    return not schema.is_mutable and all(given.alias_info is None for given in schema.returns)


def _terms(given: list[Any], made: list[Any]) -> float:
    """How many elements of an operand go into one of the results, if it is a reduction."""
    smallest = min((leaf.numel() for leaf in made), default=0)
    return max(leaf.numel() for leaf in given) / max(smallest, 1) if made else 1.0


def _is_expanded(leaf: torch.Tensor) -> bool:
    return any(step == 0 and size > 1 for step, size in zip(leaf.stride(), leaf.shape, strict=True))


def _memory(leaf: torch.Tensor) -> int:
    return leaf.untyped_storage().data_ptr()
