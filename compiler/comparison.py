"""Two explorations of one snippet side by side: what other options changed.

Counted, predicted and measured figures stand in rows of their own, each with the device that it speaks of, and never
share one. The two were measured in two runs: eager's time, which the options do not touch, stands beside as a control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from pydantic import ConfigDict, Field

from compiler.report import Contestant, Graph, Kernel, Report, ReportModel, WhatIf
from compiler.runtime.noise import are_apart
from compiler.wording import counted


class Figure(ReportModel):
    """One figure of both explorations; null where it is not known."""

    name: str = Field(description="What the figure is of, in words.", examples=["kernels"])
    kind: Literal["counted", "predicted", "measured"] = Field(
        description="How it is known: from shapes, from the device's model, or by a clock."
    )
    unit: Literal["", "bytes", "us", "ms"] = Field(default="", description='Its unit; "" for a number of things.')
    device: str = Field(default="", description="What a predicted or measured figure speaks of; both, if two differ.")
    before: float | None = Field(default=None, description="Its value in the first exploration.")
    after: float | None = Field(default=None, description="Its value in the second exploration.")
    change: float | None = Field(default=None, description="after - before")
    ratio: float | None = Field(default=None, description="after / before")
    is_noise: bool = Field(default=False, description="Measured, and no measurable difference.")


class OptionChange(ReportModel):
    """An option that the two explorations have different values of."""

    name: str = Field(description="The option's name.", examples=["forbid"])
    before: Any = Field(default=None, description="Its value in the first; null where it was not asked for.")
    after: Any = Field(default=None, description="Its value in the second; null where it was not asked for.")


class KernelSum(ReportModel):
    """Kernels of one exploration together; a sum is null where one of its terms is not known."""

    names: list[str] = Field(description="The kernels' names.")
    bytes: int = Field(description="Bytes that they read and write, counted from shapes.")
    predicted_us: float | None = Field(default=None, description="Their predicted time in microseconds.")
    measured_us: float | None = Field(default=None, description="Their measured time in microseconds.")


class KernelChange(ReportModel):
    """Kernels that hold the same nodes in both explorations, divided among them in another way."""

    graph: str = Field(description="The graph's name.")
    nodes: list[str] = Field(description="The loop nodes that these kernels hold.")
    before: KernelSum = Field(description="Their kernels in the first exploration.")
    after: KernelSum = Field(description="Their kernels in the second exploration.")


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
    options: list[OptionChange] = Field(default=[], description="Options that differ.")
    what_if: list[WhatIf] = Field(default=[], description="What came of each option of the second exploration.")
    figures: list[Figure] = Field(default=[], description="Every figure that one of the two has at least.")
    kernels: list[KernelChange] = Field(default=[], description="Where the two divide the same nodes differently.")
    is_wrong: bool = Field(default=False, description="A compiled result of one of the two is wrong: it has no times.")
    verdict: str = Field(default="", description="What is wrong, if anything is, and what changed.")


def compare(before: Report, after: Report) -> Comparison:
    """What is different in `after`. Both are reports of the same snippet; of others the kernels have no meaning."""
    figures = [*_counted(before, after), *_predicted(before, after), *_measured(before, after)]
    wrong = _said_of_wrong(before, after)
    return Comparison(
        before=before.id,
        after=after.id,
        options=_options(before, after),
        what_if=after.what_if,
        figures=figures,
        kernels=_kernels(before, after),
        is_wrong=bool(wrong),
        verdict=" ".join([*wrong, _verdict(figures)]),
    )


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
    one, two = (_sum(graph.predicted_us for graph in r.graphs if _is_generated(graph)) for r in (before, after))
    device = _either(before.environment.decides_for, after.environment.decides_for)
    return [_figure("generated kernels in a row", "predicted", unit="us", device=device, before=one, after=two)]


def _is_generated(graph: Graph) -> bool:
    return any(kernel.kind != "extern" for kernel in graph.kernels)


def _measured(before: Report, after: Report) -> list[Figure]:
    device = _either(*((r.timing.device if r.timing else r.environment.device_name) for r in (before, after)))
    figures = []
    contestants: list[tuple[str, Literal["compiled", "eager"]]] = [
        ("compiled", "compiled"),
        ("eager, unchanged", "eager"),
    ]
    for label, name in contestants:
        one, two = _contestant(before, name), _contestant(after, name)
        figure = _figure(
            label, "measured", unit="ms", device=device,
            before=one.median_ms if one else None, after=two.median_ms if two else None,
        )  # fmt: skip
        figure.is_noise = one is not None and two is not None and not are_apart(_quartiles(one), _quartiles(two))
        figures.append(figure)
    sums = [_kernels_us(before), _kernels_us(after)]
    if None not in sums:
        one_us, two_us = sums
        figures.append(
            _figure("generated kernels, each alone", "measured", unit="us", device=device, before=one_us, after=two_us)
        )
    return figures


def _either(one: str, two: str) -> str:
    return one if one == two else f"{one}, then {two}"


def _contestant(report: Report, name: str) -> Contestant | None:
    contestants = report.timing.contestants if report.timing else []
    return next((contestant for contestant in contestants if contestant.name == name), None)


def _quartiles(contestant: Contestant) -> tuple[float, float, float]:
    return contestant.low_ms, contestant.median_ms, contestant.high_ms


def _sum(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return round(sum(v for v in known if v is not None), 3) if known and None not in known else None


# --- kernels


def _kernels(before: Report, after: Report) -> list[KernelChange]:
    later = {graph.name: graph for graph in after.graphs}
    return [change for graph in before.graphs if graph.name in later for change in _changes(graph, later[graph.name])]


def _changes(before: Graph, after: Graph) -> list[KernelChange]:
    """The smallest sets of nodes that whole kernels of both hold, where they divide them differently."""
    if not before.kernels or not after.kernels:
        return []
    together: dict[str, set[str]] = {}
    for kernel in (*before.kernels, *after.kernels):
        nodes = set(kernel.nodes).union(*(together.get(node, ()) for node in kernel.nodes))
        together.update(dict.fromkeys(nodes, nodes))
    changes = []
    for nodes in {id(nodes): nodes for nodes in together.values()}.values():
        one, two = ([k for k in graph.kernels if not nodes.isdisjoint(k.nodes)] for graph in (before, after))
        if {frozenset(k.nodes) for k in one} != {frozenset(k.nodes) for k in two}:
            ordered = [node for kernel in one for node in kernel.nodes]
            sums = {"before": _kernel_sum(one), "after": _kernel_sum(two)}
            changes.append(KernelChange(graph=before.name, nodes=ordered, **sums))
    return changes


def _kernels_us(report: Report) -> float | None:
    """What the generated kernels take, each alone; None where those times are not to be relied on."""
    if any(graph.disturbed for graph in report.graphs):
        return None
    return _sum(kernel.measured_us for graph in report.graphs for kernel in graph.kernels if kernel.kind != "extern")


def _kernel_sum(kernels: list[Kernel]) -> KernelSum:
    return KernelSum(
        names=[kernel.name for kernel in kernels],
        bytes=sum(kernel.bytes for kernel in kernels),
        predicted_us=_sum(kernel.predicted_us for kernel in kernels),
        measured_us=_sum(kernel.measured_us for kernel in kernels),
    )


# --- the verdict


def _said_of_wrong(before: Report, after: Report) -> list[str]:
    """That a compiled result is wrong, and so has no time in the figures."""
    return [
        f"Wrong result {which} the change, so no time is given: {wrong[0].message.removesuffix('.')};"
        for which, report in (("before", before), ("after", after))
        if (wrong := [one for one in report.wrong_results if one.contestant == "compiled"])
    ]


def _verdict(figures: list[Figure]) -> str:
    """The figures that changed, each named for what it is."""
    by_name = {(figure.kind, figure.name): figure for figure in figures}
    kernels, moved = by_name["counted", "generated kernels"], by_name["counted", "bytes moved"]
    said = []
    if kernels.before is not None and kernels.after is not None:
        said.append(
            f"{counted(kernels.before, 'generated kernel')} became {kernels.after:g}"
            if kernels.change
            else f"as many generated kernels ({kernels.after:g})"
        )
    if moved.change:
        said.append(f"{abs(moved.change):,.0f} bytes {'more' if moved.change > 0 else 'fewer'}")
    said += _said_of_time(by_name["predicted", "generated kernels in a row"], "for")
    said += _said_of_time(by_name["measured", "compiled"], "on")
    return ", ".join(said) + "." if said else "Nothing of the two can be compared."


def _said_of_time(figure: Figure, preposition: str) -> list[str]:
    if figure.change is None or not figure.before:
        return []
    share = 100 * figure.change / figure.before
    if figure.is_noise:
        change = "no measurable difference"
    else:
        change = f"{share:+.1f} % {figure.kind}" if abs(share) >= 0.05 else f"no difference {figure.kind}"
    return [f"{change} {preposition} {figure.device}" if figure.device else change]
