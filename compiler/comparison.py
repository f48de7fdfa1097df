"""Two explorations side by side: of one snippet with other options, or of two snippets.

Counted, predicted and measured figures stand in rows of their own, each with the device that it speaks of, and never
share one. The two were measured in two runs: eager's time stands beside as a control, which the options do not touch.
What the reader must know before any figure, such as another device, stands in `differences`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

from pydantic import ConfigDict, Field

from compiler.matched_kernels import KernelChange, matched, total
from compiler.report import Contestant, Graph, Kernel, Report, ReportModel, WhatIf
from compiler.runtime.timing.noise import BetweenRuns, stated_spread
from compiler.wording import byte_count, counted


class Figure(ReportModel):
    """One figure of both explorations. A value is null if it is not known."""

    name: str = Field(description="What the figure is of, in words.", examples=["kernels"])
    kind: Literal["counted", "predicted", "measured"] = Field(
        description="How it is known: from shapes, from the device's model, or by a clock."
    )
    unit: Literal["", "bytes", "us", "ms"] = Field(default="", description='The unit. "" is a number of things.')
    device: str = Field(default="", description="The device of a predicted or measured figure, or both.")
    before: float | None = Field(default=None, description="Its value in the first exploration.")
    after: float | None = Field(default=None, description="Its value in the second exploration.")
    change: float | None = Field(
        default=None, description="after - before. Null if one is not known, or if the two are of different work."
    )
    ratio: float | None = Field(default=None, description="after / before.")
    is_noise: bool = Field(default=False, description="Measured, with no measurable difference.")


class OptionChange(ReportModel):
    """An option that the two explorations have different values of."""

    name: str = Field(description="The option's name.", examples=["forbid"])
    before: Any = Field(default=None, description="Its value in the first. Null if it was not asked for.")
    after: Any = Field(default=None, description="Its value in the second. Null if it was not asked for.")


class Comparison(ReportModel):
    """`before` and `after` are ids; `what_if` says what came of the options of the latter."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "before": "0123456789abcdef0123",
                "after": "3210fedcba9876543210",
                "options": [{"name": "largest_group", "before": None, "after": 2}],
                "figures": [{"name": "kernels", "kind": "counted", "before": 1, "after": 3, "change": 2, "ratio": 3.0}],
                "verdict": "3 kernels instead of 1.",
            }
        }
    )

    before: str = Field(description="Id of the first exploration.")
    after: str = Field(description="Id of the second exploration.")
    options: list[OptionChange] = Field(default=[], description="The options that differ.")
    what_if: list[WhatIf] = Field(default=[], description="The outcome of each option of the second exploration.")
    is_same_source: bool = Field(default=True, description="Whether both are explorations of the same source.")
    differences: list[str] = Field(default=[], description="Other differences that make figures hard to compare.")
    figures: list[Figure] = Field(default=[], description="Every figure that at least one of the two has.")
    kernels: list[KernelChange] = Field(default=[], description="The kernels that divide the same nodes differently.")
    unchanged: list[KernelChange] = Field(default=[], description="Kernels that hold the same nodes in both.")
    is_wrong: bool = Field(default=False, description="A compiled result of one of the two is wrong. It has no times.")
    verdict: str = Field(default="", description="What is wrong, if anything is, and what changed.")


def compare(before: Report, after: Report) -> Comparison:
    """What is different in `after`. Kernels of one source are matched by their nodes' names, those of two by what their
    nodes compute."""
    is_same_source = before.source == after.source
    figures = [*_counted(before, after), *_predicted(before, after), *_measured(before, after, is_same_source)]
    if not _call_alike(before, after):
        # Generated kernels then compute what library calls of the other do, whose time is in neither sum.
        figures = [
            figure.model_copy(update={"change": None, "ratio": None}) if figure.name in _OF_GENERATED else figure
            for figure in figures
        ]
    wrong = _said_of_wrong(before, after)
    kernels = matched(before.graphs, after.graphs, is_same_source)
    differences = _differences(before, after)
    return Comparison(
        before=before.id,
        after=after.id,
        options=_options(before, after),
        what_if=after.what_if,
        is_same_source=is_same_source,
        differences=differences,
        figures=figures,
        kernels=[change for change in kernels if change.relation != "same"],
        unchanged=[change for change in kernels if change.relation == "same"],
        is_wrong=bool(wrong),
        verdict=" ".join([*wrong, _verdict(figures)]),
    )


