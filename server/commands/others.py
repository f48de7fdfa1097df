"""The commands beside: bench, doctor, examples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from server.commands.given import WRONG_USE
from server.identity import compiler_version


def print_version(is_asked: bool) -> None:
    """Print the version of Fusionscope and end, where that is asked for."""
    if is_asked:
        typer.echo(compiler_version())
        raise typer.Exit(0)


def bench(context: typer.Context) -> None:
    """Measure the compiler against eager PyTorch and TorchInductor."""
    from bench.cli import main

    raise typer.Exit(main(context.args))


def doctor(
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure bandwidth, launch and latency of the device at hand.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Where to keep what was measured, as JSON.")] = None,
) -> None:
    """Check this machine: what is installed, what works, and what to do about the rest."""
    from server.doctor import run_doctor, run_measurement  # type: ignore[import-not-found, import-untyped, unused-ignore]

    if out is not None and not measure:
        typer.echo("--out: only what --measure finds is kept, so give both", err=True)
        raise typer.Exit(WRONG_USE)
    try:
        raise typer.Exit(run_measurement(out) if measure else run_doctor())
    except OSError as failure:
        if out is None:
            raise
        typer.echo(f"--out: {out} cannot be written: {failure.strerror}", err=True)
        raise typer.Exit(WRONG_USE) from None


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
