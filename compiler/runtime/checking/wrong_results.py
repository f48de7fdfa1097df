"""Wrong outputs: from how they were judged to what a report says of them, and the times that they take away.

A wrong result has no speed. Who gave one is not timed, and of the kernels of a graph with a wrong result, or of a call
with one, no measured figure stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from compiler import report as rep
from compiler.capture.captured import Capture
from compiler.runtime.checking.element_errors import ElementErrors
from compiler.runtime.checking.gradients import CheckedCall, graphs_of
from compiler.runtime.checking.judge import Judgement


@dataclass(frozen=True)
class Checked:
    """What came of checking outputs, and what is wrong. The errors are the largest of outputs that have digits, or of
    all where none has, infinite where one cannot be compared, None where none is known. `allowed_error` is what was
    allowed of the output with `compiled_error`."""

    eager_error: float | None = None
    compiled_error: float | None = None
    allowed_error: float | None = None
    wrong: list[rep.WrongResult] = field(default_factory=list)
    errors: list[rep.OutputErrors] = field(default_factory=list)


def checked_graph(graph: str, entry: str | None, names: Sequence[str], judgements: Sequence[Judgement]) -> Checked:
    """The outputs of one graph, which have these names; one judgement alone says that they are too few or too many."""
    of = graph if entry is None else f"{graph}, a part of {entry},"
    subjects = [(name, f"Output {position + 1} (`{name}`) of {of}") for position, name in enumerate(names)]
    if len(names) != len(judgements):
        subjects = [("all of them", f"The result of {of}")]
    return replace(
        _largest_of_each(judgements),
        wrong=[
            _wrong("compiled", judgement, name, subject, graph=graph, entry=entry)
            for (name, subject), judgement in zip(subjects, judgements, strict=True)
            if not judgement.is_right
        ],
        errors=[
            rep.OutputErrors(
                output=name,
                dtype=str(judgement.elements.dtype).removeprefix("torch."),
                elements=judgement.elements.elements,
                eager=element_errors(judgement.eager_elements) if judgement.eager_elements is not None else None,
                compiled=element_errors(judgement.elements),
            )
            for (name, _), judgement in zip(subjects, judgements, strict=True)
            if judgement.elements is not None
        ],
    )


def element_errors(found: ElementErrors) -> rep.ElementErrors:
    """As a report has them."""
    return rep.ElementErrors(
        largest=found.largest, mean=found.mean, largest_ulp=found.largest_ulp, mean_ulp=found.mean_ulp
    )


def checked_call(call: CheckedCall, contestant: Literal["compiled", "peer"]) -> Checked:
    """The results and gradients of one call."""
    of = f"{call.entry}, compiled by TorchInductor," if contestant == "peer" else call.entry
    return replace(
        _largest_of_each([judgement for _, judgement in call.judged]),
        wrong=[
            _wrong(contestant, judgement, name, f"{name[0].upper()}{name[1:]} of {of}", entry=call.entry)
            for name, judgement in call.judged
            if not judgement.is_right
        ],
    )


def _largest_of_each(judgements: Sequence[Judgement]) -> Checked:
    telling = [judgement for judgement in judgements if judgement.has_digits] or judgements
    return worst_of([Checked(one.eager_error, one.error, one.tolerance) for one in telling])


def worst_of(checked: Iterable[Checked]) -> Checked:
    """The largest errors of all."""
    known = [one for one in checked if one.compiled_error is not None]
    worst = max(known, key=lambda one: one.compiled_error or 0.0, default=Checked())
    return Checked(largest(one.eager_error for one in known), worst.compiled_error, worst.allowed_error)


def gradient_checks(call: CheckedCall) -> list[rep.GradientCheck]:
    return [
        rep.GradientCheck(
            entry=call.entry,
            name=name,
            eager_error=finite(judgement.eager_error),
            compiled_error=finite(judgement.error),
            allowed_error=judgement.tolerance,
            is_correct=judgement.is_right,
        )
        for name, judgement in call.judged
    ]


def largest(errors: Iterable[float | None]) -> float | None:
    """Of those that are known."""
    return max((error for error in errors if error is not None), default=None)


def finite(error: float | None) -> float | None:
    """The error as a report has it: JSON has no infinity, and what cannot be compared is told in words."""
    return error if error is not None and math.isfinite(error) else None


def is_wrong(wrong: Iterable[rep.WrongResult], contestant: Literal["compiled", "peer"]) -> bool:
    return any(one.contestant == contestant for one in wrong)


def graphs_without_times(wrong: Sequence[rep.WrongResult], captured: Capture) -> set[str]:
    """The graphs that gave a wrong result, and all graphs of a call that gave one."""
    ours = [one for one in wrong if one.contestant == "compiled"]
    calls = {one.entry for one in ours if one.graph is None}
    entries = [entry for entry in captured.entries if entry.name in calls]
    return {one.graph for one in ours if one.graph} | {g.name for entry in entries for g in graphs_of(entry, captured)}


def withhold_times(graph: rep.Graph) -> None:
    """Take every measured figure from a graph of the report."""
    for kernel in graph.kernels:
        kernel.measured_us = kernel.spread_us = kernel.gb_per_s = kernel.percent_of_peak = None
    graph.call_us = None
    if graph.replay is not None:
        graph.replay.launched = graph.replay.replayed = None


def _wrong(
    contestant: Literal["compiled", "peer"], judgement: Judgement, output: str, subject: str, **location: str | None
) -> rep.WrongResult:
    is_measured = math.isfinite(judgement.error)
    return rep.WrongResult(
        contestant=contestant,
        output=output,
        error=finite(judgement.error),
        eager_error=finite(judgement.eager_error) if is_measured else None,
        tolerance=judgement.tolerance if is_measured else None,
        message=f"{subject} {judgement.problem}.",
        **location,
    )
