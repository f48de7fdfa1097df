"""`fusionscope explore`: one file, and what became of it."""

from __future__ import annotations

import subprocess
import sys
import time
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from rich.console import Console

from server.commands.given import (
    FAILED_SNIPPET,
    WRONG_RESULT,
    WRONG_USE,
    options_from,
    read_text,
    stages_on_stderr,
    stdout_to_stderr,
)

if TYPE_CHECKING:
    from compiler.options import Options
    from compiler.report import Report

_LOOK_SECONDS = 0.3
"""Between two looks at a file that is watched."""


def explore(
    file: Annotated[Path, typer.Argument(help="A Python file to explore; - reads from standard input.")],
    device: Annotated[str | None, typer.Option(help='"cpu" or "cuda". The default is the GPU if there is one.')] = None,
    target: Annotated[str | None, typer.Option(help="GPU to generate kernels for, such as sm_90.")] = None,
    all: Annotated[
        bool, typer.Option("--all", help="Print everything: graphs, loops, every decision, the kernels' text.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON, and nothing else.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write everything to one HTML file that stands alone.")] = None,
    open: Annotated[bool, typer.Option("--open", help="Also open that file in a browser.")] = False,
    trace: Annotated[
        Path | None, typer.Option(help="Also record a call with torch's profiler, as a Chrome trace in this file.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Again whenever the file changes. Stop with Ctrl+C.")] = False,
    peer: Annotated[bool, typer.Option("--peer", help="Also compile and time with TorchInductor.")] = False,
    peer_mode: Annotated[
        str | None, typer.Option(help="TorchInductor's mode: default, reduce-overhead or max-autotune.")
    ] = None,
    contestant: Annotated[
        list[str] | None, typer.Option(help="Who else is timed, such as aot_eager, cudagraphs, inductor-max-autotune.")
    ] = None,
    why: Annotated[
        str | None, typer.Option(help="Two nodes, as in a,b: print why they are, or are not, in one kernel.")
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=SIZE,SIZE...",
            help="Also at other sizes, as in N=256,1024,4096 or x.shape[0]=64,128; see docs/sweep.md.",
        ),
    ] = None,
    force: Annotated[
        list[str] | None, typer.Option(help="Two nodes, as in a,b: fuse them where legal, if it pays or not.")
    ] = None,
    forbid: Annotated[list[str] | None, typer.Option(help="Two nodes, as in a,b: keep them apart.")] = None,
    rule_off: Annotated[list[str] | None, typer.Option(help="A rule of fusion not to use, such as inline.")] = None,
    largest_group: Annotated[int | None, typer.Option(help="The most loop nodes in one kernel.")] = None,
    device_model: Annotated[
        str | None, typer.Option(help="Device whose model decides and predicts, such as A100.")
    ] = None,
    max_seconds: Annotated[
        float, typer.Option(help="Seconds that it may take: checks and times that would end later are left out.")
    ] = 60.0,
) -> None:
    """Explore one file, and print what became of it: the answer, on one screen.

    The file runs in this process, with your own rights: only the service confines what it runs.

    Exits with 0 when all went well, 1 when the snippet failed, 2 when the command was used wrongly, and 3 when a
    compiled result is wrong, at a size of the sweep or without the options below too: rounding does not explain how far
    it is from float64. A wrong result of TorchInductor is told, and changes nothing of the exit code.

    With --force, --forbid, --rule-off (each may be given many times), --largest-group or --device-model it is explored
    without them too, and both stand side by side.
    """
    if watch:
        _watch(file)
    source = read_text(file)
    options = options_from(
        device=device,
        target=target,
        peer=peer,
        peer_mode=peer_mode,
        contestants=contestant or (),
        sweep=_sweep_of(sweep),
        force=[_pair_of(pair, "--force") for pair in force or ()],
        forbid=[_pair_of(pair, "--forbid") for pair in forbid or ()],
        rules_off=rule_off or (),
        largest_group=largest_group,
        device_model=device_model,
        trace=trace is not None,
        max_seconds=max_seconds,
    )
    if options.peer_mode is not None and not options.peer:
        typer.echo("--peer-mode: it needs --peer, without which TorchInductor is not asked", err=True)
        raise typer.Exit(WRONG_USE)
    pair = None if why is None else _pair_of(why, "--why")
    _check_sweep(source, options)
    with stdout_to_stderr() as output:
        raise typer.Exit(_explored(source, options, output, _Forms(pair, all, json, html, open, trace)))


@dataclass(frozen=True)
class _Forms:
    """In which forms the report is wanted."""

    pair: tuple[str, str] | None
    is_all: bool
    as_json: bool
    html: Path | None
    is_opened: bool
    trace: Path | None


