"""An assembler that is started early leaves a kernel's binary as it is."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch

from compiler.accelerators import without
from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.triton.render import render_triton
from compiler.devices import device_for
from compiler.runtime.triton import cache as triton_cache
from compiler.runtime.triton import offline as triton_offline
from tests.codegen.triton import groups
from tests.codegen.triton.groups import Case

B = torch.bfloat16
CASES = [
    groups.transposed(1000, 1000, B),
    groups.softmax(4096, 40000, B),
    groups.reduction("argmax", 4096, 32000, 1),
    groups.random(1 << 20, "randn"),
]


@pytest.fixture
def binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> partial[bytes]:
    monkeypatch.setattr(triton_cache, "through_cache", partial(triton_cache.through_cache, is_launched=True))
    return partial(_binary, tmp_path, monkeypatch)


def _binary(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kernel: RenderedKernel, storage: dict[str, torch.dtype], name: str
) -> bytes:
    """What is launched, compiled anew."""
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(folder / name))
    made: bytes = triton_offline._compile(kernel, storage, "sm_90").asm["cubin"]
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_binaries_are_those_of_tritons_own_way(case: Case, binary: partial[bytes]) -> None:
    kernel = render_triton(case.group, case.storage, device_for("sm_90"))
    ours = binary(kernel, case.storage, "ours")
    with without("assembler_early"):
        assert binary(kernel, case.storage, "triton's") == ours


def test_what_is_compiled_to_be_read_leaves_no_kernel_without_a_binary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path))
    case = groups.softmax(4096, 4096, B)
    kernel = render_triton(case.group, case.storage, device_for("sm_90"))
    assert triton_offline.compile_offline(kernel, case.storage).registers
    assert triton_offline._compile(kernel, case.storage, "sm_90").asm["cubin"].startswith(b"\x7fELF")
