"""What `fusionscope machine-code` prints. Where standard output goes meanwhile is tested of the other commands."""

from __future__ import annotations

from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from server.commands import compiling

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
