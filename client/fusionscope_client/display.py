"""What is shown of a report: text everywhere, HTML in a notebook. Everything in it may be a stranger's, so every text
is escaped, and nothing is a script, a link of theirs, or loaded from anywhere."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any, Optional

MOST_ROWS = 60
_MOST_CHARACTERS = 60
_MOST_CHARACTERS_IN_HTML = 300
_MOST_REFUSALS = 3
#: What a table of such rows shows, in this order; of other rows it shows every field that is plain.
_COLUMNS = {
    "Kernel": ("graph", "name", "kind", "nodes", "bytes", "predicted_us", "measured_us", "gb_per_s", "user_lines"),
    "Decision": ("graph", "a", "b", "round", "kind", "verdict", "reason", "message", "shared_bytes", "would_fuse_if",
                 "bytes_saved", "fused_us", "unfused_us", "lines"),
    "Refusal": ("graph", "kernels", "bytes", "a", "b", "reason", "message", "would_fuse_if", "pairs", "lines"),
    "Answer": ("graph", "a", "b", "verdict", "reason", "message", "would_fuse_if", "kernels", "lines"),
}  # fmt: skip
_STYLE = (
    "<style>.fusionscope{font-family:system-ui,sans-serif;line-height:1.45}"
    ".fusionscope .bar{border-left:4px solid #0072b2;padding:.3em .8em;margin:.3em 0}"
    ".fusionscope .wrong{border-color:#b00020}.fusionscope table{font-variant-numeric:tabular-nums}"
    # Notebooks put every cell to the right, by rules that come later than these.
    ".fusionscope :is(th,td){text-align:left!important;max-width:34em}.fusionscope .long{min-width:22em}"
    ".fusionscope .number{text-align:right!important;white-space:nowrap}"
    ".fusionscope .bar small{display:block;opacity:.8}.fusionscope .predicted{font-style:italic}</style>"
)


def record(row: Any) -> dict[str, Any]:
    """The columns of one row, by name."""
    if not is_dataclass(row):
        return dict(row)
    score = getattr(row, "score", None)
    known = {one.name: getattr(row, one.name) for one in fields(row)}
    if score is not None:
        known.update((name, getattr(score, name)) for name in ("bytes_saved", "fused_us", "unfused_us"))
    columns = _COLUMNS.get(type(row).__name__)
    if columns is None:
        return {name: value for name, value in known.items() if not is_dataclass(value)}
    return {name: known.get(name) for name in columns}


# --- text


def report_text(report: Any) -> str:
    contents = report.contents
    lines = [*(wrong.message for wrong in contents.wrong_results)]
    if contents.error is not None:
        lines.append(_error_words(contents.error))
    elif report.verdict:
        lines.append(report.verdict)
    else:
        lines.append(f"Status: {contents.status}.")
    kernels = report.kernels
    if kernels:
        lines += ["", table_text([_kernel_row(kernel) for kernel in kernels])]
    for refusal in report.refusals[:_MOST_REFUSALS]:
        lines += ["", *_refusal_words(refusal)]
    for one in contents.breaks:
        lines += ["", _break_words(one)]
    return "\n".join([*map(visible, lines), "", report.url])


def table_text(records: Sequence[Mapping[str, Any]]) -> str:
    if not records:
        return "(none)"
    shown = records[:MOST_ROWS]
    names = [name for name in shown[0] if any(one.get(name) not in (None, "", []) for one in shown)]
    rows = [names, *([_cut(_cell(one.get(name))) for name in names] for one in shown)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(names))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    if len(records) > len(shown):
        lines.append(f"... and {len(records) - len(shown)} more")
    return "\n".join(map(visible, lines))


def visible(text: str) -> str:
    """Without characters that steer a terminal or reorder what is read."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else "\ufffd" for c in text)


def figures_words(report: Any) -> str:
    """The figures of the answer: bytes, times and errors, as far as they are known, and the device that they are of."""
    summary, device = report.contents.summary, report.contents.environment.device_name
    told = []
    if summary.eager_bytes is not None and summary.bytes is not None:
        told.append(f"{bytes_words(summary.eager_bytes)} → {bytes_words(summary.bytes)} moved")
    if summary.eager_ms is not None and summary.compiled_ms is not None:
        told.append(f"{_time_words(summary.eager_ms)} → {_time_words(summary.compiled_ms)} on {device}")
    if summary.compiled_error is not None and summary.eager_error is not None:
        allowed = "" if summary.allowed_error is None else f", {summary.allowed_error:.1e} allowed"
        told.append(f"largest relative error {summary.compiled_error:.1e} (eager {summary.eager_error:.1e}{allowed})")
    return ", ".join(told)


def _time_words(milliseconds: float) -> str:
    value, unit = (milliseconds, "ms") if milliseconds >= 1 else (1000 * milliseconds, "µs")
    return f"{value:.3g}\N{NARROW NO-BREAK SPACE}{unit}"


