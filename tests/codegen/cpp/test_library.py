"""Compiling and keeping libraries of kernels."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.ir.size import Symbol
from compiler.runtime import disk_cache
from compiler.runtime.cpp import compiler as cpp_compiler
from compiler.runtime.cpp import library as cpp_library
from compiler.runtime.cpp.compiler import CompilationFailed, CompilerMissing
from compiler.runtime.cpp.library import compile_kernels
from compiler.runtime.host import launcher
from compiler.runtime.host.launcher import MOST_ARGUMENTS, launcher_library


def kernel(name: str, body: str = "out[0] = x[0] + 1.0f;") -> RenderedKernel:
    source = f'#include "fusionscope.h"\nextern "C" void {name}(const float* x, float* out) {{ {body} }}\n'
    return RenderedKernel(name, "cpp", source, ("x", "out"), (), {"parallel": "no"})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    launcher_library()  # which this process keeps where the others are
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path))
    return tmp_path / "cpp"


def value_of(made: RenderedKernel) -> float:
    out = torch.zeros(1)
    compile_kernels([made])[made.name](torch.ones(1), out)
    return out.item()


def test_second_time_needs_no_compiler(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert value_of(kernel("one")) == 2.0
    assert len(list(cache.glob("*.so*"))) == 2  # the library and its digest
    monkeypatch.setattr(cpp_compiler, "_compile", lambda *_: pytest.fail("compiled again"))
    assert value_of(kernel("one")) == 2.0


def test_broken_cache_entry_is_compiled_again(cache: Path) -> None:
    source = kernel("broken").source
    path = cache / f"{cpp_compiler._key(source)}.so"
    for damage in (b"\x7fELF is not all that it takes", b""):
        cpp_compiler.load_library(kernel("other").source)
        path.write_bytes(damage)
        disk_cache.digest_file(path).write_text("0" * 64)
        assert disk_cache.is_whole(path) is False
    assert value_of(kernel("broken")) == 2.0
    assert disk_cache.is_whole(path)


def test_what_was_not_used_for_longest_makes_room(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [kernel(name).source for name in ("first", "second", "third")]
    paths = [cache / f"{cpp_compiler._key(source)}.so" for source in sources]
    for source in sources[:2]:
        cpp_compiler.load_library(source)
    for age, path in zip((200, 100), paths[:2], strict=True):
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    cpp_compiler.load_library(sources[0])  # used again, so the second is now the oldest
    monkeypatch.setattr(
        disk_cache, "MIB", disk_cache.Entry.of(paths[0], disk_cache.digest_file(paths[0])).bytes * 5 // 2
    )
    monkeypatch.setenv("FUSIONSCOPE_CACHE_MIB", "1")
    cpp_compiler.load_library(sources[2])
    assert [path.exists() for path in paths] == [True, False, True]
    assert not disk_cache.digest_file(paths[1]).exists()
    assert value_of(kernel("second")) == 2.0


@pytest.mark.parametrize("wrong", ["many", "-5"])
def test_a_limit_that_is_no_number_is_told_by_its_name(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONSCOPE_CACHE_MIB", wrong)
    with pytest.raises(ValueError, match=f"FUSIONSCOPE_CACHE_MIB is a whole number of .*, and not '{wrong}'"):
        disk_cache.limit_bytes()


def test_files_are_looked_at_once_a_share_of_the_limit_was_written(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look costs as much as there are files: in a full folder more than to compile a kernel."""
    looks: list[int] = []
    monkeypatch.setattr(cpp_compiler, "make_room_below_limit", lambda entries, keep: looks.append(len(list(entries))))
    for number in range(4):
        cpp_compiler.load_library(kernel(f"kernel_{number}").source)
    (library, *_) = cache.glob("*.so")
    assert looks == []
    monkeypatch.setattr(disk_cache, "MIB", disk_cache.Entry.of(library, disk_cache.digest_file(library)).bytes * 40)
    monkeypatch.setenv("FUSIONSCOPE_CACHE_MIB", "1")
    for number in range(4, 8):
        cpp_compiler.load_library(kernel(f"kernel_{number}").source)
    assert looks == [5, 8]


def test_what_a_stopped_compiler_left_goes_after_a_while(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "MIB", disk_cache.BLOCK)
    monkeypatch.setenv("FUSIONSCOPE_CACHE_MIB", "1")
    left, underway = cache / "tmpleft", cache / "tmpunderway"
    for folder in (left, underway):
        folder.mkdir(parents=True, mode=0o700)
    os.utime(left, (0, 0))
    cpp_compiler.load_library(kernel("next").source)
    assert not left.exists() and underway.exists()


def test_a_directory_that_others_can_write_to_is_not_used(cache: Path) -> None:
    assert disk_cache.cache_directory("cpp") == cache
    cache.chmod(0o777)
    assert disk_cache.cache_directory("cpp") != cache


def test_a_full_disk_is_left_for_another_folder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        if path.is_relative_to(cache):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        disk_cache.write_whole(path, content)

    monkeypatch.setattr(cpp_compiler, "write_whole", full)
    assert cpp_compiler.load_library('extern "C" int seven() { return 7; }').seven() == 7


