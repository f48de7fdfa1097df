"""What of the machine a job may see, the same in each tier: everything that is not listed here is out of its reach."""

from __future__ import annotations

import os
from pathlib import Path

from server.sandbox.config import SandboxConfig

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
SYSTEM_FACTS = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""Read by torch, OpenMP and CUDA to count processors."""
GPU_FACTS = ("/sys/module/nvidia", "/sys/module/nvidia_uvm", "/sys/bus/pci", "/sys/devices", "/proc/driver/nvidia")

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-caps")


def readable(config: SandboxConfig) -> tuple[Path, ...]:
    """Folders and files that exist, the system's first."""
    names = [*SYSTEM_FOLDERS, *SYSTEM_FILES, *SYSTEM_FACTS, *(GPU_FACTS if config.uses_gpu else ())]
    return tuple(path for path in (*map(Path, names), *config.readable) if path.exists())


def devices(uses_gpu: bool) -> tuple[Path, ...]:
    """Device nodes that exist, which may be read and written."""
    names = [*DEVICES]
    if uses_gpu:
        numbered = (name for name in os.listdir("/dev") if name.startswith("nvidia") and name[6:].isdigit())
        names += [*GPU_DEVICES, *(f"/dev/{name}" for name in sorted(numbered))]
    return tuple(path for path in map(Path, names) if path.exists())
