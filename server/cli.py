"""The command line: `fusionscope serve | web | worker | token | explore | check | diff | machine-code | bench |
doctor | examples`.

Each command is a function of `server.commands`. `fusionscope --install-completion` completes them in a shell.
"""

from __future__ import annotations

import errno
import faulthandler
import os
import sys
from typing import Annotated

import typer

from server.commands import checking, compiling, differing, exploring, others, serving
from server.commands.given import WRONG_USE, CannotPrint, standard_output

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # As Markdown a paragraph is wrapped anew. Otherwise it keeps the lines of the docstring, each wrapped again.
    rich_markup_mode="markdown",
    help="See what a compiler makes of your PyTorch code: graphs, loops, every fusion decision, kernels, and times.",
)


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=others.print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """What all commands have."""


app.command()(serving.serve)
app.command()(serving.web)
app.command()(exploring.explore)
app.command()(checking.check)
app.command()(differing.diff)
app.command()(compiling.machine_code)
app.command()(serving.token)
app.command()(serving.worker)
app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)(others.bench)
app.command()(others.doctor)
app.command()(others.examples)


def main() -> None:
    # A snippet that crashes ends this process, and this says in which line. What it prints goes elsewhere meanwhile.
    faulthandler.enable(os.fdopen(os.dup(2), "w"))
    # A terminal is never full.
    if sys.stdout is not None and not sys.stdout.isatty():
        sys.stdout = standard_output(1, sys.stdout.encoding, sys.stdout.errors or "strict")
    try:
        try:
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except CannotPrint as failure:
        sys.stdout = None  # what is still to be written would fail once more at exit
        if failure.errno == errno.EPIPE:
            sys.exit(1)  # as `| head` is meant to end it
        typer.echo(f"Standard output cannot be written: {failure.strerror}", err=True)
        sys.exit(WRONG_USE)


if __name__ == "__main__":
    main()
