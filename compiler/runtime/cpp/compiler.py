"""Compiling C++ into a shared library, once: it is kept on disk and loaded by ctypes.

The cache's key is everything that decides the machine code: sources, header, flags, compiler and CPU. What it keeps,
and for how long, is told in `disk_cache`.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from compiler.runtime.cpp.instruction_sets import architecture, instruction_set
from compiler.runtime.disk_cache import (
    Entry,
    cache_directory,
    digest_file,
    is_abandoned,
    is_whole,
    make_room_below_limit,
    note_written,
    remove,
    temporary_directory,
    touch,
    write_whole,
)

INCLUDE = Path(__file__).resolve().parents[2] / "codegen" / "cpp" / "include"

#: No -ffast-math: infinities and NaN mean what they mean in PyTorch, and sums are not reordered behind our back.
#: Neither errno nor floating point traps are looked at, and without them loops become vectors. Integers wrap.
_FLAGS = (
    "-O3",
    "-std=c++17",
    "-fopenmp",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    # a * b + c is rounded twice, as eager's is, whatever the machine has; what is to be rounded once says so.
    "-ffp-contract=off",
    # A buffer that reuses another one's memory may have another type.
    "-fno-strict-aliasing",
    "-fPIC",
    "-shared",
    "-w",
    # The compiler's own choice on many machines with vectors of 512 bits is to use half of them.
    *(("-mprefer-vector-width=512",) if architecture() == "x86_64" else ()),
)
#: What other compilers do not know.
_FLAGS_OF_GCC = (
    # A condition that the vector loop does not change makes two loops, also of more than a few instructions.
    "--param=max-unswitch-insns=400",
    # Past 100 % of a large function, and 40 % of a large file, GCC calls what it would have put in place: a loop with a
    # call in it makes no vectors. A chain of 60 functions took 16 times as long as eager's.
    "--param=large-function-growth=10000",
    "--param=inline-unit-growth=10000",
    # It would compute a comparison on those branches alone that still need it (a maximum of a logarithm, which may be
    # one of constants), and GCC 12 makes no vectors of a bool that is one of two.
    "-fno-tree-pre",
)
#: What GCC links kernels with, named after them. It would add the library of C++, of which they use nothing: to read
#: its symbols takes the linker a quarter as long as a small kernel takes to compile.
_LIBRARIES_OF_KERNELS = ("-fno-exceptions", "-nodefaultlibs", "-lgomp", "-lm", "-lc", "-lgcc")


def flags() -> tuple[str, ...]:
    """What kernels are compiled with. Raises UnknownInstructionSet where the setting names none."""
    return (*_FLAGS, *(_FLAGS_OF_GCC if is_gcc() else ()), f"-march={instruction_set()}")


def _libraries(is_kernel: bool) -> tuple[str, ...]:
    """What follows the source."""
    return _LIBRARIES_OF_KERNELS if is_kernel and is_gcc() else ()


def portable_flags() -> list[str]:
    """What any compiler takes them with, for the instructions of the machine that it runs on."""
    return [*(flag for flag in _FLAGS if not flag.startswith("-m")), "-march=native"]


def is_gcc() -> bool:
    return "Free Software Foundation" in machine()


class CompilerMissing(RuntimeError):
    """There is no C++ compiler; says how to get one."""


class CompilationFailed(RuntimeError):
    """The compiler refused a kernel; carries what it said."""


def load_library(source: str, is_kernel: bool = True) -> ctypes.CDLL:
    """The shared library of a source, from the cache where it is there and whole. What is no kernel may use C++'s
    library, and exceptions."""
    path = cache_directory("cpp") / f"{_key(source, is_kernel)}.so"
    if is_whole(path):
        with suppress(OSError):  # another process may have removed it since
            touch(path)
            return ctypes.CDLL(str(path))
    try:
        _compile(source, path, is_kernel)
    except OSError:  # the disk is full, or is for reading only by now
        path = temporary_directory("cpp") / path.name
        _compile(source, path, is_kernel)
    library = ctypes.CDLL(str(path))
    with suppress(OSError):
        if note_written(path.parent, path.stat().st_size):
            _make_room(path)
    return library


def _make_room(newest: Path) -> None:
    """Remove libraries that were not used for longest, and what a compiler that was stopped has left."""
    folder = newest.parent
    for path in folder.glob("tmp*"):
        if is_abandoned(path):
            remove(Entry.of(path))
    entries = [Entry.of(digest_file(path), path) for path in folder.glob("*.so")]
    make_room_below_limit(entries, keep=newest)


def _compile(source: str, path: Path, is_kernel: bool) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        text, library = Path(work) / "kernels.cpp", Path(work) / "kernels.so"
        text.write_text(source)
        # Compilers have faults of their own where they make vectors, so what one of them refuses gets a second try; and
        # clang may be there without the library that starts threads.
        for extra in ((), ("-O1", "-fno-tree-vectorize"), ("-fno-openmp", "-fopenmp-simd")):
            command = [compiler(), *flags(), *extra, f"-I{INCLUDE}", str(text), "-o", str(library)]
            command += _libraries(is_kernel)
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode == 0:
                write_whole(path, library.read_bytes())
                return
        said = result.stderr.replace(work, "").strip()
        if os.strerror(errno.ENOSPC) in said:
            raise OSError(errno.ENOSPC, said)
    raise CompilationFailed(f"{Path(compiler()).name} could not compile the kernels:\n{said[:4000]}")


@functools.cache
def compiler() -> str:
    """The path of the C++ compiler: $CXX, else g++ or clang++ from the PATH. Raises CompilerMissing, which says what to
    install."""
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
    """What the machine code depends on besides its source and flags: compiler and CPU."""
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=False).stdout
    wanted = ("model name", "flags", "Features", "CPU part")
    try:
        described = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(wanted)]
    except OSError:
        described = [platform.processor()]
    return "\n".join([version, platform.machine(), *sorted(set(described))])


def _key(source: str, is_kernel: bool = True) -> str:
    headers = "".join(path.read_text() for path in sorted(INCLUDE.glob("*.h")))
    parts = "\0".join([source, headers, " ".join((*flags(), *_libraries(is_kernel))), machine()])
    return hashlib.sha256(parts.encode()).hexdigest()[:32]