_IN_A_FOLDER_OF_ITS_OWN = """
    import os, sys
    from compiler.runtime.cpp.compiler import load_library
    from compiler.runtime.disk_cache import temporary_directory

    assert load_library('extern "C" int seven() { return 7; }').seven() == 7
    folder = temporary_directory("cpp")
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    assert list(folder.glob("*.so"))
    print(folder)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX only")
def test_a_folder_for_one_process_goes_with_it(tmp_path: Path) -> None:
    (tmp_path / "cpp").mkdir()
    (tmp_path / "cpp").chmod(0o777)  # others could write there, so it is not used
    environment = os.environ | {"FUSIONSCOPE_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(_IN_A_FOLDER_OF_ITS_OWN)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() and not Path(ran.stdout.strip()).exists()


def test_missing_compiler_is_named_with_its_remedy(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    cpp_compiler.compiler.cache_clear()
    cpp_compiler.machine.cache_clear()
    with pytest.raises(CompilerMissing, match="no-such-compiler"):
        compile_kernels([kernel("two")])
    cpp_compiler.compiler.cache_clear()
    cpp_compiler.machine.cache_clear()


def test_refused_kernel_says_why(cache: Path) -> None:
    with pytest.raises(CompilationFailed, match="no_such_name"):
        compile_kernels([kernel("refused", "out[0] = no_such_name;")])
    assert not list(cache.glob("*.so"))


def test_many_kernels_come_from_few_libraries(cache: Path) -> None:
    functions = compile_kernels([kernel(f"kernel_{n}", f"out[0] = x[0] + {n}.0f;") for n in range(20)])
    out = torch.zeros(1)
    for n in range(20):
        functions[f"kernel_{n}"](torch.ones(1), out)
        assert out.item() == n + 1
    assert len(list(cache.glob("*.so"))) <= 20 // cpp_library.KERNELS_OF_ONE_UNIT


def test_a_kernel_refuses_what_is_no_tensor_and_another_number_of_arguments(cache: Path) -> None:
    run = compile_kernels([kernel("strict")])["strict"]
    with pytest.raises(TypeError, match="no tensor"):
        run(torch.ones(1), "out")
    with pytest.raises(TypeError, match="2 arguments, not 1"):
        run(torch.ones(1))


def test_sizes_reach_a_kernel_whole(cache: Path) -> None:
    source = """#include "fusionscope.h"
extern "C" void sizes(int64_t* out, int64_t a, int64_t b) { out[0] = a; out[1] = b; }"""
    sized = (Symbol("a", 8), Symbol("b", 8))
    made = RenderedKernel("sizes", "cpp", source, ("out",), (), {"parallel": "no"}, sizes=sized)
    out, run = torch.zeros(2, dtype=torch.int64), compile_kernels([made])["sizes"]
    run(out, 2**40 + 1, -7)
    assert out.tolist() == [2**40 + 1, -7]
    with pytest.raises(TypeError):
        run(out, 1, "many")


def test_kernels_of_very_many_tensors_are_called_too(cache: Path) -> None:
    count = 3 * MOST_ARGUMENTS
    names = [f"x_{n}" for n in range(count)]
    declared = ", ".join(f"float* {name}" for name in names)
    body = " ".join(f"{name}[0] = {n};" for n, name in enumerate(names))
    source = f'#include "fusionscope.h"\nextern "C" void wide({declared}) {{ {body} }}'
    made = RenderedKernel("wide", "cpp", source, tuple(names), (), {"parallel": "no"})
    tensors = [torch.full((1,), -1.0) for _ in names]
    compile_kernels([made])["wide"](*tensors)
    assert [tensor.item() for tensor in tensors] == list(range(count))


def test_without_the_launcher_kernels_run_as_well(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "launcher_library", lambda: None)
    assert value_of(kernel("slowly")) == 2.0


_IN_A_CHILD = """
    import os, sys, torch
    from compiler.runtime.cpp.library import compile_kernels
    from compiler.codegen.rendered import RenderedKernel
    source = '''#include "fusionscope.h"
    extern "C" int omp_get_num_threads();
    extern "C" void threads(int64_t* out) {
        #pragma omp parallel
        #pragma omp single
        out[0] = omp_get_num_threads();
    }'''
    made = RenderedKernel("threads", "cpp", source, ("out",), (), {"parallel": "x"})
    child = os.fork()
    if child:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    run, out = compile_kernels([made])["threads"], torch.zeros(1, dtype=torch.int64)
    for wanted in (2, 1, 2):
        torch.set_num_threads(wanted)
        run(out)
        assert out.item() == wanted, (out, wanted)
    torch.randn(500, 500) @ torch.randn(500, 500)
    maps = {line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line or "libomp" in line}
    assert len(maps) == 1, maps
"""


@pytest.mark.skipif(not hasattr(os, "fork") or not Path("/proc/self/maps").exists(), reason="Linux only")
def test_forked_child_runs_on_torch_own_threads(cache: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_IN_A_CHILD)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
