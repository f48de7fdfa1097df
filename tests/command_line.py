"""The command line in the process of a test: what it prints, to the last file descriptor, and how it exits."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from server.cli import app


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run_here(*arguments: str, source: str = "", columns: int = 120) -> Ended:
    """`fusionscope ARGUMENTS`, with `source` as its standard input. A process of its own would import torch first."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("NO_COLOR", "1")
        patch.setattr(sys, "stdin", io.StringIO(source))
        with _in_place_of(1, out, patch), _in_place_of(2, err, patch):
            code = _code_of(arguments)
        return Ended(code, _text_of(out), _text_of(err))


def _code_of(arguments: tuple[str, ...]) -> int:
    try:
        app(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@contextmanager
def _in_place_of(descriptor: int, file: Any, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The file takes the place of standard output (1) or of standard error (2), for native code too."""
    before = os.dup(descriptor)
    os.dup2(file.fileno(), descriptor)
    try:
        with open(descriptor, "w", encoding="utf-8", closefd=False) as stream:
            patch.setattr(sys, {1: "stdout", 2: "stderr"}[descriptor], stream)
            yield
    finally:
        os.dup2(before, descriptor)
        os.close(before)


def _text_of(file: Any) -> str:
    file.seek(0)
    return str(file.read(), "utf-8")
