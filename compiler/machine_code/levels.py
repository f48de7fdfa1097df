"""The exploration of one kernel: its text in, a report with `machine_code` out, and nothing of a snippet's stages."""

from __future__ import annotations

import platform
from collections.abc import Callable
from time import perf_counter

import torch

from compiler import report as rep
from compiler.environment import compiler_version, triton_version
from compiler.machine_code.cpp import cpp_levels
from compiler.options import KernelToCompile, Options
from compiler.runtime.cpp.compiler import CompilationFailed, CompilerMissing
from compiler.wording import counted

STAGE = "compile"


def explore_kernel(
    source: str, options: Options, wanted: KernelToCompile, on_stage: Callable[[rep.Report], None]
) -> rep.Report:
    """Compile the kernel that `source` holds. Never raises for what is wrong with it; `report.error` says that."""
    report = rep.Report(
        source=source,
        options=options.model_dump(mode="json", exclude_none=True),
        environment=rep.Environment(
            python=platform.python_version(),
            torch=torch.__version__,
            triton=triton_version(),
            target=wanted.target,
            compiler=compiler_version(),
        ),
    )
    started = perf_counter()
    status: rep.StageStatus = "done"
    try:
        report.machine_code = _compiled(source, wanted)
        report.status = "ok"
        report.summary.verdict = in_words(report.machine_code)
    except Exception as failure:  # noqa: BLE001 - whatever stops a compiler is what the report has to tell
        status, report.status = "failed", "user_error"
        report.error = rep.Error(
            type=type(failure).__name__,
            message=f"The kernel {wanted.name} was not compiled for {wanted.target}: {_sentence(failure)}",
            stage=STAGE,
            hint=_hint(wanted),
        )
    report.stages.append(rep.Stage(name=STAGE, ms=round(1e3 * (perf_counter() - started), 3), status=status))
    on_stage(report)
    return report


def _compiled(source: str, wanted: KernelToCompile) -> rep.MachineCode:
    is_for_host = wanted.target == "host"
    if wanted.language == ("triton" if is_for_host else "cpp"):
        raise ValueError("C++ is compiled for the host alone, and Triton for a GPU.")
    if is_for_host:
        return cpp_levels(source, wanted)
    from compiler.machine_code.triton import triton_levels

    return triton_levels(source, wanted)


def _sentence(failure: Exception) -> str:
    """The failure without its listing of the source; a C++ compiler's words whole."""
    if isinstance(failure, CompilationFailed | CompilerMissing):
        return str(failure)
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return (lines[-1] if lines else type(failure).__name__)[:1000]


def _hint(wanted: KernelToCompile) -> str | None:
    if wanted.target.startswith("gfx"):
        return "The kernel was written for NVIDIA's GPUs: parts that only those have cannot be compiled for AMD's."
    return None


def in_words(code: rep.MachineCode) -> str:
    """What came of it, in a sentence."""
    if code.language == "cpp":
        vectors = sum(loop.packed > loop.scalar for loop in code.loops)
        return f"{code.kernel} for this machine: vectors in {vectors} of {len(code.loops)} innermost loops."
    found = [] if code.registers is None else [counted(code.registers, "register")]
    if code.spills is not None:
        found.append(f"{counted(code.spills, 'byte')} spilled" if code.spills else "nothing spilled")
    if code.occupancy is not None:
        limited = f", limited by {' and '.join(code.occupancy.limited_by)}" if code.occupancy.percent < 100 else ""
        found.append(f"{code.occupancy.percent:g} % occupancy{limited}")
    if code.matrix_instructions:
        found.append("on matrix units")
    return f"{code.kernel} for {code.target}: {', '.join(found)}."
