"""GPUs and CPUs as data: what the cost model, the tile plans and the page know about a device.

A rule about hardware is a pure function of a loop and one of these records, so it is tested without the hardware.

Sources of the constants: NVIDIA's architecture white papers and data sheets (V for each below), the table "Technical
Specifications per Compute Capability" of the CUDA C++ Programming Guide (registers, shared memory, threads), and,
where a comment says so, our own measurements. "Bandwidth" is what a large kernel reaches, reads and writes counted; on
the H200 that is 0.91 of the data sheet's figure, and where we have not measured it we assume the same share.

"Fitted" are constants that no single measurement gives: those with which the model of `schedule/cost/kernel.py` comes
nearest to the times of some 1,100 kernels on an H200 (`fusionscope bench --suite predictions`;
docs/performance/archive/README.md says how near, and how near on kernels that were held out). Defaults of `Device` are
fitted ones, and assumed of other GPUs.
`fusionscope doctor --measure` measures what can be measured of the machine at hand.

Torch is read only where it is asked for a device: processes that compile kernels read this file and not torch.
"""

from __future__ import annotations

import functools
import json
import os
import platform
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch

#: The environment variable that names a file which `fusionscope doctor --measure` wrote, and the fields in it.
RECORD_VARIABLE = "FUSIONSCOPE_DEVICE_RECORD"
MEASURED_FIELDS = ("bandwidth", "launch_us", "latency_us", "alone_us")

#: The threads of a GPU that go together.
WARP = 32
#: Bytes: the least that a GPU moves between its memory and its cache, a fourth of a line.
SECTOR = 32

KIB = 1024
MIB = 1024 * KIB

#: Share of the data sheet's memory bandwidth that a large kernel reaches: 4,370 of 4,800 GB/s, measured on an H200.
COPY_SHARE = 0.91
#: Share of the last-level cache's bandwidth, as microbenchmarks reach it, that later passes and single sectors get:
#: fitted on the H200, of 7 TB/s.
CACHE_SHARE = 0.53


@dataclass(frozen=True)
class Device:
    """One device. Rates are per second, sizes in bytes, times in microseconds.

    On a CPU `multiprocessors` counts the cores, `warp_size` the float32 lanes of a vector register, and the figures of
    a multiprocessor's registers and shared memory are 0. `is_measured` tells a measured bandwidth from an assumed one.
    """

    name: str
    kind: Literal["cuda", "cpu"]
    target: str
    #: Bytes read plus bytes written per second by a large kernel.
    bandwidth: float
    #: Bytes per second from the last-level cache, of later passes over the same elements and of single sectors.
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
    #: What timing a kernel by itself adds: the events around it, and a device that was idle. A sequence has it once.
    #: Measured on the H200, median of 199 pairs of small kernels.
    alone_us: float = 1.1
    #: Of `launch_us` and of a time between two events, what no profiler counts as the kernel's: until its first block
    #: starts, and from its last. Measured on two H100s, ten kernels of 10 to 50 us beside torch's profiler.
    gap_us: float = 1.1
    #: By how much medians of two runs differ, 95 times in 100, beyond what samples of one run show: microseconds of any
    #: time, and a share of it. They cover 447 of 462 pairs of runs in fresh processes on an H200, after which they were
    #: chosen; assumed of others.
    between_runs_us: float = 0.4
    between_runs_share: float = 0.02
    #: The same share of the ratio of two calls that were interleaved, beside what the microseconds make of either: they
    #: cover 130 of 132 pairs of ratios there.
    between_runs_ratio: float = 0.015
    #: Bytes per second of one multiprocessor by itself.
    multiprocessor_bandwidth: float = 100e9
    #: One block after another of a loop, in one program: until loads that are in the cache have come.
    step_us: float = 0.18
    #: The same of a loop along columns in programs that are too few to hide it. Fitted on the H200 to softmax and batch
    #: norm along columns, whose programs are as many as the multiprocessors or twice as many.
    lone_step_us: float = 0.6
    #: Bytes per second of what windows and interpolations load again, which is partly near its multiprocessor. Measured
    #: on the H200: an interpolation that loads 6.4 GB at four addresses takes 540 us.
    near_bandwidth: float = 12e12
    #: Sectors of 32 bytes per second that lanes write one by one: by atomic operations, or with a stride.
    sector_rate: float = 70e9
    #: Updates per second that meet in one address.
    crowd_rate: float = 56e6
    #: What the second part of a split reduction takes.
    split_us: float = 1.0
    #: Until all programs that share a row have what each of them has reduced. Assumed: a store, an atomic operation and
    #: two loads, one after the other, each of which takes some 0.6 us.
    exchange_us: float = 2.5
    #: The same of programs that are started together: with it a group norm that takes 46 us on an H200 is expected to
    #: take about as long.
    cluster_exchange_us: float = 0.1
    #: The cache is full of what others wrote: it writes back this share of what a kernel moves, until so many bytes are
    #: written back. A kernel's own writes wait there likewise, and are paid by the next one.
    dirty_share: float = 0.65
    dirty_bytes: float = 28e6
    #: Operations per second of the tensor cores on half types, and on float32 rounded to TensorFloat-32; 0 without any.
    half_product_flops: float = 0.0
    tf32_product_flops: float = 0.0
    registers_per_multiprocessor: int = 65536
    registers_per_thread: int = 255
    shared_per_multiprocessor: int = 0
    shared_per_block: int = 0
    threads_per_multiprocessor: int = 2048
    threads_per_block: int = 1024
    warp_size: int = 32
    #: Programs that are started together and reach each other's shared memory, at the most; 0 where none are.
    programs_of_cluster: int = 0
    is_measured: bool = False

    @property
    def overhead_us(self) -> float:
        """What a kernel takes that is measured by itself and does nothing."""
        return self.alone_us + self.launch_us + self.latency_us

    @property
    def capability(self) -> int:
        """90 for sm_90; 0 on a CPU."""
        return int(self.target.removeprefix("sm_").rstrip("af")) if self.kind == "cuda" else 0


