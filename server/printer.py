"""A report for a terminal: the answer, then graph by graph the loops, the decisions and the kernels."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import TypeAdapter
from rich.console import Console
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table

from compiler.report import Environment, Graph, Kernel, MachineCode, Note, Peer, Report
from compiler.why import Answer, UnknownNode, why
from compiler.wording import counted, line_list
from server.beside import print_what_if
from server.captured import (
    all_recompiles,
    at,
    break_sentences,
    check_sentences,
    guard_sentences,
    recompile_sentence,
    rewrite_sentences,
    symbol_sentences,
    training_sentences,
)
from server.compiling import compile_sentences
from server.errors import COLUMNS, call_rows, call_sentences
from server.figures import beside_eager, plus_minus
from server.launches import launch_sentences
from server.memory import level_sentences, memory_sentences, moved_sentence, traffic_sentences
from server.plain_text import terminal, visible
from server.summary import kernel_times, repeats, same_code
from server.swept import columns_sentence, sweep_sentences, swept_table
from server.wrong import untimed_sentence, wrong_sentences


def print_notes(notes: Iterable[Note], console: Console) -> None:
    for note in notes:
        where = f" (line {note.line})" if note.line is not None else ""
        console.print(f"[cyan]note[/]{where}: {terminal(note.message)}")


def print_report(report: Report, console: Console) -> None:
    """What is wrong with the results comes first, and again in the verdict, which is the last line."""
    for sentence in wrong_sentences(report.wrong_results):
        console.print(f"[bold red]{terminal(sentence)}[/]")
    print_notes(report.notes, console)
    print_what_if(report, console)
    _print_capture(report, console)
    for graph in report.graphs:
        _print_graph(graph, report.environment, console)
    if report.gradients:
        console.rule("gradients", align="left")
        for sentence in check_sentences(report):
            console.print(terminal(sentence))
    for sentence in compile_sentences(report):
        console.print(terminal(sentence))
    if report.timing is not None:
        _print_timing(report, console)
    if report.sweep is not None:
        _print_sweep(report, console)
    if report.peer is not None:
        message = report.peer.message or counted(len(report.peer.kernels), "kernel")
        console.print(f"\n[bold]{terminal(report.peer.name)}[/]: {terminal(message)}")
        for sentence in difference_sentences(report.peer):
            console.print(f"  {terminal(sentence)}")
        for row in report.peer.contestants:
            if row.failure and row.name != "peer":
                console.print(f"[bold]{terminal(row.name)}[/]: {terminal(row.failure)}")
        _print_errors(report.peer, console)
    if report.output:
        console.rule("printed by the snippet", align="left")
        console.print(terminal(report.output.rstrip()))
    # The verdict of a failed exploration is its error, which is printed with its line.
    if report.summary.verdict and report.error is None:
        colour = "red" if report.status == "wrong_result" else "green"
        console.print(f"\n[bold {colour}]{terminal(report.summary.verdict)}[/]")
    if report.error is not None:
        print_error(report, console)


def print_why(report: Report, pair: tuple[str, str], console: Console, as_json: bool = False) -> bool:
    """Why two nodes are, or are not, in one kernel; whether the report knows both names. A name that it does not know
    is no answer, so standard error has it."""
    errors = Console(stderr=True, highlight=False)
    try:
        answers = why(report, *pair)
    except UnknownNode as unknown:
        if report.error is not None:
            print_error(report, errors if as_json else console)
        errors.print(terminal(str(unknown)))
        return False
    if as_json:
        console.out(TypeAdapter(list[Answer]).dump_json(answers, indent=2).decode(), highlight=False)
        return True
    for answer in answers:
        colour = "green" if answer.verdict == "fused" else "red"
        where = f" ({line_list(answer.lines)})" if answer.lines else ""
        console.print(f"[bold]{terminal(answer.a)} and {terminal(answer.b)}[/]: [{colour}]{answer.verdict}[/]{where}")
        console.print(f"  {terminal(answer.reason)}: {terminal(answer.message)}")
        if answer.would_fuse_if:
            console.print(f"  It would fuse if {terminal(answer.would_fuse_if)}.")
        for decision in answer.decisions:
            said = f"{decision.a} + {decision.b}: {decision.verdict}, {decision.message}"
            console.print(f"    round {decision.round}: {terminal(said)}")
    return True


def difference_sentences(peer: Peer) -> list[str]:
    """Where the two compilers cut differently, and why; equal differences once."""
    return [
        " ".join(
            part
            for part in (
                f"{one.count} times: {one.sentence}" if one.count > 1 else one.sentence,
                one.because,
                f"In its own words, {one.refusal}." if one.refusal else "",
            )
            if part
        )
        for one in peer.alignment
        if one.relation != "same" and one.count
    ]


def _print_capture(report: Report, console: Console) -> None:
    """Where tracing stopped, and what was compiled again."""
    for broken in report.breaks:
        first, *rest = break_sentences(broken)
        console.print(f"[yellow]graph break[/]: {terminal(first)}")
        for sentence in rest:
            console.print(f"  {terminal(sentence)}")
    for again in all_recompiles(report):
        console.print(f"[yellow]compiled again[/]: {terminal(recompile_sentence(again))}")


def _print_graph(graph: Graph, environment: Environment, console: Console) -> None:
    title = f"graph {graph.name}" + (f" of {graph.function}" if graph.function else "") + f", {graph.phase}"
    console.rule(f"[bold]{terminal(title)}", align="left")
    for sentence in (
        *symbol_sentences(graph),
        *training_sentences(graph),
        *rewrite_sentences(graph),
        *launch_sentences(graph),
    ):
        console.print(terminal(sentence))
    if graph.guards:
        console.print("[bold]another graph is made for[/]")
        for sentence in guard_sentences(graph):
            console.print(f"  {terminal(sentence)}")
    if graph.loops:
        _print_loops(graph, console)
    if graph.decisions:
        console.print("\n[bold]decisions[/]")
        for decision in graph.decisions:
            colour = "green" if decision.verdict == "fused" else "red"
            pair = terminal(f"{decision.a} + {decision.b}")
            console.print(f"  [{colour}]{decision.verdict:7}[/] {pair}: {terminal(decision.message)}")
            if decision.would_fuse_if:
                console.print(f"          it would fuse if {terminal(decision.would_fuse_if)}")
    for title, told in (("traffic, counted", traffic_sentences(graph)), ("memory", memory_sentences(graph))):
        if told:
            console.print(f"\n[bold]{title}[/]")
            for sentence in told:
                console.print(f"  {terminal(sentence)}")
    for place, kernel in enumerate(graph.kernels):
        _print_kernel(kernel, place, graph, environment, console)


def _print_loops(graph: Graph, console: Console) -> None:
    table = Table("loop", "kind", "sizes", "reduced", "lines", box=None, pad_edge=False, title_justify="left")
    for loop in graph.loops:
        sizes = " × ".join(map(str, loop.sizes))
        reduced = " × ".join(map(str, loop.reduction_sizes))
        kind = f"{loop.kind}, dead" if loop.dead else loop.kind
        table.add_row(terminal(loop.name), kind, sizes, reduced, ", ".join(map(str, loop.lines)))
    console.print(Padding(table, (1, 0, 0, 0)))


def _print_kernel(kernel: Kernel, place: int, graph: Graph, environment: Environment, console: Console) -> None:
    facts = [kernel.kind, counted(kernel.bytes, "byte")]
    facts += same_code(kernel, repeats(graph))
    if kernel.user_lines:
        facts.append(line_list(kernel.user_lines))
    if kernel.registers is not None:
        facts.append(counted(kernel.registers, "register"))
    facts += kernel_times(kernel, environment, graph.disturbed is not None)
    if kernel.percent_of_peak is not None:
        facts.append(f"{kernel.percent_of_peak:.0f} % of peak bandwidth")
    console.print(f"\n[bold]kernel {terminal(kernel.name)}[/] ({terminal('; '.join(facts))})")
    for sentence in (moved_sentence(graph, place), *level_sentences(kernel)):
        if sentence:
            console.print(f"  {terminal(sentence)}")
    source = visible(kernel.source).rstrip()
    if console.is_terminal:
        console.print(Syntax(source, kernel.language, theme="ansi_dark", background_color="default", word_wrap=True))
    else:
        # In a file or a pipe, code stays as it is: no line of it is cut or wrapped.
        console.out(source, highlight=False)


def _print_timing(report: Report, console: Console) -> None:
    assert report.timing is not None
    table = Table("", "median ms", "another run", "middle half", "samples", "beside eager", box=None, pad_edge=False)
    for contestant in report.timing.contestants:
        spread = f"{contestant.low_ms:.4g} to {contestant.high_ms:.4g}"
        again = plus_minus(contestant.median_ms, contestant.spread_ms).strip()
        median = f"{contestant.median_ms:.4g}"
        count, beside = str(len(contestant.samples_ms)), beside_eager(contestant, report.timing)
        table.add_row(terminal(contestant.name), median, again, spread, count, beside)
    console.rule(f"timing on {terminal(report.timing.device)}", align="left")
    console.print(terminal(report.timing.method))
    if table.row_count:
        console.print(table)
    if untimed := untimed_sentence(report):
        console.print(f"[red]{terminal(untimed)}[/]")


def _print_errors(peer: Peer, console: Console) -> None:
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for row in call_rows(peer):
        table.add_row(*map(terminal, row))
    if table.row_count:
        console.print(table)
    for sentence in call_sentences(peer):
        console.print(terminal(sentence))


def _print_sweep(report: Report, console: Console) -> None:
    assert report.sweep is not None
    columns, rows = swept_table(report)
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for column in columns:
        table.add_column(terminal(column), justify="left" if column == "flips" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(terminal, row))
    console.rule(f"sizes of {terminal(report.sweep.name)}", align="left")
    console.print(terminal(columns_sentence(report)))
    console.print(table)
    colour = " red" if any(size.wrong_results for size in report.sweep.sizes) else ""
    console.print(f"[bold{colour}]{terminal(report.sweep.verdict)}[/]")
    for sentence in sweep_sentences(report.sweep):
        console.print(f"  {terminal(sentence)}")


def print_error(report: Report, console: Console) -> None:
    error = report.error
    assert error is not None
    console.print(f"\n[bold red]{terminal(error.type)}[/]{at(error.line)}: {terminal(error.message)}")
    lines = visible(report.source).splitlines()
    if error.line is not None and 1 <= error.line <= len(lines):
        first = max(1, error.line - 2)
        shown = Syntax(
            visible(report.source),
            "python",
            theme="ansi_dark",
            background_color="default",
            line_numbers=True,
            line_range=(first, error.line + 1),
            highlight_lines={error.line},
        )
        console.print(shown)
    if error.hint:
        console.print(terminal(error.hint))


def print_machine_code(code: MachineCode, console: Console) -> None:
    """The last level, each line with the line of the kernel's source, and what its instructions say."""
    for level in code.levels[-1:]:
        console.rule(f"{level.name} of {terminal(code.kernel)} for {terminal(code.target)}", align="left")
        lines = dict(level.lines)
        for number, text in enumerate(level.text.splitlines(), start=1):
            console.print(f"[dim]{lines.get(number, ''):>4}[/]  {terminal(text)}", soft_wrap=True)
        if level.cut is not None:
            console.print(terminal(level.cut))
    mix = ", ".join(f"{count} {kind}" for kind, count in code.instructions.items() if count)
    accesses = sorted({f"{one.instruction} ({one.bits} bits)" for one in code.accesses if one.bits is not None})
    told = [
        mix and f"Instructions: {mix}.",
        accesses and f"Loads and stores: {', '.join(accesses)}.",
        code.matrix_instructions and f"Matrix units: {', '.join(code.matrix_instructions)}.",
        *(
            f"Assembly lines {one.first} to {one.last}: {one.packed} on vectors, {one.scalar} not."
            for one in code.loops
        ),
        *code.notes,
    ]
    for sentence in told:
        if sentence:
            console.print(terminal(str(sentence)))