def _explored(source: str, options: Options, output: TextIO, wanted: _Forms) -> int:
    """Explores and prints; the exit code. It must be the last thing that happens: torch and Triton have exit handlers
    that can print or hang after a failed snippet."""
    from compiler.comparison import compare
    from compiler.pipeline import explore as run_explore
    from server.answer import print_answer
    from server.beside import print_comparison
    from server.chrome_trace import chrome_trace
    from server.printer import print_report, print_why

    is_compared = options.is_what_if and wanted.pair is None and not wanted.as_json
    with stages_on_stderr() as told:
        plain = run_explore(source, _compared_with(options), told) if is_compared else None
        report = run_explore(source, options, told)
    console = Console(file=output, highlight=False)
    is_known = True
    if wanted.pair is not None:
        is_known = print_why(report, wanted.pair, console, as_json=wanted.as_json)
    elif wanted.as_json:
        output.write(report.model_dump_json(indent=2) + "\n")
    else:
        (print_report if wanted.is_all else print_answer)(report, console)
        if plain is not None:
            print_comparison(compare(plain, report), console)
    if wanted.html is not None or wanted.is_opened:
        _write_html(report, wanted.html, wanted.is_opened)
    if wanted.trace is not None and report.trace:
        _write("--trace", wanted.trace, chrome_trace(report).model_dump_json())
    is_known &= _knows_contestants(options)
    # Of a snippet that failed no node may be known, and no backend of its own.
    if (not is_known and report.error is None) or any(told_.outcome == "unknown name" for told_ in report.what_if):
        return WRONG_USE
    if any(one.has_wrong_result for one in (report, plain) if one is not None):
        return WRONG_RESULT
    return 0 if report.status == "ok" else FAILED_SNIPPET


def _knows_contestants(options: Options) -> bool:
    """Whether all contestants exist; those that do not are told. A snippet may register a backend, so this is not known
    before it has run."""
    if not options.contestants:
        return True  # without the import of TorchInductor
    from compiler.peer.contestants import ALWAYS, UnknownContestant, maker_of

    is_known = True
    for name in dict.fromkeys(options.contestants):
        try:
            if name not in ALWAYS:
                maker_of(name)
        except UnknownContestant as unknown:
            typer.echo(f"--contestant: {unknown}", err=True)
            is_known = False
    return is_known


def _write_html(report: Report, path: Path | None, is_opened: bool) -> None:
    from server.document import document
    from server.summary import markdown

    path = path or Path(mkdtemp(prefix="fusionscope-")) / "exploration.html"
    _write("--html", path, document(report, markdown(report), report.model_dump_json().encode()))
    typer.echo(f"Everything stands in {path}.", err=True)
    if is_opened:
        webbrowser.open(path.resolve().as_uri())


def _write(option: str, path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as failure:
        typer.echo(f"{option}: {path} cannot be written: {failure.strerror}", err=True)
        raise typer.Exit(WRONG_USE) from None


def _watch(file: Path) -> None:
    """Runs this very command, without --watch, now and after each change of the file, in a process of its own."""
    if str(file) == "-":
        typer.echo("--watch: standard input does not change; name a file", err=True)
        raise typer.Exit(WRONG_USE)
    read_text(file)  # which ends here where it cannot be read
    command = [sys.executable, "-m", "server.cli", *(word for word in sys.argv[1:] if word != "--watch")]
    seen = None
    try:
        while True:
            changed = _state(file)
            if changed not in (None, seen):
                seen = changed
                if sys.stdout.isatty():
                    Console().clear()
                subprocess.run(command, check=False)
                typer.echo(f"Watching {file}. Stop with Ctrl+C.", err=True)
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _state(file: Path) -> tuple[int, int] | None:
    """What changes with a file; None where there is none, as for a moment while an editor writes it anew."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _compared_with(options: Options) -> Options:
    """What a "what if" stands beside: without its options, and at the snippet's own sizes only."""
    return options.without_what_if().model_copy(update={"sweep": None})


def _pair_of(text: str, option: str) -> tuple[str, str]:
    """The two names of an option such as `--why a,b`."""
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        typer.echo(f"{option}: give two nodes with a comma between, as in {option} mul,sum_1, not {text!r}", err=True)
        raise typer.Exit(WRONG_USE)
    return names[0], names[1]


def _sweep_of(text: str | None) -> dict[str, Any] | None:
    """The name and the values of `--sweep N=256,1024`."""
    if text is None:
        return None
    name, is_given, values = text.rpartition("=")
    try:
        if name.strip():
            return {"name": name.strip(), "values": [int(value) for value in values.split(",")]}
    except ValueError:
        pass
    said = repr(text) if is_given else f"{text!r}, which has no ="
    typer.echo(f"--sweep: give a size and numbers, as in --sweep N=256,1024,4096, not {said}", err=True)
    raise typer.Exit(WRONG_USE)


def _check_sweep(source: str, options: Options) -> None:
    """A size that the snippet does not name is told at once, before the snippet runs."""
    from compiler.sweep.sizes import UnknownSize, with_size

    if options.sweep is None:
        return
    try:
        with_size(source, options, options.sweep.name, options.sweep.values[0])
    except UnknownSize as unknown:
        typer.echo(f"--sweep: {unknown}", err=True)
        raise typer.Exit(WRONG_USE) from None
    except SyntaxError:
        return  # the exploration shows it, with its line
