"""Functions of tensors of two devices, and a way to check their compiled graphs without a GPU.

`run_as_fakes` compiles a function for an H200 and calls the wrapper with fake tensors, which know their device but have
no memory; each kernel launch checks that all it is given lies on the GPU and has the dtype that it was made for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.wrapper import render_wrapper
from compiler.compile import Generated, Target, generate, lower, plan
from compiler.devices import device_for
from compiler.lowering.decompositions import decompositions
from compiler.options import Options
from compiler.runtime.executable import build_executable

GPU = torch.device("cuda")
PLACES = torch.tensor([[2, 0, 1], [1, 1, 0]])


@dataclass(frozen=True)
class Given:
    """An input: its shape, its device and its dtype. Integers are places from 0 to 2."""

    shape: tuple[int, ...]
    device: str = "cuda"
    dtype: torch.dtype = torch.float32

    def real(self) -> Tensor:
        generator = torch.Generator().manual_seed(len(self.shape))
        if self.dtype == torch.bool:
            return (torch.rand(self.shape, generator=generator) > 0.5).to(self.device)
        if not self.dtype.is_floating_point:
            return torch.randint(0, 3, self.shape, generator=generator, dtype=self.dtype).to(self.device)
        return torch.randn(self.shape, generator=generator).to(self.device, self.dtype)


ROWS, SCALAR, DOUBLE = Given((5, 4)), Given((), "cpu"), Given((), "cpu", torch.float64)
ROW_ON_CPU, INDEX, PLACE = Given((4,), "cpu"), Given((3,), "cpu", torch.int64), Given((), "cpu", torch.int64)


def at(x: Tensor, *index: Tensor | None) -> Tensor:
    """`x[index]`, which Python asks CUDA's driver for a device to do, also of fake tensors."""
    return torch.ops.aten.index.Tensor(x, index)


def over(x: Tensor) -> Tensor:
    """`x.cuda()`, for the same reason."""
    return torch.ops.aten._to_copy.default(x, device=GPU)


def positions(x: Tensor) -> tuple[Tensor, Tensor]:
    """A range that eager computes on the CPU, read on both."""
    steps = torch.arange(3)
    return at(x, steps), steps * 2


def there_and_back(x: Tensor) -> tuple[Tensor, Tensor]:
    on_cpu = (x * 2).cpu() + 1
    return on_cpu, on_cpu.to(x.device) * 3


def sorted_elsewhere(x: Tensor) -> Tensor:
    return at(x, torch.argsort(torch.linspace(1, 0, 5))) + 1


