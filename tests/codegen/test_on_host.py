"""Which values kernels may write to the host, and what the wrapper makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.capture.shortcuts.read_outputs import note_break
from compiler.codegen.on_host import outputs_for_host
from compiler.codegen.wrapper import render_wrapper
from compiler.compile import Generated, Target, generate, lower, plan
from compiler.devices import device_for
from compiler.options import Options
from tests.compile_program import capture_graph

CPU = torch.device("cpu")
X, Y = torch.randn(512, 512), torch.randn(512, 512)


def planned(function: Callable[..., Any], *inputs: Tensor, ends_in_break: bool = True) -> Generated:
    """With kernels for a GPU."""
    graph = capture_graph(function, *inputs)
    if ends_in_break:
        note_break(graph)
    compilation = generate(plan(lower(graph, Target(CPU, device_for("sm_90"), Options()))), wants_triton=True)
    return compilation


def sent(compilation: Generated) -> dict[int, str]:
    places = range(len(compilation.schedule.graph.outputs))
    return outputs_for_host(compilation.schedule, compilation.memory, compilation.triton, places)


def text(compilation: Generated, read: Any = ()) -> str:
    return render_wrapper(compilation.schedule, compilation.memory, compilation.triton, torch.device("cuda"), read)


def condition(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return y.sum() < 0, x / (x.abs() + 1)


def test_the_value_is_sent_before_the_next_kernel_and_waited_for_last() -> None:
    compilation = planned(condition, X, Y)
    (name,) = sent(compilation).values()
    lines = [line.strip() for line in text(compilation, [name]).splitlines()]
    (launch,) = [line for line in lines if line.endswith(f", {name})") and line.startswith("fused")]
    place = lines.index(launch)
    assert lines[place - 1 : place + 2] == [f"{name} = {name}_on_host.place()", launch, f"{name}_on_host.send({name})"]
    assert sum(line.startswith("fused") for line in lines[place + 2 :]) == 1, "another kernel runs meanwhile"
    assert lines[-1].startswith(f"return [{name}_on_host.take({name}), ")
    assert "on_host" not in text(compilation)


def several(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    z = x * y
    return z.sum(), z.mean(1).max() > 0, (z > 0).sum(), z[0, 0], z


def test_values_of_kernels_of_many_kinds_may_be_sent() -> None:
    compilation = planned(several, X, Y)
    assert set(sent(compilation)) >= {0, 1, 2}
    assert 4 not in sent(compilation)


KEPT: dict[str, Callable[..., Any]] = {
    "it is read by another kernel": lambda x, y: ((m := (x @ y).max()), torch.sort(m.view(1)).values),
    "it is given twice": lambda x, y: ((m := x.sum()), m.view(1)),
    "an input": lambda x, y: (x[:1, :1].sum() * 0 + 1, x, y)[1:],
    "a part of a tensor": lambda x, y: ((z := torch.sin(x)), z[0, 0]),
    "a result of the library": lambda x, y: torch.sort(x[0, :1]).values,
    "nothing is read for it": lambda x, y: torch.arange(5000).sin().sum(),
    "many elements": lambda x, y: x.sum(0),
    "too wide to be written at once": lambda x, y: torch.complex(x.double(), y.double()).sum(),
    "a scatter": lambda x, y: torch.zeros(1).index_add(0, torch.zeros(512, dtype=torch.int64), x[0]),
}


@pytest.mark.parametrize("function", KEPT.values(), ids=KEPT)
def test_what_is_more_than_a_value_of_its_own_stays_on_the_gpu(function: Callable[..., Any]) -> None:
    compilation = planned(lambda x, y: result if isinstance(result := function(x, y), tuple) else (result,), X, Y)
    assert not sent(compilation)


def names_of(compilation: Generated) -> list[str]:
    return [unit.name for unit in compilation.schedule.units]


def later_condition(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    z = x / (x.abs() + 1)
    return y.sum() < 0, z


def test_what_the_host_may_wait_for_runs_first_where_the_graph_ends_in_a_break() -> None:
    unbroken, broken = (planned(later_condition, X, Y, ends_in_break=ends) for ends in (False, True))
    assert "sum" in names_of(broken)[0] and "sum" not in names_of(broken)[1]
    assert sorted(names_of(broken)) == sorted(names_of(unbroken))


def test_it_runs_where_it_takes_least_memory_otherwise() -> None:
    """The condition needs a large value that is needed again for what is made in between."""

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        large = torch.sort(y.expand(64, 512, 512), -1).values
        small = torch.sort(x).values
        return large.sum() < 0, small.sum(0)

    assert names_of(planned(function, X, Y)) == names_of(planned(function, X, Y, ends_in_break=True))
