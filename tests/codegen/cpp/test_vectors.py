"""What a compiler makes vector instructions of: loops in which GCC found something that it knows for single numbers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.compile import build
from compiler.runtime.cpp.compiler import INCLUDE, compiler, flags, is_gcc
from tests.compile_program import compile_program

PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "a mask from memory": lambda x, m: torch.where(m, x, 0.0),
    "a mask times a number": lambda x, m: m * x,
    "a comparison times a number": lambda x, m: (x > 0.5) * x,
    "dropout": lambda x, m: F.dropout(F.gelu(x), 0.1, True),
    "pairs": lambda x, m: torch.stack((x, -x), -1) + 1.0,
    "any of a row": lambda x, m: (x > 0.5).any(-1),
    "the place of the largest": lambda x, m: x.argmax(-1),
    "running sums": lambda x, m: x.float().cumsum(-1),
    "logarithms with a least value": lambda x, m: x.float().log().clamp(min=-100.0),
    "a quotient of gamma functions": lambda x, m: torch.lgamma(x.float()) - torch.lgamma(x.float() + 1.5),
    "masks joined": lambda x, m: torch.where(m & (x > 0.5), x, -x),
}


def test_masks_and_random_numbers_leave_a_loop_in_vectors(tmp_path: Path) -> None:
    if not is_gcc():
        pytest.skip("only GCC tells of its loops in this way")
    x, mask = torch.randn(64, 192).bfloat16(), torch.ones(64, 192, dtype=torch.bool)
    kernels = [compile_program(one, x, mask, target="cpu").cpp for one in PROGRAMS.values()]
    text = "".join(f"namespace n{n} {{\n{k.source}}}\n" for n, of_one in enumerate(kernels) for k in of_one.values())
    headers = "".join(f'#include "{name}.h"\n' for name in ("fusionscope", "gamma", "trigonometry"))
    (tmp_path / "kernels.cpp").write_text(headers + text)
    command = [compiler(), *flags(), "-fopt-info-vec-optimized", "-c", f"-I{INCLUDE}", "kernels.cpp"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    found = re.findall(r"^kernels\.cpp:(\d+):\d+: optimized: loop vectorized", said, re.MULTILINE)
    made = [int(line) for line in found]
    lines = (tmp_path / "kernels.cpp").read_text().splitlines()
    starts = [number for number, line in enumerate(lines, start=1) if "omp" in line and "simd" in line]
    assert len(starts) == len(PROGRAMS)
    # GCC names a line of the loop, which ends with the first brace that stands as far left as its pragma.
    ends = [lines.index(lines[start - 1].partition("#")[0] + "}", start) for start in starts]
    assert all(any(start < line <= end for line in made) for start, end in zip(starts, ends, strict=True))


def windows(image: Tensor, row: Tensor) -> tuple[Tensor, ...]:
    pooled = F.avg_pool2d(image, 3, 1, 1), F.max_pool2d(image, 3, 2, 1), F.max_pool2d(image, 2)
    return *pooled, F.max_pool2d(image, 5, 1, 2), F.avg_pool1d(row, 9, 1, 4), row.unfold(1, 6, 6).amax(-1)


def test_vectors_go_along_what_windows_give() -> None:
    inputs = [torch.randn(2, 3, 20, 38), torch.randn(3, 600)]
    compilation = compile_program(windows, *inputs, target="cpu")
    torch.testing.assert_close(tuple(build(compilation).executable.call(inputs)), windows(*inputs))
    assert all("vectors along x" in kernel.source for kernel in compilation.cpp.values())


def test_the_last_points_of_a_short_loop_are_a_vector_again_unless_there_are_gaps_between() -> None:
    rows = torch.randn(9, 33)
    programs: dict[Callable[[Tensor], Tensor], bool] = {
        lambda x: torch.sin(x[:, 2:] * 2) * 3: True,
        lambda x: x[:, ::2] * 3: False,
    }
    for function, takes_twice in programs.items():
        compilation = compile_program(function, rows, target="cpu")
        assert any("_first" in kernel.source for kernel in compilation.cpp.values()) is takes_twice
        torch.testing.assert_close(build(compilation).executable.call([rows])[0], function(rows))


@pytest.mark.parametrize("step", [1, 2])
def test_a_dilated_window_is_written_out_and_its_middle_needs_no_conditions(step: int) -> None:
    rows = torch.randn(6, 200)
    pool = torch.nn.MaxPool1d(3, step, padding=1, dilation=2)
    compilation = compile_program(pool, rows, target="cpu")
    (found,) = build(compilation).executable.call([rows])
    assert torch.equal(found, pool(rows))
    (kernel,) = compilation.cpp.values()
    assert "r0" not in kernel.source
    (middle,) = re.findall(r"#pragma omp simd\n( *)for .*\n((?:\1 .*\n)+)", kernel.source)
    assert "?" not in middle[1]


def test_clamped_numbers_become_bytes_by_way_of_32_bits() -> None:
    x = torch.tensor([-1e30, -128.6, -3.5, 0.4, 127.5, 300.0, 1e30])

    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.clamp(-128, 127).to(torch.int8), x.clamp(0.0, 255.0).to(torch.uint8)

    compilation = compile_program(both, x, target="cpu")
    assert all(map(torch.equal, build(compilation).executable.call([x]), both(x)))
    assert not any("int64_t(clamp" in kernel.source for kernel in compilation.cpp.values())


def test_numbers_are_drawn_together_before_the_loop() -> None:
    x, mask = torch.randn(8, 4096), torch.ones(1, dtype=torch.bool)
    (kernel,) = compile_program(PROGRAMS["dropout"], x, mask, target="cpu").cpp.values()
    draws = "fs::draw_compared(seeds_ptr[0], x0_start, x0_end - x0_start"
    assert draws in kernel.source and "fs::rand" not in kernel.source


def test_short_loops_inside_of_a_vector_loop_store_each_point_once() -> None:
    x = torch.randn(3, 76)

    def beside_each_other(x: Tensor) -> tuple[Tensor, ...]:
        rows = torch.stack((x.exp(), x, -x, x.abs()), -1)
        shuffled = F.pixel_shuffle(x[:, :64].tanh().reshape(4, 3, 16), 2)
        return torch.stack((x, -x), -1) + 1.0, rows[..., :3] * 2.0, rows.reshape(3, -1) + 0.5, shuffled

    compilation = compile_program(beside_each_other, x, target="cpu")
    found, wanted = build(compilation).executable.call([x]), beside_each_other(x)
    torch.testing.assert_close(tuple(found), wanted)
