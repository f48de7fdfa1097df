"""How far a result is from a reference.

The reference is the same computation in float64. Eager PyTorch has an error against it too, and what a compiled
function owes its caller is to be no worse than eager by more than rounding: `is_correct` says so.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

#: Elements converted to double precision at once, so that checking a large tensor needs little memory beside it.
CHUNK_ELEMENTS = 1 << 24

#: Errors that rounding alone explains, by the dtype of the outputs: a few times what eager shows on sums of thousands
#: of terms. The float8 keep 4 and 3 bits, bfloat16 8, float16 11, float32 24, of which a product in TF32 keeps 11.
TOLERANCE: dict[torch.dtype, float] = {
    torch.float64: 1e-10,
    torch.complex128: 1e-10,
    torch.float32: 1e-5,
    torch.complex64: 1e-5,
    torch.float16: 5e-3,
    torch.bfloat16: 2e-2,
    torch.float8_e4m3fn: 1e-1,
    torch.float8_e5m2: 2e-1,
}

#: Share of the elements of integer outputs that may differ where they were rounded from floating-point values: a value
#: that falls on a rounding boundary may go either way.
INTEGER_TOLERANCE = 1e-3


#: A reference that is smaller than the largest one beside it by this factor is what rounding left of zero in float64:
#: the gradient of a bias that a normalisation takes out again, say. It is treated as zero.
NOTHING = 1e-12


def relative_error(outputs: object, reference: object, scale: float | None = None) -> float:
    """The largest error of any output against its reference; 0.0 is exact, inf says that they cannot be compared.

    Both are whatever the function returned: a tensor, a number, None, or lists, tuples, mappings and dataclasses of
    them, of one structure. Of a pair of outputs the error is

    - floating point or complex: ‖out - ref‖ / ‖ref‖ in double precision over all elements. Where the reference is all
      zeros there is nothing to be relative to, and it is the root mean square of the output. So it is where the
      reference is `NOTHING` beside `scale`, the root mean square of the largest of all references of the computation,
      by default of those given here.
      NaN must stand where the reference has NaN, and an infinity where it has the same infinity: anything else is inf.
      Those positions then count as equal and the norms run over the rest.
    - integer or bool: the share of the elements that differ. It is 0.0 only if every one is equal.
    - anything else (strings, None): 0.0 if equal, else inf.

    A different structure, shape, or kind (floating point against integer) is inf. Precisions may differ: a float32
    output is compared with a float64 reference.
    """
    found = list(leaves(outputs))
    expected = list(leaves(reference))
    if [path for path, _ in found] != [path for path, _ in expected]:
        return math.inf
    scale = scale_of(reference) if scale is None else scale
    return max(
        (_leaf_error(a, b, scale) for (_, a), (_, b) in zip(found, expected, strict=True)),
        default=0.0,
    )


def scale_of(reference: object) -> float:
    """The root mean square of the largest floating-point output, by which is judged what counts as nothing."""
    numbers = (value for _, value in leaves(reference) if isinstance(value, float | complex | torch.Tensor))
    rounded = (tensor for tensor in map(_tensor, numbers) if _kind(tensor) == "rounded" and tensor.numel())
    return max((_root_mean_square(_flat(tensor)) for tensor in rounded), default=0.0)


def _root_mean_square(values: torch.Tensor) -> float:
    """Of what is finite."""
    total = 0.0
    for start in range(0, values.numel(), CHUNK_ELEMENTS):
        chunk = values[start : start + CHUNK_ELEMENTS].to(torch.float64)
        total += float(torch.linalg.vector_norm(chunk.masked_fill(~torch.isfinite(chunk), 0.0))) ** 2
    return math.sqrt(total / values.numel())


def is_correct(outputs: object, reference: object, eager: object, scale: float | None = None) -> bool:
    """Whether `outputs` are right, given the float64 `reference` and what eager made of the same inputs.

    The error of each output must be explained by rounding: it is within the tolerance of the output's dtype, or within
    twice the error of eager's. An error that is not finite is never right, even where eager has none that is finite.
    """
    found, expected, baseline = (list(leaves(value)) for value in (outputs, reference, eager))
    if not [path for path, _ in found] == [path for path, _ in expected] == [path for path, _ in baseline]:
        return False
    scale = scale_of(reference) if scale is None else scale
    for (_, out), (_, ref), (_, plain) in zip(found, expected, baseline, strict=True):
        error = _leaf_error(out, ref, scale)
        if not math.isfinite(error) or error > max(tolerance(out), 2 * _leaf_error(plain, ref, scale)):
            return False
    return True


def tolerance(output: object) -> float:
    """The error against float64 that rounding alone explains in one output, by its dtype."""
    if isinstance(output, torch.Tensor):
        return TOLERANCE.get(output.dtype, INTEGER_TOLERANCE)
    return TOLERANCE[torch.float64] if isinstance(output, float | complex) else INTEGER_TOLERANCE


def to_double(value: Any) -> Any:
    """The same arguments with floating-point tensors in float64 and complex ones in complex128, all of them copies, so
    that a function that writes to its inputs leaves the originals alone."""
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            return value.detach().to(torch.float64, copy=True)
        return value.detach().to(torch.complex128, copy=True) if value.is_complex() else value.detach().clone()
    if isinstance(value, Mapping):
        return {key: to_double(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        items = [to_double(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no container, with its path; an empty container is a leaf of its own."""
    children: list[tuple[str, Any]] | None = None
    if isinstance(value, Mapping):
        children = [(f".{key}", value[key]) for key in value]
    elif isinstance(value, tuple | list):
        children = [(f"[{place}]", item) for place, item in enumerate(value)]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        children = [(f".{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)]
    if children is None:
        yield path, value
    elif not children:
        yield f"{path}()", None
    for step, child in children or ():
        yield from leaves(child, path + step)


def _leaf_error(out: Any, ref: Any, scale: float) -> float:
    numbers = (bool, int, float, complex, torch.Tensor)
    if not isinstance(out, numbers) or not isinstance(ref, numbers):
        return 0.0 if type(out) is type(ref) and out == ref else math.inf
    a = _tensor(out)
    b = _tensor(ref)
    if a.shape != b.shape or _kind(a) != _kind(b):
        return math.inf
    if a.numel() == 0:
        return 0.0
    a, b = _flat(a), _flat(b).to(a.device)
    return _share_that_differs(a, b) if _kind(a) == "exact" else _norm_error(a, b, scale)


def _tensor(value: Any) -> torch.Tensor:
    """A Python number as a tensor; torch would keep only 24 bits of a float."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    wide = {float: torch.float64, complex: torch.complex128}.get(type(value))
    return torch.tensor(value, dtype=wide)


def _kind(tensor: torch.Tensor) -> str:
    return "rounded" if tensor.is_floating_point() or tensor.is_complex() else "exact"


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    dense = tensor.to_dense() if tensor.layout != torch.strided else tensor
    if dense.is_complex():
        dense = torch.view_as_real(dense.resolve_conj())
    return dense.reshape(-1)


def _share_that_differs(a: torch.Tensor, b: torch.Tensor) -> float:
    return int(torch.count_nonzero(a != b)) / a.numel()


def _norm_error(a: torch.Tensor, b: torch.Tensor, scale: float) -> float:
    difference = reference = output = 0.0
    for start in range(0, a.numel(), CHUNK_ELEMENTS):
        x, y = (t[start : start + CHUNK_ELEMENTS].to(torch.float64) for t in (a, b))
        special = ~(torch.isfinite(x) & torch.isfinite(y))
        if bool(special.any()):
            same = (x == y) | (torch.isnan(x) & torch.isnan(y))
            if not bool(same[special].all()):
                return math.inf
            x, y = x.masked_fill(special, 0.0), y.masked_fill(special, 0.0)
        difference += float(torch.linalg.vector_norm(x - y)) ** 2
        reference += float(torch.linalg.vector_norm(y)) ** 2
        output += float(torch.linalg.vector_norm(x)) ** 2
    if math.sqrt(reference / a.numel()) <= NOTHING * scale:
        return math.sqrt(output / a.numel())
    return math.sqrt(difference / reference)
