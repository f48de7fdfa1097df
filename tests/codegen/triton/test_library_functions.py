"""What is taken out of libdevice is the same instructions, and a kernel that needs more is linked with libdevice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from compiler.codegen.rendered import RenderedKernel
from compiler.runtime.triton import compile as triton_compile
from compiler.runtime.triton import offline as triton_offline
from compiler.runtime.triton.device_functions import ARGUMENTS, function_files, function_texts
from compiler.runtime.triton.launch import TritonLauncher
from compiler.runtime.triton.library import library_options
from compiler.runtime.triton.source import forget_kernels
from tests.compile_program import compile_program

TEXT = """
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, XBLOCK: tl.constexpr):
    x_index = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    x = tl.load(x_ptr + x_index)
    y = tl.load(y_ptr + x_index)
    tl.store(out_ptr + x_index, {call})
"""
FLOATS = (torch.float32,) * 3


def source(call: str) -> str:
    return TEXT.format(call=call)


def instructions(call: str) -> list[str]:
    """The instructions of a kernel's PTX, without what computes addresses, in the order of their text."""
    config: dict[str, int | str | tuple[int, ...]] = {"XBLOCK": 128, "num_warps": 4, "num_stages": 1}
    kernel = RenderedKernel("kernel", "triton", source(call), ("x", "y", "out"), (), config)
    result = triton_offline.compile_offline(kernel, dict.fromkeys(("x", "y", "out"), torch.float32), "sm_90")
    assert result.error is None, result.error
    return sorted(re.findall(r"^\s+(?:@\S+\s+)?((?:\w+\.)+f(?:32|64)\S*)\s", result.ptx, re.MULTILINE))


CALLS = {
    symbol: f"libdevice.{symbol.removeprefix('__nv_').removesuffix('f')}({'x, y' if count > 1 else 'x'})"
    for symbol, count in ARGUMENTS.items()
} | {"__nv_fast_fdividef": "libdevice.fast_dividef(x, y)"}


def linked_with(kernel_source: str) -> list[str]:
    """The names of the files of a kernel's libraries."""
    libraries = library_options(kernel_source, FLOATS).get("extern_libs", {})
    assert not libraries or "libdevice" in libraries  # or Triton would add it
    return [Path(path).name for path in libraries.values()]


@pytest.mark.parametrize("symbol", ["__nv_erff", "__nv_expf", "__nv_fast_fdividef", "__nv_logf", "__nv_sqrtf"])
def test_a_function_is_the_same_instructions_as_libdevices(
    symbol: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path))
    assert linked_with(source(CALLS[symbol])) == [f"{symbol}.ll"]
    by_ours = instructions(CALLS[symbol])
    monkeypatch.setattr(triton_offline, "library_options", lambda *_: {})
    assert by_ours == instructions(CALLS[symbol]) and by_ours


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_the_way_of_large_numbers_is_in_a_kernel_once(name: str) -> None:
    config: dict[str, int | str | tuple[int, ...]] = {"XBLOCK": 1024, "num_warps": 4, "num_stages": 1}
    kernel = RenderedKernel("kernel", "triton", source(f"libdevice.{name}(x) + y"), ("x", "y", "out"), (), config)
    ptx = triton_offline.compile_offline(kernel, dict.fromkeys(("x", "y", "out"), torch.float32), "sm_90").ptx
    assert len(re.findall(r"call\.uni .*rare_", ptx)) == 8  # one for each element of a thread
    assert ptx.count(".local .align") == 1  # the function works on an array


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("libdevice.rsqrt(x) + libdevice.exp(y)", ["__nv_expf.ll", "__nv_rsqrtf.ll"]),
        ("x + y", []),
        ("libdevice.rsqrt(tl.floor(x))", []),
        ("libdevice.rsqrt(tl.rand4x(0, x_index)[0])", []),
        ("libdevice.j0(x)", []),
        ("libdevice.rsqrt(x.to(tl.float64))", []),
    ],
    ids=["two", "none", "one of Triton's own", "random numbers", "one that is not taken out", "float64"],
)
def test_a_kernel_is_linked_with_what_it_is_known_to_need(call: str, expected: list[str]) -> None:
    assert linked_with(source(call)) == expected


def test_what_triton_needs_no_library_for_is_assembled_without() -> None:
    call = "libdevice.rint(tl.fma(x, x, tl.max_constancy(y, [2])))"
    assert linked_with(source(call)) == ["__nv_rintf.ll"]
    assert "fma.rn.f32" in instructions(call)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: torch.softmax(x, -1), (512, 131072)),
        (lambda x: torch.zeros(8, device=x.device).index_reduce(0, (x[0] > 0).long(), x[0].exp(), "amax"), (4, 64)),
        (lambda x: torch.nn.functional.silu(x).cumsum(1), (64, 1000)),
        (lambda x: torch.nn.functional.dropout(x.exp(), 0.1, True), (64, 1000)),
    ],
    ids=["a cluster", "atomics", "a scan", "draws"],
)
def test_no_kernel_of_float32_is_linked_with_all_of_libdevice(function: Any, shape: tuple[int, ...]) -> None:
    """Which takes as long to read as all the rest."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        compilation = compile_program(function, torch.empty(shape))
    texts = [kernel.source for kernel in compilation.triton.values()]
    assert any("libdevice." in text.partition("@triton.jit")[2] for text in texts)
    assert all(linked_with(text) or "libdevice." not in text.partition("@triton.jit")[2] for text in texts)


def test_whatever_a_file_calls_it_holds_or_declares() -> None:
    for name, text in function_texts().items():
        known = set(re.findall(r"^(?:declare|define) [^@]*@([\w.]+)\(", text, re.MULTILINE))
        assert set(re.findall(r"call [^@\n]*@([\w.]+)\(", text)) <= known, name


def test_a_kernel_of_float64_is_linked_with_libdevice() -> None:
    assert library_options(source("libdevice.rsqrt(x)"), (torch.float64, *FLOATS[1:])) == {}


def test_a_damaged_file_is_written_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path))
    (file,) = function_files(["__nv_expf"])
    whole = file.read_text()
    file.write_text(whole[:-10])
    assert function_files(["__nv_expf"]) == [file] and file.read_text() == whole


VALUES = 1 << 28


def launcher(call: str) -> TritonLauncher:
    """A kernel that is compiled anew, and ready."""
    config: dict[str, int | str | tuple[int, ...]] = {"XBLOCK": 1024, "num_warps": 4, "num_stages": 1}
    kernel = RenderedKernel("kernel", "triton", source(call), ("x", "y", "out"), (), config, grid=VALUES // 1024)
    forget_kernels()
    made = TritonLauncher(kernel)
    made.prepare_for(FLOATS, 0)
    return made


@pytest.mark.gpu
@pytest.mark.parametrize("symbol", sorted(CALLS))
def test_a_function_gives_what_libdevices_gives(symbol: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For every float32; for two arguments, with a second one that comes from the bits of the first."""
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path))
    ours = launcher(CALLS[symbol])
    monkeypatch.setattr(triton_compile, "library_options", lambda *_: {})
    libdevices = launcher(CALLS[symbol])
    for start in range(-(2**31), 2**31, VALUES):
        bits = torch.arange(start, start + VALUES, dtype=torch.int32, device="cuda")
        x, y = bits.view(torch.float32), (bits * 1664525 + 1013904223).view(torch.float32)
        results = torch.empty_like(x), torch.empty_like(x)
        for launch, out in zip((ours, libdevices), results, strict=True):
            launch(x, y, out)
            out.masked_fill_(out.isnan(), 0.5)
        assert torch.equal(*(out.view(torch.int32) for out in results))
