"""The assembler keeps the loops of products, and only those."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import torch
from torch import Tensor

from compiler.runtime.triton import offline as triton_offline
from compiler.runtime.triton.stages import AS_IT_IS, with_loops_kept
from tests.compile_program import compile_program, compiled_for_gpus

PRODUCT = "\twgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%r1};\n"
OLDER_PRODUCT = "\tmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r1};\n"


def loop(label: str, body: str, way_back: str = "@%p1 bra") -> str:
    return (
        f"${label}:                              // =>This Inner Loop Header: Depth=1\n{body}\t{way_back} ${label};\n"
    )


def kept(label: str, body: str, way_back: str = "@%p1 bra") -> str:
    first, rest = loop(label, body, way_back).split("\n", 1)
    return f"{first}\n\t{AS_IT_IS}\n{rest}"


OTHER = loop("L__BB0_9", "\tadd.s32 %r1, %r1, 1;\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (loop("L1", PRODUCT) + OTHER, kept("L1", PRODUCT) + OTHER),
        (OTHER + loop("L1", OLDER_PRODUCT, "bra.uni"), OTHER + kept("L1", OLDER_PRODUCT, "bra.uni")),
        (loop("L1", "\tbra $L2;\n" + loop("L2", PRODUCT)), loop("L1", "\tbra $L2;\n" + kept("L2", PRODUCT))),
        (loop("L1", PRODUCT) + loop("L2", PRODUCT), kept("L1", PRODUCT) + kept("L2", PRODUCT)),
        ("\t@%p1 bra $L1;\n" + PRODUCT + "$L1:\n\tret;\n", "\t@%p1 bra $L1;\n" + PRODUCT + "$L1:\n\tret;\n"),
        (OTHER, OTHER),
    ],
    ids=["one loop of two", "an older product", "the inner of two", "two loops", "no loop", "no product"],
)  # fmt: skip
def test_innermost_loops_of_products_are_kept(text: str, expected: str) -> None:
    assert with_loops_kept(text) == expected


def scaled(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return torch.relu(x @ weight) * scale


def text_for(rows: int, inner: int, columns: int) -> str:
    """The assembler's text of a product of bfloat16 and what follows it."""
    shapes = (rows, inner), (inner, columns), (columns,)
    compilation = compile_program(scaled, *(torch.empty(shape, dtype=torch.bfloat16) for shape in shapes))
    (result,) = compiled_for_gpus(compilation)
    return result.ptx


@pytest.fixture(autouse=True)
def _an_empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path))


def test_the_assembler_does_not_write_out_a_loop_of_twelve_turns(tmp_path: Path) -> None:
    """As every layer of BERT has them: 768 by 64."""
    ours = text_for(512, 768, 768)
    assert ours.count(AS_IT_IS) == 1
    written_out = ours.replace(f"\t{AS_IT_IS}\n", "")
    assert with_loops_kept(written_out) == ours
    assert binary_size(ours, tmp_path) < 0.8 * binary_size(written_out, tmp_path)


@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(512, 256, 768), (16384, 768, 768)], ids=["few turns", "many programs"]
)
def test_what_is_quicker_written_out_may_be(rows: int, inner: int, columns: int) -> None:
    text = text_for(rows, inner, columns)
    assert re.search(r"\bwgmma\.mma_async", text) and AS_IT_IS not in text


def binary_size(ptx: str, folder: Path) -> int:
    assembler = triton_offline._assembler("sm_90")
    assert assembler is not None
    text, binary = folder / "kernel.ptx", folder / "kernel.cubin"
    text.write_text(ptx)
    subprocess.run([assembler, "--gpu-name=sm_90a", str(text), "-o", str(binary)], check=True)
    return binary.stat().st_size
