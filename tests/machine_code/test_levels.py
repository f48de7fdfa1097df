"""Kernels from the reader's line down to SASS and back, for each target, and what their instructions say."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.machine_code.cpp import cpp_levels
from compiler.machine_code.of_report import NotCompilable, kernel_to_compile
from compiler.machine_code.triton import compiled_by_triton, disassembled, read_kernel, triton_levels
from compiler.options import KernelToCompile, Options
from compiler.pipeline import explore
from compiler.report import CodeLevel, Kernel, KernelLine, MachineCode, Report
from compiler.runtime.triton.code_texts import MOST_CHARACTERS, SourceFile, of_sass
from compiler.runtime.triton.code_texts import level as cut_level

ROWS = """import torch
def f(x):
    shifted = x - x.amax(-1, keepdim=True)
    weights = shifted.exp()
    return weights / weights.sum(-1, keepdim=True)
f(torch.randn(64, 512))
"""
PRODUCT = """import torch
def f(x, w):
    return torch.relu(x @ w)
f(torch.randn(256, 256).bfloat16(), torch.randn(256, 256).bfloat16())
"""
#: Two sums over different sizes, which share a launch: each is a function of the kernel's source.
PARTS = """import torch
def f(x, y):
    return torch.sin(x).sum(-1), y.abs() / 3
