"""The requests of each question, and what is made of the answers.

A question is a generator: it yields what to ask, is sent the answer, and returns its result. It waits for nothing
itself, so the two clients, with and without `await`, share every question.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, TypeVar, Union

from fusionscope_client.contract import Answer, Comparison
from fusionscope_client.contract import Report as Contents
from fusionscope_client.decoding import decoded
from fusionscope_client.errors import ServiceProblem
from fusionscope_client.events import Event

PREFIX = "/api/v1/explorations"
_MOST_PAUSE_SECONDS = 30.0
_TRIES = 20
_BUSY = (429, 503)

OnEvent = Callable[[Event], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Request:
    """One request; its answer is a `Response`."""

    method: str
    path: str
    params: dict[str, Any] = field(default_factory=dict)
    body: Optional[dict[str, Any]] = None


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Follow:
    """The events of an exploration, to the last; each is told to `on_event`. Its answer is None."""

    path: str
    on_event: OnEvent


@dataclass(frozen=True)
class Pause:
    """Seconds to wait, because the service said so. Its answer is None."""

    seconds: float


Step = Union[Request, Follow, Pause]
Question = Generator[Step, Any, Result]


def explore(source: str, options: dict[str, Any], on_event: OnEvent) -> Question[Contents]:
    """The report of a snippet: found, or waited for. Raises `ServiceProblem`."""
    answer: Response = yield from _sent(Request("POST", PREFIX, body={"source": source, **options}))
    found = answer.json()
    if answer.status == 202:
        yield Follow(f"{PREFIX}/{found['id']}/events", on_event)
        found = (yield from _sent(Request("GET", f"{PREFIX}/{found['id']}"))).json()
    return decoded(Contents, found)


def get(id: str) -> Question[Contents]:
    """The report of an exploration, or what there is of it so far."""
    answer: Response = yield from _sent(Request("GET", f"{PREFIX}/{id}"))
    return decoded(Contents, answer.json())


def why(id: str, a: str, b: str) -> Question[list[Answer]]:
    answer: Response = yield from _sent(Request("GET", f"{PREFIX}/{id}/why", {"a": a, "b": b}))
    return [decoded(Answer, one) for one in answer.json()]


def compare(before: str, after: str) -> Question[Comparison]:
    answer: Response = yield from _sent(Request("GET", f"{PREFIX}/{after}/comparison", {"with": before}))
    return decoded(Comparison, answer.json())


def text(path: str, **params: Any) -> Question[str]:
    answer: Response = yield from _sent(Request("GET", path, params))
    return answer.text


def _sent(request: Request) -> Question[Response]:
    """The answer; a service that has too much to do is asked again after as long as it says."""
    for tried in range(_TRIES):
        answer: Response = yield request
        if answer.status < 400:
            return answer
        seconds = _retry_after(answer)
        if answer.status not in _BUSY or seconds is None or tried == _TRIES - 1:
            break
        yield Pause(min(seconds, _MOST_PAUSE_SECONDS))
    raise _problem(answer)


def _retry_after(answer: Response) -> Optional[float]:
    try:
        return max(0.0, float(answer.headers.get("retry-after", "")))
    except ValueError:
        return None


def _problem(answer: Response) -> ServiceProblem:
    try:
        told = answer.json()
    except ValueError:
        told = None
    if not isinstance(told, dict):
        told = {}
    detail = str(told.get("detail") or f"The service answered with the status {answer.status}.")
    return ServiceProblem(answer.status, detail, str(told.get("request_id") or ""), _faults(told.get("errors") or ()))


def _faults(errors: Iterable[Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(one.get("where", "")), str(one.get("message", ""))) for one in errors if isinstance(one, dict))