H200 = Device(
    name="NVIDIA H200",
    kind="cuda",
    target="sm_90",
    bandwidth=4.37e12,  # measured: an addition that moves 3.2 GB, median
    l2_bandwidth=7.0e12 * CACHE_SHARE,  # microbenchmarks of the H100 that are published give 5.5 to 7 TB/s; fitted
    l2_bytes=60 * MIB,  # cudaDeviceProp.l2CacheSize, measured
    memory_bytes=141 * 10**9,  # V
    multiprocessors=132,  # V
    flops=66.9e12,  # V: 132 SMs x 128 lanes x 2 x 1.98 GHz
    launch_us=1.5,  # measured: 1,000 one-thread kernels in one stream, 1.49 us each
    latency_us=0.9,  # measured: a kernel of 4 KiB alone takes 3.5 us, and two in a row 1.1 us less than twice that
    gap_us=1.3,  # measured: eight kernels of 10 to 50 us beside torch's profiler
    half_product_flops=989e12,  # V: dense
    tf32_product_flops=494e12,  # V: dense
    shared_per_multiprocessor=228 * KIB,
    shared_per_block=227 * KIB,
    programs_of_cluster=16,  # CUDA's guide: eight everywhere, and on Hopper sixteen where a function asks for it
    is_measured=True,
)

H100 = replace(
    H200,
    name="NVIDIA H100 SXM",
    gap_us=1.1,
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
    # V: 5,120 bytes a clock at 1.41 GHz are 7.2e12; microbenchmarks reach about 4.5e12
    l2_bandwidth=4.5e12 * CACHE_SHARE,
    l2_bytes=40 * MIB,  # V
    memory_bytes=80 * 10**9,  # V
    multiprocessors=108,  # V
    flops=19.5e12,  # V
    launch_us=2.5,  # assumed
    latency_us=1.0,  # assumed
    half_product_flops=312e12,  # V: dense
    tf32_product_flops=156e12,  # V: dense
    shared_per_multiprocessor=164 * KIB,
    shared_per_block=163 * KIB,
)

RTX_4090 = Device(
    name="NVIDIA GeForce RTX 4090",
    kind="cuda",
    target="sm_89",
    bandwidth=1.008e12 * COPY_SHARE,  # V: 1,008 GB/s
    l2_bandwidth=4.0e12 * CACHE_SHARE,  # assumed: published microbenchmarks
    l2_bytes=72 * MIB,  # V
    memory_bytes=24 * 10**9,  # V
    multiprocessors=128,  # V
    flops=82.6e12,  # V
    launch_us=2.2,  # assumed
    latency_us=1.0,  # assumed
    half_product_flops=165e12,  # V: dense, sums in float32
    tf32_product_flops=82.6e12,  # V: dense
    shared_per_multiprocessor=100 * KIB,
    shared_per_block=99 * KIB,
    threads_per_multiprocessor=1536,
)

B200 = Device(
    name="NVIDIA B200",
    kind="cuda",
    target="sm_100",
    bandwidth=8.0e12 * COPY_SHARE,  # V: 8 TB/s
    l2_bandwidth=1.0e13 * CACHE_SHARE,  # assumed
    l2_bytes=126 * MIB,  # cudaDeviceProp.l2CacheSize as others report it
    memory_bytes=180 * 10**9,  # V
    multiprocessors=148,  # V
    flops=75.0e12,  # V
    launch_us=2.2,  # assumed
    latency_us=1.0,  # assumed
    half_product_flops=2250e12,  # V: dense
    tf32_product_flops=1100e12,  # V: dense
    shared_per_multiprocessor=228 * KIB,
    shared_per_block=227 * KIB,
)

