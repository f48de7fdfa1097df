"""Times that a GPU is said to have taken: true ones depend on who else uses it and the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compiler.replay.inputs import Call
from compiler.replay.price import Times
from compiler.replay.recorder import CudaRecorder


def tell(told: Times, monkeypatch: pytest.MonkeyPatch) -> list[Times]:
    """Calls are watched by the device's own events, as ever, and decided by `told`. What was truly measured is added to
    the list, as soon as it is asked for."""
    measured: list[Times] = []
    timed = CudaRecorder.timed

    def say(recorder: CudaRecorder, call: Call, inputs: list[Any]) -> tuple[list[Any], Callable[[], Times | None]]:
        outputs, times = timed(recorder, call, inputs)

        def known() -> Times | None:
            if (true := times()) is None:
                return None
            measured.append(true)
            return told

        return outputs, known

    monkeypatch.setattr(CudaRecorder, "timed", say)
    return measured
