"""What a result depends on besides the snippet: versions, device, driver, seed."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

import torch

from compiler.devices import Device, processor_name
from compiler.options import Options
from compiler.report import Environment


def compiler_version() -> str:
    try:
        return version("fusionscope")
    except PackageNotFoundError:
        return "0+source"


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
        driver=_driver() if has_gpu else None,
        seed=options.seed,
        compiler=compiler_version(),
        threads=None if has_gpu else torch.get_num_threads(),
    )


def _driver() -> str | None:
    try:
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(query, capture_output=True, text=True, timeout=5).stdout.split("\n")[0].strip() or None
    except (OSError, subprocess.SubprocessError):
        return None
