"""Kernels as builtin functions of tensors and sizes: `launcher.cpp`, which reads the arguments and launches.

A launch through ctypes, or through Triton's own launcher, takes longer on the host than many kernels run: it goes
through Python for every argument. Here all that is known once the kernel is loaded stands in a record, and one small
library, compiled once for a machine and kept beside the kernels' own, does the rest. Where it cannot be had (no C++
compiler beside Triton's, a torch that does not tell its tensors' addresses) the callers keep their slower ways.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from compiler.runtime.cpp.compiler import CompilationFailed, CompilerMissing, load_library
from compiler.runtime.host.quick_torch import address_function

#: Compiled as one text.
SOURCES = tuple(Path(__file__).with_name(f"{name}.cpp") for name in ("launcher", "flat", "library_products"))

#: Kernels with more arguments are launched the slower way; as in launcher.cpp.
MOST_ARGUMENTS = 64
#: Kernels with more descriptors are launched by Triton; as in launcher.cpp.
MOST_DESCRIPTORS = 8

#: Functions of the library that make a builtin function of a record.
_MAKERS = ("cpu_launcher", "gpu_launcher", "address_test", "flat_call", "flat_call_boxed", "library_product")

Launch = Callable[..., None]


class CpuKernel(ctypes.Structure):
    """What launcher.cpp needs to know of a kernel on the CPU; its fields in its order."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("address", ctypes.c_void_p),
        ("tensors", ctypes.c_int64),
        ("sizes", ctypes.c_int64),
        ("threads", ctypes.py_object),
        ("set_threads", ctypes.c_void_p),
    )


class Descriptor(ctypes.Structure):
    """An argument of a kernel that tells where a matrix lies (`TileDescriptor`) and how its tiles lie in shared memory
    (`TileInMemory`); sizes and strides are in elements."""

    _fields_ = (
        ("map", ctypes.c_uint8 * 128),
        ("tensor", ctypes.c_int64),
        ("address", ctypes.c_int64),
        ("lines", ctypes.c_int64),
        ("elements", ctypes.c_int64),
        ("stride", ctypes.c_int64),
        ("element_size", ctypes.c_int64),
        ("copied_lines", ctypes.c_int64),
        ("copied_elements", ctypes.c_int64),
        ("element", ctypes.c_int64),
        ("swizzle", ctypes.c_int64),
        ("sizes", ctypes.c_int32 * 2),
        ("strides", ctypes.c_int64 * 2),
    )


class GpuKernel(ctypes.Structure):
    """The same of a kernel on a GPU. Until `function` is set, every launch is left to `otherwise`."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("address", ctypes.c_void_p),
        ("tensors", ctypes.c_int64),
        ("sizes", ctypes.c_int64),
        ("launch", ctypes.c_void_p),
        ("device", ctypes.c_void_p),
        ("on_device", ctypes.c_int64),
        ("grid", ctypes.c_int64),
        ("block", ctypes.c_int64),
        ("shared_bytes", ctypes.c_int64),
        ("has_workspace", ctypes.c_int64),
        ("workspace_stream", ctypes.c_int64),
        ("workspace", ctypes.c_int64),
        ("counters", ctypes.c_int64),
        ("grid_of", ctypes.py_object),
        ("stream_of", ctypes.py_object),
        ("device_number", ctypes.py_object),
        ("otherwise", ctypes.py_object),
        ("described", ctypes.c_int64),
        ("descriptors", ctypes.POINTER(Descriptor)),
        ("encode", ctypes.c_void_p),
    )


class Addresses(ctypes.Structure):
    """Where tensors are expected, for `address_test`; `expected` is an array that this keeps."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("expected", ctypes.POINTER(ctypes.c_int64)),
    )


class Flat(ctypes.Structure):
    """A wrapper as a list of steps, for `flat_calls`: what their numbers mean stands in flat.cpp."""

    _fields_ = (
        ("steps", ctypes.POINTER(ctypes.c_int64)),
        ("inputs", ctypes.c_int64),
        ("constants", ctypes.c_int64),
        ("variables", ctypes.c_int64),
        ("constant", ctypes.POINTER(ctypes.py_object)),
        ("device", ctypes.c_void_p),
        ("on_device", ctypes.c_int64),
        ("otherwise", ctypes.py_object),
        ("gradients_on", ctypes.py_object),
        ("set_gradients", ctypes.py_object),
        ("set_frames", ctypes.py_object),
    )


@functools.cache
def launcher_library() -> ctypes.PyDLL | None:
    """The compiled `SOURCES`; None where it cannot be had."""
    if address_function() is None:
        return None
    try:
        texts = (source.read_text(encoding="utf-8") for source in SOURCES)
        library = load_library("\n".join(texts), is_kernel=False)
    except (CompilerMissing, CompilationFailed, OSError):
        return None
    with_interpreter = ctypes.PyDLL(library._name, handle=library._handle)
    for name in _MAKERS:
        make = getattr(with_interpreter, name)
        make.argtypes, make.restype = [ctypes.py_object, ctypes.c_void_p], ctypes.py_object
    return with_interpreter


