"""What is computed from a report: its texts, answers and comparisons.

A report is the word of the snippet's own process. Every field of it is of its type, but nothing says that its parts fit
together: a forged one may name a loop that it does not have. Whatever comes of that is an answer, and never a failure.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

import structlog

from server.problems import Problem

Given = ParamSpec("Given")
Made = TypeVar("Made")

_THREADS = ThreadPoolExecutor(2, "derived")
"""Its own: a report that was made to take long must not hold up what the rest of web does in threads."""

MOST_SECONDS = 20.0
"""What is computed from the largest honest reports takes two. A forged one may make it take the square of its length,
or more, and then others would wait for one of these threads for hours."""
_MOST_WAITING = 16

log = structlog.get_logger(__name__)


class _TimeIsOver(BaseException):
    """Comes from outside, at any place: nothing on the way is to catch it."""


class _TooLong(Exception):
    pass


class _Waiting:
    number = 0


async def derived(
    id: str,
    expected: tuple[type[Exception], ...],
    make: Callable[Given, Made],
    *given: Given.args,
    **named: Given.kwargs,
) -> Made:
    """What `make` gives, in one of few threads. It raises one of `expected` where it does, and a `Problem` 409 where it
    raises anything else, which the log tells of: it may be a defect of ours after all. The same where it takes too
    long; a `Problem` 503 where too many wait already."""
    if _Waiting.number >= _MOST_WAITING:
        raise Problem(
            503, "Too much is being computed from reports. Try again in a moment.", headers={"Retry-After": "5"}
        )
    _Waiting.number += 1
    work = partial(_in_time, partial(make, *given, **named), MOST_SECONDS)
    try:
        return await asyncio.get_running_loop().run_in_executor(_THREADS, work)
    except expected:
        raise
    except _TooLong:
        log.warning("report_takes_too_long", exploration=id, seconds=MOST_SECONDS)
        raise Problem(
            409,
            f"To compute this from the report of exploration {id} takes more than {MOST_SECONDS:g} seconds. You can "
            "still read the report as JSON.",
        ) from None
    except Exception as failure:
        log.error("report_inconsistent", exploration=id, exc_info=failure)
        raise Problem(
            409,
            f"The report of exploration {id} is inconsistent, so this cannot be computed from it. A snippet that "
            "interferes with its own exploration can cause this. You can still read the report as JSON.",
        ) from None
    finally:
        _Waiting.number -= 1


def _in_time(make: Callable[[], Made], seconds: float) -> Made:
    """What `make` gives. Raises `_TooLong` after that time, between two steps of Python."""
    thread, lock, is_over = ctypes.c_ulong(threading.get_ident()), threading.Lock(), False

    def interrupt() -> None:
        with lock:
            if not is_over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_TimeIsOver))

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        try:
            return make()
        finally:
            with lock:
                is_over = True
            timer.cancel()
            # It may have been sent and not have come yet.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)
    except _TimeIsOver:
        raise _TooLong from None
