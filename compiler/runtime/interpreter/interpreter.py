"""Running a Triton kernel on CPU tensors, in Triton's own interpreter, to check what it computes.

It emulates one program instance at a time with NumPy: half a millisecond each or far more, so it is for small problems,
and a launch may be given a bound on its work. It checks values, not speed, and an access out of bounds is a real one:
call it in a process that may die.

The interpreter is meant to be switched on by an environment variable before Triton is imported, which would keep this
process from compiling kernels. Here it is switched on for the length of a block instead, `interpreting`, which is one
call where nobody opens it for several. What it gets wrong for our kernels is put right in the same scope:

- it keeps bfloat16 as bits in uint16, cuts float32 off where hardware rounds to the nearest even, multiplies
  matrices of these bits, and adds them in memory;
- a reduction or a scan with a combine function of our own calls that function once for each element;
- `libdevice` and PTX do nothing, and `tl.fma` rounds its product;
- a sum of int32 that is one number fails where it overflows;
- functions of Triton's own library (`tl.sum`) refuse to be called outside of a compiled kernel;
- a comparison of scalars keeps the dtype of what it compared, which spoils the values when it is broadcast;
- `~` of an unsigned integer overflows with NumPy 2;
- each sum and product of integers is made again in 64 bits, for an assertion that is then dropped;
- an assertion is met by whatever it is asked about;
- in Triton 3.6, a tensor as a bound of `range` fails with NumPy 2.4 and later.

A kernel's module is not made of functions for Triton's compiler first, as the interpreter would have it: `interpreted`
rewrites the whole text at once, which takes a third of the time.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import triton.language as tl
from triton.runtime import interpreter as stock
from triton.runtime.interpreter import InterpretedFunction, InterpreterBuilder, TensorHandle
from triton.runtime.jit import JITFunction

from compiler.codegen.rendered import RenderedKernel
from compiler.ir.float8 import FLOAT8
from compiler.runtime.interpreter.cooperative import WAITING, run_in_turns
from compiler.runtime.interpreter.text import interpreted
from compiler.runtime.interpreter.work import Work
from compiler.runtime.triton.source import (
    block_sizes,
    cluster_of,
    described,
    descriptor_of,
    file_name,
    grid_of,
    workspace_of,
)

Array = npt.NDArray[Any]

# The interpreter is one object with the position in the grid in it.
_one_at_a_time = threading.RLock()


#: How a kernel counts its points whose programs differ in nothing but the block of them that is theirs.
_COUNTED_BY_BLOCKS = re.compile(r"tl\.program_id\(0\)(\.to\(tl\.int64\))? \* XBLOCK \+ tl\.arange\(0, XBLOCK\)")


def interpret(
    kernel: RenderedKernel,
    tensors: list[torch.Tensor],
    sizes: Sequence[int] = (),
    most_work: float = math.inf,
    points_at_once: int = 0,
) -> None:
    """Run `kernel` on CPU tensors in the order of its parameters, and its sizes; its outputs are filled in place.

    Neighbouring programs run as one of a larger block, of up to `points_at_once` points, where they differ in nothing
    but their block: the same points by the same text, and one walk through its Python for all of them.

    Raises `TooMuchWork`, with the outputs filled in part, where it takes more than `most_work`."""
    if len(tensors) != len(kernel.parameters):
        raise ValueError(f"{kernel.name} takes {len(kernel.parameters)} tensors, got {len(tensors)}")
    arguments: list[Any] = [tensor.view(torch.uint8) if tensor.dtype in FLOAT8 else tensor for tensor in tensors]
    for position, descriptor in described(kernel).items():
        arguments[position] = descriptor_of(arguments[position], descriptor)
    wanted = workspace_of(kernel)
    if wanted is not None:
        arguments.append(torch.zeros(max(wanted[0], 16), dtype=torch.uint8))
        arguments.append(torch.zeros(max(wanted[1], 1), dtype=torch.int32))
    arguments += sizes
    count = grid_of(kernel)(*sizes)
    namespace = _namespace(kernel)
    body = namespace[kernel.name].fn
    names = body.__code__.co_varnames[: body.__code__.co_argcount]
    work = Work(count, most_work)
    with interpreting(), _counting(work):
        values = {name: stock._implicit_cvt(tensor) for name, tensor in zip(names, arguments, strict=False)}
        values |= _blocks(kernel)
        builder = stock.interpreter_builder
        builder.set_grid_dim(max(count, 1), 1, 1)
        if not namespace.keys().isdisjoint(WAITING):
            choose, cluster = lambda number: builder.set_grid_idx(number, 0, 0), cluster_of(kernel)
            run_in_turns(count, choose, lambda: body(**values), namespace, cluster)
            return
        with np.errstate(all="ignore"):
            for first, together in _in_blocks(kernel, count, points_at_once):
                builder.set_grid_idx(first // together, 0, 0)
                body(**values | _blocks(kernel, together))
                work.programs_have_ended(first + together)


def _blocks(kernel: RenderedKernel, together: int = 1) -> dict[str, Any]:
    """The block sizes, for a program that is `together` of them."""
    times = {"XBLOCK": together}
    return {name: tl.constexpr(times.get(name, 1) * size) for name, size in block_sizes(kernel).items()}


def _in_blocks(kernel: RenderedKernel, count: int, points: int) -> Iterator[tuple[int, int]]:
    """The programs of a launch, each time the first of them and how many run as one: a power of two, as blocks are."""
    most, counted = 1, kernel.source.count("tl.program_id") == len(_COUNTED_BY_BLOCKS.findall(kernel.source)) == 1
    if counted and workspace_of(kernel) is None:
        most = max(1, points // math.prod(block_sizes(kernel).values()))
    first = 0
    while first < count:
        together = 1 << min(most, count - first).bit_length() - 1
        yield first, together
        first += together


def _namespace(kernel: RenderedKernel) -> dict[str, Any]:
    """The kernel's module. One of the same text serves again, unless programs wait for each other: what they call is
    put there for one run."""
    namespace = _namespaces.get(kernel.source)
    if namespace is None or "wait_for" in namespace or "receive" in namespace:
        namespace = interpreted(kernel.source, file_name(kernel), kernel.name)
        namespace["libdevice"] = _Libdevice()
        if "cuda_capability_geq" in namespace:
            namespace["cuda_capability_geq"] = lambda *_: False
        if "approximate_reciprocal" in namespace:
            namespace["approximate_reciprocal"] = lambda x: 1.0 / x
        if len(_namespaces) >= _MOST_NAMESPACES:
            _namespaces.clear()
        _namespaces[kernel.source] = namespace
    return namespace


#: Modules by their text.
_namespaces: dict[str, dict[str, Any]] = {}
_MOST_NAMESPACES = 256
#: How many blocks of `interpreting` are open, one within the other.
_open_blocks = 0


@contextmanager
def interpreting() -> Iterator[None]:
    """Within the block, Triton's language works on NumPy arrays. To switch it over takes as long as a small kernel, so
    a caller with several of them opens one block for all; in it nothing may be compiled by Triton, and other threads
    have to wait with their kernels."""
    global _open_blocks
    with _one_at_a_time:
        scopes = [] if _open_blocks else _switched()
        _open_blocks += 1
        try:
            yield
        finally:
            _open_blocks -= 1
            for scope in reversed(scopes):
                scope.restore()


def _switched() -> list[Any]:
    """What is to be restored after it: Triton's language for NumPy, as the interpreter has it and with its faults
    mended."""
    # The names are put into the modules that a function knows: ours, and that of Triton's library.
    scopes = [stock._patch_lang(_switched), stock._patch_lang(tl.sum.fn)]
    ours = scopes[-1]
    ours.set_attr(tl.tensor, "__index__", lambda tensor: int(tensor.handle.data.reshape(-1)[0]))
    ours.set_attr(JITFunction, "__call__", _call_library_function)
    ours.set_attr(InterpreterBuilder, "cast_impl", _cast)
    ours.set_attr(InterpreterBuilder, "create_splat", _splat)
    ours.set_attr(InterpreterBuilder, "create_assert", _assert)
    ours.set_attr(InterpreterBuilder, "create_fma", _fused_multiply_add)
    ours.set_attr(InterpreterBuilder, "create_atomic_rmw", _update)
    ours.set_attr(InterpreterBuilder, "get_all_ones_value", _all_ones)
    ours.set_attr(stock.ReduceOps, "generic_reduce", _reduce_in_steps)
    ours.set_attr(stock.ReduceOps, "sum", _sum)
    ours.set_attr(stock.ScanOps, "generic_scan", _scan_in_steps)
    # Stock's sums run one by one in the type at hand, which rounds far more often than a GPU does.
    ours.set_attr(stock.ScanOps, "cumsum", lambda scan, operand: _scan_in_steps(scan, [operand]))
    ours.set_attr(stock.interpreter_builder, "options", _OPTIONS)
    return scopes


@contextmanager
def _counting(work: Work) -> Iterator[None]:
    """Within the block, `work` is told of all that the interpreter does."""
    scope = stock._LangPatchScope()
    scope.set_attr(InterpreterBuilder, "create_dot", partial(_dot, work))
    scope.set_attr(TensorHandle, "__post_init__", work.counting(_value_made))
    try:
        yield
    finally:
        scope.restore()


_value_made = TensorHandle.__post_init__
_OPTIONS = replace(stock.interpreter_builder.options, debug=True, sanitize_overflow=False)


def _assert(_builder: Any, condition: Any, message: str) -> None:
    if not np.all(condition.data):
        raise RuntimeError(message)


def _fused_multiply_add(_builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c by way of float64, in which a product of float32 is exact."""
    total = a.data.astype(np.float64) * b.data + c.data
    return TensorHandle(total.astype(a.data.dtype), a.dtype.scalar)


