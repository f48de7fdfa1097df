"""The small library's functions are the same instructions as libdevice's, and a kernel that needs more is linked with
libdevice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.runtime import triton_offline
from compiler.runtime.triton_library import FILE, ONE_INSTRUCTION, library_options

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
OURS = {"extern_libs": {"libdevice": str(FILE)}}


def source(call: str) -> str:
    return TEXT.format(call=call)


def instructions(call: str) -> list[str]:
    """The instructions of a kernel's PTX, without what computes addresses, in the order of their text."""
    config = {"XBLOCK": 128, "num_warps": 4, "num_stages": 1}
    kernel = RenderedKernel("kernel", "triton", source(call), ("x", "y", "out"), (), config)
    result = triton_offline.compile_offline(kernel, dict.fromkeys(("x", "y", "out"), torch.float32), "sm_90")
    assert result.error is None, result.error
    return sorted(re.findall(r"^\s+((?:\w+\.)+f(?:32|64)\S*)\s", result.ptx, re.MULTILINE))


@pytest.mark.parametrize("name", sorted(ONE_INSTRUCTION))
def test_a_function_is_the_same_instructions_as_libdevices(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path))
    call = f"libdevice.{name}(x{', y' if name == 'fast_dividef' else ''})"
    assert library_options(source(call), FLOATS) == OURS
    by_ours = instructions(call)
    monkeypatch.setattr(triton_offline, "library_options", lambda *_: {})
    assert by_ours == instructions(call) and by_ours


@pytest.mark.parametrize(
    ("call", "pointers", "expected"),
    [
        ("libdevice.rsqrt(x) + libdevice.exp2(y)", FLOATS, OURS),
        ("x + y", FLOATS, {}),
        ("libdevice.rsqrt(x) + libdevice.exp(y)", FLOATS, {}),
        ("libdevice.rsqrt(tl.floor(x))", FLOATS, {}),
        ("libdevice.rsqrt(x.to(tl.float64))", FLOATS, {}),
        ("libdevice.rsqrt(x)", (torch.float64, torch.float32, torch.float32), {}),
    ],
    ids=["two of one instruction", "none", "one of many", "one of Triton's own", "float64", "pointers to float64"],
)
def test_only_a_kernel_that_needs_no_more_is_linked_with_ours(
    call: str, pointers: tuple[torch.dtype, ...], expected: dict[str, Any]
) -> None:
    assert library_options(source(call), pointers) == expected