def _kernel_row(kernel: Any) -> dict[str, Any]:
    time = f"{kernel.measured_us:,.1f}\N{NARROW NO-BREAK SPACE}µs" if kernel.measured_us is not None else ""
    predicted = (
        f"{kernel.predicted_us:,.1f}\N{NARROW NO-BREAK SPACE}µs predicted"
        if not time and kernel.predicted_us is not None
        else ""
    )
    return {"": f"K{kernel.place + 1}", "kernel": kernel.name, "bytes": bytes_words(kernel.bytes),
            "time": time or predicted, "nodes": kernel.nodes}  # fmt: skip


def bytes_words(count: int) -> str:
    """Three digits and a decimal unit, as on the page."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g}\N{NARROW NO-BREAK SPACE}{unit}"
    return f"{count}\N{NARROW NO-BREAK SPACE}B"


def _refusal_words(refusal: Any) -> list[str]:
    one, two = refusal.kernels
    cost = f", {bytes_words(refusal.bytes)} at stake" if refusal.bytes else ""
    lines = [f"{one} and {two} were not fused, at {refusal.a} and {refusal.b}{cost}: {refusal.message}"]
    return [*lines, f"They would fuse if: {refusal.would_fuse_if}"] if refusal.would_fuse_if else lines


def _break_words(one: Any) -> str:
    where = f" at line {one.line}" if one.line is not None else ""
    return f"Graph break{where}: {one.title or one.reason}. {one.remedy}".strip()


def _error_words(error: Any) -> str:
    where = f" (line {error.line})" if error.line else ""
    return f"{error.type}{where}: {error.message}" + (f" {error.hint}" if error.hint else "")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float, list, tuple)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(str(one) for one in value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _cut(text: str, most: int = _MOST_CHARACTERS) -> str:
    text = re.sub(r"[ \t\r\n]+", " ", text).strip()
    return text if len(text) <= most else f"{text[: most - 1]}…"


# --- HTML


def report_html(report: Any) -> str:
    contents = report.contents
    is_wrong = bool(contents.wrong_results) or contents.error is not None
    told = [one.message for one in contents.wrong_results]
    told.append(_error_words(contents.error) if contents.error is not None else report.verdict or contents.status)
    figures = "" if is_wrong else f"<small>{_safe(figures_words(report))}</small>"
    parts = [f'<div class="bar{" wrong" if is_wrong else ""}">{"<br>".join(map(_safe, told))}{figures}</div>']
    if report.kernels:
        parts.append(report.map.svg())
        parts.append(
            f"<details open><summary>Kernels</summary>{_rows_html(map(_kernel_row, report.kernels))}</details>"
        )
    refused = [" ".join(_refusal_words(one)) for one in report.refusals[:_MOST_REFUSALS]]
    refused += map(_break_words, contents.breaks)
    if refused:
        parts.append(f"<ul>{''.join(f'<li>{_safe(one)}</li>' for one in refused)}</ul>")
    decisions = report.decisions
    if decisions:
        rows = _rows_html(decisions.records())
        parts.append(
            f"<details><summary>{len(decisions)} decision{'s' * (len(decisions) != 1)}</summary>{rows}</details>"
        )
    url = escape(report.url, quote=True)
    parts.append(f'<a href="{url}" target="_blank" rel="noopener">Open the exploration</a>')
    return f'<div class="fusionscope">{_STYLE}{"".join(parts)}</div>'


def table_html(records: Sequence[Mapping[str, Any]]) -> str:
    return f'<div class="fusionscope">{_STYLE}{_rows_html(records)}</div>'


def kernel_html(kernel: Any) -> str:
    title = f"K{kernel.place + 1} {kernel.name}, {bytes_words(kernel.bytes)}"
    return f'<div class="fusionscope"><b>{_safe(title)}</b><pre>{_safe(kernel.source)}</pre></div>'


def _rows_html(records: Iterable[Mapping[str, Any]]) -> str:
    rows = list(records)
    if not rows:
        return "<p>None.</p>"
    names = [name for name in rows[0] if any(row.get(name) not in (None, "", []) for row in rows)]
    head = "".join(f"<th>{_safe(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell_html(row.get(name)) for name in names)}</tr>" for row in rows[:MOST_ROWS])
    more = f"<p>… and {len(rows) - MOST_ROWS} more</p>" if len(rows) > MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell_html(value: Any) -> str:
    text = _cell(value)
    whole = f' title="{_safe(text)}"' if len(text) > _MOST_CHARACTERS_IN_HTML else ""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    kinds = {"long": len(text) > _MOST_CHARACTERS, "number": is_number, "predicted": text.endswith(" predicted")}
    named = " ".join(kind for kind, holds in kinds.items() if holds)
    return f"<td{f' class={named!r}' if named else ''}{whole}>{_safe(_cut(text, _MOST_CHARACTERS_IN_HTML))}</td>"


def _safe(text: Optional[str]) -> str:
    return escape(visible(text or ""), quote=True)