#: Times of the generated kernels without the library calls.
_IN_A_ROW, _EACH_ALONE = "generated kernels in a row", "generated kernels, each alone"
_OF_GENERATED = (_IN_A_ROW, _EACH_ALONE)


def _call_alike(before: Report, after: Report) -> bool:
    """Whether both make the same library calls: of one source those of the same nodes, of two those of one name. One
    that has no kernels makes none that is known."""
    if before.summary.kernels is None or after.summary.kernels is None:
        return True
    by_node = before.source == after.source
    one, two = (
        Counter(
            (graph.name if by_node else "", *(kernel.nodes if by_node else [kernel.name]))
            for graph in report.graphs
            for kernel in graph.kernels
            if kernel.kind == "extern"
        )
        for report in (before, after)
    )
    return one == two


def _differences(before: Report, after: Report) -> list[str]:
    one, two = before.environment, after.environment
    told = []
    if before.source != after.source:
        told.append("The two are of different snippets: kernels are matched by what they compute.")
    for which, report in (("first", before), ("second", after)):
        error = report.error
        if report.status == "running":
            told.append(f"The {which} is still explored: compare again when it is done.")
        elif error is not None:
            where = "" if error.line is None else f" in line {error.line}"
            why = error.message.partition("\n")[0].removesuffix(".")
            told.append(f"The {which} ended with {error.type}{where}: {why}.")
    if not _call_alike(before, after):
        told.append("The two make different library calls: the times of their generated kernels are of different work.")
    devices = [report.timing.device if report.timing else None for report in (before, after)]
    names = [report.environment.device_name or report.environment.device for report in (before, after)]
    if None not in devices and (devices[0] != devices[1] or names[0] != names[1]):
        told.append(f"They ran on different devices, {names[0]} and {names[1]}: times also differ by device.")
    if one.decides_for and two.decides_for and one.decides_for != two.decides_for:
        told.append(f"Predictions are for different devices, {one.decides_for} and {two.decides_for}.")
    versions = [("PyTorch", one.torch, two.torch), ("Triton", one.triton, two.triton)]
    versions.append(("the compiler", one.compiler, two.compiler))
    told += [f"The version of {name} differs: {a} and {b}." for name, a, b in versions if a and b and a != b]
    return told


def _options(before: Report, after: Report) -> list[OptionChange]:
    # A report leaves out what was not asked for, or has it as null.
    names = dict.fromkeys((*before.options, *after.options))
    pairs = ((name, before.options.get(name), after.options.get(name)) for name in names)
    return [
        OptionChange(name=name, before=one, after=two) for name, one, two in pairs if (one or None) != (two or None)
    ]


# --- figures


def _figure(name: str, kind: Literal["counted", "predicted", "measured"], **known: Any) -> Figure:
    figure = Figure(name=name, kind=kind, **known)
    one, two = figure.before, figure.after
    if one is not None and two is not None:
        figure.change = round(two - one, 6)
        figure.ratio = round(two / one, 4) if one else None
    return figure


def _counted(before: Report, after: Report) -> list[Figure]:
    def both(name: str, count: Callable[[Report], int | None], unit: Literal["", "bytes"] = "") -> Figure:
        return _figure(name, "counted", unit=unit, before=count(before), after=count(after))

    return [
        both("generated kernels", lambda report: _per_kernel(report, lambda kernel, _: kernel.kind != "extern")),
        both("library calls", lambda report: _per_kernel(report, lambda kernel, _: kernel.kind == "extern")),
        both("launches in all calls", lambda report: _per_kernel(report, lambda _, graph: max(graph.calls, 1))),
        both("bytes moved", lambda report: report.summary.bytes, "bytes"),
        both("peak memory of buffers", _peak_bytes, "bytes"),
    ]


def _per_kernel(report: Report, count: Callable[[Kernel, Graph], int]) -> int | None:
    if report.summary.kernels is None:
        return None
    return sum(int(count(kernel, graph)) for graph in report.graphs for kernel in graph.kernels)


def _peak_bytes(report: Report) -> int | None:
    return max((graph.memory.peak_bytes for graph in report.graphs if graph.memory is not None), default=None)


