"""On a GPU whether launches are replayed is decided by times, of calls that check and of calls that measure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.replay.recorder import CudaRecorder

pytestmark = pytest.mark.gpu

# Enough launches for a replay to be worth the thought: a graph of a few is never watched.
TRAINED = """
import torch
w = torch.randn(64, 64, device="cuda")
f = torch.compile(lambda x: (((x @ w).softmax(-1) @ w).softmax(-1) @ w).softmax(-1))
for _ in range(4):
    f(torch.ones(64, 64, device="cuda", requires_grad=True)).sum().backward()
"""


@pytest.mark.parametrize("is_timed", [True, False])
def test_every_timed_call_is_made_in_a_turn(monkeypatch: pytest.MonkeyPatch, is_timed: bool) -> None:
    is_held = False
    timed_within: list[bool] = []
    timed = CudaRecorder.timed

    @contextmanager
    def lease() -> Iterator[None]:
        nonlocal is_held
        is_held = True
        yield
        is_held = False

    def noted(self: CudaRecorder, *arguments: Any) -> Any:
        timed_within.append(is_held)
        return timed(self, *arguments)

    monkeypatch.setattr(CudaRecorder, "timed", noted)
    report = explore(TRAINED, Options(timing=Timing(enabled=is_timed, max_seconds=0.1)), lease=lease)
    assert report.status == "ok", report.error
    assert all(timed_within) and not is_held
    if is_timed:
        assert timed_within, "calls were watched"
