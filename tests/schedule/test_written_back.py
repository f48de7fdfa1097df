"""An input that a function changes gets its new values in place, unless something may still read the old ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.capture.aot import compile_through_aot
from compiler.compile import GraphCompilation
from compiler.devices import device_for
from compiler.ir import interpret
from compiler.options import Options


def planned(function: Callable[..., Any], *inputs: Tensor) -> GraphCompilation:
    """The plan of an inference graph, as the backend makes it for a GPU."""
    made: list[GraphCompilation] = []

    def backend(graph: torch.fx.GraphModule, examples: Sequence[Any]) -> Any:
        def compile_graph(part: torch.fx.GraphModule, _phase: Any) -> Any:
            one = GraphCompilation(torch.device("cpu"), device_for("sm_90"), Options(), writes_inputs=True)
            one.lower(part)
            one.plan()
            made.append(one)

            def run(values: list[Any]) -> list[Any]:
                assert one.loops is not None
                return interpret.run(one.loops, values)

            run._boxed_call = True  # type: ignore[attr-defined]
            return run

        return compile_through_aot(graph, examples, compile_graph)

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(function, backend=backend)(*inputs)
    return made[-1]


def optimiser(p: Tensor, g: Tensor, m: Tensor) -> None:
    m.mul_(0.9).add_(g)
    p.add_(m, alpha=-0.1)


def optimiser_of_a_list(p: Tensor, g: Tensor, q: Tensor, h: Tensor) -> None:
    torch._foreach_add_([p, q], [g, h], alpha=-0.1)


def neighbours(p: Tensor) -> None:
    p[1:-1] = (p[2:] + p[:-2]) * 0.5


def transposed(p: Tensor) -> None:
    p.copy_(p.t() + 1)


def swapped(p: Tensor, q: Tensor) -> None:
    old = p.clone()
    p.copy_(q)
    q.copy_(old)


def old_value_too(p: Tensor) -> Tensor:
    old = p.clone()
    p.mul_(2)
    return old


def whole_norm(p: Tensor) -> None:
    p.div_(p.norm())


SQUARE = torch.randn(24, 24)


@pytest.mark.parametrize(
    ("function", "inputs", "written"),
    [
        (optimiser, (SQUARE, SQUARE, SQUARE), {"p", "m"}),
        (optimiser_of_a_list, (SQUARE, SQUARE, SQUARE[0], SQUARE[1]), {"p", "q"}),
        (old_value_too, (SQUARE,), {"p"}),
        (neighbours, (SQUARE,), set()),
        (transposed, (SQUARE,), set()),
        (swapped, (SQUARE, SQUARE), set()),
        (whole_norm, (SQUARE,), set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_inputs_written_in_place(function: Callable[..., Any], inputs: Sequence[Tensor], written: set[str]) -> None:
    plan = planned(function, *(x.clone() for x in inputs)).memory
    assert plan is not None
    assert plan.written_inputs() == written


def test_in_place_no_memory_is_taken() -> None:
    plan = planned(optimiser, *(SQUARE.clone() for _ in range(3))).memory
    assert plan is not None
    assert plan.peak_bytes == 0
