"""Which build this is and what machine this is, known without importing torch: both programs can say it at once.

Web makes ids of both. A worker says both in its `Hello`, found by the same functions, so two that fit together agree.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
from importlib import metadata, util
from pathlib import Path

from compiler.pages import FOLDER, WHERE_INSTALLED
from compiler.report import REPORT_VERSION
from server.wire.messages import WorkerIdentity

BUILD_LENGTH = 16


@functools.cache
def build_id() -> str:
    """The first 16 hexadecimal digits of a SHA-256 over the compiler's files, the pages of its reasons, whose sentences
    it says, and the version of the report.

    Two builds of the same sources are the same; any change of the compiler makes another one, whatever its version.
    """
    spec = util.find_spec("compiler")
    assert spec is not None and spec.submodule_search_locations
    return _build_of(Path(spec.submodule_search_locations[0]), FOLDER)


def _build_of(compiler: Path, reasons: Path) -> str:
    files = {path.relative_to(compiler): path for path in compiler.rglob("*")}
    told = (*reasons.glob("reasons/*.md"), reasons / "rewrites.md")
    # In a wheel they lie in the compiler, in a checkout elsewhere: one build all the same.
    files |= {Path(WHERE_INSTALLED, path.relative_to(reasons)): path for path in told}
    found = hashlib.sha256(f"report {REPORT_VERSION}\n".encode())
    for name, path in sorted(files.items()):
        if path.is_file() and "__pycache__" not in path.parts and not path.name.endswith((".pyc", ".so")):
            found.update(f"{hashlib.sha256(path.read_bytes()).hexdigest()} {name.as_posix()}\n".encode())
    return found.hexdigest()[:BUILD_LENGTH]


@functools.cache
def detected_profile() -> WorkerIdentity:
    """This machine's: versions from what is installed, the device from NVIDIA's management library or /proc/cpuinfo.

    A torch that was built for CPUs alone makes it a CPU's, also where there is a GPU.
    """
    torch = _installed("torch") or ""
    gpu = None if not torch or torch.endswith("+cpu") else _gpu_name()
    return WorkerIdentity(
        python=platform.python_version(),
        torch=torch,
        triton=_installed("triton"),
        device="cpu" if gpu is None else "cuda",
        device_name=gpu or processor_name(),
    )


def processor_name() -> str:
    """As /proc/cpuinfo calls the first one; where it does not say, the machine's architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _gpu_name() -> str | None:
    """The first GPU that CUDA would use, asked of the management library: asking CUDA would start it here."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    first = "0" if visible is None else visible.split(",")[0].strip()
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        if library.nvmlInit_v2() != 0:
            return None
        handle, name = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        try:
            if first.isdigit():
                failure = library.nvmlDeviceGetHandleByIndex_v2(int(first), ctypes.byref(handle))
            else:
                failure = library.nvmlDeviceGetHandleByUUID(first.encode(), ctypes.byref(handle))
            failure = failure or library.nvmlDeviceGetName(handle, name, len(name))
        finally:
            library.nvmlShutdown()
    except (OSError, AttributeError):
        return None
    return None if failure else name.value.decode(errors="replace")
