"""A service of its own for a case: on a free port, with a store in a temporary folder, over with the case."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2

from tests.server.database import servers

PATIENCE_SECONDS = 120.0


class Program:
    """One program that is started and killed as often as a case wants; what it says goes to `folder`/log."""

    def __init__(self, folder: Path, settings: Mapping[str, str], *arguments: str) -> None:
        self.folder = folder
        self._command = [sys.executable, "-m", "server.cli", *arguments]
        self._environment = {f"FUSIONSCOPE_{name.upper()}": value for name, value in settings.items()}
        self._log = (folder / "log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def start(self) -> None:
        """Starts it and returns at once."""
        environment = os.environ | {"FUSIONSCOPE_LOG_FORMAT": "json"} | self._environment
        self._process = subprocess.Popen(self._command, env=environment, stdout=self._log, stderr=self._log)

    def kill(self) -> None:
        """Kills the program that was started, by SIGKILL; what it started must end by itself."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        self._log.close()


class Running(Program):
    """The program `fusionscope serve`, or `web`, with a store in `folder`, on a free port."""

    def __init__(self, folder: Path, settings: Mapping[str, str], name: str = "serve") -> None:
        self.port = _free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        super().__init__(folder, settings, name, "--port", str(self.port), "--data", str(folder))

    def wait_for(self, path: str, client: httpx2.Client, since: float | None = None) -> float:
        """Seconds until `path` answers 200, counted from `since` or now. Raises TimeoutError."""
        started = time.monotonic() if since is None else since
        while time.monotonic() < started + PATIENCE_SECONDS:
            with contextlib.suppress(httpx2.TransportError):
                if client.get(path).status_code == 200:
                    return time.monotonic() - started
            time.sleep(0.01)
        raise TimeoutError(f"{path} did not answer 200 within {PATIENCE_SECONDS:g} s")

    def processes(self) -> dict[int, int]:
        """The living processes below the program, itself included, with their parents."""
        return _tree(self.process)

    def said(self, event: str) -> list[dict[str, Any]]:
        """The lines of its log, and of its worker's, that tell of `event`."""
        lines = (self.folder / "log").read_text(errors="replace").splitlines()
        return [told for line in lines if event in line and (told := json.loads(line)).get("event") == event]

    def web_memory(self) -> int:
        """Resident bytes of the web program alone."""
        return int(Path("/proc", str(self.process), "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def running(**settings: str) -> Iterator[Running]:
    """A service that is starting; `settings` are environment variables without their prefix, in small letters."""
    folder = Path(tempfile.mkdtemp(prefix="fusionscope-bench-"))
    service = Running(folder, settings)
    service.start()
    try:
        yield service
    except BaseException:
        # The folder goes with the case; what the service said last is what one looks for then.
        print((folder / "log").read_text(errors="replace")[-4000:], file=sys.stderr)
        raise
    finally:
        service.stop()
        shutil.rmtree(folder, ignore_errors=True)


class Site:
    """Web, a worker and a database as programs of their own. `database` is None where it is SQLite, within web."""

    def __init__(self, folder: Path, database: servers.Server | None, settings: Mapping[str, str]) -> None:
        self.database = database
        (folder / "worker").mkdir()
        socket_path = folder / "worker" / "worker.sock"
        self.worker = Program(folder / "worker", settings, "worker", "--socket", str(socket_path))
        of_database = {} if database is None else {"database": database.url}
        self.web = Running(folder, {**settings, **of_database, "workers": str(socket_path)}, "web")
        self.client = client_of(self.web)

    def start_again(self) -> None:
        """Starts what has ended."""
        for program in (self.worker, self.web):
            if program.has_ended:
                program.start()
        if self.database is not None and not self.database.is_alive:
            self.database.start()

    def below_worker(self) -> tuple[list[int], list[int]]:
        """Processes below the worker that have some below them, and those that have none: jobs, and spares for them."""
        parents = _tree(self.worker.process)
        below = sorted(parents.keys() - {self.worker.process})
        have_children = set(parents.values())
        return [one for one in below if one in have_children], [one for one in below if one not in have_children]


@contextlib.contextmanager
def site(**settings: str) -> Iterator[Site]:
    """Web and worker that are starting, with PostgreSQL where it is installed; `settings` as of `running`."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fusionscope-bench-")))
        database = stack.enter_context(servers.server()) if servers.programs() is not None else None
        made = Site(folder, database, settings)
        for program in (made.worker, made.web):
            program.start()
            stack.callback(program.stop)
        try:
            yield made
        except BaseException:
            print((folder / "log").read_text(errors="replace")[-4000:], file=sys.stderr)
            raise


def _tree(top: int) -> dict[int, int]:
    """`top` and the living processes below it, with their parents."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    parents[int(entry)] = int(fields[1])
    found = {top} & parents.keys()
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {process: parents[process] for process in sorted(found)}


def client_of(service: Running, **options: Any) -> httpx2.Client:
    return httpx2.Client(base_url=service.address, timeout=PATIENCE_SECONDS, **options)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def kill(process: int) -> None:
    """By SIGKILL; one that has ended meanwhile is dead already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
