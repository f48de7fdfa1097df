"""A torch without a GPU that compiles for an H200: TorchInductor's Triton kernels can be counted on any machine.

`prepare` must run before torch is imported, in a process of its own: it loads a small library that registers a CUDA
device which does nothing. `install` then answers the questions that TorchInductor asks of the device. Tensors of that
device have no memory: everything happens on fake ones.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SOURCE = Path(__file__).with_name("pretended_gpu.cpp")

#: cudaDeviceProp of an H200, as far as TorchInductor reads it.
H200 = SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    total_memory=150_000_000_000,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    warp_size=32,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    L2_cache_size=62914560,
    gcnArchName="",
    is_integrated=False,
    is_multi_gpu_board=False,
)


def prepare(folder: Path) -> None:
    """Build the library in `folder`, if it is not there, and load it. Raises RuntimeError where torch is imported
    already, and CalledProcessError where the compiler refuses."""
    if "torch" in sys.modules:
        raise RuntimeError("a GPU can be pretended only before torch is imported")
    specification = importlib.util.find_spec("torch")
    assert specification is not None and specification.origin is not None
    torch_folder = Path(specification.origin).parent
    library = folder / f"pretended_gpu_{_fingerprint(torch_folder)}.so"
    if not library.exists():
        _build(torch_folder, library)
    ctypes.CDLL(str(torch_folder / "lib" / "libtorch_cpu.so"), mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(library)).pretend_to_have_a_gpu()


def _fingerprint(torch_folder: Path) -> str:
    version = (torch_folder / "version.py").read_bytes()
    return hashlib.sha256(version + SOURCE.read_bytes()).hexdigest()[:16]


def _build(torch_folder: Path, library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    unfinished = library.with_suffix(f".{os.getpid()}")
    compiler = os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "g++"
    command = [*compiler.split(), "-O1", "-std=c++20", "-shared", "-fPIC", f"-I{torch_folder / 'include'}", str(SOURCE)]
    command += [f"-L{torch_folder / 'lib'}", "-ltorch_cpu", "-lc10", "-o", str(unfinished)]
    subprocess.run(command, check=True)
    unfinished.rename(library)


def install() -> None:
    """Answer for the device what TorchInductor and Triton ask, as an H200 would."""
    import torch
    from torch._dynamo.device_interface import CudaInterface
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    capability = (H200.major, H200.minor)
    answers = {
        "get_device_properties": lambda device=None: H200,
        "get_device_capability": lambda device=None: capability,
        "current_device": lambda: 0,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    of_interface: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "current_device": lambda: 0,
        "get_device_properties": lambda device=None: H200,
        "get_raw_stream": lambda device=0: 0,
        "is_bf16_supported": lambda including_emulation=True: True,
    }
    for name, answer in of_interface.items():
        setattr(CudaInterface, name, staticmethod(answer))
    for name in ("get_device_properties", "current_device"):
        setattr(CudaInterface.Worker, name, staticmethod(of_interface[name]))

    class Driver:
        launcher_cls = utils = None

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", 10 * H200.major + H200.minor, H200.warp_size)

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int = 0) -> int:
            return 0

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cuda")

        def map_python_to_cpp_type(self, name: str) -> str:
            return name

    driver.set_active(Driver())  # type: ignore[arg-type]  # it answers what is asked on the way to a kernel's text