def _call_library_function(function: Any, *arguments: Any, **keywords: Any) -> Any:
    body = InterpretedFunction.rewritten_fn.get(function.fn) or InterpretedFunction(function.fn).rewrite()
    return body(*arguments, **keywords)


# bfloat16 ---------------------------------------------------------------------------------------------------------

_stock_cast = InterpreterBuilder.cast_impl
_stock_update = InterpreterBuilder.create_atomic_rmw


def _cast(builder: Any, source: Any, wanted: Any) -> Any:
    """A conversion; from and to bfloat16 by way of float32, rounded to the nearest even."""
    if source.dtype.scalar == tl.bfloat16 and wanted.scalar != tl.bfloat16:
        source = TensorHandle(_as_float32(source.data), tl.float32)
        if wanted.scalar == tl.float32:
            return source
    elif wanted.scalar == tl.bfloat16 and source.dtype.scalar != tl.bfloat16:
        return TensorHandle(_round_to_bfloat16(source.data.astype(np.float32)), tl.bfloat16)
    return _stock_cast(builder, source, wanted)


def _dot(work: Work, left: Any, right: Any, total: Any, *_settings: Any) -> Any:
    """A product of tiles, added to `total`, whose type its sums have. TensorFloat-32 is not rounded to."""
    one, two = (_cast(stock.interpreter_builder, operand, tl.float32).data for operand in (left, right))
    work.add_product(one, two)
    return TensorHandle(np.matmul(one, two, dtype=total.data.dtype) + total.data, total.dtype.scalar)


