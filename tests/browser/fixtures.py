"""A server and a browser for the tests of the page. `chromium_path` comes from conftest.py."""

from __future__ import annotations

import atexit
import functools
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60


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
        server.wait(timeout=20)


def wait_until_ready(url: str) -> None:
    """A service that does not start is a failure of its own, told apart from a page that does not work."""
    last: Exception | None = None
    for _ in range(START_SECONDS * 5):
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
                return
        except OSError as error:
            last = error
            time.sleep(0.2)
    raise RuntimeError(f"the service is not ready after {START_SECONDS} s") from last


@functools.cache
def launched(chromium_path: str) -> Browser:
    """One browser for all test modules: Playwright starts only once in a process. It ends with the process."""
    playwright = sync_playwright().start()
    atexit.register(playwright.stop)
    # Chromium's own sandbox needs rights that a container rarely gives; it opens our own page only.
    return playwright.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])


@pytest.fixture(scope="session")
def browser(chromium_path: str) -> Browser:
    return launched(chromium_path)


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of the size that the layout is made for. Whatever the browser complains of fails the test."""
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    opened = browser.new_page(viewport={"width": 1440, "height": 900})
    opened.on("console", note)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    opened.close()
    assert complaints == []
