"""Colours for what clients send and snippets wrote, within a time: `python -m server.colouring` makes them.

Pygments takes the square of a text's length for some texts, and holds Python's lock meanwhile: a word before six
thousand blanks stopped all of web for two seconds. So they are made in a process of their own, which is ended where it
takes too long. The text is then shown without them.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from server.highlight import highlight_lines
from server.passed_on import passed_on

SECONDS = 3
"""How long a text may take; 200 KiB of ordinary code take one. Whoever waits for those before it waits as long."""
_START_SECONDS = 30.0
_MOST_WAITING = 8
"""So many texts wait for their colours; the next ones are shown without."""


class Colouring:
    """One process that colours one text after another. It is started when it is first needed, and ends with this one.
    `seconds` are as `SECONDS`."""

    def __init__(self, seconds: int = SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._threads = ThreadPoolExecutor(_MOST_WAITING, "colours")
        self._waiting = 0

    async def lines_soon(self, source: str, language: str) -> list[str] | None:
        """As `lines`, from a loop."""
        if self._waiting >= _MOST_WAITING:
            return None
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._lines, source, language)
        finally:
            self._waiting -= 1

    def lines(self, source: str, language: str) -> list[str] | None:
        """As `highlight_lines`; None where it takes too long."""
        # In a thread of our own: who asks may be interrupted at any place (`derived`), and the lock must not be.
        return self._threads.submit(self._lines, source, language).result()

    def _lines(self, source: str, language: str) -> list[str] | None:
        if not self._lock.acquire(timeout=self._seconds):
            return None
        try:
            return self._answer(source, language)
        finally:
            self._lock.release()

    def _answer(self, source: str, language: str) -> list[str] | None:
        try:
            if self._process is None:
                self._start()
            process = self._process
            assert process is not None and process.stdin is not None
            process.stdin.write(json.dumps([source, language, self._seconds]).encode() + b"\n")
            process.stdin.flush()
            answer = self._line(self._seconds)
        except OSError:
            answer = None
        if answer is None:
            self.close()
            return None
        lines: list[str] = json.loads(answer)
        return lines

    def _start(self) -> None:
        self._process = subprocess.Popen(
            (sys.executable, "-P", "-m", __name__),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=passed_on() | {"LANG": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[1])},
            start_new_session=True,
        )
        if self._line(_START_SECONDS) is None:
            raise OSError("it does not start")

    def _line(self, seconds: float) -> bytes | None:
        """The next line that the process writes; None where it ends, or writes none in this time."""
        assert self._process is not None and self._process.stdout is not None
        descriptor, end, found = self._process.stdout.fileno(), time.monotonic() + seconds, bytearray()
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        while not found.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not waiting.poll(1000 * left):
                return None
            chunk = os.read(descriptor, 1 << 20)
            if not chunk:
                return None
            found += chunk
        return bytes(found)

    def close(self) -> None:
        """Ends the process; another one is started where one is needed."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


COLOURING = Colouring()
"""The one of this program."""


def main() -> None:
    """Colours each text that comes as a line of JSON. Ends where no more can come, and where a text takes too long,
    also when nobody is left to end it."""
    sys.stdout.write("\n")
    sys.stdout.flush()
    for asked in sys.stdin:
        source, language, seconds = json.loads(asked)
        signal.alarm(seconds + 1)
        sys.stdout.write(json.dumps(highlight_lines(source, language)) + "\n")
        sys.stdout.flush()
        signal.alarm(0)


if __name__ == "__main__":
    main()
