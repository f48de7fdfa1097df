"""Asks a worker how it does: `python -m server.wire.probe SOCKET`, for a container's health check.

The exit code is 0 where the worker is ready for jobs, else 1; what is printed says how it does, in one line.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from server.wire.frames import FrameError
from server.wire.messages import Hello, State, next_from_worker

ANSWER_SECONDS = 10.0
"""A worker says who it is and how it does at once."""


class NoWorker(Exception):
    """Nobody answers at the socket, or not as a worker does; the message says what happened."""


async def ask(socket: Path) -> tuple[Hello, State]:
    """Who listens at `socket`, and its state now. Raises `NoWorker`."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_unix_connection(socket)
            try:
                return await _first_words(reader)
            finally:
                writer.close()
    except TimeoutError:
        raise NoWorker(f"Nothing was said at {socket} within {ANSWER_SECONDS:.0f} seconds.") from None
    except (OSError, FrameError) as failure:
        raise NoWorker(f"No worker answers at {socket}: {failure}") from None


async def _first_words(reader: asyncio.StreamReader) -> tuple[Hello, State]:
    hello: Hello | None = None
    while (said := await next_from_worker(reader, 0)) is not None:
        message = said[0]
        if isinstance(message, Hello):
            hello = message
        elif isinstance(message, State) and hello is not None:
            return hello, message
    raise FrameError("the connection was closed")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("Usage: python -m server.wire.probe SOCKET")
        return 2
    try:
        hello, state = asyncio.run(ask(Path(arguments[0])))
    except NoWorker as failure:
        print(failure)
        return 1
    layers = f"tier {hello.tier} ({', '.join(hello.isolation) or 'layers not known yet'})"
    print(f"ready, {layers}" if state.ready else f"not ready: {state.problem or 'no reason given'}, {layers}")
    return 0 if state.ready else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
