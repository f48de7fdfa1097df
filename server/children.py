"""A program that was started by `subprocess.Popen`, waited for from a loop: it may be older than the loop.

What takes seconds to import is started before whoever starts it has imported everything itself.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator

_CHUNK = 8192


async def end_of(process: subprocess.Popen[bytes]) -> int:
    """Waits until it has ended; its exit code, negative where a signal ended it."""
    if (code := process.poll()) is not None:
        return code
    watched = os.pidfd_open(process.pid)
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(watched, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)
    return process.wait()


async def said_by(process: subprocess.Popen[bytes]) -> AsyncIterator[str]:
    """What it writes to its standard error, until nobody can write there any more. To be read once."""
    assert process.stderr is not None
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, process.stderr)
    try:
        while chunk := await reader.read(_CHUNK):
            yield chunk.decode(errors="replace")
    finally:
        transport.close()
