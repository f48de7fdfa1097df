"""Whether what a program gave is right: values, strides, and which tensors share memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bench.programs.compiled import by_pytorch
from bench.programs.program import Program
from bench.programs.worlds import Worlds

#: How many times the difference that eager's rounding or random noise made, another correct evaluation may be off.
#: Noise is one draw of many, and a sum may be taken in any order.
FACTOR = 30.0
#: Roundings of the result's own dtype that are always allowed, relative to the largest magnitude in the tensor.
ROUNDINGS = 8.0


def mistakes(
    program: Program,
    worlds: Worlds,
    results: Sequence[Any],
    inputs: Sequence[Tensor],
    captured: Sequence[Tensor] = (),
) -> list[str]:
    """What is wrong with `results` and with the inputs after the call; empty if nothing is.

    Strides must be eager's, or else those of a tensor among `captured`, the results of the graph that was captured:
    PyTorch's own account of an operator sometimes differs from what the operator does. Where it does, a `reshape` may
    be a view in the graph and a copy in eager, so memory may also be shared as AOTAutograd alone shares it."""
    names = [*program.results, *worlds.inputs]
    ours = [*results, *inputs]
    if len(ours) != len(names):
        return [f"{len(results)} results instead of {len(program.results)}"]
    eager = [worlds.tensor(name) for name in names]
    found = [
        f"{name}: {problem}"
        for name, mine, expected in zip(names, ours, eager)
        if (problem := _wrong_tensor(mine, expected, captured) or _wrong_values(name, mine, worlds)) is not None
    ]
    sharing, expected_sharing = _sharing(ours), _sharing(eager)
    if sharing != expected_sharing and sharing != _sharing(by_pytorch(program)):
        found.append(f"memory of {names} is shared as {sharing}, in eager as {expected_sharing}")
    return found


def _wrong_tensor(ours: Any, eager: Tensor, captured: Sequence[Tensor]) -> str | None:
    if not isinstance(ours, Tensor) or ours.dtype != eager.dtype or ours.shape != eager.shape:
        return f"{getattr(ours, 'dtype', None)} {getattr(ours, 'shape', None)}, not {eager.dtype} {eager.shape}"
    allowed = [_strides(tensor) for tensor in (eager, *captured) if tensor.shape == eager.shape]
    if eager.numel() and _strides(ours) not in allowed:
        return f"strides {ours.stride()} of {tuple(ours.shape)}, not {eager.stride()}"
    return None


def _strides(tensor: Tensor) -> list[int]:
    return [step for step, size in zip(tensor.stride(), tensor.shape) if size > 1]


def _wrong_values(name: str, ours: Tensor, worlds: Worlds) -> str | None:
    eager = worlds.tensor(name)
    ours = ours.detach().cpu()
    if worlds.is_exact(name):
        if torch.equal(ours, eager):
            return None
        place = tuple(int(p) for p in (ours != eager).nonzero()[0])
        return f"{ours[place]} at {place}, not {eager[place]}"
    reference: Tensor = worlds.exact_world[name]  # type: ignore[assignment]
    allowed = bound(name, worlds)
    error = (ours.double() - reference).abs()
    if bool((error <= allowed).all()):
        return None
    place = tuple(int(p) for p in (~(error <= allowed)).nonzero()[0])
    return f"{ours[place]} at {place}, not {reference[place]} within {allowed:.3g}; eager gives {eager[place]}"


def bound(name: str, worlds: Worlds) -> float:
    """The largest error against float64 that rounding explains in a tensor."""
    eager, reference = worlds.tensor(name), worlds.exact_world[name]
    assert isinstance(reference, Tensor)
    seen = 0.0
    for other in [eager.double(), *(world[name] for world in worlds.noisy)]:
        assert isinstance(other, Tensor)
        if other.numel():
            seen = max(seen, float((other - reference).abs().max()))
    largest = float(reference.abs().max()) if reference.numel() else 0.0
    return FACTOR * seen + ROUNDINGS * torch.finfo(eager.dtype).eps * largest


def _sharing(tensors: Sequence[Any]) -> list[int]:
    """For each tensor the first one that lies in the same storage; one without elements lies nowhere."""
    storages = [tensor.untyped_storage().data_ptr() if tensor.numel() else None for tensor in tensors]
    return [place if storage is None else storages.index(storage) for place, storage in enumerate(storages)]
