"""Whether a report is as its author expects: few enough kernels, no graph break, and nothing worse than in a report of
before. For the CI of other people's code, where a change that breaks a fusion is to fail with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compiler.matched_kernels import KernelChange, matched
from compiler.report import Decision, Report
from compiler.wording import counted


@dataclass(frozen=True)
class Expected:
    """What is expected; None and False ask for nothing."""

    most_kernels: int | None = None
    most_bytes: int | None = None
    no_breaks: bool = False
    baseline: Report | None = None


@dataclass(frozen=True)
class Finding:
    """One expectation, and whether the report meets it. `line` is one of the snippet."""

    check: str
    is_met: bool
    message: str
    line: int | None = None


def findings(report: Report, expected: Expected) -> list[Finding]:
    """One for each expectation, those that every report has to meet first."""
    found = [*_of_result(report)]
    if expected.most_kernels is not None:
        found.append(_most_kernels(report, expected.most_kernels))
    if expected.most_bytes is not None:
        found.append(_most_bytes(report, expected.most_bytes))
    if expected.no_breaks:
        found += _breaks(report)
    if expected.baseline is not None:
        found += _beside(expected.baseline, report)
    return found


def _of_result(report: Report) -> Iterator[Finding]:
    if report.error is not None:
        yield Finding("runs", False, f"{report.error.type}: {report.error.message}", report.error.line)
    for wrong in report.wrong_results:
        if wrong.contestant == "compiled":
            yield Finding("right", False, wrong.message)
    if report.error is None and report.status == "ok":
        yield Finding("right", True, "The compiled results are right, as far as they were compared.")


def _most_kernels(report: Report, most: int) -> Finding:
    count = report.summary.kernels
    if count is None:
        return Finding("max-kernels", False, "There are no kernels to count.")
    return Finding("max-kernels", count <= most, f"{counted(count, 'kernel')}, and at most {most} may be.")


def _most_bytes(report: Report, most: int) -> Finding:
    count = report.summary.bytes
    if count is None:
        return Finding("max-bytes", False, "There are no kernels whose bytes could be counted.")
    return Finding(
        "max-bytes", count <= most, f"The kernels move {counted(count, 'byte')}, and at most {most:,} may be."
    )


def _breaks(report: Report) -> list[Finding]:
    if not report.breaks:
        return [Finding("no-breaks", True, "No graph breaks.")]
    return [
        Finding(
            "no-breaks", False, f"{found.title}: {found.reason.rstrip('.')}. {found.remedy or ''}".rstrip(), found.line
        )
        for found in report.breaks
    ]


def _beside(before: Report, after: Report) -> Iterator[Finding]:
    """What became worse: kernels that were one, and breaks that were not there."""
    known = {(found.category, found.reason) for found in before.breaks}
    new = [found for found in after.breaks if (found.category, found.reason) not in known]
    for found in new:
        yield Finding("baseline", False, f"A graph break is new. {found.title}: {found.reason}", found.line)
    split = [
        change
        for change in matched(before.graphs, after.graphs, before.source == after.source)
        if change.before.names and len(change.after.names) > len(change.before.names)
    ]
    for change in split:
        reason = _reason(after, change)
        line = reason.lines[0] if reason is not None and reason.lines else None
        told = f": {reason.a} and {reason.b} were not fused, since {reason.message}" if reason is not None else ""
        count = f"{counted(len(change.before.names), 'kernel')} became {len(change.after.names)}"
        yield Finding("baseline", False, f"{count} ({', '.join(change.after.names)}){told}.", line)
    if not new and not split:
        yield Finding("baseline", True, "No fusion is lost and no graph break is new, beside the baseline.")


def _reason(after: Report, change: KernelChange) -> Decision | None:
    """What decided between two of the kernels that there are now, of those with most bytes at stake."""
    name, places = change.graph_after or change.graph, set(change.after.places)
    graph = next(graph for graph in after.graphs if graph.name == name)
    apart = (refusal for refusal in graph.refusals if set(refusal.kernels) <= places)
    return next((graph.decisions[refusal.decisions[0]] for refusal in apart), None)


def as_json(found: list[Finding]) -> list[dict[str, Any]]:
    return [{"check": one.check, "met": one.is_met, "message": one.message, "line": one.line} for one in found]
