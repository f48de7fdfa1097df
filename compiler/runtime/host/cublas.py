"""cuBLASLt as torch has loaded it: its descriptions of a product, and what torch would ask of it."""

from __future__ import annotations

import ctypes
import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

#: cudaDataType_t of library_types.h.
TYPES = {torch.float32: 0, torch.float16: 2, torch.bfloat16: 14}
FLOAT = 0
#: cublasComputeType_t, the second where TensorFloat-32 is allowed.
COMPUTE_IN_FLOAT, COMPUTE_IN_TF32 = 68, 77
#: cublasLtEpilogue_t: nothing, and by the activation that follows a bias.
NO_EPILOGUE, EPILOGUES = 1, {"none": 4, "relu": 6, "gelu": 36}

#: cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t, cublasLtMatmulPreferenceAttributes_t.
_TRANSPOSED_A, _TRANSPOSED_B, _EPILOGUE, _BIAS_POINTER = 3, 4, 7, 8
_BATCHES, _BATCH_STEP = 5, 6
_MOST_WORKSPACE, _ALIGNMENTS = 1, (5, 6, 7, 8)

#: Bytes that torch lets cuBLASLt have to work in, and cuBLAS (on Hopper, and elsewhere), where the environment does not
#: say.
_LT_WORKSPACE, _WORKSPACE_OF_HOPPER, _WORKSPACE = 1 << 20, 32 << 20, (8 << 20) + (128 << 10)


class BlasError(RuntimeError):
    """A function of cuBLASLt has failed, or knows no algorithm."""


