"""`fusionscope diff`: two files, reports, or explorations of a service, side by side."""

from __future__ import annotations

import http.client
import json
import os
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from server.commands.given import (
    WRONG_USE,
    options_from,
    read_text,
    report_from,
    stages_on_stderr,
    stdout_to_stderr,
)
from server.plain_text import visible

if TYPE_CHECKING:
    from compiler.report import Report

_ID = re.compile(r"[0-9a-f]{20}")
_SECONDS = 60
_MOST_BYTES = 64 * 1024


def diff(
    before: Annotated[
        str, typer.Argument(help="A Python file, a report as JSON, or the id of an exploration of a service.")
    ],
    after: Annotated[str, typer.Argument(help="The other one, in any of these forms.")],
    service: Annotated[
        str | None, typer.Option(envvar="FUSIONSCOPE_URL", help="The service that ids are of.")
    ] = "http://127.0.0.1:8000",
    device: Annotated[str | None, typer.Option(help='"cpu" or "cuda", for files.')] = None,
    target: Annotated[str | None, typer.Option(help="GPU to generate kernels for, such as sm_90, for files.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON, and nothing else.")] = False,
) -> None:
    """Print what is different: figures, and kernels matched by what they compute.

    A file runs in this process, with your own rights. Exits with 0 when there is a comparison, and with 2 when one of
    the two is none of these things.
    """
    with stdout_to_stderr() as output:
        from compiler.comparison import compare
        from server.beside import print_comparison

        one, two = (_report(given, service, device, target) for given in (before, after))
        comparison = compare(one, two)
        if json:
            output.write(comparison.model_dump_json(indent=2) + "\n")
        else:
            console = Console(file=output, highlight=False)
            print_comparison(comparison, console, f"{before}, then {after}", ("before", "after"))
        raise typer.Exit(0)


def _report(given: str, service: str | None, device: str | None, target: str | None) -> Report:
    path = Path(given)
    is_id = _ID.fullmatch(given) is not None and not path.exists()
    if not is_id and path.suffix != ".json":
        from compiler.pipeline import explore

        with stages_on_stderr() as told:
            return explore(read_text(path), options_from(device=device, target=target, max_seconds=60.0), told)
    return report_from(_stored(given, service) if is_id else read_text(path), given)


def _stored(id: str, service: str | None) -> str:
    """The report of an exploration, as the service has it; with the token of FUSIONSCOPE_TOKEN where that is set."""
    address = f"{(service or '').rstrip('/')}/api/v1/explorations/{id}"
    if not address.startswith(("http://", "https://")):
        typer.echo(f"--service: {service!r} is no address; it begins with http:// or https://", err=True)
        raise typer.Exit(WRONG_USE)
    # A file that the token was read from may end in a new line, which no header can hold.
    token = os.environ.get("FUSIONSCOPE_TOKEN", "").strip()
    if not token.isascii():
        typer.echo("FUSIONSCOPE_TOKEN has letters that no token has: take what `fusionscope token` printed", err=True)
        raise typer.Exit(WRONG_USE)
    try:
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"} if token else {})
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # of http or https: see above
            return str(answer.read().decode("utf-8"))
    except urllib.error.HTTPError as refused:
        told = f"the service answered with {refused.code} {refused.reason}{_said_of(refused)}"
    except (OSError, ValueError, http.client.HTTPException) as failure:
        # The latter two are of an address that cannot be read, or of an answer that is no HTTP.
        told = f"no service answers at {service}: {getattr(failure, 'reason', failure)}"
    typer.echo(f"{id} cannot be read: {told}", err=True)
    raise typer.Exit(WRONG_USE)


def _said_of(refused: urllib.error.HTTPError) -> str:
    """What the service says of it, which names what to do; nothing where that is not its answer."""
    try:
        detail = json.loads(refused.read(_MOST_BYTES))["detail"]
    except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException):
        return ""
    return f": {visible(str(detail))}"
