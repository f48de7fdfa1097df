"""Where the values of a kernel live: what it loads of each tensor, and how often, is what its own text does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from triton.runtime.interpreter import InterpreterBuilder

from compiler import report
from compiler.codegen.triton.levels import describe_levels
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.runtime.interpreter.interpreter import interpret
from tests.compile_program import compile_program, known_sizes
from tests.schedule.test_traffic import layer_norm, rnd, softmax


@contextmanager
def loads_counted(tensors: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Bytes that a kernel in Triton's interpreter loads of each tensor."""
    counts = dict.fromkeys(tensors, 0)
    load = InterpreterBuilder.create_masked_load

    def counting(self: Any, pointers: Any, mask: Any, *rest: Any, **keywords: Any) -> Any:
        wanted = np.asarray(pointers.data)[np.asarray(mask.data).astype(bool)]
        for name, tensor in tensors.items():
            start = tensor.data_ptr()
            inside = (wanted >= start) & (wanted < start + tensor.untyped_storage().nbytes())
            counts[name] += int(inside.sum()) * tensor.itemsize
        return load(self, pointers, mask, *rest, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(InterpreterBuilder, "create_masked_load", counting)
        yield counts


def softmax_of_columns(x: Tensor) -> Tensor:
    e = torch.exp(x - x.amax(0))
    return e / e.sum(0)


def weighted_rows(x: Tensor, weight: Tensor) -> Tensor:
    return (x * weight).sum(-1) + weight.sum()


def biased(x: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(x + bias)


def neighbours(x: Tensor) -> Tensor:
    return x[:, :-2] + x[:, 1:-1] + x[:, 2:]


@pytest.mark.parametrize(
    ("function", "inputs", "plan"),
    [
        (biased, (rnd(16, 96), rnd(96)), "pointwise"),
        (neighbours, (rnd(16, 96),), "pointwise"),
        (softmax, (rnd(16, 96),), "persistent"),
        (layer_norm, (rnd(16, 96), rnd(96), rnd(96)), "persistent"),
        (softmax_of_columns, (rnd(2100, 24),), "looped"),
        (weighted_rows, (rnd(16, 96), rnd(96)), None),
        (lambda x: (x + x.T).contiguous(), (rnd(64, 64),), "pointwise"),
        (lambda x: x.square().sum(0), (rnd(2000, 8),), "split"),
    ],
    ids="biased neighbours softmax layer_norm long_softmax weighted_rows transposed columns".split(),
)
def test_loads_are_those_of_the_kernel(
    function: Callable[..., Any], inputs: tuple[Tensor, ...], plan: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    compilation = compile_program(function, *inputs, disable=("team",))
    layouts = compilation.schedule.graph.buffers
    storage = {name: layout.dtype for name, layout in layouts.items()}
    given = dict(zip([name for name in compilation.schedule.graph.inputs if name], inputs, strict=True))
    for group in compilation.groups:
        rendered = compilation.triton[group.name]
        tensors = {
            name: given[name]
            if name in given
            else torch.zeros(known_sizes(layouts[name].shape), dtype=layouts[name].dtype)
            for name in rendered.parameters
        }
        with loads_counted(tensors, monkeypatch) as counts:
            interpret(rendered, list(tensors.values()))
        levels = describe_levels(group, storage, layouts, compilation.model)
        assert plan is None or levels.plan == plan
        assert {one.tensor: one.loaded_bytes for one in levels.loads} == {
            name: size for name, size in counts.items() if size
        }


def test_each_plane_of_a_stack_is_loaded_for_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one loop over all planes, all but the last lie below a bound, which is too wide a mask: nine would load four
    times their bytes."""

    def stream(x: Tensor) -> Tensor:
        return torch.stack([torch.roll(x[k], (k % 3 - 1, k // 3 - 1), (0, 1)) for k in range(9)])

    x, found = rnd(9, 8, 32), torch.empty(9, 8, 32)
    (kernel,) = compile_program(stream, x, disable=("parts",)).triton.values()
    with loads_counted({"x": x}, monkeypatch) as counts:
        interpret(kernel, [x, found])
    assert counts == {"x": x.nbytes}
    assert torch.equal(found, stream(x))


def levels_of(function: Callable[..., Any], *inputs: Tensor, disable: tuple[str, ...] = ()) -> report.KernelLevels:
    compilation = compile_program(function, *inputs, disable=disable)
    (group,) = compilation.groups
    layouts = compilation.schedule.graph.buffers
    return describe_levels(group, {n: x.dtype for n, x in layouts.items()}, layouts, compilation.model)


@pytest.mark.parametrize(
    ("disable", "plan", "passes", "times"),
    [(("team", "single_pass"), "looped", 3, 3), (("team",), "looped", 2, 2), ((), "team", 1, 1)],
)
def test_a_row_too_long_for_registers_is_loaded_in_each_pass(
    disable: tuple[str, ...], plan: str, passes: int, times: int
) -> None:
    levels = levels_of(softmax, torch.empty(512, 131_072), disable=disable)
    (x,) = levels.loads
    size = 512 * 131_072 * 4
    assert (levels.plan, levels.passes, x.memory_bytes, x.loaded_bytes) == (plan, passes, size, times * size)
    assert levels.combined == ["amax", "sum_1"]
    assert {"sub", "exp"} <= set(levels.kept)


@pytest.mark.gpu
def test_a_kernel_that_runs_on_a_gpu_has_its_registers_and_shared_memory() -> None:
    source = (
        "import torch\nf = torch.compile(lambda x: torch.softmax(x, -1))\nf(torch.randn(64, 4096, device='cuda'))\n"
    )
    (graph,) = explore(source, Options(device="cuda", timing=Timing(enabled=False))).graphs
    (kernel,) = graph.kernels
    assert kernel.registers and kernel.registers <= 255 and kernel.spills == 0
    # Several warps share a row, so they exchange its maximum and its sum.
    assert kernel.shared_bytes and kernel.levels is not None and kernel.levels.combined
