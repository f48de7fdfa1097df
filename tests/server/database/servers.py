"""A PostgreSQL server for tests: the one whose URL FUSIONSCOPE_TEST_DATABASE names, or one of this machine's own."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "FUSIONSCOPE_TEST_DATABASE"
_NAME = "fusionscope"


def programs() -> Path | None:
    """The folder of PostgreSQL's programs; Debian keeps them off the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)
    on_path = shutil.which("postgres")
    return found[0].parent if found else Path(on_path).parent if on_path else None


class Server:
    """One server with its data in a folder. It can be killed and started again."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        # It refuses to run as root.
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user is not None:
            owner = pwd.getpwnam(self._user)
            os.chown(folder, owner.pw_uid, owner.pw_gid)

    @property
    def url(self) -> str:
        return f"postgresql+asyncpg://{_NAME}@127.0.0.1:{self._port}/postgres"

    def make(self) -> None:
        """Raises `RuntimeError`."""
        made = self._run("initdb", "-D", str(self._folder / "data"), "-U", _NAME, "-A", "trust", "--no-sync")
        if made.returncode != 0:
            raise RuntimeError(f"initdb: {made.stderr.decode()[-500:]}")

    def start(self) -> None:
        """Returns when it takes connections. Raises `RuntimeError` where it does not within a minute."""
        for _ in range(600):
            # After a kill it refuses to start until the last process of the one before has noticed.
            if not self.is_alive:
                self._process = self._begin()
            if self._run("pg_isready", "-h", "127.0.0.1", "-p", str(self._port), "-t", "1").returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError("PostgreSQL takes no connections.")

    def _begin(self) -> subprocess.Popen[bytes]:
        arguments = ("-D", str(self._folder / "data"), "-p", str(self._port), "-k", str(self._folder))
        with (self._folder.parent / f"{self._folder.name}.log").open("ab") as said:
            return subprocess.Popen(
                [self._program("postgres"), *arguments, "-c", "listen_addresses=127.0.0.1"],
                user=self._user,
                cwd="/",
                stdout=said,
                stderr=said,
            )

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """As a machine that fails does: no farewell to anybody."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([self._program(name), *arguments], user=self._user, cwd="/", capture_output=True)

    def _program(self, name: str) -> str:
        folder = programs()
        assert folder is not None
        return str(folder / name)


@contextmanager
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        os.chmod(folder, 0o755)
        below = Path(folder, "server")
        below.mkdir(0o700)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        made = Server(below, port)
        made.make()
        made.start()
        try:
            yield made
        finally:
            made.kill()
