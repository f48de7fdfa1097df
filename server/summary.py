"""A report as text: what a person would paste into a review or a chat. Markdown, without anything from HTML.

What it quotes is made safe by `plain_text`: here each part only says whether it is prose or code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compiler.report import Decision, Environment, Graph, Kernel, Peer, Refusal, Report
from compiler.wording import byte_count, counted, line_list
from server.beside import what_if_sentences
from server.captured import (
    all_recompiles,
    break_sentences,
    check_sentences,
    guard_sentences,
    recompile_sentence,
    rewrite_sentences,
    symbol_sentences,
    training_sentences,
)
from server.compiling import compile_sentences
from server.errors import COLUMNS, call_rows, call_sentences, error_rows
from server.figures import beside_eager, microseconds, plus_minus
from server.launches import launch_sentences
from server.memory import level_sentences, memory_sentences, moved_sentence, traffic_sentences
from server.observed import observed_sentences
from server.plain_text import Safe, code, fenced, joined, one_line, row
from server.swept import columns_sentence, sweep_sentences, swept_table
from server.wrong import untimed_sentence, wrong_sentences


def markdown(report: Report) -> str:
    """The answer first, then the kernels, then the decisions that shaped them, then the snippet and its output."""
    parts = [f"# Exploration {report.id}", _answer(report)]
    parts += [f"> {one_line(note.message)}" for note in report.notes]
    parts += [_what_if(report), _capture(report)]
    for graph in report.graphs:
        parts.append(_graph(graph, report.environment))
    if report.gradients:
        parts.append(f"## Gradients\n\n{_listed(check_sentences(report))}")
    if report.compile_phases:
        parts.append(f"## Compiling\n\n{_listed(compile_sentences(report))}")
    if report.timing is not None:
        parts.append(_timing(report))
    if report.peer is not None and report.peer.contestants:
        parts.append(_contestants(report.peer))
    if report.sweep is not None:
        parts.append(_sweep(report))
    parts.append(_environment(report))
    if report.observed is not None:
        parts.append(f"## What the service saw\n\n{_listed(list(map(one_line, observed_sentences(report.observed))))}")
    if report.output:
        parts += ["## Output of the snippet", fenced(report.output.rstrip(), "text")]
    parts += ["## Snippet", fenced(report.source, "python")]
    return joined(parts) + "\n"


def _answer(report: Report) -> str:
    lines = [f"Status: **{report.status}**"]
    if report.wrong_results:
        lines.append(_listed([f"**{sentence}**" for sentence in wrong_sentences(report.wrong_results)]))
    if report.error is not None:
        where = f" (line {report.error.line})" if report.error.line is not None else ""
        if "\n" in report.error.message:
            lines += [one_line(f"{report.error.type}{where}:"), fenced(report.error.message, "text")]
        else:
            lines.append(one_line(f"{report.error.type}{where}: {report.error.message}"))
        lines.append(report.error.hint or "")
    summary = report.summary
    # The verdict of a failed exploration is its error, said again.
    if summary.verdict and report.error is None:
        lines.append(summary.verdict)
    device = report.environment.device_name or report.environment.device
    where = f" on {device}" if device else ""
    rows = [
        ("Kernels", summary.eager_kernels, summary.kernels, summary.peer_kernels),
        ("Bytes moved", *map(_bytes, (summary.eager_bytes, summary.bytes)), None),
        (f"Time (ms){where}", summary.eager_ms, *_times(report)),
        (f"Error against float64{_allowed(summary.allowed_error)}", summary.eager_error, _error(report), None),
    ]
    known = [row for row in rows if any(value is not None for value in row[1:])]
    if known:
        count = 3 if all(one[-1] is None for one in known) else 4
        cells = [list(map(_cell, one[:count])) for one in known]
        lines.append(_table(["", "eager", "compiled", "peer"][:count], cells))
    return joined(lines)


def _allowed(error: float | None) -> str:
    return "" if error is None else f", {error:.1e} allowed"


def _error(report: Report) -> float | str | None:
    """Of compiled; what has NaN or another shape than eager's has none."""
    is_incomparable = any(one.contestant == "compiled" and one.error is None for one in report.wrong_results)
    return "cannot be compared" if is_incomparable else report.summary.compiled_error


