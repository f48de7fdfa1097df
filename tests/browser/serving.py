"""The real service as a program of its own, and waiting for a service that was started."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 300


def wait_until_ready(url: str) -> None:
    """A service that does not start is a failure of its own, told apart from a page that does not work."""
    last: Exception | None = None
    for _ in range(START_SECONDS * 5):
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=30):
                return
        except OSError as error:
            last = error
            time.sleep(0.2)
    raise RuntimeError(f"the service is not ready after {START_SECONDS} s") from last


@contextmanager
def serving(data: Path) -> Iterator[str]:
    """The address of a service with the real compiler, which keeps what it has in `data` and ends with the block."""
    program = "import sys; from server.cli import app; app(['serve', '--port', '0', '--data', sys.argv[1]])"
    server = subprocess.Popen([sys.executable, "-c", program, str(data)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        found = None
        while found is None:
            line = server.stderr.readline()
            assert line, "the service ended before it named its address"
            found = re.search(r"running on (http://127\.0\.0\.1:\d+)", line)
        wait_until_ready(found.group(1))
        yield found.group(1)
    finally:
        server.terminate()
        server.communicate(timeout=300)
