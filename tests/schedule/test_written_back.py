"""An input that a function changes gets its new values in place, unless something may still read the old ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.capture.autograd.aot import compile_through_aot
from compiler.compile import Planned, Target, generate, lower, plan
from compiler.devices import device_for
from compiler.ir import interpret
from compiler.options import Options


def planned(function: Callable[..., Any], *inputs: Tensor) -> Planned:
    """The plan of an inference graph, as the backend makes it for a GPU."""
    made: list[Planned] = []

    def backend(graph: torch.fx.GraphModule, examples: Sequence[Any]) -> Any:
        def compile_graph(part: torch.fx.GraphModule, _phase: Any) -> Any:
            target = Target(torch.device("cpu"), device_for("sm_90"), Options())
            one = plan(lower(part, target, writes_inputs=True))
            made.append(one)

            def run(values: list[Any]) -> list[Any]:
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


def lion(p: Tensor, g: Tensor, m: Tensor) -> None:
    """The momentum is read for the step and for its own next value, whichever the kernel stores first."""
    p.add_(m.mul(0.9).add_(g, alpha=0.1).sign_(), alpha=-0.1)
    m.lerp_(g, 0.01)


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


def cache_row(p: Tensor, row: Tensor, at: Tensor) -> Tensor:
    p.index_copy_(1, at, row)
    return p.sum(0)


def cache_slice(p: Tensor, row: Tensor) -> None:
    p[:, 5:6] = row


def counted(p: Tensor, at: Tensor) -> None:
    p.scatter_add_(0, at, torch.ones_like(at, dtype=p.dtype))


def own_row(p: Tensor) -> None:
    p[:, 5] = p[:, 3] + 1


def moved_rows(p: Tensor, at: Tensor) -> None:
    p.index_copy_(0, at, p[:2] * 2)


SQUARE = torch.randn(24, 24)


@pytest.mark.parametrize(
    ("function", "inputs", "written"),
    [
        (optimiser, (SQUARE, SQUARE, SQUARE), {"p", "m"}),
        (optimiser_of_a_list, (SQUARE, SQUARE, SQUARE[0], SQUARE[1]), {"p", "q"}),
        (lion, (SQUARE, SQUARE, SQUARE), {"p", "m"}),
        (old_value_too, (SQUARE,), {"p"}),
        (neighbours, (SQUARE,), set()),
        (transposed, (SQUARE,), set()),
        (swapped, (SQUARE, SQUARE), set()),
        (whole_norm, (SQUARE,), set()),
        (cache_row, (SQUARE, SQUARE[:, :1], torch.tensor([7])), {"p"}),
        (cache_slice, (SQUARE, SQUARE[:, :1]), {"p"}),
        (counted, (SQUARE[0], torch.arange(9) % 4), {"p"}),
        (own_row, (SQUARE,), set()),
        (moved_rows, (SQUARE, torch.tensor([5, 1])), set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_inputs_written_in_place(function: Callable[..., Any], inputs: Sequence[Tensor], written: set[str]) -> None:
    ours, eager = [x.clone() for x in inputs], [x.clone() for x in inputs]
    memory = planned(function, *ours).memory
    assert memory.written_inputs() == written
    function(*eager)
    torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [(cache_slice, (SQUARE, SQUARE[:, :1])), (counted, (SQUARE[0], torch.arange(9) % 4))],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_only_what_changes_is_written(function: Callable[..., Any], inputs: Sequence[Tensor]) -> None:
    schedule = planned(function, *(x.clone() for x in inputs)).schedule
    assert all("p" not in unit.read_buffers or unit.updated for unit in schedule.units)  # type: ignore[union-attr]
    assert len(schedule.units) == 1


def test_in_place_no_memory_is_taken() -> None:
    memory = planned(optimiser, *(SQUARE.clone() for _ in range(3))).memory
    assert memory.peak_bytes == 0


def test_pointers_of_a_batch_that_share_memory_are_not_restricted_in_cpp() -> None:
    """Told that they are, a C++ compiler may load an element again after it was overwritten."""
    compilation = planned(optimiser_of_a_list, *(torch.rand(n) for n in (64, 64, 8, 8)))
    (group,) = compilation.groups
    shared = compilation.memory.written_over(group)
    (kernel,) = generate(compilation, wants_triton=False).cpp.values()
    assert len(shared) == 4 and kernel.config["shape"] == "batch"
    for name in kernel.parameters:
        assert (f"__restrict__ {name}_ptr" in kernel.source) == (name not in shared)
