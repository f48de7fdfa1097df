"""What the client sends, and what it makes of the answers of a service, whichever version that is of."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fusionscope_client import AsyncFusionscope, Fusionscope, Report, ServiceProblem, Unreachable
from fusionscope_client.errors import FusionscopeError
from fusionscope_client.events import Event, EventReader

#: What a service answered once, without the texts of kernels.
STORED = json.loads((Path(__file__).parent / "report.json").read_text(encoding="utf-8"))
ID = STORED["id"]
EVENTS = (
    ": a sign of life\n\n"
    'id: 1-1\nevent: started\ndata: {"wall_seconds": 60}\n\n'
    'id: 1-2\nevent: stage\ndata: {"stage": {"name": "capture", "ms": 70.0, "status": "done"}, "changed": {}}\n\n'
)
DONE = 'id: 1-3\nevent: done\ndata: {"status": "ok"}\n\n'


class Service:
    """Answers as one would; keeps what it was asked."""

    def __init__(self, *streams: str, first: tuple[int, ...] = (202,)) -> None:
        self.asked: list[httpx.Request] = []
        self._streams, self._first = list(streams or (EVENTS + DONE,)), list(first)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        path = request.url.path
        if request.method == "POST":
            status = self._first.pop(0) if len(self._first) > 1 else self._first[0]
            if status >= 400:
                told = {"detail": "Too much.", "request_id": "r1", "errors": [{"where": "body.x", "message": "no"}]}
                return httpx.Response(status, json=told, headers={"retry-after": "0"} if status == 429 else {})
            return httpx.Response(status, json=STORED if status == 200 else {"id": ID, "status": "running"})
        if path.endswith("/events"):
            return httpx.Response(200, text=self._streams.pop(0))
        if path.endswith("/why"):
            return httpx.Response(200, json=[{"graph": "graph_0", "a": "exp", "b": "div", "verdict": "fused"}])
        return httpx.Response(200, json=STORED)

    def paths(self) -> list[str]:
        return [f"{request.method} {request.url.path}" for request in self.asked]


def client(service: Callable[[httpx.Request], httpx.Response], **options: Any) -> Fusionscope:
    return Fusionscope("http://service", transport=httpx.MockTransport(service), progress=False, **options)


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "http://host:port", "http://[host", "http://"])
def test_an_address_that_is_none_is_told_in_a_sentence(address: str) -> None:
    with pytest.raises(FusionscopeError, match="is no address of a service: it begins with http"):
        Fusionscope(address)


def test_a_token_that_no_header_can_hold_is_told_in_a_sentence() -> None:
    with pytest.raises(FusionscopeError, match="The token has letters that no token has"):
        Fusionscope("http://service", token="größe")


def test_a_token_may_have_the_end_of_its_line() -> None:
    service = Service()
    client(service, token="secret\n").explore("x = 1")
    assert {request.headers["authorization"] for request in service.asked} == {"Bearer secret"}


def test_a_report_is_waited_for_and_its_stages_are_told() -> None:
    service = Service()
    told: list[Event] = []
    report = client(service, token="secret").explore("import torch", peer=True, progress=told.append)
    base = "/api/v1/explorations"
    assert service.paths() == [f"POST {base}", f"GET {base}/{ID}/events", f"GET {base}/{ID}"]
    assert json.loads(service.asked[0].content) == {"source": "import torch", "peer": True}
    assert all(request.headers["authorization"] == "Bearer secret" for request in service.asked)
    assert [event.name for event in told] == ["started", "stage", "done"]
    assert report.verdict == STORED["summary"]["verdict"] and report.url == f"http://service/x/{ID}"


def test_a_stream_that_breaks_off_goes_on_after_the_last_event() -> None:
    service = Service(EVENTS, DONE)
    told: list[Event] = []
    client(service).explore("import torch", progress=told.append)
    streams = [request for request in service.asked if request.url.path.endswith("/events")]
    assert [request.headers.get("last-event-id") for request in streams] == [None, "1-2"]
    assert [event.name for event in told] == ["started", "stage", "done"]


def test_what_is_stored_is_there_at_once() -> None:
    service = Service(first=(200,))
    assert client(service).explore("import torch").id == ID
    assert len(service.asked) == 1


def test_a_busy_service_is_asked_again_when_it_says() -> None:
    service = Service(first=(429, 429, 200))
    assert client(service).explore("import torch").id == ID
    assert len(service.asked) == 3


def test_a_refusal_is_its_sentence_and_its_faults() -> None:
    with pytest.raises(ServiceProblem, match=r"(?s)Too much\..*body\.x: no") as refused:
        client(Service(first=(422,))).explore("import torch")
    assert (refused.value.status, refused.value.request_id) == (422, "r1")


def test_nobody_answers() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(Unreachable, match="No Fusionscope service answers at http://service"):
        client(refuse).explore("import torch")


def test_what_if_asks_for_the_same_program_with_one_more_wish() -> None:
    service = Service(first=(200,))
    report = client(service).explore("x")
    report.force("exp", "sum_1")
    asked = json.loads(service.asked[-1].content)
    assert asked["force"] == [["exp", "sum_1"]] and asked["based_on"] == ID and asked["source"] == STORED["source"]
    others = {name: value for name, value in STORED["options"].items() if name != "force"}
    assert others and {name: asked[name] for name in others} == others


def test_the_same_with_await() -> None:
    async def explore() -> None:
        service = Service()
        transport = httpx.MockTransport(service)
        async with AsyncFusionscope("http://service", transport=transport, progress=False) as fs:
            report = await fs.explore("import torch")
            (answer,) = await report.why("exp", "div")
        assert report.id == ID and answer.verdict == "fused" and answer.decisions == []

    asyncio.run(explore())


def test_fields_of_another_version_do_no_harm() -> None:
    def other(request: httpx.Request) -> httpx.Response:
        graph = {"name": "graph_0", "kernels": [{"name": "k", "unheard_of": 1}], "decisions": "none"}
        return httpx.Response(200, json={"id": ID, "status": "ok", "source": "", "graphs": [graph], "new": {}})

    report = client(other).explore("x")
    assert report.kernels[0].name == "k" and report.kernels[0].bytes == 0 and report.summary.speedup is None


@pytest.fixture(scope="module")
def report() -> Report:
    return client(Service(first=(200,))).explore("x")


def test_text_and_page_show_the_answer_first(report: Report) -> None:
    text, html, svg = repr(report), report._repr_html_(), report.map.svg()
    assert text.startswith(STORED["summary"]["verdict"]) and text.endswith(f"http://service/x/{ID}")
    names = [kernel["name"] for kernel in STORED["graphs"][0]["kernels"]]
    assert len(names) > 1 and all(name in text and name in html for name in names)
    assert svg.count("<rect") == len(names) and "stroke-dasharray" in svg


def test_tables_become_data_frames(report: Report) -> None:
    frame = report.decisions.to_pandas()
    assert len(frame) == len(STORED["graphs"][0]["decisions"])
    assert set(frame["verdict"]) == {"fused", "refused"}


def test_without_pandas_the_way_out_is_told(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install pandas.* records\(\)"):
        report.decisions.to_pandas()


def test_a_pair_that_was_fused_later_is_no_refusal(report: Report) -> None:
    home = {node: kernel.name for kernel in report.kernels for node in kernel.nodes}
    assert report.refusals and all(home[one.a] != home[one.b] for one in report.refusals)


def test_a_strangers_text_stays_text() -> None:
    evil = "<script>alert(1)</script>\u202e\x1b[2J"
    text = json.dumps(STORED).replace(json.dumps(STORED["graphs"][0]["kernels"][0]["name"]), json.dumps(evil))
    hostile = client(lambda request: httpx.Response(200, text=text)).explore("x")
    texts = repr(hostile) + repr(hostile.kernels)
    pages = hostile._repr_html_() + hostile.map.svg() + hostile.kernels[0]._repr_html_() + hostile.kernels._repr_html_()
    assert "<script" in texts and "&lt;script" in pages and "<script" not in pages
    assert "\x1b" not in texts + pages and "\u202e" not in texts + pages


def test_events_of_several_lines_and_without_data() -> None:
    reader = EventReader()
    lines = ["event: log", 'data: {"text":', 'data: "a"}', "id: 2-1", "", "event: empty", ""]
    found = [event for event in map(reader.feed, lines) if event is not None]
    assert [(event.name, event.data, event.id) for event in found] == [("log", {"text": "a"}, "2-1")]
