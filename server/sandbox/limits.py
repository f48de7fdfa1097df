"""What one job may use, and how the kernel is told.

A process's limits are set twice: wide ones when it is confined, and its job's own ones when that job begins
(`begin`), since a spare waits for its job already confined. A limit can be lowered at any time and never raised.
"""

from __future__ import annotations

import resource
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

MIB = 1024 * 1024
GIB = 1024 * MIB


class JobLimits(BaseModel):
    """What one job may use. The kernel counts some of it for each process; `Watch` counts the rest for all of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpu_seconds: int = Field(gt=0, description="Processor time of each process, from the job's begin on.")
    memory_bytes: int = Field(
        gt=0, description="Private memory that each process takes, and all memory of the job (`Watch`)."
    )
    processes: int = Field(gt=0, description="Processes and threads.")
    open_files: int = Field(gt=0, description="Descriptors of each process.")
    file_bytes: int = Field(gt=0, description="Size of each file.")
    disk_bytes: int = Field(gt=0, description="What the job's folder holds.")
    disk_files: int = Field(gt=0, description="Files and folders in the job's folder.")
    shared_memory_bytes: int = Field(gt=0, description="What /dev/shm holds.")


def apply(limits: JobLimits, counted_already: int = 0) -> None:
    """Sets the limits of this process and all that it will start, except that of processor time.

    `counted_already` are the processes that the kernel will count besides the job's own: those of the same user.
    """
    values = {
        resource.RLIMIT_DATA: limits.memory_bytes + private_memory(),
        resource.RLIMIT_NPROC: limits.processes + counted_already,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_SIGPENDING: 256,
        resource.RLIMIT_MEMLOCK: 8 * MIB,
    }
    for name, value in values.items():
        _lower(name, value, value)


def begin(limits: JobLimits, private_bytes: int) -> None:
    """Called by the job's process itself when its job begins: lowers what may be lowered and starts the processor time.
    `private_bytes` is its `private_memory` from before it waited for the job.

    The kernel counts whole seconds, so the processor time is right to half a second. What a spare used while it was
    getting ready is not counted. A limit on processes stays as it was set first.
    """
    memory = limits.memory_bytes + private_bytes
    _lower(resource.RLIMIT_DATA, memory, memory)
    _lower(resource.RLIMIT_NOFILE, limits.open_files, limits.open_files)
    _lower(resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes)
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = round(used.ru_utime + used.ru_stime) + limits.cpu_seconds
    # Between the soft limit (SIGXCPU) and the hard one (SIGKILL) lies what tells "too long" from other deaths.
    _lower(resource.RLIMIT_CPU, allowed, allowed + 1)


def private_memory() -> int:
    """Bytes that the kernel counts of this process for RLIMIT_DATA, touched or not. Of a process that imported torch it
    is what the libraries map, 0.9 GiB where they are built for CUDA: nothing that a job asked for. 0 where the
    process may not look at itself.
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[5])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def _lower(name: int, soft: int, hard: int) -> None:
    present = resource.getrlimit(name)[1]
    if present != resource.RLIM_INFINITY:
        soft, hard = min(soft, present), min(hard, present)
    resource.setrlimit(name, (soft, hard))
