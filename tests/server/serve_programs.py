"""Runs web by uvicorn and beside it a worker with a small program in the compiler's place. For tests.

A process that has imported all of it forks one for each service: an interpreter of its own takes longer to import the
service than most tests take.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import uvicorn

from server.app import create_app
from server.bounded_http import BoundedHttp, Connections
from server.local_worker import LocalWorker
from server.settings import Settings
from tests.server.conftest import TRUSTED
from tests.server.run_worker import command

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])


def started(data: Path, **settings: object) -> tuple[ForkServerProcess, int]:
    """The process of a service whose log is in `data`, and its port."""
    heard, said = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_serve, args=(data, settings, said))
    process.start()
    said.close()
    with heard:
        return process, heard.recv()


def _serve(data: Path, given: dict[str, object], said: Connection) -> None:
    log = os.open(data / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    settings = Settings.model_validate({"data": data, "log_format": "json", **TRUSTED, **given})
    listener = socket.create_server(("127.0.0.1", 0))
    app = create_app(settings, worker=LocalWorker(settings, command()))
    said.send(listener.getsockname()[1])
    said.close()
    config = uvicorn.Config(
        app, http=BoundedHttp.within(Connections()), log_level="warning", timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run(sockets=[listener])
