"""What a snippet prints, kept apart from what the process prints."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

#: Bytes of a snippet's output that are kept.
LONGEST_OUTPUT = 64 * 1024


class OutputRecorder:
    """Standard output and standard error of a `with recorder.recording()` block, in the order they were written.

    Both the Python streams and the file descriptors 1 and 2 are redirected, so that what C code, a child process or
    torch's own log writes is kept as well, and a descriptor that carries a protocol stays clean.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the object)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        streams = sys.stdout, sys.stderr
        for stream in streams:
            with contextlib.suppress(Exception):
                stream.flush()
        saved = [(number, os.dup(number)) for number in (1, 2) if _is_open(number)]
        for number, _ in saved:
            os.dup2(self._file.fileno(), number)
        kept = _Kept(self._file.fileno())
        sys.stdout = sys.stderr = io.TextIOWrapper(kept, "utf-8", "replace", write_through=True)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = streams
            for number, copy in saved:
                os.dup2(copy, number)
                os.close(copy)

    def text(self) -> str:
        """What was written so far, cut at `LONGEST_OUTPUT` bytes with a sentence that says so."""
        self._file.seek(0)
        written = self._file.read(LONGEST_OUTPUT + 1)
        text = written[:LONGEST_OUTPUT].decode("utf-8", "replace")
        if len(written) > LONGEST_OUTPUT:
            text += f"\n[The output was cut here: only its first {LONGEST_OUTPUT // 1024} KiB are kept.]\n"
        return text


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """The snippet's own functions run again inside: what they print was shown once already."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


class _Kept(io.RawIOBase, BinaryIO):
    """A stream on a file descriptor that stops writing once enough was kept, so that a loop fills no disk."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._written = 0

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, data: Any) -> int:
        if self._written <= LONGEST_OUTPUT:
            left = memoryview(data).cast("B")[: LONGEST_OUTPUT + 1]
            self._written += len(left)
            while left:
                left = left[os.write(self._number, left) :]
        return memoryview(data).nbytes


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
