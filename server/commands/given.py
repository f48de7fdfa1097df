"""What several commands are given: files, options, exit codes, and a standard output that nothing else writes to."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO
from unittest import mock

import typer

if TYPE_CHECKING:
    from compiler.options import Options
    from compiler.report import Report

FAILED_SNIPPET = 1
WRONG_USE = 2
WRONG_RESULT = 3


#: What the command line calls an option by another name than a request does.
_FLAGS = {"rules_off": "rule-off", "contestants": "contestant"}


def options_from(**chosen: Any) -> Options:
    """The options of an exploration, those that are None left out; a command that is used wrongly ends here."""
    from pydantic import ValidationError

    from compiler.devices import measurements
    from compiler.options import Options
    from server.requests import said_of_fault

    try:
        measurements()
    except ValueError as wrong:
        typer.echo(str(wrong), err=True)
        raise typer.Exit(WRONG_USE) from None
    try:
        return Options.model_validate({name: value for name, value in chosen.items() if value is not None})
    except ValidationError as invalid:
        for error in invalid.errors():
            where = _FLAGS.get(str(error["loc"][0]), str(error["loc"][0])).replace("_", "-") if error["loc"] else ""
            said = said_of_fault(error)
            typer.echo(f"--{where}: {said}" if where else said, err=True)
        raise typer.Exit(WRONG_USE) from None


def read_text(file: Path) -> str:
    """The text of a file, or of standard input for `-`; a file that cannot be read ends the command."""
    name = "Standard input" if str(file) == "-" else str(file)
    try:
        # Some editors and shells of Windows begin a file with a byte order mark, which no JSON may have.
        return _standard_input() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except OSError as failure:
        said = failure.strerror or str(failure)
    except UnicodeDecodeError as failure:
        said = f"its byte {failure.start + 1} is no part of a text in UTF-8. Save it as UTF-8."
    typer.echo(f"{name} cannot be read: {said}", err=True)
    raise typer.Exit(WRONG_USE)


def _standard_input() -> str:
    # Where no locale is set Python reads any bytes, as half characters that end the exploration later.
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict")
    return sys.stdin.read()


def report_from(text: str, name: str, remedy: str = "") -> Report:
    """The report in `text`, which was read from `name`; what is none of this version ends the command."""
    from pydantic import ValidationError

    from compiler.report import REPORT_VERSION, Report
    from compiler.wording import said_of_fault

    try:
        report = Report.model_validate_json(text)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        said = said_of_fault(first)
        flaw = f"{'.'.join(str(part) for part in first['loc'])}: {said}" if first["loc"] else said
    else:
        if report.version == REPORT_VERSION:
            return report
        flaw = f"its version is {report.version}, and {REPORT_VERSION} is read here"
    typer.echo(f"{name} is no report of this version: {flaw}.{remedy}", err=True)
    raise typer.Exit(WRONG_USE)


class CannotPrint(OSError):
    """Standard output takes nothing more, as on a full disk."""


class _StandardOutput(io.FileIO):
    """What fails here is standard output, through whatever it was written."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as failure:
            raise CannotPrint(failure.errno, failure.strerror) from None


def standard_output(descriptor: int, encoding: str, errors: str = "strict") -> TextIO:
    """A text stream to standard output, which raises CannotPrint. It closes any descriptor but 1."""
    raw = _StandardOutput(descriptor, "w", closefd=descriptor != 1)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors)


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[TextIO]:
    """While a snippet runs, all that is printed, even by native code, goes to stderr. Yields the real stdout, which is
    closed when the block ends. A snippet that ends the process by `os._exit` is told of, and has failed."""
    if sys.stdout is None:  # as after `>&-` in a shell
        raise CannotPrint(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout.flush()
    with standard_output(os.dup(1), "utf-8") as real, os.fdopen(os.dup(2), "w") as errors:
        os.dup2(2, 1)
        try:
            with mock.patch.object(os, "_exit", _told_to(errors)):
                yield real
        finally:
            sys.stdout.flush()
            sys.stderr.flush()


def _told_to(errors: TextIO) -> Callable[[int], NoReturn]:
    """`os._exit` that says so, and where, if it ends this process and no child of it."""
    leave, own = os._exit, os.getpid()

    def told(code: int) -> NoReturn:
        if os.getpid() == own:
            from compiler.wording import SNIPPET_FILE

            lines = [frame.lineno for frame in traceback.extract_stack() if frame.filename == SNIPPET_FILE]
            place = f" in line {lines[-1]}" if lines else ""
            print(f"The snippet ended this process by os._exit({code}){place}.", file=errors, flush=True)
        leave(FAILED_SNIPPET if os.getpid() == own else code)

    return told


@contextlib.contextmanager
def stages_on_stderr() -> Iterator[Callable[[Report], None]]:
    """What an exploration is to be told its stages by: one line that changes, where somebody watches stderr."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return

    def show(report: Report) -> None:
        ended = " · ".join(f"{stage.name} {stage.ms / 1000:.1f} s" for stage in report.stages if stage.status == "done")
        # A line that is wrapped is cleared in its last row only.
        room = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[2K{ended if len(ended) <= room else '…' + ended[1 - room :]}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
