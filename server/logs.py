"""Log lines: coloured text for a person at a terminal, JSON for a machine that collects them.

No snippet is ever logged, whatever fails. Messages of exceptions often quote what they were about, and so do the local
variables of a frame, so an exception is told by its type and by where in our own code it was raised. Its message is
kept for those types alone that quote nothing of a request.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import sys
import traceback
from typing import Any, Literal, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor

_QUOTE_NOTHING = (OSError, ImportError, TimeoutError, EOFError, MemoryError, RecursionError, sqlite3.Error)
"""Exceptions whose messages are about the machine or the program, never about what a request contained."""

_MOST_FRAMES = 30
_MOST_CAUSES = 8


def configure(log_format: Literal["auto", "console", "json"] = "auto") -> None:
    """Logs go to stderr: stdout is for what a command was asked for. Lines of libraries look like our own."""
    as_text = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    renderer: Processor = structlog.dev.ConsoleRenderer() if as_text else structlog.processors.JSONRenderer()
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        tell_exception,
    ]
    stream = cast(TextIO, _StandardError())
    structlog.configure(
        processors=[*shared, renderer],
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    for name in ("uvicorn", "asyncio", "sqlalchemy", "alembic"):
        library = logging.getLogger(name)
        library.handlers, library.propagate = [handler], False


class _StandardError:
    """Standard error as it is when a line is written. A line that cannot be written, for instance because the program
    that collected the lines has ended, is lost, and nothing else: what was told of goes on."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def tell_exception(logger: Any, method: str, event: EventDict) -> EventDict:
    """Replaces `exc_info` by what may be told of the exception, under `exception`. A processor of structlog."""
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()
    exception = info[1] if isinstance(info, tuple) else info
    if isinstance(exception, BaseException):
        event["exception"] = "\n".join(told(exception))
    return event


def told(exception: BaseException) -> list[str]:
    """An exception and what it came from, the first cause last: types, messages that quote nothing, and frames."""
    lines: list[str] = []
    following: BaseException | None = exception
    for _ in range(_MOST_CAUSES):
        if following is None:
            break
        name = f"{type(following).__module__}.{type(following).__qualname__}".removeprefix("builtins.")
        lines.append(f"{name}: {following}" if isinstance(following, _QUOTE_NOTHING) else name)
        frames = traceback.extract_tb(following.__traceback__)[-_MOST_FRAMES:]
        lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        if isinstance(following, BaseExceptionGroup):
            for one in following.exceptions[:_MOST_CAUSES]:
                lines += [f"  | {line}" for line in told(one)]
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return lines
