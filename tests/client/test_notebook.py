"""A notebook, run as JupyterLab would run it, against the real service and the real compiler."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.browser.serving import ROOT, serving

CELLS = (
    "%load_ext fusionscope_client",
    "%%fusion --target sm_90 --no-timing -o found\n"
    "import torch\n"
    "def softmax(x):\n"
    "    e = (x - x.amax(-1, keepdim=True)).exp()\n"
    "    return e / e.sum(-1, keepdim=True)\n"
    "softmax(torch.randn(64, 256))\n",
    "import torch\n"
    "from fusionscope_client import Fusionscope\n"
    "SCALE = 2.0\n"
    "class Scaled(torch.nn.Module):\n"
    "    def forward(self, x):\n"
    "        return torch.tanh(x * SCALE)\n"
    "def scaled(x, axis):\n"
    "    return Scaled()(x).sum(axis)\n"
    "fs = Fusionscope()\n"
    "report = fs.explore(scaled, torch.randn(32, 48), -1, timing={'enabled': False})\n"
    "report.verdict",
    "found.forbid('exp', 'sum').kernels",
    "print(found.why('exp', 'div')[0].verdict, len(found.decisions.to_pandas()) > 2)",
    "%%fusion\nimport torch\n1 / 0\n",
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[list[Any]]]:
    """What each cell showed."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    home = tmp_path_factory.mktemp("home")
    with serving(tmp_path_factory.mktemp("data")) as url:
        environment = {**os.environ, "FUSIONSCOPE_URL": url, "PYTHONPATH": str(ROOT / "client"), "HOME": str(home)}
        NotebookClient(notebook, timeout=600, kernel_name="python3").execute(cwd=str(home), env=environment)
    yield [cell.outputs for cell in notebook.cells]


def results(shown: list[Any]) -> list[dict[str, str]]:
    return [output.data for output in shown if output.output_type == "execute_result"]


def test_the_cells_of_a_notebook(outputs: list[list[Any]]) -> None:
    loaded, magic, function, forbidden, asked, failed = outputs
    assert loaded == []
    (report,) = results(magic)
    assert "5 eager kernels became 1 kernel" in report["text/plain"]
    assert "<svg" in report["text/html"] and "5 eager kernels became 1 kernel" in report["text/html"]
    assert "<script" not in report["text/html"]
    # The progress is gone when the report is there.
    assert all(output.data["text/plain"] == "" for output in magic if output.output_type == "display_data")
    assert "became 1 kernel" in results(function)[0]["text/plain"]
    assert len(results(forbidden)[0]["text/plain"].splitlines()) == 3  # a heading, and two kernels
    assert asked[0].text == "fused True\n"
    assert "ZeroDivisionError (line 2)" in results(failed)[0]["text/plain"]
