"""What is computed from a report: its texts, answers and comparisons.

A report is the word of the snippet's own process. Every field of it is of its type, but nothing says that its parts fit
together: a forged one may name a loop that it does not have. Whatever comes of that is an answer, and never a failure.
"""

from __future__ import annotations

import asyncio
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

log = structlog.get_logger(__name__)


async def derived(
    id: str,
    expected: tuple[type[Exception], ...],
    make: Callable[Given, Made],
    *given: Given.args,
    **named: Given.kwargs,
) -> Made:
    """What `make` gives, in one of few threads. It raises one of `expected` where it does, and a `Problem` 409 where it
    raises anything else, which the log tells of: it may be a defect of ours after all."""
    try:
        return await asyncio.get_running_loop().run_in_executor(_THREADS, partial(make, *given, **named))
    except expected:
        raise
    except Exception as failure:
        log.error("report_inconsistent", exploration=id, exc_info=failure)
        raise Problem(
            409,
            f"The report of exploration {id} is inconsistent, so this cannot be computed from it. A snippet that "
            "interferes with its own exploration can cause this. You can still read the report as JSON.",
        ) from None