f(torch.randn(10), torch.randn(12))
"""


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    options = Options(device="cpu", produce=("capture", "lower", "schedule", "codegen"))
    return {
        "rows": explore(ROWS, options),
        "product": explore(PRODUCT, options),
        "parts": explore(PARTS, options),
    }


@pytest.fixture(scope="module")
def compiled(reports: dict[str, Report]) -> dict[tuple[str, str], MachineCode]:
    """Each kernel for each target, once."""
    targets = [
        ("rows", "sm_80"),
        ("rows", "sm_90"),
        ("rows", "sm_100"),
        ("rows", "gfx942"),
        ("product", "sm_90"),
        ("parts", "sm_90"),
    ]
    return {(name, target): triton_levels(*asked(reports[name], target)) for name, target in targets}


def asked(report: Report, target: str) -> tuple[str, KernelToCompile]:
    return kernel_to_compile(report, the_kernel(report).name, target=target)


def the_kernel(report: Report) -> Kernel:
    return next(kernel for kernel in report.graphs[0].kernels if kernel.also)


def triton_lines(report: Report) -> list[KernelLine]:
    return next(twin.lines for twin in the_kernel(report).also if twin.language == "triton")


def level(code: MachineCode, name: str) -> CodeLevel:
    return next(level for level in code.levels if level.name == name)


def down(code: CodeLevel, lines: list[KernelLine], user_line: int) -> list[str]:
    """What became of a line of the snippet at that level."""
    own = {line.line for line in lines if user_line in line.user_lines}
    return [code.text.splitlines()[number - 1] for number, source in code.lines if source in own]


@pytest.mark.parametrize("name", ["rows", "product", "parts"])
def test_every_line_of_the_snippet_is_followed_to_every_level_and_back(
    reports: dict[str, Report], compiled: dict[tuple[str, str], MachineCode], name: str
) -> None:
    lines, code = triton_lines(reports[name]), compiled[name, "sm_90"]
    user_lines = {number for line in lines for number in line.user_lines}
    assert user_lines and all(found.lines for found in code.levels)
    for found in code.levels:
        texts = found.text.splitlines()
        assert found.all_lines == len(texts) and found.cut is None
        back = {source for _, source in found.lines}
        assert back <= set(range(1, 1 + len(asked(reports[name], "sm_90")[0].splitlines())))
        for user_line in user_lines:
            assert down(found, lines, user_line), (found.name, user_line)


def test_a_line_leads_to_what_it_computes_and_to_nothing_else(
    reports: dict[str, Report], compiled: dict[tuple[str, str], MachineCode]
) -> None:
    lines, code = triton_lines(reports["rows"]), compiled["rows", "sm_90"]
    for name, instruction in (
        ("ttir", "__nv_expf"),
        ("ttgir", "__nv_expf"),
        ("ptx", "ex2.approx"),
        ("sass", "MUFU.EX2"),
    ):
        text = level(code, name)
        of_exp = down(text, lines, 4)
        assert sum(instruction in line for line in of_exp) == text.text.count(instruction) > 0, name
        assert not any(instruction in line for line in down(text, lines, 3)), name
    # `tl.sum` and `tl.reduce` are functions of Triton's own files: what they do belongs to the line that calls them.
    assert any("SHFL.BFLY" in line for line in down(level(code, "sass"), lines, 5))
    assert any("STG" in line for line in down(level(code, "sass"), lines, 5))


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "gfx942"])
def test_each_target_gives_all_levels_and_figures(compiled: dict[tuple[str, str], MachineCode], target: str) -> None:
    code = compiled["rows", target]
    last = ["amdgcn"] if target == "gfx942" else ["ptx", "sass"]
    assert [found.name for found in code.levels] == ["ttir", "ttgir", "llvm", *last]
    assert code.registers and code.spills == 0 and code.shared_bytes is not None
    assert code.instructions["arithmetic"] > code.instructions["memory"] > 0
    assert code.matrix_instructions == [] and code.instructions["matrix"] == 0
    of_memory = [access for access in code.accesses if access.space == "global"]
    assert {access.is_store for access in of_memory} == {True, False} and all(access.bits for access in of_memory)
    for access in of_memory:
        assert access.instruction in code.levels[-1].text.splitlines()[access.line - 1]
        assert (access.line, access.source_line) in code.levels[-1].lines
    assert (code.occupancy is None) == (target == "gfx942")
    assert any("estimate of 1 / x" in note for note in code.notes) == (target == "gfx942")


def test_a_product_is_on_matrix_units_and_a_row_is_loaded_four_numbers_at_a_time(
    compiled: dict[tuple[str, str], MachineCode],
) -> None:
    product, rows = compiled["product", "sm_90"], compiled["rows", "sm_90"]
    assert product.instructions["matrix"] > 0
    assert all("MMA" in name and "BF16" in name for name in product.matrix_instructions)
    assert product.occupancy is not None and product.occupancy.limited_by == ["shared memory"]
    assert {access.bits for access in rows.accesses if access.space == "global"} == {128}


def test_what_is_shown_is_the_binary_that_triton_itself_makes(
    reports: dict[str, Report], compiled: dict[tuple[str, str], MachineCode]
) -> None:
    """The assembler is given PTX whose `.loc` lines name the kernel's own: that changes no instruction."""
    source, wanted = asked(reports["rows"], "sm_90")
    binary = compiled_by_triton(source, read_kernel(source, wanted, "kernel.py"), "sm_90").asm["cubin"]
    expected = [line for line, _ in of_sass(disassembled(binary)[0], SourceFile("kernel.py"))]
    assert level(compiled["rows", "sm_90"], "sass").text.splitlines() == expected
    assert any("MUFU.EX2" in line for line in expected)


def test_passes_are_those_that_changed_the_kernel(compiled: dict[tuple[str, str], MachineCode]) -> None:
    passes = compiled["product", "sm_90"].passes
    names = [one.name for one in passes]
    assert names.index("convert-triton-to-tritongpu") < names.index("tritongpu-accelerate-matmul")
    pipeline = next(one for one in passes if one.name == "tritongpu-pipeline")
    assert "+" in {line[0] for line in pipeline.diff.splitlines()} and "async_copy" in pipeline.diff
    assert all("loc(" not in one.diff for one in passes)


def test_what_is_no_kernel_of_a_target_is_refused_in_a_sentence(reports: dict[str, Report]) -> None:
    report = reports["rows"]
    name = the_kernel(report).name
    with pytest.raises(KeyError):
        kernel_to_compile(report, "no_such")
    with pytest.raises(NotCompilable, match="not compiled for host"):
        kernel_to_compile(report, name, language="triton", target="host")
    with pytest.raises(NotCompilable, match="There is no target 'sm_99'; there are sm_70"):
        kernel_to_compile(report, name, target="sm_99")
    without = report.model_copy(deep=True)
    without.graphs[0].buffers = []
    with pytest.raises(NotCompilable, match="no buffer"):
        kernel_to_compile(without, name, target="sm_90")
    forged = report.model_copy(deep=True)
    the_kernel(forged).name = "not a name"
    with pytest.raises(NotCompilable, match="does not say how"):
        kernel_to_compile(forged, "not a name", target="sm_90")


