"""A server and a browser, one of each for all tests of the page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.serving import ROOT, wait_until_ready
from tools import chromium
from tools import page as page_tools

#: How long the page may take for what it does at once on a machine that does nothing else.
WAITS_MS = 120_000


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """A Chromium that starts. Without one the test fails and says what to do: it is never skipped."""
    try:
        return chromium.find_chromium()
    except page_tools.SetupProblem as problem:
        pytest.fail(str(problem), pytrace=False)


@pytest.fixture(scope="session")
def built_page() -> Path:
    """The page as `npm run build` leaves it; built here where it is not."""
    index = ROOT / "server" / "static" / "index.html"
    if not index.is_file():
        web = ROOT / "web"
        subprocess.run(["npm", "ci", "--ignore-scripts"], cwd=web, check=True)
        subprocess.run(["npm", "run", "build"], cwd=web, check=True)
    return index


@pytest.fixture(scope="session")
def server_url(built_page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The real service, with a program in the compiler's place that answers with a stored report."""
    data = tmp_path_factory.mktemp("data")
    command = [sys.executable, "-m", "tests.browser.serve_programs", str(data)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        wait_until_ready(url)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=300)


@pytest.fixture(scope="session")
def browser(chromium_path: str) -> Iterator[Browser]:
    expect.set_options(timeout=WAITS_MS)
    with sync_playwright() as playwright:
        # Chromium's own sandbox needs rights that a container rarely gives; it opens our own page only.
        yield playwright.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with a_page(browser) as opened:
        yield opened


@contextmanager
def a_page(browser: Browser) -> Iterator[Page]:
    """One of the size that the layout is made for. Whatever the browser complains of fails the test."""
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    opened = browser.new_page(viewport={"width": 1440, "height": 900})
    opened.set_default_timeout(WAITS_MS)
    opened.on("console", note)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    opened.close()
    assert complaints == []
