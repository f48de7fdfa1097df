"""Torch's database of operators, `op_db`: what it samples, as functions of a flat list of tensors.

Everything of `torch.testing._internal` that the suite needs is here. That module imports `expecttest`, a package of
torch's own tests that nothing here uses; where it is not installed, an empty stand-in takes its place.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import sys
import types
import unittest
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from bench.opinfo import programs

#: What is swept: forward in each of these dtypes, and backward in float64, as torch's own gradient tests do it.
FORWARD_DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool)
BACKWARD_DTYPE = torch.float64

#: The operators with the most samples (576 to 1,440 in each dtype), and in how many shares they are dealt to processes.
SHARES_OF = {
    "logspace.tensor_overload": 4,
    "max_pool2d_with_indices_backward": 12,
    "nn.functional.max_pool1d": 4,
    "nn.functional.max_pool2d": 12,
    "nn.functional.max_pool3d": 6,
}

#: In front of the names of operators that have a program in `programs.py` and are in no database.
PROGRAM = "aten."


@dataclass(frozen=True)
class Job:
    """Samples of one operator in one dtype and direction ("forward" or "backward").

    Those whose number is `share` modulo `shares`: all by default."""

    operator: str
    dtype: torch.dtype
    direction: str
    share: int = 0
    shares: int = 1

    def __str__(self) -> str:
        return f"{self.operator} {self.direction} {str(self.dtype).removeprefix('torch.')}"


@dataclass(frozen=True)
class Sample:
    """One sample: `function` of `tensors` gives a flat list of results. `number` counts within its job.

    `in_float64` is the same function for tensors in float64: a dtype among its other arguments is float64 as well.
    """

    job: Job
    number: int
    function: Callable[..., list[Any]]
    in_float64: Callable[..., list[Any]]
    tensors: tuple[Tensor, ...]

    @property
    def inputs(self) -> str:
        """The tensors in a few words: dtype, sizes and, where they are not contiguous, strides."""
        return ", ".join(_words(tensor) for tensor in self.tensors[:6]) + (", ..." if len(self.tensors) > 6 else "")


def _words(tensor: Tensor) -> str:
    text = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
    is_plain = tensor.layout == torch.strided and tensor.is_contiguous()
    return text if is_plain else f"{text} {tensor.stride() if tensor.layout == torch.strided else tensor.layout}"


@cache
def operators() -> dict[str, Any]:
    """Every OpInfo of `op_db` by its full name (`std_mean.unbiased`)."""
    if importlib.util.find_spec("expecttest") is None and "expecttest" not in sys.modules:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db

    _draw_anew()
    _look_for_no_test()
    named: dict[str, Any] = {}
    for op in op_db:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        while name in named:  # a few differ in what they are compared with only
            name += "'"
        named[name] = op
    return named


def _draw_anew() -> None:
    """Random operators are in the database under a function that sets the seed first; their distribution shows only
    if each call draws anew."""
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.testing._internal") and hasattr(module, "wrapper_set_seed"):
            vars(module)["wrapper_set_seed"] = lambda function, *args, **kwargs: function(*args, **kwargs)


def _look_for_no_test() -> None:
    """Torch looks for the one of its own tests that asks for samples, through every frame and all modules that are
    loaded. That takes 16 times as long as the samples, and none of our callers is such a test."""
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.testing._internal") and hasattr(module, "extract_test_fn"):
            vars(module)["extract_test_fn"] = lambda: None


def jobs(name: str, device: str, dtypes: Sequence[torch.dtype], with_backward: bool) -> list[Job]:
    """What there is to run of an operator."""
    if name.startswith(PROGRAM):
        return [Job(name, torch.float32, "forward")]
    op = operators()[name]
    kind = torch.device(device).type
    forward = [Job(name, dtype, "forward") for dtype in dtypes if op.supports_dtype(dtype, kind)]
    has_backward = op.supports_autograd and BACKWARD_DTYPE in op.supported_backward_dtypes(kind)
    whole = [*forward, *([Job(name, BACKWARD_DTYPE, "backward")] if with_backward and has_backward else [])]
    shares = SHARES_OF.get(name, 1)
    return [dataclasses.replace(job, share=share, shares=shares) for share in range(shares) for job in whole]


def samples(job: Job, device: str, count: int | None, seed: int) -> Iterator[Sample]:
    """The job's share of the first `count` samples (all by default), the same at every call with one seed."""
    if job.operator.startswith(PROGRAM):
        program = programs.function(job.operator.removeprefix(PROGRAM))
        yield Sample(job, 0, program, program, programs.tensors(device))
        return
    op = operators()[job.operator]
    torch.manual_seed(seed + zlib.crc32(str(job).encode()) % 1000)
    is_backward = job.direction == "backward"
    drawn = op.sample_inputs(device, job.dtype, requires_grad=is_backward)
    for number, sample in enumerate(itertools.islice(drawn, count)):
        if number % job.shares != job.share:
            continue
        leaves, structure = tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        finish = sample.output_process_fn_grad if is_backward else None
        wide = [widest(leaf) if isinstance(leaf, torch.dtype) else leaf for leaf in leaves]
        forward, exact = (_forward(op, one, structure, places, finish) for one in (leaves, wide))
        yield Sample(job, number, forward, exact, tuple(leaves[place] for place in places))


