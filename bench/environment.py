"""What the results of a run depend on besides the code (device, driver, clocks, versions, the memory's speed), and the
file that they are kept in."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from compiler.devices import processor_name, usable_cores
from compiler.environment import triton_version
from compiler.runtime.timing.clocks import GpuClocks
from compiler.runtime.timing.measure import device_name
from compiler.runtime.timing.stopwatch import Stopwatch

ROOT = Path(__file__).resolve().parent.parent

#: Bytes that are copied to learn the bandwidth: far more than any cache holds.
COPY_BYTES = {"cuda": 1 << 30, "cpu": 1 << 28}
COPY_SAMPLES = {"cuda": 30, "cpu": 9}
#: How times are taken, by kind of device.
CLOCK = {
    "cuda": "device time between CUDA events, L2 cache overwritten before each sample",
    "cpu": "wall time, freed memory kept in the process, caches warm",
}


def copy_bandwidth(device: torch.device, watch: Stopwatch) -> float:
    """Bytes per second of a large copy within the device's memory, bytes read plus bytes written; the median copy."""
    size = COPY_BYTES[device.type]
    source = torch.randint(0, 256, (size,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def copy() -> object:
        return target.copy_(source)

    copy()
    watch.prepare(copy)
    return 2 * size / (statistics.median(watch.sample(copy) for _ in range(COPY_SAMPLES[device.type])) * 1e-3)


def describe(device: torch.device, bandwidth: float | None, seed: int) -> dict[str, Any]:
    """The environment of a run as plain JSON; `bandwidth` is None where nothing was timed."""
    seen = GpuClocks.of(device)
    if seen is not None:
        seen.look()
    return {
        "device": device_name(device) if device.type == "cuda" else processor_name(),
        "kind": device.type,
        "driver": seen.driver if seen is not None else None,
        "clocks": {"seen": seen.sentence, "throttle": seen.slowed_by} if seen is not None else None,
        "torch": torch.__version__,
        "cuda": torch.version.cuda if device.type == "cuda" else None,
        "triton": triton_version(),
        "python": platform.python_version(),
        "threads": torch.get_num_threads() if device.type == "cpu" else None,
        "cores": usable_cores(),
        "load_average": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "copy_bandwidth_gb_per_s": round(bandwidth / 1e9, 1) if bandwidth is not None else None,
        "seed": seed,
    }


def commit() -> str | None:
    """What the variable FUSIONSCOPE_COMMIT says, for sources that were copied here; else the commit of this checkout,
    with "+changes" where tracked files differ from it; else None."""
    told = os.environ.get("FUSIONSCOPE_COMMIT")
    if told:
        return told
    try:
        here = ["git", "-C", str(ROOT)]
        head = subprocess.run([*here, "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=10)
        difference = subprocess.run([*here, "diff", "--quiet", "HEAD"], capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return head.stdout.strip() + ("+changes" if difference.returncode == 1 else "")


def write_json(path: Path | None, document: dict[str, Any]) -> None:
    """Replace the file by a whole new one, so that a reader never sees half of it."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".part")
    fresh.write_text(json.dumps(document, indent=1) + "\n")
    os.replace(fresh, path)
