"""The kernels' headers on their own (`headers.cpp`): under sanitizers, and the same bits on every machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from compiler.runtime.cpp.compiler import INCLUDE, compiler, flags
from compiler.runtime.cpp.instruction_sets import SETTING, runnable
from compiler.runtime.disk_cache import (
    Entry,
    cache_directory,
    digest_file,
    is_whole,
    make_room,
    touch,
    write_whole,
)

PROGRAM = Path(__file__).with_name("headers.cpp")
SANITIZED = ("-O0", "-g", "-std=c++17", "-fopenmp-simd", "-fwrapv", "-ffp-contract=off", "-w", "-Wno-psabi")
CLANG = next(
    (path for name in ("clang++", "clang++-19", "clang++-16", "clang++-14") if (path := shutil.which(name))), None
)
ARM, EMULATOR = shutil.which("aarch64-linux-gnu-g++"), shutil.which("qemu-aarch64")


def has_memory_sanitizer() -> bool:
    if CLANG is None:
        return False
    command = [CLANG, "-fsanitize=memory", "-x", "c++", "-", "-o", os.devnull]
    return subprocess.run(command, input=b"int main() {}", capture_output=True, check=False).returncode == 0


#: What programs of earlier runs may take on disk, in bytes.
MOST_KEPT = 64 << 20


def build(folder: Path, *command: str) -> Path:
    """The program, compiled once for all that it is made of: each of ten takes a compiler two seconds."""
    program, texts = folder / "headers", [path.read_text() for path in (PROGRAM, *sorted(INCLUDE.glob("*.h")))]
    version = subprocess.run([command[0], "--version"], check=True, capture_output=True, text=True).stdout
    kept = cache_directory("headers") / hashlib.sha256("\0".join([*command, version, *texts]).encode()).hexdigest()
    if not is_whole(kept):
        subprocess.run([*command, f"-I{INCLUDE}", str(PROGRAM), "-o", str(program)], check=True, capture_output=True)
        write_whole(kept, program.read_bytes())
        entries = [Entry.of(path, digest_file(path)) for path in kept.parent.iterdir() if not path.suffix]
        make_room(entries, MOST_KEPT, keep=(kept,))
    touch(kept)
    program.write_bytes(kept.read_bytes())
    program.chmod(0o700)
    return program


def digests(*command: str | Path) -> str:
    """What the program prints; fails with what a sanitizer said."""
    environment = os.environ | {"UBSAN_OPTIONS": "print_stacktrace=1"}
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr[-4000:]
    return result.stdout


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digests of the lowest level that there is."""
    folder, level = tmp_path_factory.mktemp("expected"), runnable()[0]
    return digests(
        build(folder, compiler(), "-O1", "-std=c++17", "-fwrapv", "-ffp-contract=off", "-w", f"-march={level}")
    )


@pytest.mark.parametrize("level", runnable())
def test_every_level_gives_the_same_bits(
    level: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, level)
    kernel_flags = [flag for flag in flags() if flag not in ("-shared", "-fPIC")]
    assert digests(build(tmp_path, compiler(), *kernel_flags)) == expected
    assert len(expected.splitlines()) > 70


@pytest.mark.parametrize("level", runnable())
def test_no_function_leaves_its_memory_or_the_language(level: str, tmp_path: Path) -> None:
    watched = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-march={level}")
    digests(build(tmp_path, compiler(), *SANITIZED, *watched))


@pytest.mark.skipif(not has_memory_sanitizer(), reason="clang with its memory sanitizer, which GCC lacks, is not here")
@pytest.mark.parametrize("level", runnable())
def test_no_function_depends_on_memory_that_nobody_wrote(level: str, expected: str, tmp_path: Path) -> None:
    watched = ("-fsanitize=memory", "-fno-sanitize-recover=all", f"-march={level}")
    assert digests(build(tmp_path, str(CLANG), *SANITIZED, *watched)) == expected


@pytest.mark.skipif(not (ARM and EMULATOR), reason="there is no compiler for aarch64, or no qemu-user to run it")
def test_aarch64_gives_the_same_bits(expected: str, tmp_path: Path) -> None:
    kernel_flags = [f for f in flags() if f not in ("-shared", "-fPIC") and not f.startswith(("-march", "-mprefer"))]
    # Vectors of straight code: GCC would look for them in the program's own unrolled loops for 8 s of 12.
    program = build(tmp_path, str(ARM), *kernel_flags, "-fno-tree-slp-vectorize", "-static", "-march=armv8-a")
    assert digests(str(EMULATOR), program) == expected