def address_of(function: Any) -> int | None:
    """Where a function of a library starts."""
    return ctypes.cast(function, ctypes.c_void_p).value


def cpu_launch(record: CpuKernel) -> Launch | None:
    """A builtin function that calls the kernel of `record`; None where the library cannot be had."""
    library = launcher_library()
    if library is None or record.tensors + record.sizes > MOST_ARGUMENTS:
        return None
    record.address = address_function()
    launch: Launch = library.cpu_launcher(record, ctypes.addressof(record))
    return launch


def gpu_launch(record: GpuKernel) -> Launch | None:
    """The same for a kernel on a GPU, which may still have to be compiled: the record may be filled in later."""
    library, driver = launcher_library(), cuda_driver()
    if library is None or driver is None or record.tensors + record.sizes > MOST_ARGUMENTS:
        return None
    if record.described > MOST_DESCRIPTORS or (record.described and not hasattr(driver, "cuTensorMapEncodeTiled")):
        return None
    record.address = address_function()
    record.launch = address_of(driver.cuLaunchKernel)
    record.device = address_of(driver.cuCtxGetDevice)
    if record.described:
        record.encode = address_of(driver.cuTensorMapEncodeTiled)
    launch: Launch = library.gpu_launcher(record, ctypes.addressof(record))
    return launch


def flat_calls(
    record: Flat, on_device: int | None
) -> tuple[Callable[..., list[Any]], Callable[[list[Any]], list[Any]]] | None:
    """Builtin functions that run the steps of `record`: one of the inputs by position, one of a list of them. With
    `on_device`, a call while another GPU is the current one is left to `record.otherwise`. None where the library, or
    what tells the current device, cannot be had."""
    library, driver = launcher_library(), cuda_driver() if on_device is not None else None
    if library is None or (on_device is not None and driver is None):
        return None
    if driver is not None:
        record.on_device, record.device = on_device, address_of(driver.cuCtxGetDevice)
    where = ctypes.addressof(record)
    return library.flat_call(record, where), library.flat_call_boxed(record, where)


def address_test(addresses: Sequence[int]) -> Callable[[list[Any]], bool] | None:
    """A builtin function of a list of values that tells whether the tensors among them start at `addresses`; 0 stands
    for any address, or for what is no tensor. None where the library cannot be had."""
    library = launcher_library()
    if library is None:
        return None
    expected = (ctypes.c_int64 * len(addresses))(*addresses)
    record = Addresses(address=address_function(), count=len(addresses), expected=expected)
    test: Callable[[list[Any]], bool] = library.address_test(record, ctypes.addressof(record))
    return test


def launch_by_driver(
    function: int | None, grid: int, threads: int, shared_bytes: int, stream: int, values: Sequence[int]
) -> bool:
    """Launch a kernel with these addresses and sizes through ctypes, for launches that the library cannot do. False
    where there is no function or no driver, or the driver refuses: in a thread that has no context yet, for one."""
    driver = cuda_driver()
    if driver is None or function is None:
        return False
    # Two addresses follow that Triton adds to every kernel, for memory that ours never want.
    held = (ctypes.c_int64 * (len(values) + 2))(*values)
    start = ctypes.addressof(held)
    addresses = range(start, start + ctypes.sizeof(held), ctypes.sizeof(ctypes.c_int64))
    parameters = (ctypes.c_void_p * len(held))(*addresses)
    handle, queue = ctypes.c_void_p(function), ctypes.c_void_p(stream)
    return driver.cuLaunchKernel(handle, grid, 1, 1, threads, 1, 1, shared_bytes, queue, parameters, None) == 0


#: CUfunction_attribute: the size of the clusters in which a function's programs are started, along each axis, and
#: whether it may be more than what every device with clusters takes.
_CLUSTER_SIZES, _LARGE_CLUSTERS = (11, 12, 13), 14


def start_together(function: int, programs: int) -> None:
    """Have every launch of a kernel start its programs in clusters of so many, which divide its grid.

    Raises RuntimeError where the driver refuses."""
    driver = cuda_driver()
    for attribute, size in ((_LARGE_CLUSTERS, 1), *zip(_CLUSTER_SIZES, (programs, 1, 1), strict=True)):
        failed = -1 if driver is None else driver.cuFuncSetAttribute(ctypes.c_void_p(function), attribute, size)
        if failed:
            raise RuntimeError(f"cuFuncSetAttribute failed with CUDA's error {failed}: no clusters of {programs}")


#: CUstream_flags: it does not wait for what is launched on the stream 0.
_APART = 1


def new_stream() -> int | None:
    """A new stream of the current GPU, which lives as long as the process; None where the driver makes none."""
    driver, made = cuda_driver(), ctypes.c_void_p()
    if driver is None or driver.cuStreamCreate(ctypes.byref(made), _APART):
        return None
    return made.value


@functools.cache
def cuda_driver() -> ctypes.CDLL | None:
    """CUDA's driver, which torch has loaded; None where there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
