"""Random programs of pointwise operators, reductions and views give what eager gives.

Each program is a list of steps over a pool of tensors; a step takes earlier tensors by number. Fusion, reuse of
buffers, views as index arithmetic and both code generators are all on the way. A failing program is printed as the
steps that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.compile import GraphCompilation
from compiler.devices import device_for
from compiler.lowering.decompositions import decompositions
from compiler.options import Options
from compiler.runtime.verify import relative_error
from tests.compile_program import call_interpreted

Tensor = torch.Tensor


def places(x: Tensor) -> Tensor:
    """A row for each row: some twice, some never."""
    return torch.arange(x.shape[0]) * 7 % x.shape[0] // 2


#: Bounded functions, so that long programs neither overflow nor lose all precision.
UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "sin": torch.sin,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "abs": torch.abs,
    "neg": torch.neg,
    "transpose": lambda x: x.t(),
    "flip rows": lambda x: torch.flip(x, (0,)),
    "every second column": lambda x: x[:, ::2],
    "first rows": lambda x: x[: max(1, x.shape[0] // 2)],
    "as one row": lambda x: x.reshape(1, -1),
    "contiguous": lambda x: x.contiguous(),
    "sum of rows": lambda x: x.sum(0, keepdim=True) / 8,
    "sum of columns": lambda x: x.sum(1, keepdim=True) / 8,
    "largest of rows": lambda x: x.amax(0, keepdim=True),
    "mean of columns": lambda x: x.mean(1, keepdim=True),
    "variance of columns": lambda x: x.var(1, keepdim=True, correction=0),
    "softmax": lambda x: torch.softmax(x, -1),
    "running sum by matrix": lambda x: torch.tril(x),
    "rows added to others": lambda x: torch.zeros_like(x).index_add(0, places(x), x) / 4,
    "largest of the rows that meet": lambda x: x.scatter_reduce(0, places(x)[:, None].expand_as(x), x.sin(), "amax"),
    "some rows replaced": lambda x: x.index_put((torch.arange(0, x.shape[0], 3),), x[-1] * 0.5),
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "maximum": torch.maximum,
    "where": lambda x, y: torch.where(x > y, x, y * 0.5),
    "cat": lambda x, y: torch.cat((x, y), 0) if x.shape[1] == y.shape[1] else x,
}


@dataclass(frozen=True)
class Step:
    name: str
    operands: tuple[int, ...]


def run(steps: list[Step], inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """The last three tensors of the program. A binary step whose shapes do not broadcast takes its first operand."""
    pool = list(inputs)
    for step in steps:
        operands = [pool[number % len(pool)] for number in step.operands]
        if step.name in UNARY:
            pool.append(UNARY[step.name](operands[0]))
        elif step.name == "cat" or all(a == b or 1 in (a, b) for a, b in zip(operands[0].shape, operands[1].shape)):
            pool.append(BINARY[step.name](operands[0], operands[1]))
        else:
            pool.append(operands[0] + 1)
    return [tensor.clone() for tensor in pool[-3:]]


steps = st.lists(
    st.builds(Step, st.sampled_from([*UNARY, *BINARY]), st.tuples(st.integers(0, 30), st.integers(0, 30))),
    min_size=2,
    max_size=12,
)
sizes = st.tuples(st.sampled_from([1, 3, 8, 17, 33]), st.sampled_from([1, 2, 7, 16, 40]))


CPU = torch.device("cpu")


def compile_steps(program: list[Step], inputs: tuple[Tensor, ...], device: torch.device = CPU) -> GraphCompilation:
    graph = make_fx(lambda *xs: run(program, xs), decompositions(), tracing_mode="fake")(*inputs)
    graph.graph.eliminate_dead_code()
    compilation = GraphCompilation(device, device_for("sm_90"), Options())
    compilation.lower(graph)
    compilation.plan()
    compilation.generate(wants_triton=True)
    return compilation


def layout(tensor: Tensor) -> list[tuple[int, int]]:
    """Sizes and strides, without dimensions of size one: their strides mean nothing and differ between versions."""
    return [(size, stride) for size, stride in zip(tensor.shape, tensor.stride()) if size > 1]


def is_right(results: list[Tensor], program: list[Step], inputs: tuple[Tensor, ...]) -> bool:
    exact = run(program, tuple(x.double() for x in inputs))
    eager = run(program, inputs)
    same_layout = [layout(r) for r in results] == [layout(e) for e in eager]
    return same_layout and relative_error(results, exact) <= 4 * relative_error(eager, exact) + 1e-5


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(steps, sizes)
def test_cpp_kernels_give_what_eager_gives(program: list[Step], size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    inputs = (torch.randn(size), torch.randn(size), torch.randn(1, size[1]))
    results = compile_steps(program, inputs).build().call(list(inputs))
    assert is_right(results, program, inputs)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(steps, sizes)
def test_triton_kernels_give_what_eager_gives(program: list[Step], size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    inputs = (torch.randn(size), torch.randn(size), torch.randn(1, size[1]))
    compilation = compile_steps(program, inputs)
    results = call_interpreted(compilation, inputs)
    assert is_right(results, program, inputs)


@pytest.mark.gpu
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(steps, sizes)
def test_triton_kernels_on_a_gpu_give_what_eager_gives(program: list[Step], size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    inputs = tuple(x.cuda() for x in (torch.randn(size), torch.randn(size), torch.randn(1, size[1])))
    results = compile_steps(program, inputs, torch.device("cuda")).build().call(list(inputs))
    assert is_right(results, program, inputs)
