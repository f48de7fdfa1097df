"""A product and what is fused into it, from snippet to report: in steps on the CPU, in one kernel for the GPU."""

from __future__ import annotations

from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.why import why

SOURCE = """
import torch
@torch.compile
def f(x, w, b, v):
    y = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))
    return y @ v, torch.relu(x @ v[:48])
f(torch.randn(64, 48), torch.randn(96, 48), torch.randn(96), torch.randn(96, 40))
"""


def test_a_report_has_the_kernel_of_the_product_checked_and_why() -> None:
    report = explore(SOURCE, Options(device="cpu", target="sm_90", timing=Timing(min_runs=3, max_seconds=0.1)))
    assert report.status == "ok", report.error
    assert report.summary.compiled_error is not None and report.summary.compiled_error < 1e-6
    fused = [kernel for kernel in report.graphs[0].kernels if kernel.levels and kernel.levels.plan == "product"]
    assert len(fused) >= 2
    for kernel in fused:
        (triton,) = (artifact for artifact in kernel.also if artifact.language == "triton")
        assert triton.spills == 0 and triton.max_error is not None and triton.max_error < 1e-6
        assert kernel.measured_us is not None and kernel.levels is not None
        # On the CPU the library's result passes through memory, and is not among the bytes of the kernel.
        assert any(step.call for step in kernel.steps) and kernel.gb_per_s is None
        assert all(load.loaded_bytes >= load.memory_bytes for load in kernel.levels.loads)
    (answer,) = why(report, "mm_1", "relu")
    assert (answer.verdict, answer.reason) == ("fused", "fused.epilogue")
