"""A notebook whose cells are run as JupyterLab runs them, beside the page."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import nbformat
from nbclient import NotebookClient

from bench.service.figures import ROOT

#: Runs a cell; milliseconds until its result was there.
Cell = Callable[[str], float]


@contextmanager
def running_notebook(address: str) -> Iterator[Cell]:
    """A kernel that has loaded the client's magic; the client asks the service at `address`."""
    environment = {**os.environ, "FUSIONSCOPE_URL": address, "PYTHONPATH": str(ROOT / "client")}
    book = nbformat.v4.new_notebook()
    client = NotebookClient(book, timeout=600, kernel_name="python3")

    def run(text: str) -> float:
        book.cells.append(nbformat.v4.new_code_cell(text))
        started = time.perf_counter()
        cell = client.execute_cell(book.cells[-1], len(book.cells) - 1)
        taken = 1000 * (time.perf_counter() - started)
        if text.startswith("%%") and not any("text/html" in shown.get("data", {}) for shown in cell.outputs):
            raise RuntimeError(f"the cell showed no report: {cell.outputs}")
        return taken

    # A thread of its own: the one that asks has the browser's event loop.
    with ThreadPoolExecutor(1) as thread:
        kernel = client.setup_kernel(env=environment)
        thread.submit(kernel.__enter__).result()
        try:
            thread.submit(run, "%load_ext fusionscope_client").result()
            yield lambda text: thread.submit(run, text).result()
        finally:
            thread.submit(kernel.__exit__, None, None, None).result()
