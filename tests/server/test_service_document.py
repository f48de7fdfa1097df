"""A report as one HTML file: whole, safe whatever it quotes, and in need of nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import partial
from html.parser import HTMLParser

import pytest

from compiler.report import Report
from server.database.compressed import body_of
from server.database.reports import Finished, write
from server.document import document, inert
from server.negotiation import preferred
from server.summary import markdown
from server.wire.parts import split
from tests.server.conftest import Service
from tests.server.test_service_plain_text import ATTACKS, HIDDEN, report_of

VOID = {"meta"}


class Elements(HTMLParser):
    """What a browser would make of the file, as far as tags, attributes and text go."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[tuple[str, str]] = set()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)


def file_of(report: Report) -> str:
    return document(report, markdown(report), report.model_dump_json().encode())


PLAIN = Elements(file_of(report_of("plain")))


@pytest.mark.parametrize("attack", [*ATTACKS, "</script><script>alert(1)</script>", "<!--<script>", "]]>", "&lt;b&gt;"])
def test_what_a_report_quotes_stays_text(attack: str) -> None:
    found = Elements(file_of(report_of(attack)))
    assert found.open == []
    assert set(found.tags) <= set(PLAIN.tags) | {"p", "li", "ul", "ol", "code", "hr", "h1", "em", "strong", "br"}
    assert found.tags.count("script") == found.tags.count("style") == 1
    assert found.attributes <= PLAIN.attributes | {("ol", "start")}
    assert json.loads("".join(found.texts["script"]))["source"] == attack


def test_nothing_is_loaded_and_no_script_runs() -> None:
    text = file_of(report_of("x = 1"))
    assert not re.search(r"(?:src|action|srcset|poster|background)\s*=|@import|url\(", text)
    assert {target[0] for target in re.findall(r'href="([^"]*)"', text)} == {"#"}
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert re.findall(r"<script[^>]*>", text) == ['<script type="application/json" id="report">']


def test_kernels_are_drawn_with_what_goes_through_memory_and_what_was_refused() -> None:
    edge = {"tensor": "buf0", "producer": "mm", "consumer": "exp", "written_bytes": 4096, "read_bytes": 4096}
    graph = {
        "name": "graph_0",
        "kernels": [
            {"name": f"k_{node}", "kind": "cpp", "source": "", "nodes": [node], "origins": [node]}
            for node in ("mm", "exp")
        ],
        "traffic": {"edges": [{**edge, "saved_read_bytes": 0, "fate": "memory"}]},
        "decisions": [
            {"a": "mm", "b": "exp", "round": 1, "kind": "vertical", "verdict": "refused", "reason": "kind.extern"}
            | {"message": "mm is a library call"}
        ],
    }
    text = file_of(Report.model_validate({"id": "a" * 20, "source": "x = 1", "graphs": [graph]}))
    (svg,) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert "K1 mm" in svg and "K2 exp" in svg
    assert re.search(r'class="through".*K1 to K2, through memory: 4.1 kB, buf0', svg, re.DOTALL)
    assert re.search(r'class="refused".*mm and exp: mm is a library call', svg)


def test_the_report_in_it_is_the_report() -> None:
    body = json.dumps({"source": f"</script><!--\u2028\u2029&amp;{HIDDEN[:8]}"}, ensure_ascii=False).encode()
    text = inert(body)
    assert json.loads(text) == json.loads(body)
    assert not set("<>&\u2028\u2029") & set(text)


def test_hidden_characters_are_written_out() -> None:
    text = file_of(report_of("a\u202eb"))
    assert "\\u202e" in text
    assert "\u202e" not in text.partition('<script type="application/json"')[0]


def test_long_code_is_folded_and_what_is_not_coloured_says_so() -> None:
    assert "<details><summary>100 lines of python" in file_of(Report(id="a" * 20, source="x = 1\n" * 100))
    assert "Not coloured" in file_of(Report(id="a" * 20, source="x = 12345678\n" * 40_000))


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, "a/json"),
        ("", "a/json"),
        ("*/*", "a/json"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
        ("text/markdown", "text/md"),
        ("text/md;q=0.2, text/html;q=0.1", "text/md"),
        ("text/*;q=0.3, a/json;q=0.2", "text/md"),
        ("a/json, text/html", "a/json"),
        ("text/html;level=1;q=0.9, a/json;q=0", "text/html"),
        ("nonsense;;;q=, \x00", "a/json"),
        ("TEXT/HTML", "text/html"),
    ],
)
def test_the_client_gets_the_form_that_it_likes_best(accept: str | None, expected: str) -> None:
    if accept == "text/markdown":
        assert preferred(accept, ("a/json", "text/markdown")) == "text/markdown"
    else:
        assert preferred(accept, ("a/json", "text/md", "text/html")) == expected


@pytest.mark.asyncio(loop_scope="module")
async def test_each_form_has_an_address_and_is_chosen_by_accept(service: Service) -> None:
    report = await service.explore("verdict = '<b>bold</b>'")
    path = f"/api/v1/explorations/{report['id']}"
    forms = {"html": "text/html", "md": "text/markdown"}
    for suffix, media_type in forms.items():
        by_suffix = await service.client.get(f"{path}.{suffix}", headers={"Accept": "application/json"})
        assert by_suffix.headers["content-type"] == f"{media_type}; charset=utf-8"
        chosen = await service.client.get(path, headers={"Accept": media_type})
        assert chosen.text == by_suffix.text and "Accept" in chosen.headers["vary"].split(", ")
        tag = {"If-None-Match": chosen.headers["etag"], "Accept": media_type}
        assert (await service.client.get(path, headers=tag)).status_code == 304
    page = await service.client.get(f"{path}.html")
    assert "<b>bold</b>" not in page.text and "&lt;b&gt;bold" in page.text
    assert "script-src" not in page.headers["content-security-policy"]
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert (await service.client.get(path)).headers["content-type"] == "application/json"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_report_of_another_version_is_given_as_it_is_and_never_fails(service: Service) -> None:
    other = Report(id="f" * 20, source="x = 1", status="ok")
    parts = split(other) | {"/summary": b'{"of_a_later_version":1}'}
    finished = Finished(other.id, 1, "ok", True, "another", None, "", 9, body_of(parts))
    await service.app.state.web.database.write(partial(write, finished=finished))
    path = f"/api/v1/explorations/{other.id}"
    as_it_is = await service.client.get(path)
    assert (as_it_is.status_code, as_it_is.json()["summary"]) == (200, {"of_a_later_version": 1})
    for suffix in (".md", ".html", "/why?a=x&b=y", f"/comparison?with={other.id}"):
        answer = await service.client.get(path + suffix)
        assert answer.status_code == 409, suffix
        assert "version" in answer.json()["detail"]
    assert (await service.client.get(path, headers={"Accept": "text/html"})).status_code == 409
    assert (await service.client.get(path + "/children")).status_code == 200
    based = {"source": "x = 1", "based_on": other.id, "largest_group": 2}
    assert (await service.client.post("/api/v1/explorations", json=based)).status_code == 422


def test_code_whose_colours_take_too_long_is_shown_without_them() -> None:
    asked: list[str] = []

    def colour(text: str, language: str) -> None:
        asked.append(text)

    report = report_of("x = 1")
    text = document(report, markdown(report), b"{}", colour)
    assert len(asked) == 1 and text.count("that took too long") == 1
    assert '<span class="line">' in text
