"""Start NVIDIA's assembler before there is anything to assemble.

To start `ptxas` takes it as long as a small kernel takes it to assemble. So it is started when Triton begins with a
kernel (see `stages`), and waits for the text while Triton makes it.

The assembler opens its input twice: it reads it, and, when all is assembled, looks at it once more. So it is given a
name that leads to a pipe at first, and to a file with the whole text from the moment on that there is one: an assembler
that has not come to open its input by then reads the file and leaves the pipe alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_LIMIT = re.compile(r"^\s*\.maxnreg\s+\d+\s*\n", re.MULTILINE)


def without_limit(ptx: str) -> str:
    """The text of a kernel without its limit of registers, if it has one."""
    return _LIMIT.sub("", ptx)


def taken(report: str) -> tuple[int | None, int | None]:
    """Registers of each thread, and bytes that it spills to memory and loads from there again, from what the assembler
    says of a kernel when it is asked to (`-v`); None where it does not say."""
    registers = re.search(r"Used (\d+) registers", report)
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", report)
    return (int(registers[1]) if registers else None, int(spills[1]) + int(spills[2]) if spills else None)


class WaitingAssembler:
    """An assembler that has started. Raises OSError where it cannot be started."""

    def __init__(self, command: Callable[[str, str], list[str]]) -> None:
        """`command` gives the arguments for the names of the input and of the output."""
        self._folder = Path(tempfile.mkdtemp(prefix="fusionscope-"))
        self._input, self._output = self._folder / "kernel.ptx", self._folder / "kernel.cubin"
        self._report = self._folder / "report"
        try:
            self._input.symlink_to("/dev/stdin")
            with self._report.open("wb") as report:
                self._process = subprocess.Popen(
                    command(str(self._input), str(self._output)),
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=report,
                    close_fds=False,  # else Python copies its whole process first
                )
        except OSError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        _waiting.add(self)

    def assemble(self, text: str) -> bytes | None:
        """The binary of a kernel, from its PTX; None where the assembler has not made one."""
        encoded = text.encode()
        try:
            whole = self._folder / "whole.ptx"
            whole.write_bytes(encoded)
            whole.replace(self._input)
            self._write(encoded)
            return self._output.read_bytes() if self._process.wait() == 0 else None
        except OSError:
            self.let_go()
            return None

    @property
    def taken(self) -> tuple[int | None, int | None]:
        """Registers and bytes of spills of what it has assembled, where its command asks it for them."""
        return taken(self._report.read_text(errors="replace"))

    def _write(self, content: bytes) -> None:
        """Into the pipe, which is closed by that; one that nobody reads any more is enough too."""
        assert self._process.stdin is not None
        rest = memoryview(content)
        with suppress(BrokenPipeError):
            while rest:
                rest = rest[self._process.stdin.write(rest) :]
        self._process.stdin.close()

    def let_go(self) -> None:
        """Close the pipe, whose other end then has nothing more to wait for."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def close(self) -> None:
        """End the assembler, whether it has done anything or not."""
        self.let_go()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        _waiting.discard(self)
        shutil.rmtree(self._folder, ignore_errors=True)


#: All whose pipes may be open. A copy of this process that kept one open would keep its assembler from the text's end.
_waiting: weakref.WeakSet[WaitingAssembler] = weakref.WeakSet()


def _let_all_go() -> None:
    for one in list(_waiting):
        with suppress(OSError):
            one.let_go()


os.register_at_fork(after_in_child=_let_all_go)
