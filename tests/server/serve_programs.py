"""Runs web by uvicorn and beside it a worker with a small program in the compiler's place; prints its port. For tests.

    python -m tests.server.serve_programs DATA [NAME=VALUE ...]

where the names are those of settings."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import uvicorn

from server.app import create_app
from server.bounded_http import BoundedHttp, Connections
from server.local_worker import LocalWorker
from server.settings import Settings
from tests.server.conftest import TRUSTED
from tests.server.run_worker import command

given = dict(argument.split("=", 1) for argument in sys.argv[2:])
settings = Settings.model_validate({"data": Path(sys.argv[1]), "log_format": "json", **TRUSTED, **given})
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
app = create_app(settings, worker=LocalWorker(settings, command()))
config = uvicorn.Config(app, http=BoundedHttp.within(Connections()), log_level="warning", timeout_graceful_shutdown=1)
uvicorn.Server(config).run(sockets=[listener])
