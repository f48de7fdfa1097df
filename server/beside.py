"""What came of a "what if", and two explorations side by side, for a terminal and as Markdown."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from compiler.comparison import Comparison, Figure
from compiler.matched_kernels import KernelChange
from compiler.report import Report, WhatIf
from server.plain_text import Safe, joined, one_line, row, terminal

_COLOURS = {"done": "green", "refused": "red", "no effect": "yellow", "unknown name": "red"}


def asked_in_words(told: WhatIf) -> str:
    """`forbid sin and relu`, `largest group 2`."""
    return f"{told.option.replace('_', ' ')} {' and '.join(told.asked)}"


def what_if_sentences(report: Report) -> list[str]:
    """What was asked to be different, and what came of it."""
    return [f"{asked_in_words(told)}: {told.outcome}; {told.message}" for told in report.what_if]


def print_what_if(report: Report, console: Console) -> None:
    for told in report.what_if:
        outcome = f"[{_COLOURS[told.outcome]}]{told.outcome}[/]"
        console.print(f"[bold]what if[/] {terminal(asked_in_words(told))}: {outcome}; {terminal(told.message)}")


def print_comparison(
    comparison: Comparison,
    console: Console,
    title: str = "without the options, and with them",
    sides: tuple[str, str] = ("without", "with"),
) -> None:
    """The figures of both sides, under `title`; then the kernels that are others."""
    console.rule(terminal(title), align="left")
    table = Table("", "", *sides, "change", box=None, pad_edge=False)
    for cells in _rows(comparison):
        table.add_row(*map(terminal, cells))
    for told in comparison.differences:
        console.print(terminal(told))
    console.print(table)
    for sentence in _kernel_sentences(comparison):
        console.print(terminal(f"  {sentence}"))
    console.print(f"[bold {'red' if comparison.is_wrong else 'green'}]{terminal(comparison.verdict)}[/]")


def comparison_as_markdown(comparison: Comparison) -> str:
    """The same as a section of a report's text."""
    table = ["| figure | how it is known | the first | what if | change |", "|---|---|---|---|---|"]
    table += [row(cells) for cells in _rows(comparison)]
    kernels = "\n".join(f"- {one_line(sentence)}" for sentence in _kernel_sentences(comparison))
    parts = [
        f"## Beside exploration {comparison.before}",
        *comparison.differences,
        comparison.verdict,
        Safe("\n".join(table)),
        kernels,
    ]
    return joined(parts) + "\n"


def _rows(comparison: Comparison) -> list[tuple[str, str, str, str, str]]:
    """The figures that are known of one of the two at least."""
    return [
        (
            figure.name,
            f"{figure.kind} {_of_device(figure)}".strip(),
            _value(figure.before, figure),
            _value(figure.after, figure),
            _change(figure),
        )
        for figure in comparison.figures
        if figure.before is not None or figure.after is not None
    ]


def _kernel_sentences(comparison: Comparison) -> list[str]:
    return [_kernel_sentence(change) for change in comparison.kernels]


def _kernel_sentence(change: KernelChange) -> str:
    one, two = ", ".join(change.before.names), ", ".join(change.after.names)
    if not two:
        return f"{one} is only in the first"
    return f"{one} became {two}" if one else f"{two} is only in the second"


def _of_device(figure: Figure) -> str:
    return f"{'for' if figure.kind == 'predicted' else 'on'} {figure.device}" if figure.device else ""


def _value(value: float | None, figure: Figure) -> str:
    if value is None:
        return "–"
    if figure.kind == "counted":
        return f"{value:,.0f}"
    return f"{value:.4g} {'µs' if figure.unit == 'us' else figure.unit}"


def _change(figure: Figure) -> str:
    if figure.change is None:
        return ""
    if figure.is_noise:
        return "no measurable difference"
    if figure.kind == "counted":
        return f"{figure.change:+,.0f}" if figure.change else "the same"
    return f"{100 * (figure.ratio - 1):+.1f} %" if figure.ratio is not None else ""
