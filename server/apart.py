"""Work on what clients and snippets wrote, in processes of its own, within a time: `python -m server.apart`.

To read a report of many megabytes takes seconds, and so does to colour some texts. Python's lock is held meanwhile, so
in a thread of web this would stop all of web. A process is started when it is first needed, does one piece of work
after another, and is ended where one takes too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import math
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from server.logs import told
from server.passed_on import passed_on

Made = TypeVar("Made")

_START_SECONDS = 30.0
_MOST_BYTES, _MOST_BYTES_A_BYTE = 512 * 1024**2, 20
"""What a process may take, and so much more for each byte that it reads. An honest report of 32 MB, the largest, takes
25 bytes a byte, or 830 MB; a forged one may take 35 and more."""
_LARGE = 2 * 1024**2
"""Bytes, to read which may take more than 130 MB: no two works read as many at a time."""
_MOST_WAITING = 256 * 1024**2
"""Bytes to read that may wait or be read: web holds them meanwhile."""
_KEPT_BYTES = 256 * 1024**2
"""A process that has more memory after its work is not kept: it might not give that back."""
_LENGTH = struct.Struct(">Q")


ASKING: ContextVar[str] = ContextVar("asking", default="")
"""The key of the client whose request is answered."""


class Busy(Exception):
    """So much waits already that this cannot be done soon."""


class TooLong(Exception):
    """The work took longer than it may."""


class WentWrong(Exception):
    """The work failed in a way that nobody expects; the message is what the log may tell of that."""


@dataclass(eq=False)
class _Turn:
    """Of one piece of work."""

    client: str
    length: int
    has_come: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_large(self) -> bool:
        return self.length > _LARGE


_ALL: weakref.WeakSet[Apart] = weakref.WeakSet()


def close_all() -> None:
    """Ends all processes of this program: it would wait for what they do."""
    for one in list(_ALL):
        one.close()


class Apart:
    """Up to `processes`, which import `modules` when they start. Failures that are `expected` take a message as their
    only argument. Of what waits for a process and is done by one there are `most` at a time, half of them of one
    client, and all together read no more than web can hold; any number and length where that is None. Each waits
    `patience` seconds at most, None for any time."""

    def __init__(
        self,
        processes: int,
        modules: tuple[str, ...],
        expected: tuple[type[Exception], ...] = (),
        most: int | None = None,
        patience: float | None = None,
    ) -> None:
        self._processes = processes
        self._modules = modules
        self._expected = expected
        self._most = most
        self._patience = patience
        self._waiting: list[_Turn] = []
        self._served: list[_Turn] = []
        self._threads = ThreadPoolExecutor(processes, "apart")
        self._idle: list[subprocess.Popen[bytes]] = []
        self._alive: set[subprocess.Popen[bytes]] = set()
        _ALL.add(self)

    async def soon(
        self, client: str, length: int, seconds: float, work: Callable[..., Made], *given: Any, **named: Any
    ) -> Made:
        """As `now`, from a loop, when it is the turn of `client`; the work reads `length` bytes. Raises `Busy` too."""
        async with self._turn(_Turn(client, length)):
            done = partial(self._done, length, seconds, partial(work, *given, **named))
            return await asyncio.get_running_loop().run_in_executor(self._threads, done)

    def now(self, seconds: float, work: Callable[..., Made], *given: Any, **named: Any) -> Made:
        """What `work` gives, a function of a module, which reads little. Raises what it raises, where that is expected;
        `TooLong` after so many seconds, and `WentWrong`."""
        return self._done(0, seconds, partial(work, *given, **named))

    def close(self) -> None:
        """Ends the processes, whatever they do; others are started where they are needed."""
        for process in list(self._alive):
            self._end(process)

    @contextlib.asynccontextmanager
    async def _turn(self, turn: _Turn) -> AsyncIterator[None]:
        others = self._served + self._waiting
        of_client = sum(other.client == turn.client for other in others)
        length = sum(other.length for other in (*others, turn))
        is_much = length > _MOST_WAITING
        if self._most is not None and (len(others) >= self._most or 2 * of_client >= self._most or is_much):
            raise Busy
        self._waiting.append(turn)
        try:
            self._serve()
            try:
                async with asyncio.timeout(self._patience):
                    await turn.has_come.wait()
            except TimeoutError:
                raise Busy from None
            yield
        finally:
            (self._waiting if turn in self._waiting else self._served).remove(turn)
            self._waiting.sort(key=lambda other: other.client == turn.client)
            # Of two that wait to read much, here and elsewhere, the other one is next.
            for one in sorted(_ALL, key=lambda one: one is self):
                one._serve()

    def _serve(self) -> None:
        """Begins what can begin. A client has one turn at a time, so that none has all processes, and the next one
        after all others that wait."""
        for turn in list(self._waiting):
            is_held_up = turn.is_large and any(other.is_large for one in _ALL for other in one._served)
            has_one = any(other.client == turn.client for other in self._served)
            if len(self._served) < self._processes and not has_one and not is_held_up:
                self._waiting.remove(turn)
                self._served.append(turn)
                turn.has_come.set()

    def _done(self, length: int, seconds: float, work: Callable[[], Made]) -> Made:
        process = self._idle_one() or self._start()
        most_bytes = _MOST_BYTES + _MOST_BYTES_A_BYTE * length
        is_good, value, is_last = self._exchanged(process, seconds, (seconds, most_bytes, self._expected, work))
        if is_last:
            self._end(process)
        else:
            self._idle.append(process)
        if is_good:
            made: Made = value
            return made
        raise WentWrong(value) if isinstance(value, str) else value

    def _idle_one(self) -> subprocess.Popen[bytes] | None:
        while self._idle:
            process = self._idle.pop()
            if process.poll() is None:
                return process
            self._end(process)
        return None

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            (sys.executable, "-P", "-m", __name__, *self._modules),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=passed_on() | {"LANG": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[1])},
            start_new_session=True,
        )
        self._alive.add(process)
        self._exchanged(process, _START_SECONDS, None)
        return process

    def _exchanged(self, process: subprocess.Popen[bytes], seconds: float, asked: Any) -> tuple[bool, Any, bool]:
        """What the process answers to `asked`. It is ended where this takes too long, or it answers nothing."""
        assert process.stdin is not None and process.stdout is not None
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            if asked is not None:
                _write(process.stdin, asked)
            answer: tuple[bool, Any, bool] = _read(process.stdout)
            return answer
        except (OSError, EOFError):
            self._end(process)
            if is_late.is_set():
                raise TooLong from None
            raise WentWrong(f"Its process ended with code {process.returncode}.") from None
        except BaseException:
            # What is in its pipes now would be taken for the answer to the next work.
            self._end(process)
            raise
        finally:
            timer.cancel()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        self._alive.discard(process)
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _write(stream: Any, message: Any) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def _read(stream: Any) -> Any:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def main() -> None:
    """Does what it is told, until no more can come. Ends where that takes too long, also when nobody is left to end
    it."""
    # Where memory is short, the kernel is to end this process and not web.
    Path("/proc/self/oom_score_adj").write_text("1000")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for name in sys.argv[1:]:
        importlib.import_module(name)
    _write(answers, (True, None, False))
    with contextlib.suppress(EOFError):
        while True:
            seconds, most_bytes, expected, work = _read(sys.stdin.buffer)
            signal.alarm(math.ceil(seconds) + 1)
            resource.setrlimit(resource.RLIMIT_AS, (most_bytes, resource.RLIM_INFINITY))
            is_good, value = _result(expected, work)
            taken_bytes = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
            _write(answers, (is_good, value, taken_bytes > _KEPT_BYTES))
            del work, value
            signal.alarm(0)


def _result(expected: tuple[type[Exception], ...], work: Callable[[], Any]) -> tuple[bool, Any]:
    try:
        return True, work()
    except expected as failure:
        return False, failure
    except Exception as failure:  # noqa: BLE001 - whoever asked is told
        return False, "\n".join(told(failure))


if __name__ == "__main__":
    main()
