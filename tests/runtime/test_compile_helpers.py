"""Kernels that other processes compile: found by this one as they are, and compiled here where no helper does it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import compiler as nvidia

from compiler.runtime.triton import compile_helpers, preparing
from compiler.runtime.triton import stages as triton_stages
from compiler.runtime.triton.cache import KernelCache, through_cache
from compiler.runtime.triton.compile_helper import Job
from compiler.runtime.triton.compile_helpers import Helpers, let_helper_compile, start_helpers_for
from compiler.runtime.triton.preparing import prepare_all
from compiler.runtime.triton.text import execute

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def {name}(x, y, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(y + place, tl.load(x + place) {operator} {number})
"""


class PretendedDriver:
    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


@pytest.fixture(autouse=True)
def _a_gpu_and_an_empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(triton.runtime.driver, "_active", PretendedDriver())


@pytest.fixture(scope="module")
def two() -> Iterator[Helpers]:
    made = Helpers(2)
    yield made
    for helper in made.all:
        helper.let_go()
    assert made.process.wait(timeout=300) == 0  # they end when nobody asks any more


@pytest.fixture
def helped(two: Helpers) -> Iterator[None]:
    """This thread has a helper."""
    with two.all[0].asked(lambda: True) as is_there:
        assert is_there
        yield


@pytest.fixture
def compiles_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gets an entry whenever this process itself assembles a kernel."""
    seen: list[str] = []

    class Seen(triton_stages.WaitingAssembler):
        def __init__(self, command: Callable[[str, str], list[str]]) -> None:
            seen.append("assembled")
            super().__init__(command)

    monkeypatch.setattr(triton_stages, "WaitingAssembler", Seen)
    return seen


def compiled(name: str, number: float, operator: str = "+", block: int = 128) -> Any:
    function = execute(KERNEL.format(name=name, operator=operator, number=number), f"{name}.py", name)[name]

    def warm() -> Any:
        let_helper_compile(function, 0)
        return function.warmup(torch.float32, torch.bfloat16, BLOCK=block, grid=(1,), num_warps=2)

    return through_cache(warm, is_launched=True)


def test_a_helper_compiles_what_this_process_would(two: Helpers, compiles_here: list[str], tmp_path: Path) -> None:
    with two.all[0].asked(lambda: True):
        first, second = compiled("one", 1.5), compiled("another", 2.5)
    assert not compiles_here
    assert len(list((tmp_path / "triton").glob("*-launched"))) == 2
    (tmp_path / "triton").rename(tmp_path / "elsewhere")
    alone = compiled("one", 1.5)
    assert compiles_here
    assert (first.hash, first.kernel, first.metadata) == (alone.hash, alone.kernel, alone.metadata)
    assert second.kernel != first.kernel


@pytest.mark.usefixtures("helped")
def test_what_does_not_compile_says_so_here(compiles_here: list[str]) -> None:
    with pytest.raises(triton.CompilationError):
        compiled("wrong", 1.0, block=100)
    compiles_here.clear()
    assert compiled("right", 1.0).kernel
    assert not compiles_here


def test_many_kernels_are_shared_by_helpers(
    two: Helpers, compiles_here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for helper in two.all:
        with helper.asked(lambda: True) as is_there:
            assert is_there
    monkeypatch.setattr(compile_helpers, "_helpers", two)
    monkeypatch.setattr(preparing, "MOST_THREADS", 1)
    made: list[Any] = []

    def prepare(number: int) -> None:
        made.append(compiled(f"kernel{number}", number).kernel)

    prepare_all([partial(prepare, number) for number in range(8)])
    assert len(set(made)) == 8
    assert len(compiles_here) <= 2  # what this thread had begun with before a helper was there


def test_an_assembler_that_is_named_later_changes_no_key_and_helpers_that_end_leave_kernels_to_this_process(
    compiles_here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TorchInductor names torch's own assembler, when Triton has long asked another one for its version."""
    assert nvidia.get_ptxas_version(90)
    another = tmp_path / "ptxas"
    another.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo another\nexec {nvidia.get_ptxas(90).path} "$@"\n')
    another.chmod(0o755)
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(another))
    helpers = Helpers(1)
    monkeypatch.setattr(compile_helpers, "_helpers", helpers)
    with helpers.all[0].asked(lambda: True):
        assert compiled("one", 1.0).kernel and not compiles_here
        (own,) = (name for name in os.listdir("/proc") if name.isdigit() and parent_of(name) == helpers.process.pid)
        os.kill(int(own), signal.SIGKILL)
        assert compiled("another", 2.0).kernel and compiles_here
    with helpers.all[0].asked(lambda: True):
        assert compiled("third", 3.0).kernel
    helpers.process.wait(timeout=300)
    assert not compile_helpers.helpers()


