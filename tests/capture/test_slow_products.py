"""Products that a CPU has no instructions for are predicted, and replaced where only their values are needed."""

from __future__ import annotations

import math

import pytest
import torch

from compiler.capture import slow_products
from compiler.capture.slow_products import products_in_float32
from compiler.options import Options
from compiler.pipeline import explore

SNIPPET = """
import torch

@torch.compile
def f(x, w, b):
    return torch.relu(torch.addmm(b, x, w)) * 2

f(*(torch.randn(shape).to(torch.bfloat16) for shape in ((256, 1024), (1024, 1024), (1024,))))
"""


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_are_those_of_float32_rounded_once(dtype: torch.dtype) -> None:
    x, w, b = torch.randn(8, 16).to(dtype), torch.randn(16, 4).to(dtype), torch.randn(4).to(dtype)
    with products_in_float32():
        got = [x @ w, torch.addmm(b, x, w), torch.bmm(x[None], w[None]), torch.baddbmm(b, x[None], w[None])]
        out = torch.empty(8, 4, dtype=dtype)
        torch.mm(x, w, out=out)
    expected = (x.float() @ w.float()).to(dtype)
    biased = (x.float() @ w.float() + b.float()).to(dtype)
    assert {result.dtype for result in got} == {dtype}
    tolerance = torch.finfo(dtype).eps
    for result, right in zip([*got, out], [expected, biased, expected[None], biased[None], expected], strict=True):
        torch.testing.assert_close(result, right, rtol=tolerance, atol=tolerance)


def test_nothing_else_is_changed() -> None:
    x = torch.randn(8, 8)
    with products_in_float32(wanted=False):
        assert torch.equal(x @ x, torch.mm(x, x))
    with products_in_float32():
        assert (x.double() @ x.double()).dtype == torch.float64
        assert torch.equal(x.bfloat16() + 1, (x.bfloat16() + 1))


def test_a_graph_with_slow_products_is_checked_and_says_why_it_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_products, "_per_second", lambda dtype, threads: 1e6)
    monkeypatch.setattr(slow_products, "_CERTAINLY_QUICK", 1000)
    report = explore(SNIPPET, Options(max_seconds=100))
    assert report.status == "ok"
    notes = " ".join(note.message for note in report.notes)
    assert f"a call would spend about {256 * 1024 * 1024 / 1e6:.0f} s" in notes
    assert "Eager and compiled were not timed" in notes
    assert "Gradients" not in notes  # there are none
    assert report.timing is None
    assert report.summary.kernels is not None
    assert report.summary.compiled_error is not None
    assert report.summary.compiled_error < 2e-2  # bfloat16 keeps 8 bits


@pytest.mark.parametrize(("seconds", "rate"), [(0.01, math.inf), (1.0, 8 * 2048 * 1024)])
def test_a_dtype_is_slow_beside_float32_only(monkeypatch: pytest.MonkeyPatch, seconds: float, rate: float) -> None:
    """A busy machine makes all products slow alike."""
    monkeypatch.setattr(slow_products, "_probe_seconds", {torch.bfloat16: seconds, torch.float32: 0.009}.__getitem__)
    assert slow_products._per_second.__wrapped__(torch.bfloat16, 1) == pytest.approx(rate)


def test_products_that_are_quick_enough_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_products, "_per_second", lambda dtype, threads: 1e15)
    monkeypatch.setattr(slow_products, "_CERTAINLY_QUICK", 1000)
    report = explore(SNIPPET, Options(produce=("capture",)))
    assert not any("float32 and rounded" in note.message for note in report.notes)