def _update(builder: Any, kind: Any, pointers: Any, values: Any, mask: Any, sem: Any, scope: Any) -> Any:
    """An update of elements in memory. bfloat16, which is only ever added, goes by way of float32: of the values that
    meet in one address, one at a time."""
    if values.dtype.scalar != tl.bfloat16:
        return _stock_update(builder, kind, pointers, values, mask, sem, scope)
    addresses, found = np.broadcast_arrays(pointers.data, values.data)
    addresses, found, old = addresses.reshape(-1), found.reshape(-1), np.zeros(found.size, np.uint16)
    left = np.flatnonzero(np.broadcast_to(mask.data, values.data.shape).reshape(-1))
    while left.size:
        now = left[np.unique(addresses[left], return_index=True)[1]]
        sources = TensorHandle(np.ascontiguousarray(addresses[now]), pointers.dtype)
        whole = TensorHandle(np.ones(now.size, bool), tl.int1)
        old[now] = builder.create_masked_load(sources, whole, None, None, None, None).data
        total = _as_float32(old[now]) + _as_float32(found[now])
        builder.create_masked_store(sources, TensorHandle(_round_to_bfloat16(total), tl.bfloat16), whole, None, None)
        left = np.setdiff1d(left, now)
    return TensorHandle(old.reshape(values.data.shape), tl.bfloat16)


def _as_float32(bits: Array) -> Array:
    values: Array = (bits.astype(np.uint32) << 16).view(np.float32)
    return values


def _round_to_bfloat16(values: Array) -> Array:
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def _splat(_builder: Any, kind: Any, scalar: Any) -> Any:
    data = scalar.data.reshape(-1)
    return TensorHandle(np.full(kind.shape, data[0], dtype=data.dtype), scalar.dtype.scalar)


def _all_ones(_builder: Any, kind: Any) -> Any:
    return TensorHandle(np.invert(np.zeros(1, dtype=stock._get_np_dtype(kind.scalar))), kind.scalar)


