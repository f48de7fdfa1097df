"""What is computed from a report: its texts, answers and comparisons.

A report is the word of the snippet's own process. Every field of it is of its type, but nothing says that its parts fit
together: a forged one may name a loop that it does not have, and be made to take long. Whatever comes of that is an
answer, and never a failure. So it is read in a process apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import structlog

from server.apart import ASKING, Apart, Busy, TooLong, WentWrong
from server.problems import Problem
from server.readings import NotInReport, NotPossible, Unread

Made = TypeVar("Made")

MOST_SECONDS = 20.0
"""What is computed from the largest honest reports takes two. A forged one may make it take the square of its length,
or more, and then others would wait for hours."""
# Forty come in the second that a process takes to start, where 200 ask at once from one address.
READERS = Apart(2, ("server.readings",), (NotInReport, NotPossible), most=128, patience=MOST_SECONDS)

log = structlog.get_logger(__name__)


async def derived(make: Callable[..., Made], *given: Any, **named: Any) -> Made:
    """What `make` gives, a function of `readings`, of reports that are `given`. Raises a `Problem`: 404 where the last
    one does not have what is asked for; 409 where that cannot be made of it, or takes too long, or fails, which the log
    tells of, since it may be a defect of ours after all; 503 where too many wait already."""
    reports = [one for one in given if isinstance(one, Unread)]
    id, length = reports[-1].id, max(report.length for report in reports)
    try:
        return await READERS.soon(ASKING.get(), length, MOST_SECONDS, make, *given, **named)
    except NotInReport as missing:
        raise Problem(404, str(missing)) from None
    except NotPossible as reason:
        raise Problem(409, str(reason)) from None
    except Busy:
        raise Problem(
            503, "Too much is being computed from reports. Try again in a moment.", headers={"Retry-After": "5"}
        ) from None
    except TooLong:
        log.warning("report_takes_too_long", exploration=id, seconds=MOST_SECONDS)
        raise Problem(
            409,
            f"To compute this from the report of exploration {id} takes more than {MOST_SECONDS:g} seconds. You can "
            "still read the report as JSON.",
        ) from None
    except WentWrong as failure:
        log.error("report_inconsistent", exploration=id, exception=str(failure))
        raise Problem(
            409,
            f"The report of exploration {id} is inconsistent, so this cannot be computed from it. A snippet that "
            "interferes with its own exploration can cause this. You can still read the report as JSON.",
        ) from None
