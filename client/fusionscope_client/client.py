"""The two clients: one waits, the other is awaited. Every question is one of `questions`, asked by either."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any, Callable, Optional, TypeVar, Union
from urllib.parse import urlsplit

import httpx

from fusionscope_client import questions
from fusionscope_client.contract import Comparison
from fusionscope_client.errors import FusionscopeError, Unreachable
from fusionscope_client.events import EventReader
from fusionscope_client.progress import Watching, watching
from fusionscope_client.questions import Follow, Pause, Question, Request, Response
from fusionscope_client.results import AsyncReport, Report
from fusionscope_client.sources import source_of

DEFAULT_ADDRESS = "http://127.0.0.1:8000"
#: Seconds for a connection, and between two pieces of an answer: a stream of events has a sign of life every 15.
TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_COMES_BACK = 5
"""How often in a row a reader comes back to a stream that broke off, without having heard anything new."""

Result = TypeVar("Result")
Progress = Union[bool, Callable[[questions.Event], None], None]


def _is_address(text: str) -> bool:
    try:
        return httpx.URL(text).scheme in ("http", "https") and urlsplit(text).hostname is not None
    except (httpx.InvalidURL, ValueError):
        return False


class _Common:
    """Address, token and headers. `address` and `token` are by default those of the environment, FUSIONSCOPE_URL and
    FUSIONSCOPE_TOKEN."""

    def __init__(
        self,
        address: Optional[str] = None,
        token: Optional[str] = None,
        progress: Progress = None,
        **httpx_options: Any,
    ) -> None:
        self.address = (address or os.environ.get("FUSIONSCOPE_URL") or DEFAULT_ADDRESS).rstrip("/")
        if not _is_address(self.address):
            raise FusionscopeError(f"{self.address!r} is no address of a service: it begins with http:// or https://.")
        # A file that the token was read from may end in a new line, which no header can hold.
        token = (token or os.environ.get("FUSIONSCOPE_TOKEN") or "").strip()
        if not token.isascii():
            raise FusionscopeError("The token has letters that no token has: give what `fusionscope token` printed.")
        self.progress = progress
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._httpx_options = {"base_url": self.address, "headers": headers, "timeout": TIMEOUT, **httpx_options}

    def url_of(self, id: str) -> str:
        """The page on that exploration."""
        return f"{self.address}/x/{id}"

    def _watching(self, progress: Progress) -> Watching:
        return watching(self.progress if progress is None else progress)

    def _unreachable(self, failure: Exception) -> Unreachable:
        return Unreachable(f"No Fusionscope service answers at {self.address}: {failure or type(failure).__name__}.")


class Fusionscope(_Common):
    """A service, asked by a program that waits. Keywords that are not named here go to `httpx.Client`."""

    def __init__(
        self,
        address: Optional[str] = None,
        token: Optional[str] = None,
        progress: Progress = None,
        **httpx_options: Any,
    ) -> None:
        super().__init__(address, token, progress, **httpx_options)
        self._http = httpx.Client(**self._httpx_options)

    def explore(self, program: Any, *args: Any, progress: Progress = None, **options: Any) -> Report:
        """The report of a program: a text, a path of a file, or a function with the arguments of one call.

        Tensors among the arguments are sent as their shapes and dtypes, never their values. `options` are those of the
        service: `peer=True`, `target="sm_90"`, `training=True`, `timing={"enabled": False}`, and so on. A program that
        fails has a report too; see its `error`. Raises `NotASource`, `ServiceProblem`, `Unreachable`.
        """
        source = source_of(program, *args)
        with self._watching(progress) as watch:
            found = self._asked(questions.explore(source, options, watch.tell))
        return Report(found, self)

    def get(self, id: str) -> Report:
        """The report of an exploration, by its id, or what there is of it so far."""
        return Report(self._asked(questions.get(id)), self)

    def compare(self, before: str, after: str) -> Comparison:
        """Two explorations, by their ids, side by side."""
        return self._asked(questions.compare(before, after))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Fusionscope:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _asked(self, question: Question[Result]) -> Result:
        answer: Any = None
        while True:
            try:
                step = question.send(answer)
            except StopIteration as over:
                return over.value  # type: ignore[no-any-return]
            answer = self._done(step)

    def _done(self, step: questions.Step) -> Optional[Response]:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
        elif isinstance(step, Follow):
            self._follow(step)
        else:
            return self._answer(step)
        return None

    def _answer(self, request: Request) -> Response:
        try:
            got = self._http.request(request.method, request.path, params=request.params, json=request.body)
        except httpx.TransportError as failure:
            raise self._unreachable(failure) from failure
        return Response(got.status_code, dict(got.headers), got.text)

    def _follow(self, step: Follow) -> None:
        reader, silent = EventReader(), 0
        while silent < _COMES_BACK:
            before = reader.last_id
            try:
                with self._http.stream("GET", step.path, headers=_after(before)) as stream:
                    if stream.status_code != 200:
                        return  # the report says what became of it
                    for line in stream.iter_lines():
                        event = reader.feed(line)
                        if event is not None:
                            step.on_event(event)
                            if event.name == "done":
                                return
            except httpx.TransportError as failure:
                last: Exception = failure
            else:
                last = ConnectionError("the stream of events broke off")
            silent = silent + 1 if reader.last_id == before else 0
            time.sleep(0.2 * silent)
        raise self._unreachable(last)


class AsyncFusionscope(_Common):
    """The same, to be awaited. Keywords that are not named here go to `httpx.AsyncClient`."""

    def __init__(
        self,
        address: Optional[str] = None,
        token: Optional[str] = None,
        progress: Progress = None,
        **httpx_options: Any,
    ) -> None:
        super().__init__(address, token, progress, **httpx_options)
        self._http = httpx.AsyncClient(**self._httpx_options)

    async def explore(self, program: Any, *args: Any, progress: Progress = None, **options: Any) -> AsyncReport:
        """As `Fusionscope.explore`."""
        source = source_of(program, *args)
        with self._watching(progress) as watch:
            found = await self._asked(questions.explore(source, options, watch.tell))
        return AsyncReport(found, self)

    async def get(self, id: str) -> AsyncReport:
        """As `Fusionscope.get`."""
        return AsyncReport(await self._asked(questions.get(id)), self)

    async def compare(self, before: str, after: str) -> Comparison:
        """As `Fusionscope.compare`."""
        return await self._asked(questions.compare(before, after))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncFusionscope:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _asked(self, question: Question[Result]) -> Result:
        answer: Any = None
        while True:
            try:
                step = question.send(answer)
            except StopIteration as over:
                return over.value  # type: ignore[no-any-return]
            answer = await self._done(step)

    async def _done(self, step: questions.Step) -> Optional[Response]:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
        elif isinstance(step, Follow):
            await self._follow(step)
        else:
            return await self._answer(step)
        return None

    async def _answer(self, request: Request) -> Response:
        try:
            got = await self._http.request(request.method, request.path, params=request.params, json=request.body)
        except httpx.TransportError as failure:
            raise self._unreachable(failure) from failure
        return Response(got.status_code, dict(got.headers), got.text)

    async def _follow(self, step: Follow) -> None:
        reader, silent = EventReader(), 0
        while silent < _COMES_BACK:
            before = reader.last_id
            try:
                async with self._http.stream("GET", step.path, headers=_after(before)) as stream:
                    if stream.status_code != 200:
                        return
                    async for line in stream.aiter_lines():
                        event = reader.feed(line)
                        if event is not None:
                            step.on_event(event)
                            if event.name == "done":
                                return
            except httpx.TransportError as failure:
                last: Exception = failure
            else:
                last = ConnectionError("the stream of events broke off")
            silent = silent + 1 if reader.last_id == before else 0
            await asyncio.sleep(0.2 * silent)
        raise self._unreachable(last)


def _after(last_id: str) -> dict[str, str]:
    return {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
