"""Launching the library's products of matrices without what torch finds out anew at every call.

A call of `torch.mm` takes the host several times as long as the launch in it: the dispatcher, the shapes, the strides,
the handle, and the library's search for an algorithm. Here all that is known once the graph is compiled stands in a
record, the algorithm is chosen at the first call, and `library_products.cpp` has cuBLASLt launch it.

    mm, bmm                           what cuBLAS, which torch calls, takes from cuBLASLt: found best with its workspace
    addmm, with ReLU or GELU or none  what torch itself asks cuBLASLt for; in float32 with the workspace of cuBLAS

The first two and the third in half precision are torch's results to the last bit. In float32 torch's smaller workspace
rules out that the programs of few tiles share the sums, with which they take 0.63 of the time for 197 x 768 x 3072.

That torch's settings are the usual ones is asked at each call. Where one is not, where tensors start elsewhere, or
where the library refuses, torch is called.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler.accelerators import is_on
from compiler.codegen.library_products import LibraryProduct, Matrix
from compiler.runtime.host import cublas
from compiler.runtime.host.cublas import BlasError
from compiler.runtime.host.launcher import Launch, address_of, launcher_library
from compiler.runtime.host.quick_torch import address_function, view
from compiler.schedule.products.library_epilogues import ADDMM_GELU

aten = torch.ops.aten

#: Addresses are looked at for no more than this alignment, which memory from torch's allocator has.
MOST_ALIGNMENT = 256

_INTO: dict[Any, Callable[..., Any]] = {
    aten.mm.default: torch.mm,
    aten.bmm.default: torch.bmm,
    aten.addmm.default: torch.addmm,
    aten._addmm_activation.default: aten._addmm_activation.out,
    ADDMM_GELU: lambda *given, out: aten._addmm_activation.out(*given, use_gelu=True, out=out),
}

#: By device and stream, for as long as the process lives: a CUDA graph of the caller's may launch what uses them.
_workspaces: dict[tuple[int, int], torch.Tensor] = {}


class Settings(ctypes.Structure):
    """As in library_products.cpp."""

    _fields_ = (
        ("count", ctypes.c_int64),
        ("tell", ctypes.POINTER(ctypes.py_object)),
        ("expected", ctypes.POINTER(ctypes.py_object)),
    )


class Record(ctypes.Structure):
    """What library_products.cpp needs to know of a product; its fields in its order. Until `algorithm` is set, every
    call is left to `otherwise`."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("settings", Settings),
        *((name, ctypes.c_void_p) for name in "describe forget set multiply handle right left result".split()),
        ("algorithm", ctypes.c_void_p),
        ("tensors", ctypes.c_int64),
        ("alignment", ctypes.c_int64 * 4),
        ("offset", ctypes.c_int64 * 4),
        *((name, ctypes.c_int64) for name in "left_transposed right_transposed computed_in epilogue".split()),
        *((name, ctypes.c_int64) for name in "workspace_bytes workspace_stream workspace".split()),
        ("stream_of", ctypes.py_object),
        ("device_number", ctypes.py_object),
        ("otherwise", ctypes.py_object),
    )


def product_launch(product: LibraryProduct, device: torch.device) -> Launch:
    """A function of the product's tensors, in the order of its operator's arguments, and of the result, which it fills
    on the current stream; `device`, a GPU, is the current one while it is called."""
    is_torchs_own = product.bias is not None and os.environ.get("DISABLE_ADDMM_CUDA_LT") == "1"  # as torch takes it
    if not is_on("library_products") or is_torchs_own or launcher_library() is None or cublas.loaded() is None:
        return ByTorch(product)
    return ProductLauncher(product, torch.cuda.current_device() if device.index is None else device.index).launch


class ByTorch:
    """The product by torch's own operator."""

    def __init__(self, product: LibraryProduct) -> None:
        self._into = _INTO[product.target]
        self._given = [matrix for matrix in (product.bias, product.left, product.right) if matrix is not None]

    def __call__(self, *tensors: torch.Tensor) -> None:
        *given, result = tensors
        with torch.no_grad():
            self._into(*map(_seen_as, given, self._given), out=result)


