"""The command line: `fusionscope serve | web | worker | token | explore | bench | doctor | examples`.

Heavy imports (torch, the service) happen inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from compiler.options import Options

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="See what a compiler makes of your PyTorch code: graphs, loops, every fusion decision, kernels, and times.",
)

FAILED_SNIPPET = 1
WRONG_USE = 2
WRONG_RESULT = 3

KEEP_ALIVE_SECONDS = 75
"""How long an unused connection stays open. Clients and proxies close theirs after 5 to 60 seconds: whoever is to be
the second to do so may be in the middle of a request."""


Host = Annotated[str | None, typer.Option(help="Address to listen on; 127.0.0.1 unless told otherwise.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 8000 unless told otherwise.")]
Data = Annotated[Path | None, typer.Option(help="Folder to keep results in.")]


@app.command()
def serve(host: Host = None, port: Port = None, data: Data = None) -> None:
    """Start the page and the API, and a worker beside them.

    Every other setting is an environment variable or a line of a file; docs/settings.md lists them, and
    `fusionscope doctor` shows their values. Stop with Ctrl+C.
    """
    _serve(host, port, data, with_worker=True)


@app.command()
def web(host: Host = None, port: Port = None, data: Data = None) -> None:
    """Start the page and the API alone.

    Workers are programs of their own, on this machine or in another container: `fusionscope worker` starts one, and
    the setting `workers` says where they listen. Without any, what is stored can be read, and what is new waits.
    """
    _serve(host, port, data, with_worker=False)


def _serve(host: str | None, port: int | None, data: Path | None, with_worker: bool) -> None:
    import uvicorn

    from server.app import create_app
    from server.local_worker import PROGRAM
    from server.settings import Settings, WrongSettings
    from server.tokens import WrongTokens

    try:
        settings = Settings.load(host=host, port=port, data=data)
        own_worker = PROGRAM if with_worker and settings.needs_own_worker() else None
        application = create_app(settings, worker=own_worker)
    except (WrongSettings, WrongTokens) as wrong:
        typer.echo(str(wrong), err=True)
        raise typer.Exit(WRONG_USE) from None
    if settings.port:
        typer.echo(f"Fusionscope is starting on http://{settings.host}:{settings.port}", err=True)
    # An open event stream would otherwise hold up Ctrl+C for as long as its reader stays.
    uvicorn.run(
        application,
        host=settings.host,
        port=settings.port,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        log_level="info" if settings.port == 0 else "warning",
        # Its lines go where ours go, and look like them.
        log_config=None,
        access_log=False,
        forwarded_allow_ips=list(settings.trusted_proxies),
        server_header=False,
    )


@app.command()
def explore(
    file: Annotated[Path, typer.Argument(help="A Python file to explore; - reads from standard input.")],
    device: Annotated[str | None, typer.Option(help='"cpu" or "cuda"; by default the GPU where there is one.')] = None,
    target: Annotated[str | None, typer.Option(help="GPU to generate kernels for, such as sm_90.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON, and nothing else.")] = False,
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
    """Explore one file, and print what became of it.

    The file runs in this process, with your own rights: only the service confines what it runs.

    Exits with 0 when all went well, 1 when the snippet failed, 2 when the command was used wrongly, and 3 when a
    compiled result is wrong, at a size of the sweep or without the options below too: rounding does not explain how far
    it is from float64. A wrong result of TorchInductor is told, and changes nothing of the exit code.

    With --force, --forbid, --rule-off (each may be given many times), --largest-group or --device-model it is explored
    without them too, and both stand side by side.
    """
    source = _read_source(file)
    options = _options(
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
        max_seconds=max_seconds,
    )
    pair = None if why is None else _pair_of(why, "--why")
    _check_sweep(source, options)

    from server.beside import print_comparison
    from server.printer import print_report, print_why

    with _stdout_to_stderr() as real_stdout:
        from compiler.comparison import compare
        from compiler.pipeline import explore as run_explore
        from compiler.runtime.wrong_results import is_wrong_anywhere
        from compiler.what_if import asks

        is_compared = asks(options) and pair is None and not json
        plain = run_explore(source, _compared_with(options)) if is_compared else None
        report = run_explore(source, options)
    if pair is not None:
        with os.fdopen(real_stdout, "w", encoding="utf-8") as output:
            is_known = print_why(report, pair, Console(file=output, highlight=False), as_json=json)
        sys.stderr.flush()
        raise typer.Exit(0 if is_known else WRONG_USE)
    if json:
        with os.fdopen(real_stdout, "w", encoding="utf-8") as output:
            output.write(report.model_dump_json(indent=2) + "\n")
    else:
        with os.fdopen(real_stdout, "w", encoding="utf-8") as output:
            console = Console(file=output, highlight=False)
            print_report(report, console)
            if plain is not None:
                print_comparison(compare(plain, report), console)
    # torch and Triton have exit handlers that can print or hang after a failed snippet; nothing is left to do here.
    sys.stderr.flush()
    if any(told.outcome == "unknown name" for told in report.what_if):
        raise typer.Exit(WRONG_USE)
    if any(is_wrong_anywhere(one) for one in (report, plain) if one is not None):
        raise typer.Exit(WRONG_RESULT)
    raise typer.Exit(0 if report.status == "ok" else FAILED_SNIPPET)


@app.command()
def token(
    name: Annotated[str | None, typer.Argument(help="Whose token it is; without a name all are listed.")] = None,
    file: Annotated[Path | None, typer.Option(help="File of tokens; by default the one of the setting tokens.")] = None,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take the token away instead of making one.")] = False,
    requests_per_minute: Annotated[
        int, typer.Option(min=0, help="Requests within 60 seconds; 0 for any number.")
    ] = 600,
    explorations_per_hour: Annotated[
        int, typer.Option(min=0, help="New explorations within an hour; 0 for any.")
    ] = 120,
    jobs_at_once: Annotated[
        int, typer.Option(min=0, help="Explorations that wait or run at once; 0 for any number.")
    ] = 8,
    days: Annotated[int | None, typer.Option(min=1, help="Days after which it is no longer accepted.")] = None,
) -> None:
    """Make a token for the service, or revoke or list tokens.

    A new token is printed once, on standard output, and kept nowhere: the file has its hash. A service that runs takes
    notice of a change within a second.
    """
    from datetime import UTC, datetime, timedelta

    from server import tokens
    from server.settings import WebSettings, WrongSettings

    try:
        path = file or WebSettings.load().tokens
        if path is None:
            typer.echo("Name the file of tokens with --file, or in FUSIONSCOPE_TOKENS.", err=True)
            raise typer.Exit(WRONG_USE)
        if name is None:
            for one in tokens.listed(path):
                until = "" if one.expires is None else f", until {one.expires:%Y-%m-%d}"
                typer.echo(f"{one.name}: {one.quota_in_words()}, made {one.created:%Y-%m-%d}{until}")
        elif revoke:
            tokens.revoke(path, name)
            typer.echo(f"The token {name} is revoked.", err=True)
        else:
            quota = tokens.Quota(
                requests_per_minute=requests_per_minute,
                explorations_per_hour=explorations_per_hour,
                jobs_at_once=jobs_at_once,
            )
            expires = None if days is None else datetime.now(UTC).replace(microsecond=0) + timedelta(days=days)
            typer.echo(tokens.make(path, name, quota, expires))
            typer.echo(f"This is the token {name}. It is shown this once; {path} has its hash.", err=True)
    except (WrongSettings, tokens.WrongTokens) as wrong:
        typer.echo(str(wrong), err=True)
        raise typer.Exit(WRONG_USE) from None


@app.command()
def worker(
    socket: Annotated[
        Path | None, typer.Option(help="Unix socket to listen at; the setting of that name else.")
    ] = None,
    end_with_stdin: Annotated[
        bool, typer.Option("--end-with-stdin", help="End when standard input ends: when whoever started it has died.")
    ] = False,
    write_profile: Annotated[
        Path | None, typer.Option(help="Write this machine's profile to a file for web's setting profiles, and end.")
    ] = None,
) -> None:
    """Run a worker, which runs snippets for web: confined, without network, secrets or database.

    `fusionscope serve` starts one of its own. Its settings are in docs/settings.md. Stop with Ctrl+C.
    """
    from server.settings import WorkerSettings, WrongSettings

    if write_profile is not None:
        _write_profile(write_profile)
        return
    from server.worker.program import run

    try:
        settings = WorkerSettings.load(socket=socket)
    except WrongSettings as wrong:
        typer.echo(str(wrong), err=True)
        raise typer.Exit(WRONG_USE) from None
    raise typer.Exit(run(settings, ends_with_stdin=end_with_stdin))


def _write_profile(path: Path) -> None:
    from server.wire.profile import detected_profile

    profile = detected_profile()
    try:
        path.write_text(f"[{profile.model_dump_json(indent=2)}]\n", encoding="utf-8")
    except OSError as failure:
        typer.echo(f"{path} cannot be written: {failure.strerror}", err=True)
        raise typer.Exit(WRONG_USE) from None
    typer.echo(f"{path} has the profile of {profile.device_name}; name it in FUSIONSCOPE_PROFILES.", err=True)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def bench(context: typer.Context) -> None:
    """Measure the compiler against eager PyTorch and TorchInductor."""
    from bench.cli import main  # type: ignore[import-not-found, import-untyped, unused-ignore]

    raise typer.Exit(main(context.args))


@app.command()
def doctor(
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure bandwidth, launch and latency of the device at hand.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Where to keep what was measured, as JSON.")] = None,
) -> None:
    """Check this machine: what is installed, what works, and what to do about the rest."""
    from server.doctor import run_doctor, run_measurement  # type: ignore[import-not-found, import-untyped, unused-ignore]

    raise typer.Exit(run_measurement(out) if measure else run_doctor())


@app.command()
def examples(
    name: Annotated[str | None, typer.Argument(help="Name of an example; its source is printed.")] = None,
) -> None:
    """List the examples, or print one: `fusionscope examples softmax_by_hand > softmax.py`."""
    from server import gallery

    if name is None:
        console = Console()
        for example in gallery.examples():
            console.print(f"[bold]{example.name}[/]: {escape(example.title)}")
        return
    found = next((example for example in gallery.examples() if example.name == name), None)
    if found is None:
        names = ", ".join(example.name for example in gallery.examples())
        typer.echo(f"There is no example {name!r}. There are: {names}.", err=True)
        raise typer.Exit(WRONG_USE)
    typer.echo(found.source, nl=False)


def _options(**chosen: Any) -> Options:
    """The options of `explore`; a command that is used wrongly ends here."""
    from pydantic import ValidationError

    from compiler.options import Options

    try:
        return Options.model_validate({name: value for name, value in chosen.items() if value is not None})
    except ValidationError as invalid:
        for error in invalid.errors():
            where = ".".join(str(part) for part in error["loc"]).replace("rules_off", "rule-off").replace("_", "-")
            typer.echo(f"--{where}: {error['msg']}" if where else error["msg"], err=True)
        raise typer.Exit(WRONG_USE) from None


def _compared_with(options: Options) -> Options:
    """What a "what if" stands beside: without its options, and at the snippet's own sizes only."""
    from compiler.what_if import without

    return without(options).model_copy(update={"sweep": None})


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
        return {"name": name.strip(), "values": [int(value) for value in values.split(",")]}
    except ValueError:
        said = repr(text) if is_given else f"{text!r}, which has no ="
        typer.echo(f"--sweep: give a size and numbers, as in --sweep N=256,1024,4096, not {said}", err=True)
        raise typer.Exit(WRONG_USE) from None


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


def _read_source(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        typer.echo(f"{file} cannot be read: {failure}", err=True)
        raise typer.Exit(WRONG_USE) from None


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[int]:
    """While a snippet runs, all that is printed, even by native code, goes to stderr. Yields the real stdout."""
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)
    try:
        yield real
    finally:
        sys.stdout.flush()


def main() -> None:
    app()


if __name__ == "__main__":
    main()
