"""An assembler that is started early does what Triton's own does, and none is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import compiler as nvidia

from compiler.runtime.triton import stages as triton_stages
from compiler.runtime.triton.assembler import WaitingAssembler, without_limit
from compiler.runtime.triton.cache import through_cache
from compiler.runtime.triton.stages import assembler_started_early, with_our_stages
from tests.compile_program import compile_program, compiled_for_gpus

PTX = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 place) {{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [place];
{stores}    ret;
}}
"""


def ptx(stores: int) -> str:
    return PTX.format(stores="".join(f"    st.global.b64 [%rd1+{8 * n}], %rd1;\n" for n in range(stores)))


def arguments(source: str, binary: str) -> list[str]:
    return [nvidia.get_ptxas(90).path, "--gpu-name=sm_90a", source, "-o", binary]


def assembled_at_once(text: str, folder: Path) -> bytes:
    source, binary = folder / "k.ptx", folder / "k.cubin"
    source.write_text(text)
    subprocess.run(arguments(str(source), str(binary)), check=True)
    return binary.read_bytes()


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file, and no process."""
    folder, processes = tmp_path / "left", []
    start = WaitingAssembler.__init__

    def remembered(self: WaitingAssembler, command: Any) -> None:
        start(self, command)
        processes.append(self._process)

    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(WaitingAssembler, "__init__", remembered)
    yield
    assert not list(folder.iterdir()) and all(one.poll() is not None for one in processes)


@pytest.mark.parametrize("seconds", [0.0, 0.3])
@pytest.mark.parametrize("stores", [1, 2400])
def test_it_is_assembled_as_at_once(stores: int, seconds: float, tmp_path: Path) -> None:
    """Whether it has come to open its input or not; a pipe holds less than the longer text."""
    waiting = WaitingAssembler(arguments)
    time.sleep(seconds)
    binary = waiting.assemble(ptx(stores))
    waiting.close()
    assert binary == assembled_at_once(ptx(stores), tmp_path)


@pytest.mark.parametrize("text", ["", "no assembly at all", ptx(1).replace("st.global", "st.nowhere")])
def test_a_text_that_is_refused_gives_nothing(text: str) -> None:
    waiting = WaitingAssembler(arguments)
    binary = waiting.assemble(text)
    waiting.close()
    assert binary is None or not text


def test_one_that_cannot_be_started_is_left_to_triton() -> None:
    with pytest.raises(OSError):
        WaitingAssembler(lambda *_: ["/no/such/assembler"])


def test_it_is_told_what_triton_tells_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[list[str]] = []

    def run(command: list[str], **_: Any) -> None:
        told.append(command)
        Path(command[-1]).write_bytes(b"")

    monkeypatch.setattr(nvidia.subprocess, "run", run)
    backend = nvidia.CUDABackend(GPUTarget("cuda", 90, 32))
    for given in ({}, {"enable_fp_fusion": False}, {"ptx_options": "--maxrregcount 40"}):
        for without_lines in (False, True):
            monkeypatch.setitem(vars(knobs.compilation), "disable_line_info", without_lines)
            options = backend.parse_options({"arch": "sm90", **given})
            backend.make_cubin("", {}, options, 90)
            *before, _source, _o, _binary = told.pop()
            assert triton_stages._arguments(backend, options) == before


VOLATILE = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 place)
.reqntid 128
.maxnreg {limit}
{{
    .reg .b64 %rd<2>;
    .reg .b32 %r<{count}>;
    ld.param.u64 %rd1, [place];
{loads}{stores}    ret;
}}
"""


def holding(count: int, limit: int) -> str:
    """A kernel that holds so many numbers at one time."""
    loads = "".join(f"    ld.volatile.global.b32 %r{n}, [%rd1+{4 * n}];\n" for n in range(count))
    stores = "".join(f"    st.volatile.global.b32 [%rd1+{4 * n}], %r{n};\n" for n in range(count))
    return VOLATILE.format(limit=limit, count=count, loads=loads, stores=stores)


