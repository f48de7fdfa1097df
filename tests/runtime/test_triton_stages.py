"""What is left out when a kernel is compiled leaves its binary as it is, or as quick."""

from __future__ import annotations

import re
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from triton._C.libtriton import llvm

from compiler.accelerators import without
from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.triton.render import render_triton
from compiler.devices import device_for
from compiler.runtime.triton import cache as triton_cache
from compiler.runtime.triton import offline as triton_offline
from compiler.runtime.triton import passes as triton_passes
from tests.codegen.triton import groups
from tests.codegen.triton.groups import Case
from tests.compile_program import compile_program, compiled_for_gpus

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


def leave_all_to_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_passes, "KNOWN", ())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_binaries_are_those_of_tritons_own_way(case: Case, binary: partial[bytes]) -> None:
    kernel = render_triton(case.group, case.storage, device_for("sm_90"))
    ours = binary(kernel, case.storage, "ours")
    with without("assembler_early"):
        assert binary(kernel, case.storage, "triton's") == ours


def test_products_go_without_llvms_passes_and_have_as_many_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gated(x: Tensor, gate: Tensor, up: Tensor) -> Tensor:
        return F.silu(x @ gate) * (x @ up)

    compilation = compile_program(gated, *(torch.ones(256, 256, dtype=B) for _ in range(3)))
    levels: list[object] = []
    optimize = llvm.optimize_module
    monkeypatch.setattr(llvm, "optimize_module", lambda *given: (levels.append(given[1]), optimize(*given))[1])

    def instructions(name: str) -> int:
        monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path / name))
        (result,) = compiled_for_gpus(compilation)
        return len(re.findall(r"^\s+[^\s./@][^;]*;$", result.ptx, re.MULTILINE))

    ours = instructions("ours")
    leave_all_to_triton(monkeypatch)
    by_triton = instructions("triton's")
    assert levels == [llvm.OPTIMIZE_O0, llvm.OPTIMIZE_O3]
    assert by_triton > 100
    assert ours <= 1.05 * by_triton


@pytest.mark.parametrize(
    ("libraries", "gains_nothing"),
    [
        (["__nv_expf.ll"], True),
        (["__nv_expf.ll", "__nv_logf.ll"], False),
        (["libdevice.10.bc"], False),
    ],
)
def test_a_product_whose_functions_would_branch_keeps_llvms_passes(libraries: list[str], gains_nothing: bool) -> None:
    options = SimpleNamespace(maxnreg=None, extern_libs=tuple((name, f"/there/{name}") for name in libraries))
    operators = {"tt.dot", "tt.extern_elementwise", "scf.for"}
    assert triton_passes.gains_nothing_from_llvm(operators, options) == gains_nothing
    assert triton_passes.gains_nothing_from_llvm(operators - {"tt.extern_elementwise"}, options)
    assert not triton_passes.gains_nothing_from_llvm(operators - {"tt.dot"}, options)


def test_one_threads_level_is_not_anothers() -> None:
    """Another thread's kernel, which may be none of ours, is compiled as it asks."""
    levels: list[object] = []
    by_triton, llvm.optimize_module = llvm.optimize_module, lambda _, level: levels.append(level)
    try:
        with triton_passes.levels_for_threads(), triton_passes.without_llvms_passes():
            llvm.optimize_module(None, llvm.OPTIMIZE_O3)
            other = threading.Thread(target=llvm.optimize_module, args=(None, llvm.OPTIMIZE_O3))
            other.start()
            other.join()
        llvm.optimize_module(None, llvm.OPTIMIZE_O3)
    finally:
        llvm.optimize_module = by_triton
    assert levels == [llvm.OPTIMIZE_O0, llvm.OPTIMIZE_O3, llvm.OPTIMIZE_O3]