USERS_OWN = """import triton
import triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + places, 2 * tl.load(x + places, places < n), places < n)
"""


def test_a_kernel_of_the_users_own_is_compiled_from_its_text() -> None:
    arguments = [{"type": "*fp16", "is_divisible": True}, {"type": "*fp16", "is_divisible": True}, {"type": "i32"}]
    wanted = {"name": "double", "arguments": arguments, "constants": {"BLOCK": 1024}, "launch": {"num_warps": 4}}
    report = explore(USERS_OWN, Options.model_validate({"machine_code": wanted}))
    assert report.status == "ok" and report.machine_code is not None, report.error
    assert report.machine_code.threads == 128
    assert {access.source_line for access in report.machine_code.accesses} == {7}
    wrong = explore(USERS_OWN, Options.model_validate({"machine_code": {**wanted, "constants": {}}}))
    assert wrong.status == "user_error" and wrong.error is not None
    assert "takes 4 arguments beside its constants, not 3." in wrong.error.message


def test_a_kernel_of_the_peer_is_compiled_as_its_text_says() -> None:
    report = explore(
        (Path(__file__).parent / "kernel_of_inductor.txt").read_text(),
        Options.model_validate({"machine_code": {"name": "triton_poi_fused_sin_0", "language": "inductor"}}),
    )
    assert report.status == "ok" and report.machine_code is not None, report.error
    assert [found.name for found in report.machine_code.levels][-1] == "sass"
    assert "by time, on a GPU" in report.machine_code.notes[0]


def test_a_long_level_is_cut_and_says_so() -> None:
    long = cut_level("ptx", ((f"\tadd.f32 %r{number}, %r1, %r2;", 3) for number in range(20_000)))
    assert len(long.text) <= MOST_CHARACTERS and long.all_lines == 20_000
    shown = len(long.text.splitlines())
    assert long.lines == [(number, 3) for number in range(1, shown + 1)]
    assert long.cut is not None and f"Left out: the last {20_000 - shown:,} of 20,000 lines." in long.cut


def test_the_assembly_of_a_cpp_kernel_is_linked_and_its_loops_are_on_vectors(reports: dict[str, Report]) -> None:
    kernel = the_kernel(reports["rows"])
    code = cpp_levels(*kernel_to_compile(reports["rows"], kernel.name))
    (assembly,) = code.levels
    assert assembly.name == "assembly" and not code.notes
    assert {source for _, source in assembly.lines} <= set(range(1, 1 + len(kernel.source.splitlines())))
    instructions = [line for line in assembly.text.splitlines() if line.startswith(" ")]
    assert len(assembly.lines) > 0.9 * len(instructions)
    for user_line in (3, 4, 5):
        assert down(assembly, kernel.lines, user_line), user_line
    assert code.loops and all(loop.packed > loop.scalar and loop.bits >= 128 for loop in code.loops)
    of_loop = {line for loop in code.loops for line in loop.source_lines}
    assert any(line.line in of_loop for line in kernel.lines if line.user_lines == [4])


def test_functions_of_our_headers_lead_to_no_line_of_the_kernel_and_come_last(reports: dict[str, Report]) -> None:
    """objdump reads the first file of DWARF 5 as another one: lines of a header were taken for the kernel's own."""
    kernel = the_kernel(reports["parts"])
    (assembly,) = cpp_levels(*kernel_to_compile(reports["parts"], kernel.name)).levels
    text = assembly.text.splitlines()
    first = text.index("fusionscope_failed_check:") + 1
    assert max(line for line, _ in assembly.lines) < first
    assert {source for _, source in assembly.lines} <= set(range(1, 1 + len(kernel.source.splitlines())))
