"""Running samples: eager first, then compiled in batches, then judged. What came of each is plain JSON."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from bench.opinfo import database
from bench.opinfo.database import Job, Sample
from bench.opinfo.deferred import Compiled, build_all, prepare
from bench.opinfo.exceptions import DIVISORS, RANDOM, UNINITIALISED, WITHOUT_VALUE
from bench.opinfo.judge import Verdict, by_form, judge, judge_random

#: Kernels that are compiled together: enough that the compiler's start is a small part.
KERNELS_OF_A_BATCH = 96
SAMPLES_OF_A_BATCH = 128

Tell = Callable[[str, Sample], None]


@dataclass
class Outcome:
    """What came of one sample: "right", "wrong", "failed" or "refused" (by eager), and a sentence where it matters.

    `packets` are the ATen operators that it met, with the reason for each that fell back to PyTorch's own."""

    job: Job
    number: int
    status: str
    sentence: str = ""
    inputs: str = ""
    by_float64: bool = False
    is_broken: bool = False
    packets: dict[str, str | None] = field(default_factory=dict)


@dataclass
class _Pending:
    sample: Sample
    eager: list[Any]
    after: list[Tensor]
    compiled: Compiled


def run_samples(samples: Iterable[Sample], tell: Tell, report: Callable[[Outcome], None]) -> None:
    """Compile and judge all; `tell` hears what is about to happen to a sample, `report` what came of it."""
    pending: list[_Pending] = []
    kernels = 0
    for sample in samples:
        tell("preparing", sample)
        prepared = _prepare(sample)
        if isinstance(prepared, Outcome):
            report(prepared)
            continue
        pending.append(prepared)
        kernels += sum(len(graph.compilation.primary) for graph in prepared.compiled.graphs)
        if kernels >= KERNELS_OF_A_BATCH or len(pending) >= SAMPLES_OF_A_BATCH:
            _finish(pending, tell, report)
            pending, kernels = [], 0
    _finish(pending, tell, report)


def _prepare(sample: Sample) -> _Pending | Outcome:
    tensors = database.copies(sample)
    try:
        torch.manual_seed(0)
        eager = results(sample.function, tensors, sample.job.direction)
    except Exception as error:
        return Outcome(sample.job, sample.number, "refused", _sentence(error), sample.inputs)
    try:
        is_whole = all(x.layout == torch.strided for x in (*tensors, *eager) if isinstance(x, Tensor))
        compiled = prepare(sample.function, database.copies(sample), is_whole)
    except Exception as error:
        return Outcome(sample.job, sample.number, "failed", f"while captured: {_sentence(error)}", sample.inputs)
    return _Pending(sample, eager, [tensor.detach() for tensor in tensors], compiled)


def _finish(pending: list[_Pending], tell: Tell, report: Callable[[Outcome], None]) -> None:
    if pending:
        tell("building", pending[0].sample)
    build_all([one.compiled for one in pending])
    for one in pending:
        tell("running", one.sample)
        report(_judged(one))
    torch._dynamo.reset()
    gc.collect()


def _judged(one: _Pending) -> Outcome:
    sample, compiled = one.sample, one.compiled
    outcome = Outcome(sample.job, sample.number, "right", packets=compiled.packets, is_broken=compiled.is_broken)
    outcome.inputs = sample.inputs
    if sample.job.operator.startswith(database.PROGRAM):
        # All that the call became is what its operator became.
        reason = next(filter(None, outcome.packets.values()), None)
        outcome.packets[sample.job.operator.removeprefix(database.PROGRAM)] = reason
    if compiled.error is not None:
        outcome.status, outcome.sentence = "failed", f"while compiled: {compiled.error}"
        return outcome
    try:
        verdict = _verdict(one)
    except Exception as error:
        outcome.status, outcome.sentence = "failed", f"while run: {_sentence(error)}"
        return outcome
    outcome.by_float64 = verdict.by_float64
    if verdict.problem is not None:
        outcome.status, outcome.sentence = "wrong", verdict.problem
    return outcome


def _verdict(one: _Pending) -> Verdict:
    sample, job = one.sample, one.sample.job
    tensors = database.copies(sample)
    torch.manual_seed(0)
    ours = results(one.compiled.function, tensors, job.direction)
    has_no_value = job.operator in UNINITIALISED or _divides_by_zero(sample)
    without_value = range(len(ours)) if has_no_value else WITHOUT_VALUE.get(job.operator, {})
    ours = by_form(ours, one.eager, without_value)

    def exact() -> list[Any]:
        wide = [database.in_float64(t).requires_grad_(t.requires_grad) for t in database.copies(sample)]
        leaves = [t.detach().requires_grad_(t.requires_grad) for t in wide]
        return [*results(sample.in_float64, leaves, job.direction), *wide]

    tolerance = database.declared_tolerance(job, ours[0].device.type if _is_tensor(ours) else "cpu")
    after = [tensor.detach() for tensor in tensors]
    verdict = judge([*ours, *after], [*one.eager, *one.after], exact, tolerance)
    if verdict.problem is not None and job.operator in RANDOM:
        return judge_random(
            lambda: results(one.compiled.function, database.copies(sample), job.direction),
            lambda: results(sample.function, database.copies(sample), job.direction),
        )
    return verdict


def _divides_by_zero(sample: Sample) -> bool:
    place = DIVISORS.get(sample.job.operator)
    return place is not None and not sample.job.dtype.is_floating_point and bool((sample.tensors[place] == 0).any())


def _is_tensor(values: Sequence[Any]) -> bool:
    return bool(values) and isinstance(values[0], Tensor)


def results(function: Callable[..., Sequence[Any]], tensors: Sequence[Tensor], direction: str) -> list[Any]:
    """What the function gives, or the gradients of its inputs for a fixed gradient of what it gives. Raises
    RuntimeError where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if direction == "forward":
            with torch.no_grad():
                return list(function(*tensors))
        outputs = [output for output in function(*tensors) if isinstance(output, Tensor) and output.requires_grad]
        wanted = [tensor for tensor in tensors if tensor.requires_grad]
        if not outputs or not wanted:
            raise RuntimeError("no result has a gradient")
        given = [_gradient_like(output, place) for place, output in enumerate(outputs)]
        return list(torch.autograd.grad(outputs, wanted, given, allow_unused=True))


def _gradient_like(output: Tensor, place: int) -> Tensor:
    generator = torch.Generator().manual_seed(place)
    return torch.randn(output.shape, generator=generator, dtype=output.dtype).to(output.device)


def _sentence(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300] if lines else 'no message'}"