@pytest.mark.parametrize(
    ("numbers", "limit", "is_limited"), [(40, 80, False), (78, 88, True), (120, 80, False)],
    ids=["fewer by itself", "without a spill", "spilled"],
)  # fmt: skip
def test_a_limit_of_registers_is_for_kernels_that_take_more_and_spill_nothing_for_it(
    numbers: int, limit: int, is_limited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[bool] = []
    assemble = WaitingAssembler.assemble

    def count_and_assemble(self: WaitingAssembler, text: str) -> Any:
        started.append(True)
        return assemble(self, text)

    monkeypatch.setattr(WaitingAssembler, "assemble", count_and_assemble)

    def assembled(text: str, **given: int) -> bytes:
        made: bytes = stages_of(lambda *_: pytest.fail("Triton was to assemble it"), **given)["cubin"](text, {})
        return made

    text = holding(numbers, limit)
    with assembler_started_early():
        free, limited = assembled(without_limit(text)), assembled(text)
        assert free != limited
        started.clear()
        assert assembled(text, maxnreg=limit) == (limited if is_limited else free)
        assert len(started) == (1 if numbers < limit - 10 else 2)


def stages_of(make: Callable[..., Any], **given: Any) -> dict[str, Any]:
    backend = SimpleNamespace(target=GPUTarget("cuda", 90, 32))
    options = SimpleNamespace(enable_fp_fusion=True, ptx_options=None, **given)
    stages = {"ptx": None, "cubin": make}
    with_our_stages(backend, stages, options, None, 90)
    return stages


def test_triton_says_what_is_wrong_with_a_text() -> None:
    with assembler_started_early():
        stages = stages_of(lambda text, _: f"Triton's word on {text}")
        assert stages["cubin"]("no assembly at all", {}) == "Triton's word on no assembly at all"


def test_a_kernel_that_fails_before_it_is_assembled_leaves_nothing() -> None:
    with pytest.raises(ZeroDivisionError), assembler_started_early():
        stages_of(lambda *_: b"")
        raise ZeroDivisionError


def test_kernels_of_others_are_assembled_as_ever() -> None:
    def make(*_: Any) -> bytes:
        return b""

    assert stages_of(make)["cubin"] is make
    assert with_our_stages() == ("", "")  # and would come out the same


def test_a_kernel_comes_out_as_from_triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through all of Triton, with its hook and without."""
    compilation = compile_program(lambda x: torch.sin(x) + 1, torch.empty(1000))

    def compiled(name: str) -> bytes:
        monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path / name))
        compiled_for_gpus(compilation)
        (binary,) = (tmp_path / name).glob("triton/*/*.cubin")
        return binary.read_bytes()

    early = compiled("early")
    monkeypatch.setattr(triton_stages, "_OF_VERSION", {})
    assert compiled("at once") == early


def test_the_hook_of_a_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def hook() -> Any:
        return knobs.runtime.add_stages_inspection_hook

    def own(*_: Any) -> tuple[str, str]:
        return "own", "own"

    assert through_cache(hook) is with_our_stages and hook() is None
    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", own)
    assert through_cache(hook) is own is hook()


def test_a_copy_of_the_process_keeps_no_assembler_waiting(tmp_path: Path) -> None:
    waiting = WaitingAssembler(arguments)
    time.sleep(0.3)  # until it reads the pipe
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        assert waiting.assemble(ptx(1)) == assembled_at_once(ptx(1), tmp_path)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        waiting.close()


def test_it_ends_with_the_process_that_started_it() -> None:
    script = """
import os, signal, time
from compiler.runtime.triton.assembler import WaitingAssembler
from triton.backends.nvidia.compiler import get_ptxas
waiting = WaitingAssembler(lambda source, binary: [get_ptxas(90).path, "--gpu-name=sm_90a", source, "-o", binary])
time.sleep(0.3)
print(waiting._process.pid, waiting._folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stdout
    number, folder = re.fullmatch(r"(\d+) (.*)\n", said).groups()  # type: ignore[union-attr]
    status = Path("/proc", number, "stat")
    deadline = time.monotonic() + 120
    while status.exists() and ") Z " not in status.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    ended = not status.exists() or ") Z " in status.read_text()
    subprocess.run(["rm", "-r", folder], check=True)
    assert ended
