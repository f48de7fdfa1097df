"""Measuring a device's own record: what can be timed of `compiler/devices.py` on the machine at hand.

    bandwidth   our kernel of x + 1 on far more than the cache holds, bytes read plus bytes written
    launch      what one more of the smallest kernels takes in a row of them
    latency     what one more of 4 KiB takes beyond that
    alone       what timing one kernel by itself adds, which a row of them has once

The other constants are fitted to many kernels at once; see `docs/performance/archive/README.md`.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from compiler.devices import MEASURED_FIELDS, Device
from compiler.runtime.timing.stopwatch import Call, Stopwatch, stopwatch
from compiler.runtime.trial import record_arguments

#: Elements of the large kernel, by kind of device: 2 GiB and 256 MiB are read and written.
LARGE = {"cuda": 1 << 28, "cpu": 1 << 25}
#: Kernels in the row that is compared with a single one.
ROW = 33
SAMPLES = 21


def measure_device(where: torch.device, known: Device, large: int | None) -> Device:
    """`known` with what was measured on `where`. `large` is the number of float32 elements for the bandwidth."""
    elements = large or LARGE[where.type]
    watch = stopwatch(where)
    bandwidth = 8 * elements / (_median_us(_kernel(elements, where), watch) * 1e-6)
    smallest, small = _kernel(1, where), _kernel(1024, where)
    alone = _median_us(small, watch)
    launch = max((_median_us(_row(smallest), watch) - _median_us(smallest, watch)) / (ROW - 1), 0.01)
    marginal = max((_median_us(_row(small), watch) - alone) / (ROW - 1), launch)
    return replace(
        known,
        bandwidth=bandwidth,
        launch_us=launch,
        latency_us=marginal - launch,
        alone_us=max(alone - marginal, 0.0),
        is_measured=True,
    )


def write_record(device: Device, path: Path) -> None:
    """Keep what was measured where `FUSIONSCOPE_DEVICE_RECORD` may name it."""
    values = asdict(device)
    path.write_text(json.dumps({name: values[name] for name in ("name", *MEASURED_FIELDS)}, indent=1) + "\n")


def _kernel(elements: int, where: torch.device) -> Call:
    """A call that launches our kernel of x + 1, with nothing of torch around it."""
    found: list[Built] = []
    x = torch.rand(elements, device=where)
    torch._dynamo.reset()
    with observed_compilations(found.append), torch.no_grad():
        torch.compile(lambda x: x + 1, backend=fusionscope, dynamic=False)(x)
    torch._dynamo.reset()
    (compilation,) = found
    ((name, arguments),) = record_arguments(compilation, [x]).items()
    launch: Callable[..., Any] = compilation.executable.kernels[name]
    return lambda: launch(*arguments)


def _row(call: Call) -> Call:
    def run() -> None:
        for _ in range(ROW):
            call()

    return run


def _median_us(call: Call, watch: Stopwatch) -> float:
    for _ in range(3):
        call()
    watch.prepare(call)
    return 1e3 * statistics.median(watch.sample(call) for _ in range(SAMPLES))