def _predicted(before: Report, after: Report) -> list[Figure]:
    one, two = (total(graph.predicted_us for graph in r.graphs if _is_generated(graph)) for r in (before, after))
    device = _either(before.environment.decides_for, after.environment.decides_for)
    return [_figure(_IN_A_ROW, "predicted", unit="us", device=device, before=one, after=two)]


def _is_generated(graph: Graph) -> bool:
    return any(kernel.kind != "extern" for kernel in graph.kernels)


def _measured(before: Report, after: Report, is_same_source: bool) -> list[Figure]:
    device = ", then ".join(dict.fromkeys(report.timing.device for report in (before, after) if report.timing))
    figures = []
    contestants: list[tuple[str, Literal["compiled", "eager"]]] = [
        ("compiled", "compiled"),
        ("eager, unchanged" if is_same_source else "eager", "eager"),
    ]
    for label, name in contestants:
        one, two = (report.timing.of(name) if report.timing else None for report in (before, after))
        figure = _figure(
            label, "measured", unit="ms", device=device,
            before=one.median_ms if one else None, after=two.median_ms if two else None,
        )  # fmt: skip
        figure.is_noise = one is not None and two is not None and not _differ(one, two)
        figures.append(figure)
    sums = [_kernels_us(before), _kernels_us(after)]
    if None not in sums:
        one_us, two_us = sums
        figures.append(_figure(_EACH_ALONE, "measured", unit="us", device=device, before=one_us, after=two_us))
    return figures


def _either(one: str, two: str) -> str:
    return one or two if one == two or not (one and two) else f"{one}, then {two}"


def _differ(one: Contestant, two: Contestant) -> bool:
    """Whether they are further apart than two runs of the same are. Reports of older versions state no spread."""
    stated = (
        stated_spread(each.samples_ms, BetweenRuns()) if each.spread_ms is None else each.spread_ms
        for each in (one, two)
    )
    return abs(one.median_ms - two.median_ms) > max(stated)


def _kernels_us(report: Report) -> float | None:
    """What the generated kernels take, each alone; None where those times are not to be relied on."""
    if any(graph.disturbed for graph in report.graphs):
        return None
    return total(kernel.measured_us for graph in report.graphs for kernel in graph.kernels if kernel.kind != "extern")


# --- the verdict


def _said_of_wrong(before: Report, after: Report) -> list[str]:
    """That a compiled result is wrong, and so has no time in the figures."""
    return [
        f"Wrong result {which} the change, so no time is given: {wrong[0].message.removesuffix('.')}."
        for which, report in (("before", before), ("after", after))
        if (wrong := [one for one in report.wrong_results if one.contestant == "compiled"])
    ]


def _verdict(figures: list[Figure]) -> str:
    """The figures that changed, each named for what it is."""
    by_name = {(figure.kind, figure.name): figure for figure in figures}
    kernels, moved = by_name["counted", "generated kernels"], by_name["counted", "bytes moved"]
    calls = by_name["counted", "library calls"]
    said = []
    if kernels.before is not None and kernels.after is not None:
        said.append(
            f"{counted(kernels.before, 'generated kernel')} became {kernels.after:g}"
            if kernels.change
            else f"Still {counted(kernels.after, 'generated kernel')}"
        )
    if calls.change:
        said.append(f"{counted(calls.before or 0, 'library call')} became {calls.after:g}")
    if moved.change:
        said.append(f"{byte_count(abs(round(moved.change)))} {'more' if moved.change > 0 else 'less'} moved")
    said += _said_of_time(by_name["predicted", _IN_A_ROW], "for")
    said += _said_of_time(by_name["measured", "compiled"], "on")
    verdict = ", ".join(said) + "." if said else "Nothing of the two can be compared."
    return verdict[0].upper() + verdict[1:]


def _said_of_time(figure: Figure, preposition: str) -> list[str]:
    if figure.change is None or not figure.before:
        return []
    share = 100 * figure.change / figure.before
    if figure.is_noise:
        change = "no measurable difference in time"
    elif abs(share) < 0.05:
        change = f"the same {figure.kind} time"
    else:
        change = f"{abs(share):.1f} % {'more' if share > 0 else 'less'} {figure.kind} time"
    return [f"{change} {preposition} {figure.device}" if figure.device else change]
