"""Copies of conjugates, which torch makes of an operand."""

from __future__ import annotations

import pytest
import torch

import compiler.backend  # noqa: F401 - it makes the backend known
from compiler.options import Options, Timing
from compiler.pipeline import explore

LAYOUTS = ("w", "w.t().contiguous().t()", "w[:, ::2].repeat(1, 2)", "w[:1].expand(6, 6)")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_conjugate_is_copied_once_as_in_eager_mode(layout: str) -> None:
    """Numbers lie as in eager mode, whose kernels are as many."""
    report = explore(
        f"import torch\nz, w = (torch.randn(6, 6, dtype=torch.complex64) for _ in range(2))\nw = {layout}\n"
        "@torch.compile\ndef f(z, w):\n    return z * w.conj()\nf(z, w)\n",
        Options(device="cpu", timing=Timing(enabled=False)),
    )
    assert report.status == "ok", report.error
    assert report.summary.kernels == report.summary.eager_kernels
    assert all(node.name in {n for loop in report.graphs[0].loops for n in loop.origins} or node.op != "call_function"
               for node in report.graphs[0].aten)  # fmt: skip


def test_who_reads_the_conjugate_itself_has_it() -> None:
    z, w = (torch.randn(6, 6, dtype=torch.complex64) for _ in range(2))

    def function(z: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
        conjugate = w.conj()
        return [z * conjugate, conjugate @ z, conjugate]

    for ours, expected in zip(torch.compile(function, backend="fusionscope")(z, w), function(z, w), strict=True):
        assert ours.is_conj() == expected.is_conj() and ours.stride() == expected.stride()
        torch.testing.assert_close(ours, expected)


def test_a_conjugate_of_repeated_numbers_is_one_of_its_own() -> None:
    """Eager mode has a view, whose numbers share memory; the result of a library call cannot lie so."""
    z, w = torch.randn(6, 6, dtype=torch.complex64), torch.randn(1, 6, dtype=torch.complex64).expand(6, 6)

    def function(z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return z @ w.conj()

    torch.testing.assert_close(torch.compile(function, backend="fusionscope")(z, w), function(z, w))
