"""The answer to an exploration on one screen of a terminal: what is wrong, the verdict, the kernels with their times,
and the refusals that cost most. Everything else is in `printer`."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from compiler.report import Graph, Kernel, Refusal, Report
from compiler.wording import byte_count, counted, line_list
from server.beside import print_what_if
from server.captured import break_sentences
from server.figures import gb_per_second, microseconds, milliseconds, plus_minus
from server.plain_text import terminal
from server.printer import print_error, print_notes
from server.wrong import untimed_sentence, wrong_sentences

_MOST_KERNELS = 12
_MOST_REFUSALS = 3
_MOST_BREAKS = 5
_MOST_NOTES = 3


def print_answer(report: Report, console: Console) -> None:
    """A wrong result comes first, then the verdict, or what the snippet failed with."""
    for sentence in wrong_sentences(report.wrong_results):
        console.print(f"[bold red]{terminal(sentence)}[/]")
    if report.error is not None:
        print_error(report, console)
    elif report.summary.verdict:
        colour = "red" if report.status == "wrong_result" else "green"
        console.print(f"[bold {colour}]{terminal(report.summary.verdict)}[/]")
    _print_times(report, console)
    print_notes(report.notes[:_MOST_NOTES], console)
    print_what_if(report, console)
    if report.sweep is not None:
        console.print(f"Sizes of {terminal(report.sweep.name)}: {terminal(report.sweep.verdict)}")
    _print_kernels(report, console)
    for broken in report.breaks[:_MOST_BREAKS]:
        first, *rest = break_sentences(broken)
        console.print(f"\n[yellow]Graph break[/]: {terminal(first)}")
        if broken.remedy:
            console.print(f"  {terminal(rest[0])}")
    refusals = [(graph, refusal) for graph in report.graphs for refusal in graph.refusals]
    for graph, refusal in sorted(refusals, key=lambda told: -told[1].bytes)[:_MOST_REFUSALS]:
        _print_refusal(graph, refusal, report, console)
    _print_rest(report, console)


def _print_times(report: Report, console: Console) -> None:
    if report.timing is None:
        return
    times = ", ".join(
        f"{one.name} {milliseconds(one.median_ms)}{plus_minus(one.median_ms, one.spread_ms)}"
        for one in report.timing.contestants
    )
    device = report.timing.device
    console.print(terminal(f"{device}: {times}; medians, and where those of 19 in 20 other runs are."))
    if untimed := untimed_sentence(report):
        console.print(f"[red]{terminal(untimed)}[/]")
    for failed in report.peer.contestants if report.peer is not None else ():
        if failed.failure:
            console.print(f"[red]{terminal(f'{failed.name} was not timed: {failed.failure}')}[/]")


def _print_kernels(report: Report, console: Console) -> None:
    """Kernels of one code once, in the order of their launches; of many, those that take longest."""
    alike: dict[tuple[str, str, int], list[tuple[Graph, int, Kernel]]] = {}
    for graph in report.graphs:
        for place, kernel in enumerate(graph.kernels):
            # One code has one size, and calls of one library function may have several.
            size = kernel.bytes if kernel.kind == "extern" else 0
            key = (graph.name, kernel.same_as or kernel.name, size)
            alike.setdefault(key, []).append((graph, place, kernel))
    found = list(alike.values())
    if not found:
        return
    ranked = sorted(range(len(found)), key=lambda number: -sum(_weight(kernel) for *_, kernel in found[number]))
    shown = [found[number] for number in sorted(ranked[:_MOST_KERNELS])]
    is_one = len({graph.name for [(graph, *_), *_] in shown}) == 1
    table = Table(box=None, pad_edge=False)
    for heading in ("", *([] if is_one else ["graph"]), "kernel", "lines", "bytes", "time"):
        # On a narrow screen it is these two that are shortened, and not the figures.
        table.add_column(heading, no_wrap=heading not in ("kernel", "lines"), overflow="ellipsis")
    for [(graph, place, kernel), *others] in shown:
        where = [] if is_one else [graph.name]
        own = [*kernel.user_lines, *(line for *_, other in others for line in other.user_lines)]
        lines = ", ".join(map(str, dict.fromkeys(own)))
        name = f"{len(others) + 1} times {kernel.name}" if others else kernel.name
        cells = [f"K{place + 1}", *where, name, lines, byte_count(kernel.bytes), _time(kernel, graph, report)]
        table.add_row(*map(terminal, cells))
    console.print()
    console.print(table)
    if len(found) > len(shown):
        left = sum(map(len, alike.values())) - sum(map(len, shown))
        # What a library is called for has no prediction, and may take longest.
        is_known = all(_known_us(kernel) is not None for row in found for *_, kernel in row)
        why = f", which {'takes' if left == 1 else 'take'} less time" if is_known else ""
        console.print(f"and {counted(left, 'other kernel')}{why}.")
    for told in (graph.disturbed for graph in report.graphs):
        if told:
            console.print(f"[yellow]{terminal(told)}[/]")


def _weight(kernel: Kernel) -> float:
    return _known_us(kernel) or kernel.bytes / 1e6


def _known_us(kernel: Kernel) -> float | None:
    return kernel.measured_us or kernel.predicted_us


def _time(kernel: Kernel, graph: Graph, report: Report) -> str:
    if kernel.measured_us is not None:
        busy = ", on a busy machine" if graph.disturbed else ""
        rate = f", {gb_per_second(kernel.gb_per_s)}" if kernel.gb_per_s is not None else ""
        spread = plus_minus(kernel.measured_us, kernel.spread_us)
        return f"{microseconds(kernel.measured_us)}{spread}{rate}{busy}"
    if kernel.predicted_us is not None:
        return f"{microseconds(kernel.predicted_us)} predicted for {report.environment.decides_for}"
    return ""


def _print_refusal(graph: Graph, refusal: Refusal, report: Report, console: Console) -> None:
    decision = graph.decisions[refusal.decisions[0]]
    stake = f", {byte_count(refusal.bytes)} at stake" if refusal.bytes else ""
    lines = f" ({line_list(decision.lines)})" if decision.lines else ""
    where = "" if len(report.graphs) == 1 else f" of {graph.name}"
    one, two = (f"K{place + 1}" for place in refusal.kernels)
    nodes = f"{decision.a} and {decision.b}"
    console.print(f"\n[red]Not fused[/]: {terminal(f'{one} and {two}{where}, at {nodes}{lines}{stake}')}")
    console.print(f"  {terminal(decision.message)}")
    if decision.would_fuse_if:
        console.print(f"  It would fuse if {terminal(decision.would_fuse_if)}.")


def _print_rest(report: Report, console: Console) -> None:
    """What there is besides, and how to see it."""
    decisions = sum(len(graph.decisions) for graph in report.graphs)
    notes = len(report.notes) - _MOST_NOTES
    there = [counted(notes, "more note")] if notes > 0 else []
    there += [counted(decisions, "decision")] if decisions else []
    if report.output:
        there.append("what the snippet printed")
    if there or report.graphs:
        named = ", ".join(["graphs", *there])
        console.print(f"\n[dim]--all prints everything: {named}, and the text of the kernels.[/]")