def test_a_copy_of_this_process_has_none_and_can_start_its_own(
    two: Helpers, compiles_here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_helpers, "_helpers", two)
    monkeypatch.setenv(compile_helpers.SETTING, "1")

    def start() -> None:
        assert not compile_helpers.helpers()
        start_helpers_for(500)
        assert len(compile_helpers.helpers()) == 1
        compile_helpers.end_helpers()

    with compile_helpers._lock:  # as another thread may have it
        copy = multiprocessing.get_context("fork").Process(target=start)
        copy.start()
        copy.join(timeout=300)
    assert copy.exitcode == 0
    with two.all[0].asked(lambda: True):
        assert compiled("one", 1.0).kernel and not compiles_here


def test_a_helper_does_without_torch(tmp_path: Path) -> None:
    """To read it takes longer than all else before a helper begins."""
    text = KERNEL.format(name="one", operator="+", number=1.5)
    job = Job(
        text,
        "one.py",
        "one",
        {"x": "*fp32", "y": "*bf16", "BLOCK": "constexpr"},
        {(2,): 128},
        {},
        {},
        ("cuda", 90, 32),
        dict(os.environ),
        "this Triton",
        "this assembler",
    )
    program = (
        "import pickle, sys; sys.modules['torch'] = None; from compiler.runtime.triton.compile_helper import done; "
        "assert done(pickle.load(sys.stdin.buffer))"
    )
    subprocess.run([sys.executable, "-c", program], input=pickle.dumps(job), check=True, timeout=300)
    assert len(list((tmp_path / "triton").glob("*-launched"))) == 1


def parent_of(process: str) -> int | None:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended meanwhile
        return None


@pytest.mark.usefixtures("helped")
def test_a_cache_of_the_user_is_not_left_to_helpers(compiles_here: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class TheirCache(KernelCache):
        pass

    monkeypatch.setitem(vars(knobs.cache), "manager_class", TheirCache)
    assert compiled("one", 1.0).kernel and compiles_here


def test_a_large_graph_has_as_many_helpers_as_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class Counted:
        def __init__(self, count: int) -> None:
            started.append(count)
            self.all = [object()]
            self.has_ended = False

    monkeypatch.setattr(compile_helpers, "_helpers", None)
    monkeypatch.setattr(compile_helpers, "Helpers", Counted)
    monkeypatch.setattr(compile_helpers, "usable_cores", lambda: 8)
    start_helpers_for(10)
    assert not started
    for _ in range(2):
        start_helpers_for(500)
    assert started == [7]
    monkeypatch.setattr(compile_helpers, "_helpers", None)
    monkeypatch.setattr(compile_helpers, "usable_cores", lambda: 2)
    start_helpers_for(500)
    assert started == [7]
    monkeypatch.setenv(compile_helpers.SETTING, "3")
    start_helpers_for(500)
    assert started == [7, 3]
    monkeypatch.setattr(compile_helpers, "_helpers", None)
    monkeypatch.setenv(compile_helpers.SETTING, "0")
    start_helpers_for(500)
    assert started == [7, 3]
    monkeypatch.setenv(compile_helpers.SETTING, "all")
    with pytest.raises(ValueError, match="not 'all'"):
        start_helpers_for(500)
