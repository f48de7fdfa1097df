"""Whether a compiled model's results are as good as eager's.

The reference is the same model with all its parameters and inputs in float64, and with every lower floating dtype that
its code names (a softmax in float32, say) raised to float64 as well.

The error of a result against its reference is taken twice, as a share of the reference: by the largest difference over
the largest magnitude, max|out - ref| / max|ref|, and by norms, ‖out - ref‖ / ‖ref‖. A result is right if both are at
most three times eager's own (`ALLOWED`) plus a few epsilons of its dtype (`EPSILONS`), for every output, gradient and
buffer by itself. Integers must be equal.

Gradients get more epsilons, because they are long sums whose terms cancel: eager's kernels for the CPU take some of
them in float64 (those of a batch norm), which no loop in float32 equals. And a gradient that is zero by mathematics (of
a bias before a softmax, say) is rounding noise alone, in float64 too, so no scale of a gradient is taken below 1e-4 of
the largest one of the model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from compiler.runtime.checking.verify import leaves

#: How many times eager's error ours may be.
ALLOWED = 3.0
#: How many epsilons of the dtype an error may be beyond that, by the kind of result.
EPSILONS = {"output": 1, "buffer": 1, "gradient": 48, "update": 1}
#: The least scale of a gradient, as a share of the largest one.
SMALLEST_GRADIENT = 1e-4

Results = Mapping[str, Tensor]


@dataclass(frozen=True)
class Judgement:
    """The worst result of a model: its errors by the largest difference, and what decides whether it is right.

    `share` is the largest ratio of an error to what is allowed; the results are right if it is at most 1."""

    error: float
    share: float
    worst: str

    @property
    def is_right(self) -> bool:
        return self.share <= 1.0


class InDouble(TorchDispatchMode):
    """Within, every operator that names a floating dtype below float64 gets float64 instead."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raised_args = tuple(_raise(value) for value in args)
        return func(*raised_args, **{key: _raise(value) for key, value in (kwargs or {}).items()})


def _raise(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value


def named_tensors(results: Any, prefix: str) -> dict[str, Tensor]:
    """Every tensor in what a model returned, by its path; none of them is changed by a later run."""
    return {
        f"{prefix}{path}": value.detach().clone() for path, value in leaves(results) if isinstance(value, torch.Tensor)
    }


def judge(found: Results, eager: Results, reference: Results) -> Judgement:
    """Compare what was `found` with the reference, by the measure of what eager made of the same inputs."""
    if found.keys() != reference.keys():
        missing = ", ".join(sorted(found.keys() ^ reference.keys()))
        return Judgement(float("inf"), float("inf"), f"results differ by name: {missing}")
    judged = [_judge_one(name, found, eager, reference) for name in reference]
    worst = max(judged, key=lambda one: one.share)
    return Judgement(max(one.error for one in judged), worst.share, worst.worst)


def _judge_one(name: str, found: Results, eager: Results, reference: Results) -> Judgement:
    own, plain, wanted = found[name], eager[name], reference[name]
    if own.shape != wanted.shape or own.dtype != plain.dtype:
        return Judgement(float("inf"), float("inf"), f"{name} is {own.dtype}{list(own.shape)}")
    if not wanted.is_floating_point():
        share = 0.0 if torch.equal(own, plain) else float("inf")
        return Judgement(share, share, name)
    floor = _floor(name, reference)
    ours, theirs = errors(own, wanted, floor), errors(plain, wanted, floor)
    rounding = EPSILONS[name.split(".")[0].split("[")[0]] * torch.finfo(own.dtype).eps
    share = max(a / (ALLOWED * b + rounding) for a, b in zip(ours, theirs, strict=True))
    return Judgement(ours[0], share, name)


def _floor(name: str, reference: Results) -> float:
    """The magnitude below which a result counts as zero: that of rounding, for gradients."""
    if not name.startswith("gradient"):
        return 0.0
    gradients = [tensor for name, tensor in reference.items() if name.startswith("gradient")]
    return SMALLEST_GRADIENT * max(map(_largest, gradients))


def errors(out: Tensor, reference: Tensor, floor: float = 0.0) -> tuple[float, float]:
    """max|out - ref| / max|ref| and ‖out - ref‖ / ‖ref‖, with no scale below `floor` an element. Infinite where one is
    NaN or infinite and the other is not the same."""
    if out.numel() == 0:
        return 0.0, 0.0
    out, reference = out.to(torch.float64), reference.to(torch.float64)
    special = ~(torch.isfinite(out) & torch.isfinite(reference))
    same = (out == reference) | (torch.isnan(out) & torch.isnan(reference))
    if not bool(same[special].all()):
        return float("inf"), float("inf")
    difference = (out - reference).masked_fill(special, 0.0)
    reference = reference.masked_fill(special, 0.0)
    tiny = torch.finfo(torch.float64).tiny
    largest = max(_largest(reference), floor, tiny)
    norm = max(float(torch.linalg.vector_norm(reference)), floor * reference.numel() ** 0.5, tiny)
    return _largest(difference) / largest, float(torch.linalg.vector_norm(difference)) / norm


def _largest(tensor: Tensor) -> float:
    return float(tensor.abs().max()) if tensor.numel() else 0.0