def _seen_as(tensor: torch.Tensor, matrix: Matrix) -> torch.Tensor:
    layout: Any = matrix.layout
    return view(tensor, layout.shape, layout.stride, matrix.offset // layout.dtype.itemsize)


class ProductLauncher:
    """The product by cuBLASLt. What the first call is about decides which algorithm is chosen."""

    def __init__(self, product: LibraryProduct, device: int) -> None:
        self.product = product
        self._by_torch = ByTorch(product)
        self._device = device
        self._chosen: cublas.HeuristicResult | None = None
        self._is_refused = False
        dtype, bias = product.result.layout.dtype, product.bias
        offsets = [
            matrix.offset for matrix in (bias, product.left, product.right, product.result) if matrix is not None
        ]
        is_tf32 = dtype == torch.float32 and cublas.may_be_tf32()
        library: Any = cublas.loaded()
        self._record = Record(
            address=address_function(),
            settings=_settings(dtype),
            describe=address_of(library.cublasLtMatmulDescCreate),
            forget=address_of(library.cublasLtMatmulDescDestroy),
            set=address_of(library.cublasLtMatmulDescSetAttribute),
            multiply=address_of(library.cublasLtMatmul),
            tensors=len(offsets),
            offset=(ctypes.c_int64 * 4)(*offsets),
            left_transposed=product.left.is_transposed,
            right_transposed=product.right.is_transposed,
            computed_in=cublas.COMPUTE_IN_TF32 if is_tf32 else cublas.COMPUTE_IN_FLOAT,
            epilogue=cublas.NO_EPILOGUE if bias is None else cublas.EPILOGUES[product.activation],
            workspace_stream=-1,
            stream_of=torch._C._cuda_getCurrentRawStream,
            device_number=device,
        )

    @property
    def launch(self) -> Launch:
        """A builtin function of the tensors."""
        library: Any = launcher_library()
        self._record.otherwise = self._otherwise
        launch: Launch = library.library_product(self._record, ctypes.addressof(self._record))
        return launch

    def _otherwise(self, *tensors: torch.Tensor) -> None:
        """The first call, the first on another stream, and every one that is not as prepared."""
        if self._is_prepared_anew(tensors):
            self.launch(*tensors)
        else:
            self._by_torch(*tensors)

    def _is_prepared_anew(self, tensors: Sequence[torch.Tensor]) -> bool:
        if self._is_refused:
            return False
        record, was_chosen = self._record, self._chosen is not None
        stream = torch._C._cuda_getCurrentRawStream(self._device)
        if not was_chosen:
            starts = zip(tensors, record.offset, strict=False)
            try:
                self._choose([tensor.data_ptr() + offset for tensor, offset in starts])
            except BlasError:
                self._is_refused = True
                return False
        if record.workspace_bytes and record.workspace_stream != stream:
            record.workspace, record.workspace_stream = _workspace(self._device, stream).data_ptr(), stream
            return True
        return not was_chosen

    def _choose(self, addresses: Sequence[int]) -> None:
        """Choose the algorithm, for tensors at these addresses. Raises BlasError."""
        product, record = self.product, self._record
        left, right, result = layouts = tuple(
            _layout(matrix, product.batches) for matrix in (product.left, product.right, product.result)
        )
        *bias, of_left, of_right, of_result = alignments = [_alignment(address) for address in addresses]
        chosen = cublas.chosen_algorithm(
            cublas.handle(self._device), (right, left, result),
            (bool(record.right_transposed), bool(record.left_transposed)),
            record.computed_in, record.epilogue, addresses[0] if bias else 0,
            (of_right, of_left, of_result, *(bias or [of_result])), self._most_workspace(),
        )  # fmt: skip
        record.handle = cublas.handle(self._device)
        record.left, record.right, record.result = layouts
        record.alignment = (ctypes.c_int64 * 4)(*alignments)
        record.workspace_bytes = chosen.workspace_bytes
        self._chosen = chosen
        record.algorithm = ctypes.addressof(chosen.algorithm)

    def _most_workspace(self) -> int:
        is_as_torch_asks = self.product.bias is not None and self.product.result.layout.dtype != torch.float32
        return cublas.workspace_of_lt() if is_as_torch_asks else cublas.workspace_of_cublas(self._device)


def _workspace(device: int, stream: int) -> torch.Tensor:
    """What all products on a stream work in, one after the other."""
    if (device, stream) not in _workspaces:
        bytes_ = max(cublas.workspace_of_cublas(device), cublas.workspace_of_lt())
        _workspaces[device, stream] = torch.empty(bytes_, dtype=torch.uint8, device=f"cuda:{device}")
    return _workspaces[device, stream]


def prepare_stream(device: int, stream: int, like: int) -> None:
    """Make on `stream` what products want there, if they wanted it on the stream `like`: while launches are recorded,
    memory would be the recording's."""
    if (device, like) in _workspaces:
        _workspace(device, stream)


def _settings(dtype: torch.dtype) -> Settings:
    pairs = cublas.usual_settings(dtype)
    objects = ctypes.py_object * len(pairs)
    tell, expected = (objects(*part) for part in zip(*pairs, strict=True))
    return Settings(len(pairs), tell, expected)


def _layout(matrix: Matrix, batches: int | None) -> int:
    """A matrix as cuBLASLt, which counts columns first, finds it: its transpose, unless it lies transposed."""
    *_, rows, columns = matrix.layout.shape
    if not matrix.is_transposed:
        rows, columns = columns, rows
    assert isinstance(rows, int) and isinstance(columns, int)
    return cublas.layout(matrix.layout.dtype, rows, columns, matrix.step, batches, matrix.batch_step)


def _alignment(address: int) -> int:
    """The largest power of two up to `MOST_ALIGNMENT` that divides an address."""
    return min(address & -address or MOST_ALIGNMENT, MOST_ALIGNMENT)
