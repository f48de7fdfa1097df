"""The documentation: built without a warning, allowed by the service's own policy, and true where a test can tell.

Sphinx warns of a broken link and of a page in no table of contents, and a warning ends the build.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.routes import documentation as route
from tools import documentation, licences

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GUIDES = [DOCS / "first_steps.md", *sorted((DOCS / "guides").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in GUIDES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL))
]


@pytest.fixture(scope="module")
def site() -> Path:
    """The site as it is built here, or as `make docs` has built it from the same sources."""
    try:
        documentation.build()
    except documentation.BadDocuments as problem:
        pytest.fail(str(problem), pytrace=False)
    return documentation.SITE


@pytest.fixture(scope="module")
def client(site: Path) -> TestClient:
    app = FastAPI(docs_url=None)
    route.install(app, site)
    return TestClient(app, base_url="http://localhost")


def elements(site: Path) -> Iterator[tuple[str, str, dict[str, str | None]]]:
    """Page, tag and attributes of every element."""
    for path in site.rglob("*.html"):
        found: list[tuple[str, dict[str, str | None]]] = []
        parser = HTMLParser()
        parser.handle_starttag = lambda tag, attributes, found=found: found.append((tag, dict(attributes)))  # type: ignore[method-assign,misc]
        parser.feed(path.read_text())
        yield from ((path.name, tag, attributes) for tag, attributes in found)


def test_pages_do_nothing_that_the_policy_of_the_service_forbids(site: Path) -> None:
    all_of_them = list(elements(site))
    assert len(all_of_them) > 10_000
    inline = [(page, one) for page, tag, one in all_of_them if tag == "script" and not one.get("src")]
    handlers = [(page, one) for page, _, one in all_of_them if any(name.startswith("on") for name in one)]
    fetched = [(page, one.get("src") or one.get("href")) for page, tag, one in all_of_them if tag != "a"]
    assert inline == [] and handlers == []
    assert [(page, url) for page, url in fetched if url and re.match(r"\w+:|//", url) and url[:5] != "data:"] == []


def test_a_broken_link_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "conf.py").write_text('extensions = ["myst_parser"]\n')
    (docs / "index.md").write_text("# First\n\n[Nowhere](nowhere.md)\n")
    monkeypatch.setattr(documentation, "DOCS", docs)
    monkeypatch.setattr(documentation, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(documentation, "digest", lambda: "another")
    with pytest.raises(documentation.BadDocuments, match=r"nowhere\.md"):
        documentation.build()


def test_the_service_has_the_site(client: TestClient) -> None:
    for address in ("/docs", "/docs/"):
        assert "First steps" in client.get(address).text
    for address in ("/docs/api", "/docs/api.html", "/docs/reasons/index.reversed", "/docs/guides/teaching.html"):
        assert client.get(address).headers["content-type"].startswith("text/html"), address
    for address in ("/docs/nowhere", "/docs/../app.py", "/docs/%2e%2e/app.py", "/docs/.buildinfo"):
        assert client.get(address).status_code == 404, address


def test_without_a_site_the_service_says_how_to_build_it(tmp_path: Path) -> None:
    app = FastAPI(docs_url=None)
    route.install(app, tmp_path)
    answer = TestClient(app).get("/docs/")
    assert answer.status_code == 503 and "make docs" in answer.text


@pytest.mark.parametrize("block", BLOCKS)
def test_code_of_the_guides_runs(
    block: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What TorchInductor makes of an example is not what it promises.
    monkeypatch.setattr(torch, "compile", lambda function: function)
    exec(compile(block, "guide", "exec"), {"__name__": "__main__"})
    assert ("print(" in block) == bool(capsys.readouterr().out)


def test_the_licences_are_those_of_what_is_locked() -> None:
    assert licences.DOCUMENT.read_text() == licences.page(), "run: python -m tools.licences"


def test_the_tour_names_what_is_there() -> None:
    tour = (ROOT / "CONTRIBUTING.md").read_text().partition("## A tour")[2]
    questions = tour.split("\n### ")[1:]
    assert len(questions) == 5
    for question in questions:
        named = re.findall(r"^\| `([\w/.]+)` \| `(\w+)`", question, re.MULTILINE)
        assert 2 <= len(named) <= 4, question
        for file, name in named:
            tree = ast.parse((ROOT / file).read_text())
            assigned = (one.targets[0] for one in tree.body if isinstance(one, ast.Assign))
            defined = {getattr(one, "name", "") for one in tree.body} | {ast.unparse(one) for one in assigned}
            assert name in defined, f"{file} has no {name}"
