"""What `fusionscope machine-code` prints. Where standard output goes meanwhile is tested of the other commands."""

from __future__ import annotations

from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from compiler import pipeline
from compiler.report import Graph, Kernel, Report, UserKernel
from server.commands import compiling
from tests.command_line import run_here

if TYPE_CHECKING:
    from collections.abc import Iterator

SNIPPET = """import torch
def f(x):
    return torch.sin(x) * 2
f(torch.randn(64, 64))
"""


def test_kernels_are_listed_and_one_is_printed_with_the_lines_of_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = StringIO()

    @contextmanager
    def to_text() -> Iterator[StringIO]:
        yield printed

    monkeypatch.setattr(compiling, "stdout_to_stderr", to_text)
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET)
    with pytest.raises(typer.Exit) as ended:
        compiling.machine_code(file)
    assert ended.value.exit_code == 0 and printed.getvalue() == "fused_sin_mul\n"
    with pytest.raises(typer.Exit) as ended:
        compiling.machine_code(file, "fused_cos")
    assert ended.value.exit_code == 2 and "There are: fused_sin_mul." in capsys.readouterr().err
    with pytest.raises(typer.Exit) as ended:
        compiling.machine_code(file, "fused_sin_mul", "sm_90")
    assert ended.value.exit_code == 0
    assert "LDG.E" in printed.getvalue() and "fused_sin_mul for sm_90:" in printed.getvalue()


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("x @ x", "There is no kernel to compile: all work is the library's (aten.mm).\n"),
        ("x.t()", "There is no kernel to compile: nothing is computed.\n"),
    ],
)
def test_a_file_without_a_kernel_is_told(result: str, said: str) -> None:
    ended = run_here("machine-code", "-", source=SNIPPET.replace("torch.sin(x) * 2", result))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", said)


def test_a_kernel_of_the_snippets_own_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Kernel(name="own", kind="extern", nodes=[], source="", own=UserKernel(function="own"))
    library = Kernel(name="aten.mm", kind="extern", nodes=[], source="")
    report = Report(source="", graphs=[Graph(name="graph_0", kernels=[library, own])])
    monkeypatch.setattr(pipeline, "explore", lambda *_: report)
    ended = run_here("machine-code", "-", source=SNIPPET)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "own\n", "")
