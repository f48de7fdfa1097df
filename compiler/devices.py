"""GPUs and CPUs as data: what the cost model, the tile plans and the page know about a device.

A rule about hardware is a pure function of a loop and one of these records, so it is tested without the hardware.

Sources of the constants: NVIDIA's architecture white papers and data sheets (V for each below), the table "Technical
Specifications per Compute Capability" of the CUDA C++ Programming Guide (registers, shared memory, threads), and,
where a comment says so, our own measurements. "Bandwidth" is what a large device-to-device copy reaches, reads and
writes counted; on the H200 that is 0.895 of the data sheet's figure, and where we have not measured it we assume the
same share.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

KIB = 1024
MIB = 1024 * KIB

#: Share of the data sheet's memory bandwidth that a copy reaches: 4,297 of 4,800 GB/s, measured on an H200.
COPY_SHARE = 0.895


@dataclass(frozen=True)
class Device:
    """One device. Rates are per second, sizes in bytes, times in microseconds.

    On a CPU `multiprocessors` counts the cores, `warp_size` the float32 lanes of a vector register, and the figures of
    a multiprocessor's registers and shared memory are 0. `is_measured` tells a measured bandwidth from an assumed one.
    """

    name: str
    kind: Literal["cuda", "cpu"]
    target: str
    #: Bytes read plus bytes written per second by a large copy.
    bandwidth: float
    #: Bytes per second from the last-level cache.
    l2_bandwidth: float
    l2_bytes: int
    memory_bytes: int
    multiprocessors: int
    #: Single-precision operations per second, a fused multiply-add counting as two.
    flops: float
    #: What one more kernel costs on a stream that is kept full (a CPU: one call and the start of its threads).
    launch_us: float
    #: What a kernel takes besides launch and bytes: its first addresses, a cold cache, its last block.
    latency_us: float
    registers_per_multiprocessor: int = 0
    registers_per_thread: int = 0
    shared_per_multiprocessor: int = 0
    shared_per_block: int = 0
    threads_per_multiprocessor: int = 0
    threads_per_block: int = 0
    warp_size: int = 32
    is_measured: bool = False

    @property
    def capability(self) -> int:
        """90 for sm_90; 0 on a CPU."""
        return int(self.target.removeprefix("sm_").rstrip("af")) if self.kind == "cuda" else 0


H200 = Device(
    name="NVIDIA H200",
    kind="cuda",
    target="sm_90",
    bandwidth=4.297e12,  # measured: copy of 1 GiB, median; another machine gave 4.206e12
    l2_bandwidth=7.0e12,  # assumed: published microbenchmarks of the H100 give 5.5 to 7 TB/s
    l2_bytes=60 * MIB,  # cudaDeviceProp.l2CacheSize, measured
    memory_bytes=141 * 10**9,  # V
    multiprocessors=132,  # V
    flops=66.9e12,  # V: 132 SMs x 128 lanes x 2 x 1.98 GHz
    launch_us=1.5,  # measured: 1,000 one-thread kernels in one stream, 1.49 us each
    latency_us=2.6,  # measured: cold copies of 1 to 64 MiB take 4.1 us more than their bytes at full bandwidth
    registers_per_multiprocessor=65536,
    registers_per_thread=255,
    shared_per_multiprocessor=228 * KIB,
    shared_per_block=227 * KIB,
    threads_per_multiprocessor=2048,
    threads_per_block=1024,
    is_measured=True,
)

H100 = replace(
    H200,
    name="NVIDIA H100 SXM",
    bandwidth=3.35e12 * COPY_SHARE,  # V: 3.35 TB/s
    l2_bytes=50 * MIB,  # V
    memory_bytes=80 * 10**9,  # V
    is_measured=False,
)

A100 = Device(
    name="NVIDIA A100 SXM 80 GB",
    kind="cuda",
    target="sm_80",
    bandwidth=2.039e12 * COPY_SHARE,  # V: 2,039 GB/s
    l2_bandwidth=4.5e12,  # V: 5,120 bytes a clock at 1.41 GHz are 7.2e12; microbenchmarks reach about 4.5e12
    l2_bytes=40 * MIB,  # V
    memory_bytes=80 * 10**9,  # V
    multiprocessors=108,  # V
    flops=19.5e12,  # V
    launch_us=2.5,  # assumed
    latency_us=2.5,  # assumed
    registers_per_multiprocessor=65536,
    registers_per_thread=255,
    shared_per_multiprocessor=164 * KIB,
    shared_per_block=163 * KIB,
    threads_per_multiprocessor=2048,
    threads_per_block=1024,
)

RTX_4090 = Device(
    name="NVIDIA GeForce RTX 4090",
    kind="cuda",
    target="sm_89",
    bandwidth=1.008e12 * COPY_SHARE,  # V: 1,008 GB/s
    l2_bandwidth=4.0e12,  # assumed: published microbenchmarks
    l2_bytes=72 * MIB,  # V
    memory_bytes=24 * 10**9,  # V
    multiprocessors=128,  # V
    flops=82.6e12,  # V
    launch_us=2.2,  # assumed
    latency_us=2.0,  # assumed
    registers_per_multiprocessor=65536,
    registers_per_thread=255,
    shared_per_multiprocessor=100 * KIB,
    shared_per_block=99 * KIB,
    threads_per_multiprocessor=1536,
    threads_per_block=1024,
)

B200 = Device(
    name="NVIDIA B200",
    kind="cuda",
    target="sm_100",
    bandwidth=8.0e12 * COPY_SHARE,  # V: 8 TB/s
    l2_bandwidth=1.0e13,  # assumed
    l2_bytes=126 * MIB,  # cudaDeviceProp.l2CacheSize as others report it
    memory_bytes=180 * 10**9,  # V
    multiprocessors=148,  # V
    flops=75.0e12,  # V
    launch_us=2.2,  # assumed
    latency_us=2.0,  # assumed
    registers_per_multiprocessor=65536,
    registers_per_thread=255,
    shared_per_multiprocessor=228 * KIB,
    shared_per_block=227 * KIB,
    threads_per_multiprocessor=2048,
    threads_per_block=1024,
)

T4 = Device(
    name="NVIDIA T4",
    kind="cuda",
    target="sm_75",
    bandwidth=0.320e12 * COPY_SHARE,  # V: 320 GB/s
    l2_bandwidth=1.2e12,  # assumed: Jia et al., "Dissecting the NVidia Turing T4 GPU via Microbenchmarking" (2019)
    l2_bytes=4 * MIB,  # V
    memory_bytes=16 * 10**9,  # V
    multiprocessors=40,  # V
    flops=8.1e12,  # V
    launch_us=3.0,  # assumed
    latency_us=3.0,  # assumed
    registers_per_multiprocessor=65536,
    registers_per_thread=255,
    shared_per_multiprocessor=64 * KIB,
    shared_per_block=64 * KIB,
    threads_per_multiprocessor=1024,
    threads_per_block=1024,
)

#: The GPUs that the page offers; the first of a target stands for it.
GPUS: tuple[Device, ...] = (H200, H100, A100, RTX_4090, B200, T4)


def usable_cores() -> int:
    """The cores that this process may use, which in a container is often fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_name() -> str:
    """The CPU's model name as the system gives it, else its architecture."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cpu_device(cores: int | None = None) -> Device:
    """The CPU of this machine. All its rates are assumed from the number of cores."""
    cores = cores or usable_cores()
    return Device(
        name="CPU",
        kind="cpu",
        target="cpu",
        # Measured on a server core: softmax of 4096 x 4096 float32 moves 128 MiB in 7.1 ms on one core and 3.6 ms on
        # two. A socket's memory channels are full from about eight cores on.
        bandwidth=18e9 * min(cores, 8),
        l2_bandwidth=60e9 * cores,  # assumed
        l2_bytes=32 * MIB,  # assumed: the last-level cache of one socket
        memory_bytes=16 * 10**9,  # assumed
        multiprocessors=cores,
        flops=80e9 * cores,  # assumed: two fused multiply-adds of 8 lanes a clock at 2.5 GHz
        launch_us=2.0 if cores == 1 else 4.0,  # assumed: a foreign call, and the start and join of a team of threads
        latency_us=0.2,  # assumed
        warp_size=8,
        threads_per_block=1,
        threads_per_multiprocessor=1,
    )


def device_for(where: str | torch.device) -> Device:
    """The record for a target ("sm_90", "cpu"), a name ("A100"), or a torch device.

    A GPU at hand that none of the records names takes the nearest record and its own sizes. An unknown target raises
    ValueError with the known ones."""
    if isinstance(where, torch.device):
        return cpu_device() if where.type == "cpu" else _gpu_at_hand(where)
    text = where.lower()
    if text == "cpu":
        return cpu_device()
    if text.startswith("cuda"):
        return _gpu_at_hand(torch.device(text))
    for gpu in GPUS:
        if text == gpu.target or _matches(text, gpu):
            return gpu
    known = ", ".join(dict.fromkeys([gpu.target for gpu in GPUS]))
    raise ValueError(f"no record of the device {where!r}; the targets are {known} and cpu")


def _matches(text: str, gpu: Device) -> bool:
    """Whether a name such as "NVIDIA H100 80GB HBM3" or "a100" speaks of this GPU."""
    model = gpu.name.lower().replace("nvidia geforce rtx ", "").replace("nvidia ", "").split()[0]
    return model in text.replace("-", " ").replace("_", " ").split()


def _gpu_at_hand(where: torch.device) -> Device:
    properties = torch.cuda.get_device_properties(where)
    for gpu in GPUS:
        if _matches(properties.name.lower(), gpu):
            return gpu
    capability = properties.major * 10 + properties.minor
    nearest = min(GPUS, key=lambda gpu: (abs(gpu.capability - capability), gpu.name))
    share = properties.multi_processor_count / nearest.multiprocessors
    return replace(
        nearest,
        name=properties.name,
        target=f"sm_{capability}",
        multiprocessors=properties.multi_processor_count,
        l2_bytes=getattr(properties, "L2_cache_size", nearest.l2_bytes),
        memory_bytes=properties.total_memory,
        bandwidth=nearest.bandwidth * share,
        flops=nearest.flops * share,
        is_measured=False,
    )


def current_device() -> Device:
    """The GPU if there is one, else the CPU."""
    return device_for(torch.device("cuda")) if torch.cuda.is_available() else cpu_device()
