"""Kernels compile for GPUs that are not there: without spills, with vector loads, each instruction with its line."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.triton.render import render_triton
from compiler.devices import device_for
from compiler.runtime.triton.offline import OfflineResult, compile_offline
from tests.codegen.triton import groups
from tests.codegen.triton.groups import Case

F, H, B, D = torch.float32, torch.float16, torch.bfloat16, torch.float64
LONG, BOOL = torch.int64, torch.bool

CASES = [
    groups.pointwise(F, 4096, 4096),
    groups.pointwise(H, 4096, 4096),
    groups.pointwise(D, 512, 512),
    groups.pointwise(LONG, 777, 33),
    groups.pointwise(torch.uint8, 512, 512),
    groups.transposed(4096, 4096),
    groups.transposed(1000, 1000, B),
    groups.softmax(4096, 4096),
    groups.softmax(4096, 16384),
    groups.softmax(4096, 40000, B),
    groups.softmax(4096, 50),
    groups.softmax(64, 1000, D),
    groups.layer_norm(4096, 768),
    groups.layer_norm(4096, 8192),
    groups.layer_norm(16, 100000),
    groups.reduction("sum", 4096, 4096, 0),
    groups.reduction("sum", 8192, 8192, -1),
    groups.reduction("argmax", 4096, 32000, 1),
    groups.reduction("argmin", 4096, 4096, -1),
    groups.reduction("max", 512, 512, 1, B),
    groups.reduction("prod", 512, 512, 1, D),
    groups.reduction("any", 4096, 4096, -1, BOOL),
    groups.reduction("all", 512, 512, 1, BOOL),
    groups.reduction("sum", 4096, 4096, 0, LONG),
    groups.reduced_constant(1280, 2),
    groups.reduced_constant(1280, 9000),
    groups.concatenated(100000, 57),
    groups.embedding(50000, 768, 4096),
    groups.random(1 << 20, "randn"),
]


def compiled(case: Case, target: str) -> tuple[RenderedKernel, OfflineResult]:
    kernel = render_triton(case.group, case.storage, device_for(target))
    result = compile_offline(kernel, case.storage, target)
    assert result.error is None, result.error
    return kernel, result


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_kernel_compiles_for_an_h200_without_spills(case: Case) -> None:
    kernel, result = compiled(case, "sm_90")
    assert result.spills == 0
    assert result.registers is not None
    assert result.registers * int(str(kernel.config["num_warps"])) * 32 <= 65536
    assert result.shared_bytes is not None
    known = {line for line, _ in kernel.lines}
    assert known & {line for _, line in result.ptx_lines}


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_89", "sm_100"])
def test_kernels_compile_for_other_gpus(target: str) -> None:
    for case in (groups.softmax(64, 1000), groups.pointwise(B, 512, 512), groups.reduction("max", 4096, 64, 0)):
        assert compiled(case, target)[1].spills == 0


def test_loads_and_stores_are_16_bytes_wide() -> None:
    for case in (
        groups.pointwise(F, 4096, 4096),
        groups.pointwise(B, 4096, 4096),
        groups.softmax(4096, 4096),
        groups.layer_norm(4096, 8192),
    ):
        _, result = compiled(case, "sm_90")
        widths = re.findall(r"(?:ld|st)\.global[\w.:]*?\.v(\d)\.b32", result.ptx)
        assert widths, case.name
        assert set(widths) == {"4"}, case.name


def test_a_transpose_is_coalesced_on_both_sides() -> None:
    case = groups.transposed(4096, 4096)
    kernel, result = compiled(case, "sm_90")
    assert {"XBLOCK", "YBLOCK"} <= set(kernel.config)
    assert set(re.findall(r"(?:ld|st)\.global[\w.:]*?\.v(\d)\.b32", result.ptx)) == {"4"}
    assert result.shared_bytes


def test_an_error_is_a_sentence() -> None:
    case = groups.pointwise(F, 64, 64)
    kernel = render_triton(case.group, case.storage, device_for("sm_90"))
    broken = replace(kernel, source=kernel.source.replace("tl.store(", "tl.no_such_thing("))
    result = compile_offline(broken, case.storage)
    assert result.error is not None
    assert "no_such_thing" in result.error


def test_offsets_beyond_31_bits_are_64_bits_wide() -> None:
    for case in (
        groups.pointwise(B, 65536, 65536),
        groups.transposed(65536, 65536, B),
        groups.softmax(65536, 40000),
        groups.reduction("sum", 65536, 65536, 0),
        groups.reduction("argmax", 65536, 65536, -1),
    ):
        kernel, _ = compiled(case, "sm_90")
        assert ".to(tl.int64)" in kernel.source, case.name


def test_lines_name_the_nodes_that_they_compute() -> None:
    case = groups.layer_norm(64, 768)
    kernel = render_triton(case.group, case.storage, device_for("sm_90"))
    text = kernel.source.splitlines()
    nodes_of = {text[line - 1].strip(): nodes for line, nodes in kernel.lines}
    assert nodes_of["tl.store(norm_ptr + (768 * x0 + r0), norm, r_mask)"] == ("norm",)
    assert {node for nodes in nodes_of.values() for node in nodes} == {"mean", "rstd", "norm"}
    assert not any(text.startswith(("#", "def ")) for text in nodes_of)