def _forward(op: Any, leaves: list[Any], structure: Any, places: list[int], finish: Any) -> Callable[..., list[Any]]:
    function = op.op

    def forward(*tensors: Tensor) -> list[Any]:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        value, args, kwargs = tree_unflatten(filled, structure)
        result = function(value, *args, **kwargs)
        return list(tree_flatten(finish(result) if finish is not None else result)[0])

    return forward


def copies(sample: Sample) -> list[Tensor]:
    """The sample's tensors, each in memory of its own with the same strides, as leaves of a new autograd graph."""
    return [copy_of(tensor) for tensor in sample.tensors]


def copy_of(tensor: Tensor) -> Tensor:
    plain = tensor.detach()
    if plain.layout != torch.strided or plain.is_conj() or plain.is_neg() or plain.is_quantized:
        copied = plain.clone()
    else:
        storage = plain.untyped_storage().clone()
        copied = torch.empty(0, dtype=plain.dtype, device=plain.device)
        copied.set_(storage, plain.storage_offset(), plain.shape, plain.stride())  # type: ignore[call-overload]
    return copied.requires_grad_(tensor.requires_grad)


def in_float64(tensor: Tensor) -> Tensor:
    """The same values in the most exact dtype of their kind."""
    return tensor.to(widest(tensor.dtype))


def widest(dtype: torch.dtype) -> torch.dtype:
    """The most exact dtype of a kind.

    Torch's own tests of decompositions (`test/test_decomp.py`) widen dtypes among the arguments like this too:
    `_softmax_backward_data` on a GPU refuses float64 tensors that come with bfloat16 as the dtype of its input.
    """
    if dtype.is_floating_point:
        return torch.float64
    return torch.complex128 if dtype.is_complex else dtype


def declared_tolerance(job: Job, kind: str) -> tuple[float, float]:
    """(rtol, atol): the widest that the OpInfo declares for torch's own tests of it; zeros where it declares none."""
    rtol = atol = 0.0
    if job.operator.startswith(PROGRAM):
        return rtol, atol
    for decorator in operators()[job.operator].decorators:
        if not _applies(decorator, kind, job.dtype):
            continue
        for one in getattr(decorator, "decorators", [decorator]):
            wider = getattr(one, "d", {}).get(job.dtype)
            if wider is not None:  # a pair (atol, rtol), or atol alone
                rtol = max(rtol, getattr(wider, "rtol", 0.0))
                atol = max(atol, getattr(wider, "atol", wider if isinstance(wider, float) else 0.0))
    return rtol, atol


def _applies(decorator: Any, kind: str, dtype: torch.dtype) -> bool:
    """Whether a decorator is for this device and dtype, in whichever of torch's tests it is declared."""
    device_type, dtypes = getattr(decorator, "device_type", None), getattr(decorator, "dtypes", None)
    return device_type in (None, kind) and (dtypes is None or dtype in dtypes)
