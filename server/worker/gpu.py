"""The worker's GPU as NVIDIA's management library tells of it: how it does, and what slowed it while a job was timed.

A GPU that is hot or short of power lowers its clocks, and times say little of kernels then. A job's own word on that
may be forged, and the worker looks from outside. Without the package nvidia-ml-py (the extra `fusionscope[gpu]`), or
with a driver that does not answer, nothing of it is known.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable
from typing import Any

from compiler.runtime.timing.clocks import SLOWED_BY
from server.wire.messages import GpuHealth, GpuWhileTimed

_LOST = "the GPU is lost: its driver does not reach it any more"


class Gpu:
    """The GPU that CUDA would use first. `library` is the module pynvml, initialised, or one like it."""

    def __init__(self, library: Any) -> None:
        """Raises `library.NVMLError`."""
        self._library = library
        first = (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")[0].strip()
        by_number, by_name = library.nvmlDeviceGetHandleByIndex, library.nvmlDeviceGetHandleByUUID
        self._handle = by_number(int(first)) if first.isdigit() else by_name(first)

    @classmethod
    def found(cls) -> Gpu | None:
        """None where the library or its driver is not there."""
        try:
            library = importlib.import_module("pynvml")
        except ImportError:
            return None
        try:
            library.nvmlInit()
            return cls(library)
        except library.NVMLError:
            return None

    def health(self) -> GpuHealth:
        """Takes a millisecond or two."""
        library, handle = self._library, self._handle
        try:
            memory = library.nvmlDeviceGetMemoryInfo(handle)
        except library.NVMLError as failure:
            is_lost = getattr(failure, "value", None) == library.NVML_ERROR_GPU_IS_LOST
            return GpuHealth(problem=_LOST if is_lost else f"the GPU's driver does not answer: {failure}")
        power = self._asked(library.nvmlDeviceGetPowerUsage)
        busy = self._asked(library.nvmlDeviceGetUtilizationRates)
        kinds = library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, library.NVML_VOLATILE_ECC
        return GpuHealth(
            memory_used_bytes=memory.used,
            memory_total_bytes=memory.total,
            temperature_c=self._asked(library.nvmlDeviceGetTemperature, library.NVML_TEMPERATURE_GPU),
            power_w=None if power is None else power / 1000,
            busy_share=None if busy is None else busy.gpu / 100,
            uncorrected_errors=self._asked(library.nvmlDeviceGetTotalEccErrors, *kinds),
        )

    def look(self, before: GpuWhileTimed | None) -> GpuWhileTimed | None:
        """What `before` has, and what the clocks are now. Nothing is asked but clocks and temperature, of the driver
        alone: it shows in no time that is taken meanwhile."""
        library = self._library
        clock = self._asked(library.nvmlDeviceGetClockInfo, library.NVML_CLOCK_SM)
        bits = self._asked(library.nvmlDeviceGetCurrentClocksThrottleReasons)
        if clock is None or bits is None:
            return before
        slowed = {word for bit, word in SLOWED_BY.items() if bits & bit}
        heat = self._asked(library.nvmlDeviceGetTemperature, library.NVML_TEMPERATURE_GPU)
        if before is None:
            most = self._asked(library.nvmlDeviceGetMaxClockInfo, library.NVML_CLOCK_SM)
            before = GpuWhileTimed(looks=0, sm_mhz_least=clock, sm_mhz_possible=most)
        return GpuWhileTimed(
            looks=before.looks + 1,
            sm_mhz_least=min(before.sm_mhz_least, clock),
            sm_mhz_possible=before.sm_mhz_possible,
            temperature_c_most=max((one for one in (before.temperature_c_most, heat) if one is not None), default=None),
            slowed_by=tuple(word for word in SLOWED_BY.values() if word in {*before.slowed_by, *slowed}),
        )

    def _asked(self, question: Callable[..., Any], *details: Any) -> Any:
        """None where this GPU has no answer to it."""
        with contextlib.suppress(self._library.NVMLError):
            return question(self._handle, *details)
        return None
