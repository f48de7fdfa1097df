"""Seeds of the kernels that draw random numbers, drawn from torch's own generator at the start of every call.

They are what `torch.randint` gives, and the generator moves on as it does for that. But on a GPU that is a kernel,
which takes the host as long as the rest of a short graph (10.9 us beside an H200). So where there is one, the host
works it out from the generator's seed and offset (`seeds.cpp`) and has the stream write it, which is no launch (1.1
us). On the device a write takes as long as the kernel, some 2.4 us, so that several stay the kernel's. While launches
are recorded, as for a CUDA graph, each replay must draw anew, and torch's kernel does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

from compiler.accelerators import is_on
from compiler.runtime.host.launcher import cuda_driver, launcher_library
from compiler.runtime.host.quick_torch import address_function

#: What a seed may be: all numbers of 64 bits but the largest, which `torch.randint` leaves out.
LOWEST, END = -(2**63), 2**63 - 1
Draw = Callable[[torch.Tensor], Any]


class Seed(ctypes.Structure):
    """What seeds.cpp needs to know; its fields in its order."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("write", ctypes.c_void_p),
        ("capturing", ctypes.c_void_p),
        ("initial_seed", ctypes.py_object),
        ("get_offset", ctypes.py_object),
        ("set_offset", ctypes.py_object),
        ("stream_of", ctypes.py_object),
        ("device_number", ctypes.py_object),
        ("otherwise", ctypes.py_object),
    )


def by_kernel(seeds: torch.Tensor) -> None:
    """Fill a tensor of int64 with seeds, by torch's own kernel."""
    seeds.random_(LOWEST, END)


def seed_drawer(device: torch.device, count: int) -> Draw:
    """A function that fills a tensor of `count` int64 on `device`, which is the current one while it is called."""
    if device.type != "cuda" or count > 1 or not is_on("seeds"):
        return by_kernel
    if not torch.cuda.default_generators:  # until CUDA is started
        torch.cuda.init()
    number = torch.cuda.current_device() if device.index is None else device.index
    return _writer(torch.cuda.default_generators[number], number) or by_kernel


def _writer(generator: torch.Generator, number: int) -> Draw | None:
    """A function that has the stream of GPU `number`, which has that generator, write a seed; None where there can be
    none."""
    library, driver = launcher_library(), cuda_driver()
    if library is None or driver is None or not hasattr(driver, "cuStreamWriteValue64_v2"):
        return None
    record = Seed(
        address=address_function(),
        write=ctypes.cast(driver.cuStreamWriteValue64_v2, ctypes.c_void_p),
        capturing=ctypes.cast(driver.cuStreamIsCapturing, ctypes.c_void_p),
        initial_seed=generator.initial_seed,
        get_offset=generator.get_offset,
        set_offset=generator.set_offset,
        stream_of=torch._C._cuda_getCurrentRawStream,
        device_number=number,
        otherwise=by_kernel,
    )
    draw: Draw = library.seed_drawer(record, ctypes.addressof(record))
    return draw
