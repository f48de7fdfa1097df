"""The commands of whoever runs the service: serve, web, worker, token."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import Annotated

import typer

from server.commands.given import WRONG_USE

KEEP_ALIVE_SECONDS = 75
"""How long an unused connection stays open. Clients and proxies close theirs after 5 to 60 seconds: whoever is to be
the second to do so may be in the middle of a request."""


Host = Annotated[str | None, typer.Option(help="Address to listen on; 127.0.0.1 unless told otherwise.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 8000 unless told otherwise.")]
Data = Annotated[Path | None, typer.Option(help="Folder to keep results in.")]


def serve(host: Host = None, port: Port = None, data: Data = None) -> None:
    """Start the page and the API, and a worker beside them.

    Every other setting is an environment variable or a line of a file; docs/settings.md lists them, and
    `fusionscope doctor` shows their values. Stop with Ctrl+C.
    """
    _serve(host, port, data, with_worker=True)


def web(host: Host = None, port: Port = None, data: Data = None) -> None:
    """Start the page and the API alone.

    Workers are programs of their own, on this machine or in another container: `fusionscope worker` starts one, and
    the setting `workers` says where they listen. Without any, what is stored can be read, and what is new waits.
    """
    _serve(host, port, data, with_worker=False)


def _serve(host: str | None, port: int | None, data: Path | None, with_worker: bool) -> None:
    from server.local_worker import LocalWorker
    from server.settings import Settings, WrongSettings
    from server.tokens import TokenFile, WrongTokens

    try:
        settings = Settings.load(host=host, port=port, data=data)
        if settings.tokens is not None:
            TokenFile(settings.tokens)
        own_worker = LocalWorker(settings) if with_worker and settings.needs_own_worker() else None
        _try_to_listen(settings.host, settings.port)
    except (WrongSettings, WrongTokens, CannotListen) as wrong:
        typer.echo(str(wrong), err=True)
        raise typer.Exit(WRONG_USE) from None
    if own_worker is not None:
        own_worker.begin()  # it imports while what follows does
    import uvicorn

    from server.app import create_app
    from server.bounded_http import BoundedHttp, Connections

    application = create_app(settings, worker=own_worker)
    if settings.port:
        typer.echo(f"Fusionscope is starting on http://{settings.host}:{settings.port}", err=True)
    # An open event stream would otherwise hold up Ctrl+C for as long as its reader stays.
    uvicorn.run(
        application,
        http=BoundedHttp.within(Connections(settings.connections_at_once, settings.trusted_proxies)),
        ws="none",
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


class CannotListen(Exception):
    """Nothing can listen at that address. The message says why, and what to do."""


def _try_to_listen(host: str, port: int) -> None:
    """Before anything is started: the server tells it last, in a line of its log."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why, other = "another program listens there", f", as in --port {port + 1 if port < 65535 else 8000}"
        else:
            why, other = (error.strerror or str(error)).lower(), " or host"
        raise CannotListen(f"{host}:{port} cannot be listened at: {why}. Take another port{other}.") from None


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
    days: Annotated[
        int | None, typer.Option(min=1, max=36500, help="Days after which it is no longer accepted.")
    ] = None,
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
        if name is None and revoke:
            typer.echo("--revoke: name the token to take away; without --revoke all are listed.", err=True)
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
    if write_profile is not None:
        _write_profile(write_profile)
        return
    from server.worker import zygote_start

    zygote = zygote_start.start("torch")
    from server.settings import WorkerSettings, WrongSettings
    from server.worker.program import run

    try:
        settings = WorkerSettings.load(socket=socket)
    except WrongSettings as wrong:
        typer.echo(str(wrong), err=True)
        raise typer.Exit(WRONG_USE) from None
    raise typer.Exit(run(settings, ends_with_stdin=end_with_stdin, zygote=zygote))


def _write_profile(path: Path) -> None:
    from server.wire.profile import detected_profile

    profile = detected_profile()
    try:
        path.write_text(f"[{profile.model_dump_json(indent=2)}]\n", encoding="utf-8")
    except OSError as failure:
        typer.echo(f"{path} cannot be written: {failure.strerror}", err=True)
        raise typer.Exit(WRONG_USE) from None
    typer.echo(f"{path} has the profile of {profile.device_name}; name it in FUSIONSCOPE_PROFILES.", err=True)