T4 = Device(
    name="NVIDIA T4",
    kind="cuda",
    target="sm_75",
    bandwidth=0.320e12 * COPY_SHARE,  # V: 320 GB/s
    # assumed: Jia et al., "Dissecting the NVidia Turing T4 GPU via Microbenchmarking" (2019)
    l2_bandwidth=1.2e12 * CACHE_SHARE,
    l2_bytes=4 * MIB,  # V
    memory_bytes=16 * 10**9,  # V
    multiprocessors=40,  # V
    flops=8.1e12,  # V
    launch_us=3.0,  # assumed
    latency_us=1.5,  # assumed
    half_product_flops=65e12,  # V: dense
    shared_per_multiprocessor=64 * KIB,
    shared_per_block=64 * KIB,
    threads_per_multiprocessor=1024,
)

#: The GPUs that the page offers; the first of a target stands for it.
GPUS: tuple[Device, ...] = (H200, H100, A100, RTX_4090, B200, T4)


def usable_cores() -> int:
    """The cores that this process may use, which in a container is often fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
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
        alone_us=0.0,
        gap_us=0.0,
        between_runs_us=0.0,
        # Measured on 16 cores of a virtual machine without neighbours, in five fresh processes: they cover 332 of 340
        # pairs of times, and 107 of 110 of ratios. What others take is added (`runtime/timing/measure.py`).
        between_runs_share=0.3,
        between_runs_ratio=0.25,
        sector_rate=0.2e9 * cores,  # assumed: an atomic operation on a line that another core holds
        dirty_bytes=0.0,
        warp_size=8,
        registers_per_multiprocessor=0,
        registers_per_thread=0,
        threads_per_block=1,
        threads_per_multiprocessor=1,
    )


def device_for(where: str | torch.device) -> Device:
    """The record for a target ("sm_90", "cpu"), a name ("A100"), or a torch device.

    A GPU at hand that none of the records names takes the nearest record and its own sizes. An unknown target raises
    ValueError with the known ones."""
    if not isinstance(where, str):
        return as_measured(cpu_device() if where.type == "cpu" else _gpu_at_hand(where))
    text = where.lower()
    if text == "cpu" or text.startswith("cuda"):
        import torch

        return device_for(torch.device(text))
    for gpu in GPUS:
        if text == gpu.target or _matches(text, gpu):
            return gpu
    known = ", ".join(dict.fromkeys([gpu.target for gpu in GPUS]))
    raise ValueError(f"no record of the device {where!r}; the targets are {known} and cpu")


def as_measured(device: Device) -> Device:
    """The record with what `FUSIONSCOPE_DEVICE_RECORD` says was measured of the device of this name. Raises as
    `measurements` does."""
    name, values = measurements()
    return replace(device, is_measured=True, **values) if name == device.name else device


def measurements() -> tuple[str | None, dict[str, Any]]:
    """What the file that `FUSIONSCOPE_DEVICE_RECORD` names says: of which device, and its fields. Raises ValueError
    with a sentence where it is no such file."""
    path = os.environ.get(RECORD_VARIABLE)
    if not path:
        return None, {}
    try:
        measured = json.loads(Path(path).read_text())
        return measured["name"], {name: float(measured[name]) for name in MEASURED_FIELDS}
    except (OSError, ValueError, TypeError, KeyError):
        raise ValueError(
            f"{RECORD_VARIABLE} names {path!r}, which is no record of a device: "
            "write one by `fusionscope doctor --measure --out FILE`."
        ) from None


def _matches(text: str, gpu: Device) -> bool:
    """Whether a name such as "NVIDIA H100 80GB HBM3" or "a100" speaks of this GPU."""
    model = gpu.name.lower().replace("nvidia geforce rtx ", "").replace("nvidia ", "").split()[0]
    return model in text.replace("-", " ").replace("_", " ").split()


def _gpu_at_hand(where: torch.device) -> Device:
    import torch

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
    import torch

    return device_for(torch.device("cuda")) if torch.cuda.is_available() else cpu_device()


def free_bytes(where: torch.device | int) -> int:
    """What of a GPU's memory nobody has, whatever torch keeps for later included."""
    import torch

    free, _ = torch.cuda.mem_get_info(where)
    return int(free) + torch.cuda.memory_reserved(where) - torch.cuda.memory_allocated(where)