class HeuristicResult(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t"""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace_bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


@functools.cache
def loaded() -> ctypes.CDLL | None:
    """The library, if torch has loaded it; None where it has not."""
    major = (torch.version.cuda or "").partition(".")[0]
    try:
        return ctypes.CDLL(f"libcublasLt.so.{major}", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


Setting = tuple[Callable[[], Any], Any]


def usual_settings(dtype: torch.dtype) -> Sequence[Setting]:
    """What torch's settings must be for a product of `dtype` to be made as it is made by default: functions that tell
    them, each with what it must tell. Settings that a torch has not need not be asked for. Which of its two libraries
    torch is to prefer is none of them: cuBLAS takes what cuBLASLt finds best."""
    wanted: list[tuple[str, Any]] = [
        ("_len_torch_dispatch_stack", 0),
        ("_get_deterministic_algorithms", False),
        ("_get_sm_carveout_experimental", None),
        ("_cuda_tunableop_is_enabled", False),
    ]
    if dtype == torch.bfloat16:
        wanted.append(_reduction("_get_cublas_allow_bf16_reduced_precision_reduction"))
    if dtype == torch.float16:
        wanted.append(_reduction("_get_cublas_allow_fp16_reduced_precision_reduction"))
        wanted.append(("_get_cublas_allow_fp16_accumulation", False))
    told = ((getattr(torch._C, name, None), expected) for name, expected in wanted)
    settings = [(tell, expected) for tell, expected in told if tell is not None]
    return [*settings, (may_be_tf32, may_be_tf32())] if dtype == torch.float32 else settings


def _reduction(name: str) -> tuple[str, Any]:
    """Sums of halves may be made in parts and in half precision; newer torches tell both at once."""
    return name, ((True, True) if isinstance(getattr(torch._C, name, bool)(), tuple) else True)


def may_be_tf32() -> bool:
    """Whether products of float32 may be made in TensorFloat-32 at the moment."""
    return torch._C._get_fp32_precision_getter("cuda", "matmul") == "tf32"


def workspace_of_lt() -> int:
    """The most bytes that torch lets cuBLASLt have to work in."""
    asked = os.environ.get("CUBLASLT_WORKSPACE_SIZE", "")
    return 1024 * int(asked) if asked.isdigit() else _LT_WORKSPACE


def workspace_of_cublas(device: int) -> int:
    """The bytes that torch gives cuBLAS, which takes what cuBLASLt finds best with so much."""
    asked = re.findall(r":(\d+):(\d+)", os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""))
    if asked:
        return sum(1024 * int(size) * int(count) for size, count in asked)
    return _WORKSPACE_OF_HOPPER if torch.cuda.get_device_capability(device) == (9, 0) else _WORKSPACE


@functools.cache
def handle(device: int) -> int:
    """A handle for a GPU, which any thread may use. Raises BlasError."""
    with torch.cuda.device(device):
        return _made("cublasLtCreate")


def layout(dtype: torch.dtype, rows: int, columns: int, step: int, batches: int | None, batch_step: int) -> int:
    """A matrix as cuBLASLt knows it: `rows` numbers lie side by side, and columns `step` numbers apart. Or so many of
    them, `batch_step` numbers apart. Gives the address of a description that is kept as long as the process lives.
    Raises BlasError."""
    sizes = ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(step)
    made = _made("cublasLtMatrixLayoutCreate", TYPES[dtype], *sizes)
    if batches is not None:
        _set("cublasLtMatrixLayoutSetAttribute", made, _BATCHES, ctypes.c_int32(batches))
        _set("cublasLtMatrixLayoutSetAttribute", made, _BATCH_STEP, ctypes.c_int64(batch_step))
    return made


def chosen_algorithm(
    handle: int, layouts: tuple[int, int, int], transposed: tuple[bool, bool], computed_in: int, epilogue: int,
    bias: int, alignments: Sequence[int], most_workspace: int,
) -> HeuristicResult:  # fmt: skip
    """The algorithm that cuBLASLt finds best for `a @ b`, with a bias at that address (0: none). `layouts` are those of
    a, b and the result, `alignments` are theirs and the bias's. Raises BlasError where there is none."""
    a, b, result = map(ctypes.c_void_p, layouts)
    with _made_for_now("Desc", computed_in, FLOAT) as description, _made_for_now("Preference") as preference:
        for attribute, is_transposed in zip((_TRANSPOSED_A, _TRANSPOSED_B), transposed, strict=True):
            _set("cublasLtMatmulDescSetAttribute", description, attribute, ctypes.c_int32(is_transposed))
        _set("cublasLtMatmulDescSetAttribute", description, _EPILOGUE, ctypes.c_uint32(epilogue))
        if bias:
            _set("cublasLtMatmulDescSetAttribute", description, _BIAS_POINTER, ctypes.c_void_p(bias))
        _set("cublasLtMatmulPreferenceSetAttribute", preference, _MOST_WORKSPACE, ctypes.c_uint64(most_workspace))
        for attribute, alignment in zip(_ALIGNMENTS, alignments, strict=True):
            _set("cublasLtMatmulPreferenceSetAttribute", preference, attribute, ctypes.c_uint32(alignment))
        found, count = HeuristicResult(), ctypes.c_int()
        _call(
            "cublasLtMatmulAlgoGetHeuristic", ctypes.c_void_p(handle), ctypes.c_void_p(description), a, b, result,
            result, ctypes.c_void_p(preference), 1, ctypes.byref(found), ctypes.byref(count),
        )  # fmt: skip
    if not count.value:
        raise BlasError("cuBLASLt knows no algorithm")
    return found


@contextmanager
def _made_for_now(kind: str, *arguments: Any) -> Iterator[int]:
    made = _made(f"cublasLtMatmul{kind}Create", *arguments)
    try:
        yield made
    finally:
        _call(f"cublasLtMatmul{kind}Destroy", ctypes.c_void_p(made))


def _made(create: str, *arguments: Any) -> int:
    made = ctypes.c_void_p()
    _call(create, ctypes.byref(made), *arguments)
    return made.value or 0


def _set(function: str, owner: int, attribute: int, value: Any) -> None:
    _call(function, ctypes.c_void_p(owner), attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))


def _call(function: str, *arguments: Any) -> None:
    library = loaded()
    failed = -1 if library is None else getattr(library, function)(*arguments)
    if failed:
        raise BlasError(f"{function} failed with cuBLAS's error {failed}")
