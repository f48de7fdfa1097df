"""Triton's kernels on disk: whole or not at all, within a bound, whoever else writes there."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from triton import knobs

from compiler.codegen.rendered import RenderedKernel
from compiler.runtime import disk_cache
from compiler.runtime.triton import cache as triton_cache
from compiler.runtime.triton import compile as triton_compile
from compiler.runtime.triton.cache import KernelCache, through_cache
from tests.compile_program import compile_program, compiled_for_gpus

FILES = {"k.ttir": b"module {}", "k.ptx": b".version 8.8", "k.cubin": b"\x7fELF" + bytes(5000), "k.json": b"{}"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path))
    return tmp_path / "triton"


def store(key: str, files: dict[str, bytes] = FILES) -> KernelCache:
    """As Triton stores what it compiled."""
    manager = KernelCache(key)
    manager.put_group("k.json", {name: manager.put(content, name) for name, content in files.items()})
    return manager


def found(key: str) -> dict[str, bytes] | None:
    group = KernelCache(key).get_group("k.json")
    return None if group is None else {name: Path(path).read_bytes() for name, path in group.items()}


def test_what_was_stored_is_found_whole(root: Path) -> None:
    assert found("KEY") is None
    store("KEY")
    assert found("KEY") == FILES
    assert KernelCache("KEY").get_file("k.ptx") == str(root / "KEY" / "k.ptx")


DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "cut short": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "garbage": lambda content: random.Random(0).randbytes(len(content)),
    "one bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "gone": lambda content: None,
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_no_damaged_file_is_ever_found(root: Path, kind: str) -> None:
    names = [path.name for path in Path(store("KEY").cache_dir).iterdir()]
    assert len(names) == 2 * (len(FILES) + 1)
    for name in names:
        path = Path(store("KEY").cache_dir) / name
        damaged = DAMAGE[kind](path.read_bytes())
        path.unlink() if damaged is None else path.write_bytes(damaged)
        assert found("KEY") is None, name
        assert name not in FILES or KernelCache("KEY").get_file(name) is None
    store("KEY")
    assert found("KEY") == FILES


def test_a_damaged_kernel_is_compiled_again_and_comes_out_the_same(root: Path) -> None:
    compilation = compile_program(lambda x: torch.sin(x) + 1, torch.empty(1000))
    (first,) = compiled_for_gpus(compilation)
    (ptx,) = root.glob("*/*.ptx")
    written = ptx.stat().st_mtime_ns
    assert compiled_for_gpus(compilation)[0].ptx == first.ptx and ptx.stat().st_mtime_ns == written
    ptx.write_text(first.ptx.replace("add.f32", "sub.f32"))
    assert compiled_for_gpus(compilation)[0].ptx == first.ptx == ptx.read_text()


def test_what_was_not_used_for_longest_makes_room(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "MIB", 64 * disk_cache.BLOCK)
    monkeypatch.setenv("FUSIONSCOPE_CACHE_MIB", "1")
    most = 0
    for number in range(20):
        store(f"KEY{number}")
        assert found("KEY0") == FILES  # used again and again
        most = max(most, sum(disk_cache.Entry.of(path).bytes for path in root.iterdir()))
        for path in (*root.glob("KEY*"), *root.glob("KEY*/*")):
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    assert most <= disk_cache.limit_bytes()
    kept = {path.name for path in root.glob("KEY*")}
    assert {"KEY0", "KEY19"} <= kept and len(kept) < 10 and "KEY1" not in kept


def _use(seed: int, seconds: float, faults: Any) -> None:
    """One of several processes: stores and finds kernels, of which there is never room for all."""
    chosen, end = random.Random(seed), time.monotonic() + seconds
    hits = 0
    while not hits or time.monotonic() < end:
        key = f"KEY{chosen.randrange(12)}"
        content = {name: key.encode() + b"." + content for name, content in FILES.items()}
        try:
            known = found(key)
        except FileNotFoundError:
            continue  # another process made room after the look at it
        if known is None:
            store(key, content)
        elif known != content:
            faults.put(f"{key} is not what was stored")
        else:
            hits += 1
    faults.put(hits)


def test_processes_that_store_find_and_make_room_at_once_never_find_a_part(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_cache, "MIB", 100 * disk_cache.BLOCK)
    monkeypatch.setenv("FUSIONSCOPE_CACHE_MIB", "1")
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    processes = [context.Process(target=_use, args=(seed, 1.0, told)) for seed in range(4)]
    for process in processes:
        process.start()
    said = [told.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert all(isinstance(hits, int) and hits > 0 for hits in said), said
    assert sum(disk_cache.Entry.of(path).bytes for path in root.iterdir()) <= disk_cache.limit_bytes() * 5 // 4


def test_a_full_disk_is_left_for_another_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_folder = disk_cache._replace_in_folder

    def full(path: Path, content: bytes) -> None:
        if path.is_relative_to(root):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        in_folder(path, content)

    monkeypatch.setattr(disk_cache, "_replace_in_folder", full)
    group = store("a").get_group("k.json")
    assert group is not None and {name: Path(path).read_bytes() for name, path in group.items()} == FILES
    assert found("a") is None, "no other process finds what has no room"


def test_it_is_in_force_for_our_kernels_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert knobs.cache.manager_class is None
    assert through_cache(lambda: knobs.cache.manager_class) is KernelCache
    assert knobs.cache.manager_class is None
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "triton.runtime.cache:FileCacheManager")
    assert through_cache(lambda: knobs.cache.manager_class) is not KernelCache


def test_what_is_launched_is_compiled_without_what_readers_want(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wants_lines() -> bool:
        return not knobs.compilation.disable_line_info

    assert through_cache(wants_lines) and not through_cache(wants_lines, is_launched=True) and wants_lines()
    assert "TRITON_DISABLE_LINE_INFO" not in os.environ
    through_cache(lambda: store("KEY"), is_launched=True)
    assert through_cache(lambda: found("KEY")) is None  # it has no text
    monkeypatch.setenv("TRITON_DISABLE_LINE_INFO", "0")
    assert through_cache(wants_lines, is_launched=True)


def test_the_first_form_of_what_is_launched_is_not_kept(root: Path) -> None:
    with_source = FILES | {"k.source": b"module {}"}
    through_cache(lambda: store("KEY", with_source), is_launched=True)
    assert through_cache(lambda: found("KEY"), is_launched=True) == FILES
    assert not list(root.rglob("*.source*"))
    through_cache(lambda: store("KEY", with_source))
    assert through_cache(lambda: found("KEY")) == with_source


def test_who_wants_other_settings_waits() -> None:
    inside, ended = threading.Event(), threading.Event()

    def launch() -> bool:
        inside.set()
        ended.wait(300)
        return bool(knobs.compilation.disable_line_info)

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(through_cache, launch, is_launched=True)
        assert inside.wait(300)
        reader = pool.submit(through_cache, lambda: knobs.compilation.disable_line_info)
        assert pool.submit(through_cache, lambda: True, is_launched=True).result(300)  # which wants the same
        assert not reader.done()
        ended.set()
        assert first.result(300) and not reader.result(300)
    assert knobs.cache.manager_class is None


def test_what_cannot_be_loaded_is_compiled_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a file is gone between the look at it and its reading."""
    through_cache(lambda: store("KEY"), is_launched=True)
    looks: list[dict[str, str] | None] = []

    class Function:
        def warmup(self, *_: Any, **__: Any) -> Any:
            looks.append(KernelCache("KEY").get_group("k.json"))
            if len(looks) == 1:
                raise RuntimeError("device kernel image is invalid")
            # One of two programs that share their memory, which is left to Triton.
            return SimpleNamespace(
                run=None, n_regs=8, n_spills=0, metadata=SimpleNamespace(num_warps=1, shared=0, num_ctas=2)
            )

    function = Function()
    monkeypatch.setattr(triton_compile, "shared_function", lambda kernel: function)
    monkeypatch.setattr(torch.cuda, "device", lambda device: monkeypatch.context())
    kernel = RenderedKernel("k", "triton", "", ("x",), (), {"XBLOCK": 64, "num_warps": 1, "num_stages": 1})
    assert triton_compile.compiled_kernel(kernel, (torch.float32,), 0) is not None
    assert looks[0] is not None and looks[1] is None
    assert through_cache(lambda: found("KEY"), is_launched=True) == FILES
    assert not getattr(triton_cache._in_this_thread, "compiles_anew", False)
