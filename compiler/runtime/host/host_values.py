"""Results of one element in the host's memory: kernels write them there, and the host polls for them.

    condition = condition_on_host.place()      a place in pinned memory, which the GPU can write to
    fused_sum_lt(b, condition)                 writes there
    condition_on_host.send(condition)          the stream writes this call's number behind the value
    fused_div(a, div)                          runs while the host has the condition already
    return [condition_on_host.take(condition), div]

torch's `item` has the value copied when all that was launched before is done, and then waits for the whole stream. Here
the host waits for the one kernel (and what was launched before it), sees the value without the driver, and is on its
way to the next graph while the GPU works. `take` gives a bool of Python, or else a tensor on the CPU.

The host looks at its memory all the time, as CUDA's own waiting does by default; where the process has told CUDA to
leave the processor to others, CUDA is asked to wait. Every 0.1 ms the stream is asked whether it has failed.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from compiler.accelerators import is_on
from compiler.runtime.host.launcher import cuda_driver, launcher_library
from compiler.runtime.host.quick_torch import address_function

#: Bytes of a value's place: the value, from ARRIVED on two numbers of 32 bits that host_values.cpp keeps.
ARRIVED, PLACE_BYTES = 16, 64
#: CUctx_flags with which waiting leaves the processor to others: CU_CTX_SCHED_YIELD, CU_CTX_SCHED_BLOCKING_SYNC.
_PATIENT = 0x2 | 0x4

_NEEDED = ("cuStreamWriteValue32_v2", "cuStreamQuery", "cuStreamSynchronize", "cuCtxGetFlags")


class HostValueRecord(ctypes.Structure):
    """What host_values.cpp needs to know; its fields in its order."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("write", ctypes.c_void_p),
        ("query", ctypes.c_void_p),
        ("wait", ctypes.c_void_p),
        ("is_truth", ctypes.c_int64),
        ("unused", ctypes.py_object),
        ("make", ctypes.py_object),
        ("copy", ctypes.py_object),
        ("debug_mode", ctypes.py_object),
        ("synchronise", ctypes.py_object),
        ("stream_of", ctypes.py_object),
        ("device_number", ctypes.py_object),
    )


@dataclass(frozen=True)
class HostValue:
    """`place` gives a tensor of one element for one call; `send` is called with it after the kernel that writes it, and
    `take` after all that may run beside the wait."""

    place: Callable[[], torch.Tensor]
    send: Callable[[torch.Tensor], None]
    take: Callable[[torch.Tensor], Any]


def has_host_values(device: torch.device) -> bool:
    """Whether a value that is made on a device takes a way to the host."""
    return device.type == "cuda" and is_on("host_values")


def host_value(device: torch.device, dtype: torch.dtype, is_truth: bool) -> HostValue | None:
    """How a value of that dtype, of at most eight bytes, gets from the GPU `device` to the host. A truth must be a
    bool. None where the driver or the library has not what it takes."""
    library, driver = launcher_library(), cuda_driver()
    if library is None or driver is None or not all(hasattr(driver, name) for name in _NEEDED):
        return None
    places: list[torch.Tensor] = []
    record = HostValueRecord(
        address=address_function(),
        write=ctypes.cast(driver.cuStreamWriteValue32_v2, ctypes.c_void_p),
        query=ctypes.cast(driver.cuStreamQuery, ctypes.c_void_p),
        wait=ctypes.cast(driver.cuStreamSynchronize, ctypes.c_void_p) if _is_patient(driver) else None,
        is_truth=is_truth,
        unused=[],
        make=functools.partial(_new_place, dtype, places),
        copy=torch.clone,
        debug_mode=torch.cuda.get_sync_debug_mode,
        synchronise=_synchronise,
        stream_of=torch._C._cuda_getCurrentRawStream,
        device_number=torch.cuda.current_device() if device.index is None else device.index,
    )
    where = ctypes.addressof(record)
    return HostValue(
        library.place_of_value(record, where), library.sender_of_value(record, where),
        library.taker_of_value(record, where),
    )  # fmt: skip


def _new_place(dtype: torch.dtype, places: list[torch.Tensor]) -> torch.Tensor:
    """Memory that a GPU may write to as long as `places` lives: a call that failed may have launched its kernel."""
    memory = torch.zeros(PLACE_BYTES, dtype=torch.uint8, device="cpu", pin_memory=True)
    places.append(memory)
    return memory[: dtype.itemsize].view(dtype).view(())


def _is_patient(driver: ctypes.CDLL) -> bool:
    flags = ctypes.c_uint(0)
    return driver.cuCtxGetFlags(ctypes.byref(flags)) == 0 and bool(flags.value & _PATIENT)


def _synchronise() -> None:
    """As `item` does where `torch.cuda.set_sync_debug_mode` asks to be told of waiting: that warns or raises."""
    torch.cuda.current_stream().synchronize()
