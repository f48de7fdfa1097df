"""A compiled graph, ready to be called: the wrapper's text executed with the kernels in scope."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any, Protocol

import torch

from compiler.codegen.library_products import library_products
from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.wrapper import variable
from compiler.ir.formulas import FUNCTIONS
from compiler.ir.library_calls import LOADED_BYTES
from compiler.ir.nodes import ExternNode, LoopGraph
from compiler.runtime.host.flat import FlatCall, flat_call
from compiler.runtime.host.library_products import product_launch
from compiler.runtime.host.quick_torch import alias, allocator, view
from compiler.schedule.scheduler import Schedule

_serial = count()

# Held, since a call of the graph may be timed while patches of a snippet are in force.
_empty, _empty_strided = torch.empty, torch.empty_strided
_view_as_real, _view_as_complex = torch.view_as_real, torch.view_as_complex

Call = Callable[[list[Any]], list[Any]]


class BrokenPromiseError(Exception):
    """An operator of the user's own gave another tensor than its fake implementation says it gives. It was called in
    that line of the snippet."""

    line: int | None = None


@dataclass(frozen=True)
class Executable:
    """`call` takes the graph's inputs and gives its outputs, both as flat lists; `wrapper` is its source. `flat` does
    the same without Python, where it can be had."""

    call: Call
    wrapper: str
    kernels: Mapping[str, Callable[..., None]]
    flat: FlatCall | None = None

    @property
    def quickest(self) -> Call:
        return self.call if self.flat is None else self.flat.boxed


class CompiledGraph(Protocol):
    """What trying and timing a graph need of its compilation."""

    @property
    def schedule(self) -> Schedule: ...

    @property
    def executable(self) -> Executable: ...

    @property
    def runs_on(self) -> torch.device: ...

    @property
    def primary(self) -> dict[str, RenderedKernel]: ...

    @property
    def written_back(self) -> dict[str, str]: ...


def build_executable(
    schedule: Schedule,
    wrapper: str,
    kernels: Mapping[str, Callable[..., None]],
    device: torch.device,
) -> Executable:
    """Execute the wrapper's text; `kernels` maps the names that it calls to launchers."""
    products = library_products(schedule.units, schedule.graph)
    launches = {name: getattr(kernel, "launch", kernel) for name, kernel in kernels.items()}
    scope = _scope(schedule.graph, device) | launches
    scope["library"] = {
        getattr(unit.target, "__name__", str(unit.target)): unit.target
        for unit in schedule.units
        if isinstance(unit, ExternNode)
    }
    if device.type == "cuda":
        scope |= {name: product_launch(product, device) for name, product in products.items()}
    file_name = f"<fusionscope wrapper {next(_serial)}>"
    linecache.cache[file_name] = (len(wrapper), None, wrapper.splitlines(keepends=True), file_name)
    exec(compile(wrapper, file_name, "exec"), scope)
    number = _one_of_several(device)
    call = _on_device(scope["call"], number)
    flat = flat_call(wrapper, scope, {*kernels, *products}, call, number)
    return Executable(call, wrapper, kernels, flat)


def _one_of_several(device: torch.device) -> int | None:
    """The number of a GPU that is not the only one."""
    if device.type != "cuda" or torch.cuda.device_count() < 2:
        return None
    return torch.cuda.current_device() if device.index is None else device.index


def _on_device(call: Callable[..., list[Any]], number: int | None) -> Callable[..., list[Any]]:
    """`call` with that GPU as the current one, which allocations and launches go to."""
    if number is None:
        return call
    current = torch.cuda.current_device

    def call_there(*arguments: list[Any]) -> list[Any]:
        if current() == number:
            return call(*arguments)
        with torch.cuda.device(number):
            return call(*arguments)

    return call_there