def counted(x: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """What an optimiser does with its step, a scalar on the CPU."""
    step = step + 1
    return x / (1 - 0.9**step), step


def put(x: Tensor, index: Tensor, value: Tensor) -> Tensor:
    return x.index_put((index,), value) * 2


def steps_of_foreach(x: Tensor, a: Tensor, b: Tensor) -> list[Tensor]:
    counts = torch._foreach_add([a, b], 1.0)
    return [x * count for count in torch._foreach_mul([x, x + 1], 2.0)] + list(counts)


CASES: dict[str, tuple[Callable[..., Any], tuple[Given, ...]]] = {
    "range": (positions, (ROWS,)),
    "constant index": (lambda x: at(x, PLACES.view(-1)).sum(0), (ROWS,)),
    "scalar made inside": (lambda x: x * torch.tensor(2.5), (ROWS,)),
    "scalar made inside, given back": (lambda x: (x * (s := torch.tensor(2.5)), s + 1), (ROWS,)),
    "vector made inside": (lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0]).to(x.device), (ROWS,)),
    "there and back": (there_and_back, (ROWS,)),
    "sorted elsewhere": (sorted_elsewhere, (ROWS,)),
    "scalar": (lambda x, s: x * s, (ROWS, SCALAR)),
    "double scalar": (lambda x, s: x * s + s, (ROWS, DOUBLE)),
    "scalar, given back": (lambda x, s: (x * s, s), (ROWS, SCALAR)),
    "scalar of a view": (lambda x, v: x * v[1], (ROWS, ROW_ON_CPU)),
    "scalar read on both": (lambda x, s: (x - s.exp(), s.exp() + 1), (ROWS, SCALAR)),
    "scalar, expanded": (lambda x, s: (x.sum(), s.expand(4) * 2), (ROWS, SCALAR)),
    "scalar in where": (lambda x, s: torch.where(x > s, x, s), (ROWS, SCALAR)),
    "scalar in lerp and addcmul": (lambda x, s: (torch.lerp(x, x + 1, s), x.addcmul(x, s)), (ROWS, SCALAR)),
    "scalar to fill with": (lambda x, s: (torch.fill(x, s), x.masked_fill(x > 0, s)), (ROWS, SCALAR)),
    "step of an optimiser": (counted, (ROWS, SCALAR)),
    "steps of foreach": (steps_of_foreach, (ROWS, SCALAR, SCALAR)),
    "index": (lambda x, i: (at(x, i) * 2, i + 1), (ROWS, INDEX)),
    "index of columns": (lambda x, i: at(x, None, i).sin(), (ROWS, INDEX)),
    "index of one place": (lambda x, i: at(x, i) + 1, (ROWS, PLACE)),
    "put at an index": (put, (ROWS, INDEX, SCALAR)),
    "put of a scalar": (lambda x, s: torch.index_put(x, (x > 0,), s), (ROWS, SCALAR)),
    "input brought over": (lambda x, v: (x + over(v * 2), v.sum()), (ROWS, ROW_ON_CPU)),
    "input brought over, with gaps": (lambda x, v: x.narrow(1, 0, 2) + over(v[::2]), (ROWS, ROW_ON_CPU)),
    "only the CPU, and one result brought over": (lambda v: (v.sin(), over(v.cos())), (ROW_ON_CPU,)),
    "computed on the CPU beside": (lambda x, v: (x.sin(), v.outer(v).mv(v).softmax(0)), (ROWS, ROW_ON_CPU)),
    "product, then over": (lambda x, v: (x @ x.T).cpu() @ v.new_ones(5), (ROWS, ROW_ON_CPU)),
    "sum brought back": (lambda x: x / x.sum().cpu(), (ROWS,)),
    "mask of the CPU": (lambda x: x * over(torch.ones(5, 4).tril()), (ROWS,)),
    "copied into the CPU's": (lambda x, v: v.copy_(x.select(0, 0)) * 2, (ROWS, ROW_ON_CPU)),
    "bits of the CPU's": (lambda x, v: (x + 1, v.view(torch.int32) ^ 1), (ROWS, ROW_ON_CPU)),
    "cat on the CPU": (lambda x, v: over(torch.cat([v, x.select(0, 0).cpu()])).relu(), (ROWS, ROW_ON_CPU)),
}  # fmt: skip


class WrongDeviceError(Exception):
    """A kernel was given a tensor of another device, or of another dtype, than it was made for."""


def run_as_fakes(function: Callable[..., Any], given: tuple[Given, ...]) -> tuple[list[Tensor], list[Tensor], str]:
    """What a compiled graph gives, what eager gives, both as fake tensors, and the wrapper's text."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        inputs = [torch.empty(one.shape, device=one.device, dtype=one.dtype) for one in given]
        eager = function(*[x.clone() for x in inputs])
        graph = make_fx(functionalize(function), decomposition_table=decompositions())(*inputs)
    compilation = generate(plan(lower(graph, Target(GPU, device_for("h200"), Options()))), wants_triton=True)
    text = render_wrapper(compilation.schedule, compilation.memory, compilation.primary)
    launchers = {kernel.name: _launcher(kernel, compilation) for kernel in compilation.primary.values()}
    executable = build_executable(compilation.schedule, text, launchers, torch.device("cpu"))
    with mode, _scope(executable.call.__globals__):
        return list(executable.call(inputs)), [*eager] if isinstance(eager, tuple | list) else [eager], text


def _launcher(kernel: RenderedKernel, compilation: Generated) -> Callable[..., None]:
    layouts = compilation.schedule.graph.buffers

    def launch(*arguments: Any) -> None:
        for name, tensor in zip(kernel.parameters, arguments, strict=False):
            if tensor.device.type != "cuda" or tensor.dtype != layouts[name].dtype:
                raise WrongDeviceError(f"{kernel.name} reads or writes {name} on {tensor.device} as {tensor.dtype}")

    return launch


@contextmanager
def _scope(names: dict[str, Any]) -> Iterator[None]:
    """The wrapper's functions as fake tensors take them."""
    names["empty"] = lambda shape, stride, dtype: torch.empty_strided(shape, stride, dtype=dtype, device=GPU)
    names["view"] = names["alias"]
    yield
