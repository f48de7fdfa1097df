"""Takes the pictures of docs/first_steps.md from the real page: `python -m tools.pictures`.

It starts a service of its own, explores, and has Chromium photograph what a reader is told to look at. Times in a
picture are those of this machine.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
PATIENCE_S = 300
#: The program of docs/first_steps.md.
PROGRAM = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "first_steps.md").read_text(), re.DOTALL)[1]  # type: ignore[index]
LOOKS = {
    "answer": ("/x/{id}", "body"),
    "kernel": ("/x/{id}?at=kernel:graph_0/0", "[data-pane=side]"),
    "why": ("/x/{id}?why=graph0/div,mm", "#why-card"),
    "lesson": ("/?lesson=fusing_a_chain", "[data-pane=lesson]"),
}
"""Pictures by name: the address, and the part of the page that is photographed."""


@contextmanager
def service() -> Iterator[str]:
    """The address of a service with an empty store."""
    with socket.socket() as found, tempfile.TemporaryDirectory() as data:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        found.close()
        environment = dict(os.environ, FUSIONSCOPE_DATA=data, OMP_NUM_THREADS="1")
        command = [sys.executable, "-m", "server.cli", "serve", "--port", str(port)]
        process = subprocess.Popen(command, cwd=ROOT, env=environment)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(url)
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=PATIENCE_S)


def wait_until_ready(url: str) -> None:
    """Returns when the service takes explorations. Raises `TimeoutError`."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(f"{url} was not ready within {PATIENCE_S} s")


def take(url: str) -> None:
    import chromium
    from fusionscope_client import Fusionscope
    from playwright.sync_api import sync_playwright

    explored = Fusionscope(url).explore(PROGRAM).id
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find_chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 1050}, reduced_motion="reduce")
        page.set_default_timeout(1000 * PATIENCE_S)
        page.goto(url)
        page.get_by_role("button", name="Keep the example").click()
        for name, (address, part) in LOOKS.items():
            page.goto(url + address.format(id=explored))
            page.get_by_role("button", name="Fit").click()
            page.wait_for_load_state("networkidle")
            page.locator(part).screenshot(path=PICTURES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "client")]
    with service() as url:
        take(url)
