"""Runs the service with the program of `tests/browser/programs.py`; prints its port. For tests."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import uvicorn

from server.app import create_app
from server.settings import Settings

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
app = create_app(Settings(data=Path(sys.argv[1])), target="tests.browser.programs:explore", imports=())
config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
uvicorn.Server(config).run(sockets=[listener])
