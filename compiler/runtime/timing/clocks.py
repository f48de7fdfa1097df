"""What a time must be read together with: clocks and state of a GPU as its driver tells them, and how long this process
waited for a core while others had it.

A GPU that is hot or short of power lowers its clocks, and its times then say nothing of the kernels. nvidia-smi is
asked, since it stands wherever the driver does; where it is not there the answer is None.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch

#: Field of nvidia-smi → our name. Clocks are MHz, temperature is °C, power is watts.
FIELDS = {
    "driver_version": "driver",
    "clocks.current.sm": "sm_mhz",
    "clocks.max.sm": "sm_max_mhz",
    "clocks.current.memory": "memory_mhz",
    "temperature.gpu": "temperature_c",
    "power.draw": "power_w",
    "clocks_throttle_reasons.active": "throttle",
}

#: Bits of `clocks_throttle_reasons.active` (nvml.h, nvmlClocksThrottleReason*) that slow a busy GPU. An idle GPU and
#: clocks set by an application are none of these.
THROTTLE_BITS = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
}

#: Seconds that nvidia-smi may take; on a machine with many GPUs and no persistence it is slow.
PATIENCE_S = 5.0


def device_state(device: torch.device) -> dict[str, Any] | None:
    """Driver, clocks, temperature and throttle reasons of a GPU right now; None on a CPU or without nvidia-smi.

    `throttle` is a list of words, empty where nothing slows the GPU."""
    command = shutil.which("nvidia-smi")
    if device.type != "cuda" or command is None:
        return None
    query = [
        command,
        f"--query-gpu={','.join(FIELDS)}",
        "--format=csv,noheader,nounits",
        "-i",
        _address(device),
    ]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_state(answer)


def parse_state(line: str) -> dict[str, Any] | None:
    """One line of nvidia-smi's answer in our names; a field that the driver does not support is None."""
    values = [value.strip() for value in line.strip().split(",")]
    if len(values) != len(FIELDS):
        return None
    state: dict[str, Any] = {}
    for name, value in zip(FIELDS.values(), values, strict=True):
        if name == "throttle":
            state[name] = throttle_words(value)
        elif name == "driver":
            state[name] = value
        else:
            state[name] = _number(value)
    return state


def throttle_words(mask: str) -> list[str]:
    """`0x0000000000000004` → ["power cap"]."""
    try:
        bits = int(mask, 16)
    except ValueError:
        return []
    return [word for bit, word in THROTTLE_BITS.items() if bits & bit]


def sentence(state: dict[str, Any] | None) -> str:
    """The state as a sentence for a report, empty where it is not known."""
    if state is None or state.get("sm_mhz") is None:
        return ""
    clock = f"SM clock {state['sm_mhz']:.0f} of {state['sm_max_mhz'] or state['sm_mhz']:.0f} MHz after the last sample"
    slowed = f"; slowed by {', '.join(state['throttle'])}" if state["throttle"] else "; not throttled"
    return clock + slowed + "."


class CoreTime(NamedTuple):
    """Nanoseconds that all threads of this process had a core, and that they waited for one."""

    ran: int
    waited: int


def core_time() -> CoreTime:
    """As the kernel counts it (`/proc/PID/schedstat`); zeros where it does not."""
    ran = waited = 0
    for file in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError, ValueError):  # a thread that has ended meanwhile
            found = [int(number) for number in file.read_text().split()]
            ran, waited = ran + found[0], waited + found[1]
    return CoreTime(ran, waited)


def share_waited(before: CoreTime, after: CoreTime) -> float:
    """The share of its time for which the process waited for a core."""
    ran, waited = after.ran - before.ran, after.waited - before.waited
    return waited / (ran + waited) if ran > 0 and waited > 0 else 0.0


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _address(device: torch.device) -> str:
    """What nvidia-smi calls this GPU: its UUID where torch tells it, since CUDA_VISIBLE_DEVICES renumbers the rest."""
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return f"GPU-{uuid}" if uuid is not None else str(device.index or 0)
