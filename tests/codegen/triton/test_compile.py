"""One function is compiled once, and Triton's own launcher is made for none that does without: on a pretended
compiler."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from triton.runtime import driver

from compiler.codegen.rendered import RenderedKernel
from compiler.runtime.triton import compile as triton_compile
from compiler.runtime.triton.compile import compiled_kernel


def kernel(name: str = "kernel_a", **config: int) -> RenderedKernel:
    whole: dict[str, int | str | tuple[int, ...]] = {"XBLOCK": 128, "num_warps": 4, "num_stages": 1, **config}
    return RenderedKernel(name, "triton", "", ("x", "out"), (), whole)


class Function:
    """A pretended function of Triton's: keeps the dtypes that it is compiled for."""

    def __init__(self) -> None:
        self.compiled: list[tuple[Any, ...]] = []

    def warmup(self, *arguments: Any, **_: Any) -> Any:
        self.compiled.append(arguments)
        return Compiled()


class Compiled:
    """What it makes of them: a kernel that takes note when Triton is asked for what launches it, which Triton 3.6 has a
    C compiler make."""

    name, kernel, n_regs, n_spills = "kernel", b"cubin", 16, 2

    def __init__(self) -> None:
        self.metadata = SimpleNamespace(num_warps=4, shared=512, num_ctas=1)
        self.made_launcher = False

    @property
    def run(self) -> None:
        self.made_launcher = True


class Utilities:
    """A pretended driver of Triton's: it loads programs of up to `most_threads` threads."""

    most_threads = 1024

    def get_device_properties(self, _: int) -> dict[str, int]:
        return {"max_shared_mem": 1024}

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        assert (name, kernel, shared) == (Compiled.name, Compiled.kernel, 512)
        return 0x1, 0x1234, 32, 0, self.most_threads


@pytest.fixture
def function(monkeypatch: pytest.MonkeyPatch) -> Function:
    """What every kernel's function is."""
    made = Function()
    monkeypatch.setattr(triton_compile, "shared_function", lambda kernel: made)
    monkeypatch.setattr(torch.cuda, "device", lambda device: monkeypatch.context())
    monkeypatch.setattr(driver, "_active", SimpleNamespace(utils=Utilities()))
    return made


FLOATS = (torch.float32, torch.float32)


def test_kernels_of_one_function_are_compiled_once(function: Function) -> None:
    first = compiled_kernel(kernel(), FLOATS, 0)
    assert compiled_kernel(kernel("kernel_b"), FLOATS, 0) is first
    assert function.compiled == [FLOATS]


@pytest.mark.parametrize(
    ("other", "pointers", "device"),
    [
        (kernel(XBLOCK=256), FLOATS, 0),
        (kernel(num_warps=8), FLOATS, 0),
        (kernel(), (torch.float16, torch.float32), 0),
        (kernel(), FLOATS, 1),
    ],
    ids=["block size", "warps", "dtype", "device"],
)
def test_whatever_else_differs_is_compiled(
    function: Function, other: RenderedKernel, pointers: tuple[torch.dtype, ...], device: int
) -> None:
    compiled_kernel(kernel(), FLOATS, 0)
    compiled_kernel(other, pointers, device)
    assert function.compiled == [FLOATS, pointers]


def test_two_threads_that_want_one_kernel_compile_it_once(function: Function) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: compiled_kernel(kernel(), FLOATS, 0), range(8)))
    assert len({id(found) for found in made}) == 1 and len(function.compiled) == 1


@pytest.mark.parametrize(("spills", "compiled"), [(0, [80]), (12, [80, None])], ids=["kept", "taken back"])
def test_a_limit_of_registers_that_makes_a_kernel_spill_is_taken_back(
    function: Function, monkeypatch: pytest.MonkeyPatch, spills: int, compiled: list[int | None]
) -> None:
    """Where Triton's own way of assembling was taken, which knows the limit alone."""
    found = {None: (96, 0), 80: (80, spills)}
    seen: list[int | None] = []

    def warmup(*_: Any, maxnreg: int | None = None, **__: Any) -> Any:
        seen.append(maxnreg)
        return Compiled()

    monkeypatch.setattr(function, "warmup", warmup)
    monkeypatch.setattr(Utilities, "load_binary", lambda *_: (0x1, 0x1234, *found[seen[-1]], 1024))
    assert compiled_kernel(kernel(maxnreg=80), FLOATS, 0).registers == found[compiled[-1]][0]
    assert seen == compiled


def test_a_failure_is_raised_each_time_and_not_remembered(function: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError("no such instruction")

    with monkeypatch.context() as patch:
        patch.setattr(function, "warmup", fail)
        for _ in range(2):
            with pytest.raises(ValueError, match="no such instruction"):
                compiled_kernel(kernel(), FLOATS, 0)
    assert compiled_kernel(kernel(), FLOATS, 0) is not None


def test_a_kernel_is_loaded_without_a_launcher_of_tritons(function: Function) -> None:
    loaded = compiled_kernel(kernel(), FLOATS, 0)
    assert (loaded.function, loaded.registers, loaded.spills) == (0x1234, 32, 0)
    assert (loaded.threads, loaded.shared_bytes) == (128, 512)
    assert not loaded.compiled.made_launcher


@pytest.mark.parametrize(
    ("special", "most_threads"), [({"launch_cooperative_grid": 1}, 1024), ({"shared": 2048}, 1024), ({}, 64)],
    ids=["not plain", "too much shared memory", "too many threads"],
)  # fmt: skip
def test_what_is_not_plain_or_does_not_fit_is_left_to_triton(
    function: Function, monkeypatch: pytest.MonkeyPatch, special: dict[str, int], most_threads: int
) -> None:
    made = Compiled()
    vars(made.metadata).update(special)
    monkeypatch.setattr(function, "warmup", lambda *_, **__: made)
    monkeypatch.setattr(Utilities, "most_threads", most_threads)
    loaded = compiled_kernel(kernel(), FLOATS, 0)
    assert made.made_launcher and (loaded.function, loaded.registers, loaded.spills) == (None, 16, 2)
