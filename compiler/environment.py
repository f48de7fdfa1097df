"""What a result depends on besides the snippet: versions, device, driver, seed.

What cannot change while a process lives is asked once: packages' versions, and the driver, which a program tells. A
spare of the service has done that before its snippet comes.
"""

from __future__ import annotations

import functools
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

import torch

from compiler.devices import Device, device_for, processor_name
from compiler.options import Options
from compiler.report import Environment, Peak


@functools.cache
def compiler_version() -> str:
    try:
        return version("fusionscope")
    except PackageNotFoundError:
        return "0+source"


@functools.cache
def triton_version() -> str | None:
    try:
        return version("triton")
    except PackageNotFoundError:
        return None


def describe_environment(device: torch.device, model: Device, options: Options) -> Environment:
    """`device` is where tensors are, `model` the device that kernels are generated for."""
    has_gpu = device.type == "cuda"
    return Environment(
        python=platform.python_version(),
        torch=torch.__version__,
        triton=triton_version(),
        device=str(device),
        device_name=torch.cuda.get_device_name(device) if has_gpu else processor_name(),
        target=model.target,
        decides_for=options.device_model or model.name,
        peaks=_peaks(device, model, options),
        driver=_driver() if has_gpu else None,
        seed=options.seed,
        compiler=compiler_version(),
        threads=None if has_gpu else torch.get_num_threads(),
    )


def _peaks(device: torch.device, model: Device, options: Options) -> list[Peak]:
    """Of the device that runs, under the name that the report gives it, and of the one that predictions are for."""
    decides = device_for(options.device_model) if options.device_model else model
    if device.type == "cuda":
        ran, name = model, torch.cuda.get_device_name(device)
    else:
        ran, name = device_for("cpu"), processor_name()
    found = {name: _peak(ran, name)}
    found.setdefault(decides.name, _peak(decides, options.device_model or decides.name))
    return list(found.values())


def _peak(model: Device, name: str) -> Peak:
    half = model.half_product_flops
    return Peak(
        device=name,
        gb_per_s=model.bandwidth / 1e9,
        gflop_per_s=model.flops / 1e9,
        half_product_gflop_per_s=half / 1e9 if half else None,
        is_measured=model.is_measured,
    )


@functools.cache
def _driver() -> str | None:
    try:
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(query, capture_output=True, text=True, timeout=5).stdout.split("\n")[0].strip() or None
    except (OSError, subprocess.SubprocessError):
        return None
