"""Takes the pictures of the documentation from what really runs: `python -m tools.pictures [--jupyter PROGRAM]`.

It starts a service of its own, explores, and has Chromium photograph what a reader is told to look at: the page, what
the command prints, and a notebook in JupyterLab. The notebook wants `--jupyter`, the program `jupyter` of an
environment that has jupyterlab and fusionscope-client; without it that picture stays as it is. Times in a picture are
those of this machine.
"""

from __future__ import annotations

import argparse
import io
import json
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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

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


CELLS = (
    "%load_ext fusionscope_client",
    """%%fusion --target sm_90 -o report
import torch

def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)

softmax(torch.randn(64, 256))""",
    'report.why("exp", "div")',
)


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


def wait_until_ready(url: str, path: str = "/readyz") -> None:
    """Returns when the server answers there. Raises `TimeoutError`."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(url + path, timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(f"{url} was not ready within {PATIENCE_S} s")


def take(url: str, jupyter: str | None) -> None:
    from playwright.sync_api import sync_playwright

    from tools import chromium

    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find_chromium(), args=["--no-sandbox"])
        take_page(browser.new_page(viewport={"width": 1440, "height": 1050}, reduced_motion="reduce"), url)
        take_terminal(browser.new_page(viewport={"width": 1200, "height": 800}))
        if jupyter is not None:
            with lab(jupyter, url) as address:
                take_notebook(browser.new_page(viewport={"width": 1350, "height": 780}), address)
        browser.close()


def take_page(page: Page, url: str) -> None:
    from fusionscope_client import Fusionscope

    explored = Fusionscope(url).explore(PROGRAM).id
    page.set_default_timeout(1000 * PATIENCE_S)
    page.goto(url)
    page.get_by_role("button", name="Keep the example").click()
    for name, (address, part) in LOOKS.items():
        page.goto(url + address.format(id=explored))
        page.get_by_role("button", name="Fit").click()
        page.wait_for_load_state("networkidle")
        page.locator(part).screenshot(path=PICTURES / f"{name}.png")


def take_terminal(page: Page) -> None:
    """What `fusionscope explore` prints on a terminal of 100 columns."""
    from rich.console import Console
    from rich.text import Text

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "mix.py").write_text(PROGRAM)
        environment = dict(os.environ, FORCE_COLOR="1", TERM="xterm-256color", COLUMNS="100", PYTHONPATH=str(ROOT))
        command = [sys.executable, "-m", "server.cli", "explore", "mix.py"]
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(Text.from_ansi(done.stdout.strip()))
    drawn = console.export_svg(title="fusionscope explore mix.py")
    # The fonts that it names are on the internet.
    page.set_content(re.sub(r"@font-face *{.*?}", "", drawn, flags=re.DOTALL))
    page.locator("svg").first.screenshot(path=PICTURES / "terminal.png")


@contextmanager
def lab(jupyter: str, url: str) -> Iterator[str]:
    """The address of a notebook in a JupyterLab of its own, whose client asks the service at `url`."""
    empty: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [empty | {"source": one} for one in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    with socket.socket() as found, tempfile.TemporaryDirectory() as folder:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        found.close()
        book = {"nbformat": 4, "nbformat_minor": 4, "metadata": kernel, "cells": cells}
        Path(folder, "softmax.ipynb").write_text(json.dumps(book))
        environment = dict(os.environ, FUSIONSCOPE_URL=url, HOME=folder, JUPYTER_PLATFORM_DIRS="1")
        options = ["--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token="]
        process = subprocess.Popen([jupyter, "lab", *options], cwd=folder, env=environment)
        try:
            wait_until_ready(f"http://127.0.0.1:{port}", "/api")
            yield f"http://127.0.0.1:{port}/lab/tree/softmax.ipynb"
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_S)


def take_notebook(page: Page, address: str) -> None:
    page.set_default_timeout(1000 * PATIENCE_S)
    page.goto(address)
    page.get_by_text("No", exact=True).click()  # whether it may fetch news
    page.get_by_text("| Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.wait_for_selector(".jp-OutputArea-output svg")
    page.locator(".jp-Cell", has_text="report.why").locator(".jp-OutputArea-output table").wait_for()
    page.locator(".jp-Notebook").first.screenshot(path=PICTURES / "notebook.png")


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "client")]
    parser = argparse.ArgumentParser(prog="python -m tools.pictures")
    parser.add_argument("--jupyter", metavar="PROGRAM", help="of an environment with jupyterlab and the client")
    asked = parser.parse_args()
    with service() as url:
        take(url, asked.jupyter)
