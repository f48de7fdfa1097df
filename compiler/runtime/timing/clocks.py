"""What a time must be read together with: clocks and state of a GPU as its driver tells them, and how long this process
waited for a core while others had it.

A GPU that is hot or short of power lowers its clocks, and its times then say nothing of the kernels. NVIDIA's
management library is asked between rounds of samples (nvidia-ml-py, the extra `fusionscope[gpu]`); without it nothing
of this is known.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: Bits of nvmlDeviceGetCurrentClocksThrottleReasons that slow a busy GPU (nvml.h, nvmlClocksThrottleReason*). That
#: it is idle, and clocks that somebody has set, are none of these.
SLOWED_BY = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
}


class GpuClocks:
    """What a GPU's clocks were at each look. `library` is the module pynvml, initialised, or one like it."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library, self._handle = library, handle
        #: SM clocks in MHz, and what slowed the GPU at any look.
        self._clocks: list[float] = []
        self._slowed: set[str] = set()

    @classmethod
    def of(cls, device: torch.device) -> GpuClocks | None:
        """None on a CPU, and where the library or its driver is not there."""
        if device.type != "cuda":
            return None
        import torch  # which the worker, who reads the names of what slows a GPU, does not load

        try:
            library = importlib.import_module("pynvml")
        except ImportError:
            return None
        with suppress(library.NVMLError):
            library.nvmlInit()
            # CUDA_VISIBLE_DEVICES renumbers the rest.
            name = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
            return cls(library, library.nvmlDeviceGetHandleByUUID(name))
        return None

    def look(self) -> None:
        """Takes some microseconds, and shows in no time that is taken before or after."""
        clock = self._asked(self._library.nvmlDeviceGetClockInfo, self._library.NVML_CLOCK_SM)
        bits = self._asked(self._library.nvmlDeviceGetCurrentClocksThrottleReasons)
        if clock is not None:
            self._clocks.append(clock)
            self._slowed |= {word for bit, word in SLOWED_BY.items() if (bits or 0) & bit}

    @property
    def sentence(self) -> str:
        """Of all looks, for a report; empty where there was none."""
        if not self._clocks:
            return ""
        most = self._asked(self._library.nvmlDeviceGetMaxClockInfo, self._library.NVML_CLOCK_SM) or max(self._clocks)
        slowed = f"slowed by {', '.join(self.slowed_by)}" if self._slowed else "not throttled"
        return (
            f"SM clock {min(self._clocks):.0f} to {max(self._clocks):.0f} of {most:.0f} MHz in {len(self._clocks)} "
            f"looks, between the rounds; {slowed}."
        )

    @property
    def slowed_by(self) -> list[str]:
        """In words, whatever slowed the GPU at any look."""
        return [word for word in SLOWED_BY.values() if word in self._slowed]

    @property
    def driver(self) -> str:
        return str(self._library.nvmlSystemGetDriverVersion())

    def _asked(self, question: Callable[..., Any], *details: Any) -> Any:
        """None where this GPU has no answer to it."""
        with suppress(self._library.NVMLError):
            return question(self._handle, *details)
        return None


def core_time() -> tuple[int, int]:
    """Nanoseconds that all threads of this process had a core, and that they waited for one, as the kernel counts them
    (`/proc/PID/schedstat`); zeros where it does not."""
    ran = waited = 0
    for file in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError, ValueError):  # a thread that has ended meanwhile
            found = [int(number) for number in file.read_text().split()]
            ran, waited = ran + found[0], waited + found[1]
    return ran, waited


def share_waited(before: tuple[int, int], after: tuple[int, int]) -> float:
    """The share of its time for which the process waited for a core."""
    ran, waited = after[0] - before[0], after[1] - before[1]
    return waited / (ran + waited) if ran > 0 and waited > 0 else 0.0