def _scope(graph: LoopGraph, device: torch.device) -> dict[str, Any]:
    constants = {variable(name): tensor for name, tensor in graph.constants.items()}
    return {
        "torch": SimpleNamespace(**vars(torch)),
        "device": torch.device,
        "draw_seeds": draw_seeds,
        "inf": float("inf"),
        "nan": float("nan"),
        "empty": allocator(device),
        "view": view,
        "alias": alias,
        "reuse": reuse,
        "readable": readable,
        "read_as": read_as,
        "as_planned": as_planned,
        "as_promised": partial(as_promised, device.type),
        "aligned": aligned,
        **FUNCTIONS,
        **constants,
    }


def draw_seeds(seeds: torch.Tensor) -> None:
    """Fill a tensor of int64 from torch's own generator: any number of 64 bits, but the largest."""
    seeds.random_(-(2**63), 2**63 - 1)


def reuse(freed: torch.Tensor, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A tensor of another shape and dtype in the storage of one that is no longer needed."""
    result = _empty(0, dtype=dtype, device=freed.device)
    return result.set_(freed.untyped_storage(), 0, tuple(shape), tuple(stride))


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or where it has no elements one on its device in which its first one could be read: kernels that go
    by an index read there, where a mask says otherwise, and drop what they read."""
    if tensor.numel():
        return tensor
    extent = 1 + sum((max(size, 1) - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return _empty(extent, dtype=tensor.dtype, device=tensor.device)


def read_as(
    whole: torch.Tensor, dtype: torch.dtype, shape: Sequence[int], stride: Sequence[int], offset: int
) -> torch.Tensor:
    """A tensor of another dtype in the same memory, as `.imag` and `.view(dtype)` give it.

    Between complex and real numbers only by views that autograd knows: AOTAutograd, which has no formulas for views of
    open sizes, repeats these on the caller's tensor."""
    if whole.is_complex() and dtype == whole.dtype.to_real():
        in_memory = whole.conj() if whole.is_conj() else whole
        return _view_as_real(in_memory).as_strided(tuple(shape), tuple(stride), offset)
    if dtype.is_complex and whole.dtype == dtype.to_real():
        doubled = tuple(2 * step for step in stride)
        return _view_as_complex(whole.as_strided((*shape, 2), (*doubled, 1), 2 * offset))
    other = whole if whole.dtype == dtype else whole.view(dtype)
    return other.as_strided(tuple(shape), tuple(stride), offset)


def aligned(given: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy where not all of its rows begin with a whole vector. On an H200 torch 2.11's attention of
    queries of 64 bfloat16 in rows of 67 gives other values, and of float32 that begin within a vector an error."""
    steps = [step for size, step in zip(given.shape, given.stride(), strict=True) if size > 1 and step != 1]
    if all(begin % LOADED_BYTES == 0 for begin in (given.data_ptr(), *(step * given.itemsize for step in steps))):
        return given
    return given.clone(memory_format=torch.contiguous_format)


def as_planned(result: Any, shape: Sequence[int], stride: Sequence[int]) -> Any:
    """A library call's result in the layout that the kernels after it were generated for."""
    if not isinstance(result, torch.Tensor) or result.stride() == tuple(stride):
        return result
    return _empty_strided(shape, stride, dtype=result.dtype, device=result.device).copy_(result)


def as_promised(
    own_type: str, operator: str, result: Any, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype,
    is_elsewhere: bool, line: int | None = None,
) -> Any:  # fmt: skip
    """The same for an operator of the user's own. Raises BrokenPromiseError where the result is not of the shape and
    dtype, or not on the type of device (`own_type`, or the CPU), that kernels which get its address rely on."""
    if isinstance(result, torch.Tensor):
        given = tuple(result.shape), result.dtype, result.device.type
        promised = tuple(shape), dtype, "cpu" if is_elsewhere else own_type
        if given != promised:
            texts = (f"{kind} of shape {list(size)} on {device}" for size, kind, device in (given, promised))
            error = BrokenPromiseError("{} gave {}, but its fake implementation says {}".format(operator, *texts))
            error.line = line
            raise error
    return as_planned(result, shape, stride)
