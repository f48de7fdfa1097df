"""How far a result is from a reference, as one number.

The reference is the same computation in float64. Whether a result with such an error is right is decided by
`judge.py`, and nowhere else.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from compiler.capture.reference import raise_precision

#: Elements converted to double precision at once, so that checking a large tensor needs little memory beside it.
CHUNK_ELEMENTS = 1 << 24

#: A reference that is smaller than the largest one beside it by this factor is what rounding left of zero in float64:
#: the gradient of a bias that a normalisation takes out again, say. It is treated as zero.
NOTHING = 1e-12

#: What is compared as numbers.
NUMBERS = (bool, int, float, complex, torch.Tensor)


def relative_error(outputs: object, reference: object, smallest: float = 0.0) -> float:
    """The largest error of any output against its reference; 0.0 is exact, inf says that they cannot be compared.

    Both are whatever the function returned: a tensor, a number, None, or lists, tuples, mappings and dataclasses of
    them, of one structure. Of a pair of outputs the error is

    - floating point or complex: ‖out - ref‖ / ‖ref‖ in double precision over all elements. Where the reference is all
      zeros there is nothing to be relative to, and it is the root mean square of the output. So it is, where that is
      less, if the reference is `NOTHING` beside the root mean square of the largest of all references.
      NaN must stand where the reference has NaN, and an infinity where it has the same infinity: anything else is inf.
      Those positions then count as equal and the norms run over the rest.
    - integer or bool: the share of the elements that differ. It is 0.0 only if every one is equal.
    - anything else (strings, None): 0.0 if equal, else inf.

    The error of an output whose root mean square is below `smallest` is relative to that instead: where much cancels,
    such as in the gradient of what a softmax takes out again, rounding leaves no digits of the rest.

    A different structure, shape, or kind (floating point against integer) is inf. Precisions may differ: a float32
    output is compared with a float64 reference.
    """
    found = list(leaves(outputs))
    expected = list(leaves(reference))
    if [path for path, _ in found] != [path for path, _ in expected]:
        return math.inf
    scale = scale_of(reference)
    return max(
        (_leaf_error(a, b, scale, smallest) for (_, a), (_, b) in zip(found, expected, strict=True)),
        default=0.0,
    )


def scale_of(reference: object) -> float:
    """The root mean square of the largest floating-point output, by which is judged what counts as nothing."""
    return max(_root_mean_squares(reference), default=0.0)


def typical_scale_of(reference: object) -> float:
    """The median of the root mean squares of the floating-point outputs."""
    return statistics.median([*_root_mean_squares(reference)] or [0.0])


def _root_mean_squares(reference: object) -> Iterator[float]:
    numbers = (value for _, value in leaves(reference) if isinstance(value, float | complex | torch.Tensor))
    rounded = (tensor for tensor in map(as_tensor, numbers) if is_rounded(tensor) and tensor.numel())
    return (_root_mean_square(flat(tensor)) for tensor in rounded)


def _root_mean_square(values: torch.Tensor) -> float:
    """Of what is finite."""
    total = 0.0
    for (chunk,) in chunks(values):
        total = math.hypot(total, norm_of(chunk.masked_fill(~torch.isfinite(chunk), 0.0)))
    return total / math.sqrt(values.numel())


def to_double(value: Any) -> Any:
    """The same arguments with floating-point tensors in float64 and complex ones in complex128, all of them copies, so
    that a function that writes to its inputs leaves the originals alone."""
    return tree_map_only(torch.Tensor, lambda one: raise_precision(one.detach().clone()), value)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no container, with its path; an empty container is a leaf of its own."""
    children: list[tuple[str, Any]] | None = None
    if isinstance(value, Mapping):
        children = [(f".{key}", value[key]) for key in value]
    elif isinstance(value, tuple | list):
        children = [(f"[{position}]", item) for position, item in enumerate(value)]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        children = [(f".{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)]
    if children is None:
        yield path, value
    elif not children:
        yield f"{path}()", None
    for step, child in children or ():
        yield from leaves(child, path + step)


def _leaf_error(out: Any, ref: Any, scale: float, smallest: float) -> float:
    if not isinstance(out, NUMBERS) or not isinstance(ref, NUMBERS):
        return 0.0 if type(out) is type(ref) and out == ref else math.inf
    a, b = as_tensor(out), as_tensor(ref)
    if a.shape != b.shape or is_rounded(a) != is_rounded(b):
        return math.inf
    a, b = flat(a), flat(b)
    return _norm_error(a, b, scale, smallest) if is_rounded(a) else share_that_differs(a, b)


def as_tensor(value: Any) -> torch.Tensor:
    """A Python number as a tensor; torch would keep only 24 bits of a float."""
    if isinstance(value, torch.Tensor):
        return plain(value)
    wide = {float: torch.float64, complex: torch.complex128}.get(type(value))
    return torch.tensor(value, dtype=wide)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The same values without a gradient and, of a subclass or an object with methods of its own, without those."""
    with torch._C.DisableTorchFunction():
        return torch._C.TensorBase.detach(tensor)


def is_rounded(tensor: torch.Tensor) -> bool:
    """Whether its values are rounded ones: floating point or complex."""
    return tensor.is_floating_point() or tensor.is_complex()


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """All elements in a row; a complex one as its real and its imaginary part."""
    dense = tensor.to_dense() if tensor.layout != torch.strided else tensor
    dense = dense.resolve_conj().resolve_neg()
    if dense.is_complex():
        dense = torch.view_as_real(dense)
    return dense.reshape(-1)


def chunks(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """The elements of flat tensors of one length in float64 on the first one's device, `CHUNK_ELEMENTS` at a time."""
    device = tensors[0].device
    for start in range(0, tensors[0].numel(), CHUNK_ELEMENTS):
        yield tuple(t[start : start + CHUNK_ELEMENTS].to(device, torch.float64) for t in tensors)


def share_that_differs(a: torch.Tensor, b: torch.Tensor) -> float:
    """Of flat tensors of integers or truth values; 0.0 without elements."""
    return int(torch.count_nonzero(a != b.to(a.device))) / max(a.numel(), 1)


def are_same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Where both are equal, or both NaN."""
    return (a == b) | (torch.isnan(a) & torch.isnan(b))


def norm_of(values: torch.Tensor) -> float:
    """The Euclidean norm in float64, also of numbers whose squares are beyond it."""
    norm = float(torch.linalg.vector_norm(values))
    if math.isinf(norm):
        largest = float(values.abs().max())
        norm = largest * float(torch.linalg.vector_norm(values / largest))
    return norm


@dataclass
class Norms:
    """Euclidean norms over elements that come chunk by chunk."""

    elements: int = 0
    difference: float = 0.0
    reference: float = 0.0
    output: float = 0.0

    def add(self, output: torch.Tensor, reference: torch.Tensor) -> None:
        self.elements += output.numel()
        self.difference = math.hypot(self.difference, norm_of(output - reference))
        self.reference = math.hypot(self.reference, norm_of(reference))
        self.output = math.hypot(self.output, norm_of(output))

    def is_nothing(self, scale: float) -> bool:
        """Whether the reference is zero, or what rounding in float64 left of zero beside `scale`."""
        return self._root_mean_square(self.reference) <= NOTHING * scale

    def error(self, scale: float, smallest: float = 0.0) -> float:
        """‖out - ref‖ / ‖ref‖; where the reference is nothing the root mean square of the output, if that is less."""
        beside = max(self.reference, smallest * math.sqrt(self.elements))
        relative = self.difference / beside if beside else math.inf
        return min(relative, self._root_mean_square(self.output)) if self.is_nothing(scale) else relative

    def _root_mean_square(self, norm: float) -> float:
        return norm / math.sqrt(max(self.elements, 1))


def _norm_error(a: torch.Tensor, b: torch.Tensor, scale: float, smallest: float) -> float:
    norms = Norms()
    for x, y in chunks(a, b):
        special = ~(torch.isfinite(x) & torch.isfinite(y))
        if bool(special.any()):
            if bool((special & ~are_same(x, y)).any()):
                return math.inf
            x, y = x.masked_fill(special, 0.0), y.masked_fill(special, 0.0)
        norms.add(x, y)
    return norms.error(scale, smallest)