def _times(report: Report) -> list[float | str | None]:
    """Of ours and of the peer; a wrong result has none."""
    wrong = {one.contestant for one in report.wrong_results}
    known = {"compiled": report.summary.compiled_ms, "peer": report.summary.peer_ms}
    return ["wrong result" if name in wrong else value for name, value in known.items()]


def _what_if(report: Report) -> str:
    """What was asked to be different, and what came of it."""
    told = _listed(what_if_sentences(report))
    base = f"Based on exploration {report.based_on}." if report.based_on else ""
    return f"## What if\n\n{base}\n\n{told}".strip() if told or base else ""


def _capture(report: Report) -> str:
    """Where tracing stopped and what was compiled again; nothing where one graph served every call."""
    told = [f"**Graph break**: {' '.join(break_sentences(found))}" for found in report.breaks]
    told += [f"**Compiled again**: {recompile_sentence(found)}" for found in all_recompiles(report)]
    return f"## Capture\n\n{_listed(told)}" if told else ""


def _listed(sentences: list[str]) -> str:
    return "\n".join(f"- {one_line(sentence)}" for sentence in sentences)


def _graph(graph: Graph, environment: Environment) -> str:
    title = (
        f"## Graph {one_line(graph.name)}"
        + (f" of {code(graph.function)}" if graph.function else "")
        + f" ({graph.phase})"
    )
    parts = [title]
    told = [*symbol_sentences(graph), *training_sentences(graph), *rewrite_sentences(graph), *launch_sentences(graph)]
    if told:
        parts.append(_listed(told))
    if graph.guards:
        parts.append(f"### Guards of {graph.name}\n\nAnother graph is made for:\n\n{_listed(guard_sentences(graph))}")
    told = traffic_sentences(graph)
    if told:
        parts.append(f"### Traffic of {graph.name}\n\nCounted from shapes, not measured:\n\n{_listed(told)}")
    if memory_sentences(graph):
        parts.append(f"### Memory of {graph.name}\n\n{_listed(memory_sentences(graph))}")
    repeated = repeats(graph)
    parts += [_kernel(kernel, place, graph, environment, repeated) for place, kernel in enumerate(graph.kernels)]
    if graph.errors:
        rows = [[code(output), *rest] for output, *rest in error_rows(graph.errors)]
        parts.append(f"### Errors of {graph.name}\n\n{_table(COLUMNS, rows)}")
    if graph.refusals:
        told = [_refusal(refusal, graph) for refusal in graph.refusals]
        parts.append(f"### Kernels of {graph.name} that were not fused\n\n{_listed(told)}")
    if graph.decisions:
        parts.append("### Decisions\n\n" + _listed(_decisions(graph.decisions)))
    return joined(parts)


def _kernel(kernel: Kernel, place: int, graph: Graph, environment: Environment, repeated: Counter[str]) -> str:
    facts = [
        f"{kernel.kind}",
        counted(kernel.bytes, "byte"),
        *kernel_times(kernel, environment, graph.disturbed is not None),
    ]
    facts += same_code(kernel, repeated)
    if kernel.user_lines:
        facts.append(line_list(kernel.user_lines))
    told = [sentence for sentence in (moved_sentence(graph, place), *level_sentences(kernel)) if sentence]
    heading = f"### Kernel K{place + 1}, {one_line(kernel.name)}"
    return joined([heading, one_line("; ".join(facts)), _listed(told), fenced(kernel.source, kernel.language)])


def repeats(graph: Graph) -> Counter[str]:
    """How many kernels repeat each one, by its name."""
    return Counter(kernel.same_as for kernel in graph.kernels if kernel.same_as is not None)


def same_code(kernel: Kernel, repeated: Counter[str]) -> list[str]:
    """Which kernel this one repeats, or how often it is repeated: equal layers have equal kernels."""
    if kernel.same_as is not None:
        return [f"the same code as {kernel.same_as}"]
    count = repeated[kernel.name]
    return [f"{count + 1} times, under other names"] if count else []


