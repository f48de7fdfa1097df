"""What a report tells of a defect: where it lies in the compiler, nothing of the machine, no line of the snippet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import pytest
import torch

import compiler.compile as compiling
from compiler import pipeline
from compiler.defects import message_of, traceback_of
from compiler.options import Options, Timing
from compiler.runtime.cpp.compiler import CompilerMissing

SNIPPET = """import torch
SECRET = "a line that is the author's own"
def f(x):
    return deliver_from_here(x) * 2 + 1
def deliver_from_here(x):
    return torch.sin(x) if len(SECRET) > 3 else x
torch.compile(f)(torch.randn(8))
"""


def defective(*_: object, **__: object) -> object:
    here = Path(torch.__file__).parent
    raise RuntimeError(f"{here}/nowhere.py broke, said\n\nfrom user code:\n{QUOTED}")


QUOTED = """   File "snippet.py", line 4, in f
    return deliver_from_here(x) * 2 + 1
  File "snippet.py", line 6, in deliver_from_here
    return torch.sin(x) if len(SECRET) > 3 else x
"""


def test_a_defect_tells_no_line_of_the_snippet_and_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "render_cpp", defective)
    report = pipeline.explore(SNIPPET, Options(device="cpu"))
    error = report.error
    assert report.status == "crashed" and error is not None and error.traceback is not None
    told = "\n".join([error.message, error.traceback, *(stage.message or "" for stage in report.stages)])
    assert "deliver_from_here(x) * 2" not in told and "SECRET" not in told
    assert 'File "snippet.py", line 4' in told
    assert "torch/nowhere.py broke" in told
    assert 'File "compiler/stages/compiling.py", line ' in error.traceback
    folders = [str(Path(pipeline.__file__).parents[1]), sys.prefix, str(Path(torch.__file__).parents[1])]
    assert [folder for folder in folders if f"{folder}/" in told] == []


def test_a_defect_that_passes_through_the_snippet_keeps_its_lines_numbers() -> None:
    text = 'def broken():\n    raise ValueError("no")  # the very text\nbroken()\n'
    with pytest.raises(ValueError, match="no") as caught:
        exec(compile(text, "snippet.py", "exec"), {})
    told = traceback_of(caught.value)
    assert 'File "snippet.py", line 2, in broken\n' in told and "the very text" not in told
    assert told.endswith("ValueError: no\n")
    assert message_of(caught.value) == "ValueError: no"


@pytest.mark.parametrize(("name", "value"), [("CACHE_DIR", "/dev/null/folder"), ("WITHOUT", "wings")])
def test_a_wrong_variable_is_no_defect(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"FUSIONSCOPE_{name}", value)
    error = pipeline.explore(SNIPPET, Options(device="cpu", timing=Timing(enabled=False))).error
    assert error is not None and error.type == "WrongSetting" and error.message.startswith(f"FUSIONSCOPE_{name} ")


def test_a_missing_compiler_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> NoReturn:
        raise CompilerMissing("There is no C++ compiler.")

    monkeypatch.setattr(compiling, "render_cpp", missing)
    error = pipeline.explore(SNIPPET, Options(device="cpu")).error
    assert error is not None and error.type == "CompilerMissing"
    assert error.message == "There is no C++ compiler." and error.hint is not None and "doctor" in error.hint
