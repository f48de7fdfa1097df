"""Compiling C++ into a shared library, once: it is kept on disk and loaded by ctypes.

The cache's key is everything that decides the machine code: sources, header, flags, compiler and CPU. A library is
written beside its place and moved there, so a reader finds a whole one or none; one that is not what was written is
compiled again. The digest beside it finds damage, not malice: that is kept out by who may write to the directory.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

#: What the cache may hold unless $FUSIONSCOPE_CACHE_MIB says otherwise, in units of 2^20 bytes.
DEFAULT_CACHE_MIB = 1024
MIB = 1 << 20

INCLUDE = Path(__file__).resolve().parent.parent / "codegen" / "cpp" / "include"

#: No -ffast-math: infinities and NaN mean what they mean in PyTorch, and sums are not reordered behind our back.
#: Neither errno nor floating point traps are looked at, and without them loops become vectors. Integers wrap.
FLAGS = (
    "-O3",
    "-march=native",
    "-std=c++17",
    "-fopenmp",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fPIC",
    "-shared",
    "-w",
    # The compiler's own choice on many machines with vectors of 512 bits is to use half of them.
    *(("-mprefer-vector-width=512",) if platform.machine() in ("x86_64", "AMD64") else ()),
)


class CompilerMissing(RuntimeError):
    """There is no C++ compiler; says how to get one."""


class CompilationFailed(RuntimeError):
    """The compiler refused a kernel; carries what it said."""


def load_library(source: str) -> ctypes.CDLL:
    """The shared library of a source, from the cache where it is there and whole."""
    path = cache_directory() / f"{_key(source)}.so"
    if _is_whole(path):
        with suppress(OSError):  # another process may have removed it since
            os.utime(path)
            return ctypes.CDLL(str(path))
    _compile(source, path)
    library = ctypes.CDLL(str(path))
    _make_room(path)
    return library


def _make_room(newest: Path) -> None:
    """Remove libraries, those first that were not used for longest, until what is kept is within the limit. A process
    that has loaded one keeps what it needs of it."""
    limit = int(os.environ.get("FUSIONSCOPE_CACHE_MIB") or DEFAULT_CACHE_MIB) * MIB
    kept: list[tuple[float, int, Path]] = []
    for path in newest.parent.glob("*.so"):
        with suppress(OSError):
            status = path.stat()
            kept.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in kept)
    for _, size, path in sorted(kept):
        if total <= limit:
            return
        if path != newest:
            path.with_suffix(".sha256").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            total -= size


def _is_whole(path: Path) -> bool:
    """Whether the library is there as it was written; loading a damaged one could end the process."""
    try:
        return path.with_suffix(".sha256").read_text() == _digest(path)
    except OSError:
        return False


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cache_directory() -> Path:
    """Where libraries are kept: $FUSIONSCOPE_CACHE_DIR, else a directory of the user's own.

    Whoever can write there decides what this process runs, so a directory that others can write to is not used."""
    chosen = os.environ.get("FUSIONSCOPE_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fusionscope"
    directory = base / "cpp"
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.access(directory, os.W_OK) and _is_ours_alone(directory):
            return directory
    except OSError:
        if chosen:
            raise
    return _temporary_directory()


def _is_ours_alone(directory: Path) -> bool:
    status = directory.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@functools.cache
def _temporary_directory() -> Path:
    """For a user without a home that can be written: gone with the machine's temporary files."""
    return Path(tempfile.mkdtemp(prefix="fusionscope-"))


def _compile(source: str, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        text, library = Path(work) / "kernels.cpp", Path(work) / "kernels.so"
        text.write_text(source)
        # Compilers have faults of their own where they make vectors, so what one of them refuses gets a second try.
        for extra in ((), ("-O1", "-fno-tree-vectorize")):
            command = [compiler(), *FLAGS, *extra, f"-I{INCLUDE}", str(text), "-o", str(library)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode == 0:
                digest = Path(work) / "kernels.sha256"
                digest.write_text(_digest(library))
                os.replace(library, path)
                os.replace(digest, path.with_suffix(".sha256"))
                return
        said = result.stderr.replace(work, "").strip()
    raise CompilationFailed(f"{Path(compiler()).name} could not compile the kernels:\n{said[:4000]}")


@functools.cache
def compiler() -> str:
    """The path of the C++ compiler: $CXX, else g++ or clang++ from the PATH."""
    wanted = os.environ.get("CXX")
    for name in (wanted,) if wanted else ("g++", "clang++", "c++"):
        path = shutil.which(name) if name else None
        if path:
            return path
    raise CompilerMissing(
        f"There is no C++ compiler {wanted!r} on the PATH."
        if wanted
        else "There is no C++ compiler on the PATH: install g++ (Debian, Ubuntu: apt install g++) or name one in $CXX."
    )


@functools.cache
def machine() -> str:
    """What the machine code depends on besides its source: compiler and CPU (-march=native)."""
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=False).stdout
    wanted = ("model name", "flags", "Features", "CPU part")
    try:
        described = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(wanted)]
    except OSError:
        described = [platform.processor()]
    return "\n".join([version, platform.machine(), *sorted(set(described))])


def _key(source: str) -> str:
    headers = "".join(path.read_text() for path in sorted(INCLUDE.glob("*.h")))
    parts = "\0".join([source, headers, " ".join(FLAGS), machine()])
    return hashlib.sha256(parts.encode()).hexdigest()[:32]