def kernel_times(kernel: Kernel, environment: Environment, is_disturbed: bool = False) -> list[str]:
    """Both times, each with its device: without a GPU the prediction is for the target, the measurement the CPU's. A
    measurement that does not fit the call's time says so."""
    times = []
    if kernel.predicted_us is not None:
        times.append(
            f"predicted for {environment.decides_for or environment.target} {microseconds(kernel.predicted_us)}"
        )
    if kernel.measured_us is not None:
        spread = plus_minus(kernel.measured_us, kernel.spread_us)
        device = environment.device_name or environment.device
        measured = f"measured on {device} {microseconds(kernel.measured_us)}{spread}"
        times.append(f"{measured} (on a busy machine)" if is_disturbed else measured)
    return times


def _decisions(decisions: list[Decision]) -> list[str]:
    """What was not fused is what one asks about. A pair that several rounds refused alike is told once."""
    refused_first = sorted(decisions, key=lambda one: one.verdict == "fused")
    return list(dict.fromkeys(map(_decision, refused_first)))


def _refusal(refusal: Refusal, graph: Graph) -> str:
    one, two = (f"K{place + 1}" for place in refusal.kernels)
    pairs = counted(len(refusal.decisions), "pair")
    return f"{one} and {two}, {byte_count(refusal.bytes)} at stake, {pairs} of nodes: " + _decision(
        graph.decisions[refusal.decisions[0]]
    )


def _decision(decision: Decision) -> str:
    change = f". It would fuse if {decision.would_fuse_if}." if decision.would_fuse_if else ""
    verdict = f"{decision.verdict} ({code(decision.reason)})"
    return f"{code(decision.a)} and {code(decision.b)}: {verdict}. {decision.message}{change}"


def _timing(report: Report) -> str:
    assert report.timing is not None
    rows = [
        row(
            [
                item.name,
                f"{item.median_ms:.4g}",
                plus_minus(item.median_ms, item.spread_ms).strip(),
                f"{item.low_ms:.4g} to {item.high_ms:.4g}",
                str(len(item.samples_ms)),
                beside_eager(item, report.timing),
            ]
        )
        for item in report.timing.contestants
    ]
    head = ["| | median ms | another run | middle half | samples | beside eager |", "|---|---|---|---|---|---|"]
    parts = [f"## Timing\n\n{report.timing.method}", untimed_sentence(report), Safe("\n".join([*head, *rows]))]
    return joined(parts)


def _sweep(report: Report) -> str:
    assert report.sweep is not None
    columns, rows = swept_table(report)
    parts = [
        f"## Sizes of {one_line(report.sweep.name)}",
        report.sweep.verdict,
        columns_sentence(report),
        _table(columns, rows),
    ]
    parts.append(_listed(sweep_sentences(report.sweep)))
    return joined(parts)


def _contestants(peer: Peer) -> str:
    """Who else was asked: times, errors, and why there are none."""
    rows = [
        [
            one.name,
            "" if one.median_ms is None else f"{one.median_ms:.4g}",
            "" if one.max_error is None else f"{one.max_error:.1e}",
            one.failure or "",
        ]
        for one in peer.contestants
    ]
    parts = ["## Contestants", _table(("", "median ms", "relative error", "why it has no time"), rows)]
    if peer.errors:
        parts += ["### Errors of whole calls", _table(COLUMNS, call_rows(peer))]
    return joined([*parts, _listed(list(map(one_line, call_sentences(peer))))])


def _table(columns: Sequence[str], rows: Sequence[list[str]]) -> str:
    return Safe("\n".join([row(columns), "|---" * len(columns) + "|", *map(row, rows)]))


def _environment(report: Report) -> str:
    environment = report.environment
    known = [
        ("device", environment.device_name or environment.device),
        ("target", environment.target),
        ("torch", environment.torch),
        ("triton", environment.triton),
        ("python", environment.python),
        ("seed", environment.seed),
    ]
    return "## Environment\n\n" + _listed([f"{name}: {value}" for name, value in known if value not in ("", None)])


def _bytes(value: int | None) -> str | None:
    return None if value is None else byte_count(value)


def _cell(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