# Reductions -------------------------------------------------------------------------------------------------------


def _sum(reduction: Any, operand: Any) -> Any:
    """tl.sum in the operand's dtype: NumPy's own sum of int32 is an int64."""
    data = operand.handle.data
    total = np.sum(data, axis=reduction.axis, keepdims=reduction.keep_dims, dtype=data.dtype)
    return reduction.to_tensor(total, operand.dtype)


def _reduce_in_steps(reduction: Any, operands: Any) -> list[Any]:
    """tl.reduce with a combine function along an axis (our kernels name one where they keep it): neighbours are
    combined, whole arrays at a time, in log2(n) steps."""
    operands, axis = reduction.unravel(operands, reduction.axis)
    dtypes = [operand.dtype for operand in operands]
    arrays = [np.moveaxis(operand.handle.data, axis, 0) for operand in operands]
    while arrays[0].shape[0] > 1:
        paired = arrays[0].shape[0] // 2 * 2
        left, right = [a[0:paired:2] for a in arrays], [a[1:paired:2] for a in arrays]
        joined = _combine(reduction, left, right, dtypes)
        arrays = [np.concatenate([new, old[paired:]]) for new, old in zip(joined, arrays, strict=True)]
    results = [np.expand_dims(array[0], axis) if reduction.keep_dims else array[0] for array in arrays]
    return [reduction.to_tensor(result, dtype) for result, dtype in zip(results, dtypes, strict=True)]


def _scan_in_steps(scan: Any, operands: Any) -> list[Any]:
    """tl.associative_scan: each element is combined with the one at a distance before it that doubles at each step."""
    dtypes = [operand.dtype for operand in operands]
    arrays = [np.moveaxis(operand.handle.data, scan.axis, 0) for operand in operands]
    distance = 1
    while distance < arrays[0].shape[0]:
        # Blocks have powers of two elements, so whole ones are combined; the first ones have none before them.
        before = [np.roll(array, distance, axis=0) for array in arrays]
        joined = _combine(scan, before, arrays, dtypes)
        arrays = [np.concatenate([old[:distance], new[distance:]]) for new, old in zip(joined, arrays, strict=True)]
        distance *= 2
    return [
        scan.to_tensor(np.ascontiguousarray(np.moveaxis(array, 0, scan.axis)), dtype)
        for array, dtype in zip(arrays, dtypes, strict=True)
    ]


def _combine(reduction: Any, left: list[Array], right: list[Array], dtypes: list[Any]) -> list[Array]:
    values = [
        reduction.to_tensor(np.ascontiguousarray(a), dtype)
        for a, dtype in zip([*left, *right], [*dtypes, *dtypes], strict=True)
    ]
    result = reduction.combine_fn.fn(*values)
    results = result if isinstance(result, tuple | tl.tuple) else (result,)
    return [
        np.asarray(value.handle.data).reshape(array.shape).astype(array.dtype)
        for value, array in zip(results, left, strict=True)
    ]


# libdevice --------------------------------------------------------------------------------------------------------


def _by_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Array], Array]:
    def call(values: Array) -> Array:
        result: Array = function(torch.from_numpy(np.ascontiguousarray(values))).numpy()
        return result

    return call


_SAME_IN_NUMPY = """exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh sqrt floor ceil trunc rint hypot
copysign fmod"""

_FUNCTIONS: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name in _SAME_IN_NUMPY.split()} | {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "pow": np.power,
    "fast_dividef": np.divide,
    "rsqrt": lambda values: 1 / np.sqrt(values, dtype=np.float64),
    "erf": _by_torch(torch.erf),
    "erfc": _by_torch(torch.erfc),
    "lgamma": _by_torch(torch.lgamma),
}


class _Libdevice:
    """Stands in for `triton.language.extra.libdevice` in an interpreted kernel."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = _FUNCTIONS.get(name)
        if function is None:
            raise AttributeError(f"the interpreter has no libdevice.{name}")

        def call(*arguments: Any) -> Any:
            values = [stock.interpreter_semantic.to_tensor(argument) for argument in arguments]
            dtype = values[0].dtype
            data = function(*(value.handle.data for value in values)).astype(values[0].handle.data.dtype)
            is_block = any(value.type.is_block() for value in values)
            kind = tl.block_type(dtype, list(data.shape)) if is_block else dtype
            return tl.tensor(TensorHandle(data, dtype), kind)

        return call
