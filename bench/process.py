"""A process that does a suite's work and says, one JSON object a line, what it is at: it may die, and be replaced.

A generated kernel can end the process with a segmentation fault, or leave the GPU unusable, or never return. What the
process said last tells what it was at.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bench.environment import ROOT

Message = dict[str, Any]
#: Between a model's name and the size of its batch, in the name of a case of a run with several sizes.
BATCH_MARK = ":"


def run_worker(
    module: str,
    orders: Message,
    hear: Callable[[Message], None],
    patience_s: float,
    settings: Mapping[str, str] | None = None,
) -> str:
    """Run `python -m module`, with these `settings` in its environment, hand it its orders on standard input, and
    `hear` each of its messages until it ends.

    The orders name the file descriptor (`channel`) that messages come through. A process that says nothing for
    `patience_s` seconds is ended. Gives how it ended, in words."""
    reading, writing = os.pipe()
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        pass_fds=[writing],
        env={**os.environ, **(settings or {}), "PYTHONPATH": path},
        start_new_session=True,
        text=True,
    )
    os.close(writing)
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps({**orders, "channel": writing}) + "\n")
        process.stdin.close()
        for message in _messages(reading, patience_s):
            hear(message)
        process.wait(timeout=30)
    except (TimeoutError, subprocess.TimeoutExpired):
        return f"nothing was heard for {patience_s:.0f} s, and the process was ended"
    finally:
        os.close(reading)
        _end(process)
    return _words(process.returncode)


def _messages(channel: int, patience_s: float) -> Iterator[Message]:
    """Every line that the worker writes, until it closes its end. Raises TimeoutError when nothing comes for long."""
    waiting = selectors.DefaultSelector()
    waiting.register(channel, selectors.EVENT_READ)
    pending = b""
    heard = time.monotonic()
    while True:
        if not waiting.select(timeout=max(0.0, heard + patience_s - time.monotonic())):
            raise TimeoutError
        piece = os.read(channel, 1 << 16)
        if not piece:
            return
        heard = time.monotonic()
        *lines, pending = (pending + piece).split(b"\n")
        for line in lines:
            yield json.loads(line)


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and the compile workers that it started, which share its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _words(code: int) -> str:
    if code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with code {code}"
