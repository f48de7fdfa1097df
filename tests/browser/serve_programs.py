"""Runs the service with the program of `tests/browser/programs.py`; prints its port. For tests."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import uvicorn

from server import running
from server.app import create_app
from server.local_worker import LocalWorker
from server.observed import Contradictions
from server.settings import Settings
from server.worker.channel import Program
from tests.server.conftest import TRUSTED
from tests.server.run_worker import command

# What the program answers was measured elsewhere: its times cannot be those of a job that takes milliseconds.
running.contradictions = lambda *_: Contradictions()

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
settings = Settings.model_validate({"data": Path(sys.argv[1]), **TRUSTED})
program = Program(explore="tests.browser.programs:explore", imports=(), later=())
app = create_app(settings, worker=LocalWorker(settings, command(program)))
config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
uvicorn.Server(config).run(sockets=[listener])
