"""A Ray cluster on this machine, started as an operator starts one, and what tests do to it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from server.sandbox.processes import descendants

WAIT_SECONDS = 240.0
"""Far longer than anything here takes, also on a busy machine."""
_RAY = Path(sys.executable).with_name("ray")


class Cluster:
    """A head without workers, and nodes by their names. `folder` must have a short path: sockets are made below it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = folder / "token"
        self.token.write_text(uuid.uuid4().hex)
        self.token.chmod(0o600)
        self.address = f"127.0.0.1:{_free_port()}"
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def start_head(self) -> None:
        host, _, port = self.address.partition(":")
        place = (f"--node-ip-address={host}", f"--port={port}", f"--temp-dir={self.folder}/ray")
        self._start("head", "--head", "--include-dashboard=false", *place)

    def start_node(self, name: str, *sockets: Path) -> None:
        """A machine whose workers listen at `sockets`."""
        resources = ",".join(f'"fusionscope:{path}": 1' for path in sockets)
        self._start(name, f"--address={self.address}", f"--node-name={name}", f"--resources={{{resources}}}")

    def kill_node(self, name: str) -> None:
        """As if its plug was pulled: every process of Ray's on it is killed, and nothing is said."""
        process = self._nodes.pop(name)
        for victim in [process.pid, *descendants(process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        process.wait(WAIT_SECONDS)

    def stop(self) -> None:
        for name in reversed(list(self._nodes)):
            self.kill_node(name)

    def processes(self, name: str) -> list[int]:
        return descendants(self._nodes[name].pid)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def _start(self, name: str, *arguments: str) -> None:
        self._nodes[name] = subprocess.Popen(
            [
                *(_RAY, "start", "--block", "--num-cpus=0", "--num-gpus=0", "--disable-usage-stats"),
                *("--min-worker-port=0", "--max-worker-port=0", "--object-store-memory=80000000", *arguments),
            ],
            env={**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token)},
            stdin=subprocess.DEVNULL,
            stdout=(self.folder / f"{name}.log").open("wb"),
            stderr=subprocess.STDOUT,
        )
        # One after another: two at the same time would choose the same names for their sockets.
        assert eventually(lambda: "Ray runtime started" in self.log(name)), self.log(name)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    made = Cluster(folder)
    try:
        made.start_head()
        yield made
    finally:
        made.stop()


def eventually(is_so: Callable[[], object]) -> bool:
    """Whether it comes to be so, within a time that only what never happens takes."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.02)
    return bool(is_so())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
