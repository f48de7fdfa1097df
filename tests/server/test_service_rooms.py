"""Settings, ids, examples, colours, the page and its protection: what needs no job to be tested."""

from __future__ import annotations

import ast
import os
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import httpx2
import pytest

from compiler.options import Options
from compiler.report import Error, Report
from compiler.runtime.disk_cache import cache_directory
from server import gallery
from server.app import create_app
from server.colouring import coloured
from server.highlight import highlight_lines, style_sheet
from server.identity import ID_PATTERN, WorkerIdentity, exploration_id
from server.settings import Settings
from server.summary import markdown
from server.worker import snippet

ROOT = Path(__file__).parents[2]


def test_the_store_falls_back_where_home_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/proc/no-such-home")
    folder = Settings().data_folder()
    assert folder.is_dir()
    folder.rmdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings().data_folder() == tmp_path / ".local/share/fusionscope"


def test_an_id_depends_on_everything_that_the_report_depends_on() -> None:
    worker = WorkerIdentity(torch="2.13.0", triton="3.7.1")
    ids = [
        exploration_id("x", Options(), worker, "build"),
        exploration_id("y", Options(), worker, "build"),
        exploration_id("x", Options(seed=1), worker, "build"),
        exploration_id("x", Options(), worker, "another build"),
        exploration_id("x", Options(), worker, "build", based_on="0" * 20),
        exploration_id("x", Options(), worker.model_copy(update={"torch": "2.12.0"}), "build"),
        exploration_id("x", Options(), worker.model_copy(update={"triton": None}), "build"),
        exploration_id("x", Options(), worker.model_copy(update={"device_name": "other"}), "build"),
    ]
    assert len(set(ids)) == len(ids)
    assert all(re.match(ID_PATTERN, id) for id in ids)
    assert exploration_id("x", Options(), worker, "build") == ids[0]


def test_every_example_has_a_title_a_lesson_and_runs_as_python() -> None:
    found = gallery.examples()
    assert len({example.name for example in found}) == len(found) >= 8
    for example in found:
        assert 10 < len(example.title) < 90
        assert len(example.lesson) > 80
        ast.parse(example.source)
        assert '"""' not in example.source


class _Shape(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.open += 1

    def handle_endtag(self, tag: str) -> None:
        self.open -= 1

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("language", ["python", "cpp", "cuda", "ptx", "llvm", "text"])
def test_highlighting_keeps_every_line_and_escapes_everything(language: str) -> None:
    source = '\n\nx = "<script>alert(1)</script>"\n"""two\nlines & more"""\n\n'
    lines = highlight_lines(source, language)
    assert len(lines) == source.count("\n") + 1
    for line, original in zip(lines, source.split("\n"), strict=True):
        shape = _Shape()
        shape.feed(line)
        assert shape.text == original
        assert shape.tags <= {"span"}
        assert shape.attributes <= {"class"}
        assert shape.open == 0


def test_colours_that_take_too_long_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.colouring.SECONDS", 1.0)
    assert coloured("int " + " " * 60_000, "cpp") is None
    assert coloured("x = 1\n", "python") == highlight_lines("x = 1\n", "python")


def test_both_themes_have_a_style_sheet() -> None:
    assert ".highlight" in style_sheet("light")
    assert style_sheet("light") != style_sheet("dark")


def test_a_summary_cannot_be_broken_out_of() -> None:
    report = Report(
        source="x = '''\n```\n# not a heading\n'''",
        id="a" * 20,
        status="user_error",
        error=Error(type="ValueError", message="no", line=3, hint="try"),
    )
    text = markdown(report)
    assert "````python" in text
    assert "ValueError (line 3): no" in text


def test_a_summary_has_what_the_snippet_printed() -> None:
    text = markdown(Report(source="print(1)", id="a" * 20, output="one\n```\ntwo\n"))
    assert "## Output of the snippet\n\n````text\none\n```\ntwo\n````\n\n## Snippet" in text


async def _get(app_settings: Settings, path: str, **headers: str) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=create_app(app_settings))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.get(path, headers=headers)


@pytest.mark.asyncio
async def test_the_page_says_how_to_build_it_and_is_served_once_built(tmp_path: Path) -> None:
    settings = Settings(static=tmp_path / "static", log_format="json")
    missing = await _get(settings, "/")
    assert missing.status_code == 503
    assert "npm" in missing.text
    (tmp_path / "static" / "assets").mkdir(parents=True)
    (tmp_path / "static" / "index.html").write_text("<!doctype html><title>page</title>")
    (tmp_path / "static" / "assets" / "app.js").write_text("export {}")
    for path in ("/", "/x/" + "a" * 20):
        page = await _get(settings, path)
        assert page.status_code == 200
        assert "page" in page.text
        policy = page.headers["content-security-policy"]
        assert "'wasm-unsafe-eval'" in policy
        assert re.search(r"script-src[^;]*unsafe-inline", policy) is None
        assert page.headers["x-content-type-options"] == "nosniff"
    script = await _get(settings, "/assets/app.js")
    assert script.status_code == 200
    assert "javascript" in script.headers["content-type"]
    assert (await _get(settings, "/assets/../../secret")).status_code == 404


@pytest.mark.asyncio
async def test_other_sites_cannot_use_the_service_through_a_browser() -> None:
    transport = httpx2.ASGITransport(app=create_app(Settings(log_format="json")))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
        body = {"source": "x = 1", "language": "python"}
        foreign = await client.post("/api/v1/highlight", json=body, headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        for origin in ("null", "http://[", "http://[x]", "//", "http://evil@localhost:8000"):
            strange = await client.post("/api/v1/highlight", json=body, headers={"Origin": origin})
            assert strange.status_code == 403
        own = await client.post("/api/v1/highlight", json=body, headers={"Origin": "http://localhost:8000"})
        assert own.status_code == 200
        without = await client.post("/api/v1/highlight", json=body)
        assert without.status_code == 200
        rebound = await client.get("/api/v1/examples", headers={"Host": "evil.example"})
        assert rebound.status_code == 421
        plain = await client.post(
            "/api/v1/highlight", content='{"source": "x"}', headers={"Content-Type": "text/plain"}
        )
        assert plain.status_code == 422
        large = await client.post("/api/v1/highlight", json={"source": "x" * 210_000, "language": "text"})
        assert large.status_code == 413


def test_a_job_compiles_into_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that jobs share is one that a snippet could fill with code for the next job to run."""
    monkeypatch.setattr(tempfile, "tempdir", tempfile.tempdir)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    folder, shared = tmp_path / "job", tmp_path / "shared"
    folder.mkdir()
    for name in ("FUSIONSCOPE_CACHE_DIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR"):
        os.environ[name] = str(shared)
    snippet.point_caches_to(folder)
    assert cache_directory("cpp").is_relative_to(folder) and cache_directory("triton").is_relative_to(folder)
    assert Path(os.environ["TRITON_CACHE_DIR"]).is_relative_to(folder)
    assert not shared.exists()
