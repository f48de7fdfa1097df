"""`fusionscope machine-code`: one kernel of a file down to the instructions of a target."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from server.commands.given import FAILED_SNIPPET, WRONG_USE, options_from, read_text, stdout_to_stderr


def machine_code(
    file: Annotated[Path, typer.Argument(help="A Python file to explore; - reads from standard input.")],
    kernel: Annotated[str, typer.Argument(help="The name of one of its kernels; without it, they are listed.")] = "",
    target: Annotated[
        str | None,
        typer.Option("--for", help="What to compile it for, such as sm_80, gfx942 or host; by default what it ran as."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report with every level as JSON.")] = False,
) -> None:
    """Compile one kernel of a file, on no device, and print its instructions, each with its line of the source.

    The file is captured in this process, with your own rights; its kernels are not run. See docs/machine_code.md.
    """
    if not kernel and (json or target is not None):
        option = "--json" if json else "--for"
        typer.echo(f"{option}: it is for one kernel, so name one; without {option} their names are listed", err=True)
        raise typer.Exit(WRONG_USE)
    source = read_text(file)
    options = options_from(produce=("capture", "lower", "schedule", "codegen"))
    with stdout_to_stderr() as output:
        from compiler.machine_code.of_report import NotCompilable, kernel_to_compile
        from compiler.pipeline import explore
        from server.printer import print_error, print_machine_code

        console = Console(file=output, highlight=False)
        report = explore(source, options)
        kernels = [one for graph in report.graphs for one in graph.kernels]
        names = [one.name for one in kernels if one.kind != "extern" or one.own is not None]
        if report.error is None and not kernel:
            output.write("".join(f"{name}\n" for name in names))
            if not names:
                # Not for standard output, which has names alone.
                calls = ", ".join(dict.fromkeys(one.name for one in kernels))
                why = f"all work is the library's ({calls})" if calls else "nothing is computed"
                typer.echo(f"There is no kernel to compile: {why}.", err=True)
            raise typer.Exit(0)
        if report.error is None:
            try:
                text, wanted = kernel_to_compile(report, kernel, target=target)
            except KeyError:
                typer.echo(f"There is no kernel {kernel!r}. There are: {', '.join(names) or 'none'}.", err=True)
                raise typer.Exit(WRONG_USE) from None
            except NotCompilable as reason:
                typer.echo(str(reason), err=True)
                raise typer.Exit(WRONG_USE) from None
            report = explore(text, options.model_copy(update={"produce": None, "machine_code": wanted}))
        if json:
            output.write(report.model_dump_json(indent=2) + "\n")
        elif report.machine_code is not None:
            print_machine_code(report.machine_code, console)
            console.print(report.summary.verdict, markup=False)
        else:
            print_error(report, console)
        raise typer.Exit(0 if report.machine_code is not None else FAILED_SNIPPET)
