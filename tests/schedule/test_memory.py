"""Memory: the plan's peak is what the wrapper holds, storage is used twice where that is legal, orders save some."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from compiler.codegen.wrapper import render_wrapper
from compiler.compile import Generated, build
from compiler.ir.nodes import ExternNode
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.runtime import executable
from compiler.runtime.executable import build_executable
from compiler.schedule.describe.schedule import describe_memory
from compiler.schedule.memory.lifetimes import peak_bytes
from compiler.schedule.memory.order import as_written, in_order
from tests.compile_program import compile_program

SNIPPETS = Path(__file__).resolve().parents[1] / "snippets"
SMALL, LARGE = 4 * 64 * 64, 4 * 256 * 64


def unfused(function: Callable[..., Any], *inputs: Tensor) -> Generated:
    """Every node a kernel of its own."""
    return compile_program(function, *inputs, most_nodes=1, disable=["recompute", "batch"])


def fates(compilation: Generated) -> dict[str, tuple[str, str | None]]:
    return {name: (b.fate, b.takes_over) for name, b in compilation.memory.buffers.items()}


def held_by_wrapper(compilation: Generated, inputs: list[Tensor], monkeypatch: pytest.MonkeyPatch) -> int:
    """The most bytes that the wrapper's own tensors hold when a kernel is launched; kernels do nothing."""
    made: list[tuple[StorageWeakRef, int]] = []
    peak = 0
    allocate = executable.allocator(torch.device("cpu"))

    def noted(*args: Any) -> Tensor:
        tensor = allocate(*args)
        storage = tensor.untyped_storage()
        made.append((StorageWeakRef(storage), storage.nbytes()))
        return tensor

    def launch(*_: Any) -> None:
        nonlocal peak
        peak = max(peak, sum(size for storage, size in made if not storage.expired()))

    monkeypatch.setattr(executable, "allocator", lambda _device: noted)
    wrapper = render_wrapper(compilation.schedule, compilation.memory, compilation.cpp)
    build_executable(compilation.schedule, wrapper, dict.fromkeys(compilation.cpp, launch), torch.device("cpu")).call(
        list(inputs)
    )
    return peak


def gate(u: Tensor, v: Tensor) -> Tensor:
    a = torch.sin(u)
    b = torch.cos(v)
    c = a * b
    d = c + u
    e = d * v
    return torch.relu(e)


def shrinking(x: Tensor, y: Tensor) -> Tensor:
    """A large value dies before small ones are made."""
    small = torch.sin(x).sum(0)
    return ((y * small).cos() + 1).flip(0) * 2


def diamond(x: Tensor, y: Tensor) -> Tensor:
    a = torch.sin(x)
    b = a.t() + 1
    c = (b * a).flip(0)
    d = c.sum(1, keepdim=True) + y[:, :64]
    return torch.relu(d * b).t() - c


@pytest.mark.parametrize("function", [gate, shrinking, diamond])
def test_the_peak_of_the_plan_is_what_the_wrapper_holds(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = [torch.rand(64, 64), torch.rand(64, 64)]
    for compilation in (unfused(function, *inputs), compile_program(function, *inputs)):
        graph = compilation.schedule.graph
        peak = held_by_wrapper(compilation, inputs, monkeypatch)
        monkeypatch.undo()
        assert peak == compilation.memory.peak_bytes
        assert peak <= peak_bytes(compilation.schedule.units, graph.buffers, graph.output_buffers)


def test_without_fusion_a_chain_works_in_two_buffers_and_an_output() -> None:
    """What the first snippet would take of memory from a compiler that does not fuse."""
    source = (SNIPPETS / "01_activation.py").read_text() + "\nfast_gate(torch.rand(64, 64), torch.rand(64, 64))\n"
    report = explore(
        source, Options(device="cpu", produce=("capture", "lower", "schedule"), timing=Timing(enabled=False))
    )
    (graph,) = report.graphs
    assert graph.memory is not None
    reused = [(reuse.buffer, reuse.takes_over, reuse.in_place) for reuse in graph.memory.unfused_reuses]
    assert reused == [("mul", "cos", True), ("add", "mul", True), ("mul_1", "add", True)]
    assert graph.memory.unfused_peak_bytes == 2 * SMALL
    assert graph.memory.unfused_without_reuse_bytes == 6 * SMALL
    assert (graph.memory.peak_bytes, graph.memory.reuses) == (SMALL, [])


def test_parts_of_a_concatenation_are_said_to_share_memory_and_not_to_save_any() -> None:
    """Each was said to take over another one's memory in place, and to save as many bytes as all have together."""
    source = "import torch\n@torch.compile\ndef f(x, y):\n    return torch.stack([x + y, x - y, x * y], -1)\n"
    source += "f(torch.rand(64, 64), torch.rand(64, 64))\n"
    (graph,) = explore(source, Options(device="cpu", produce=("capture", "lower", "schedule"))).graphs
    assert graph.memory is not None and graph.memory.reuses == []
    assert {reuse.buffer for reuse in graph.memory.unfused_reuses}.isdisjoint({"stack", "stack_part_0", "stack_part_1"})
    for buffers in (graph.buffers, graph.memory.unfused_buffers):
        shared = {buffer.name: buffer for buffer in buffers if (buffer.note or "").startswith("shares the storage of ")}
        assert len(shared) == 2 and shared.keys() < {"stack", "stack_part_0", "stack_part_1"}
    assert graph.memory.without_reuse_bytes == 3 * SMALL


def test_what_is_written_back_into_an_input_is_so_without_fusion_too() -> None:
    """One kernel changes `x` where it lies. Without fusion, and in another order, the same one had a buffer."""
    source = "import torch\n@torch.compile\ndef f(x):\n    return x.relu_()\nf(torch.randn(64, 64))\n"
    (graph,) = explore(source, Options(device="cpu", produce=("capture", "lower", "schedule"))).graphs
    memory = graph.memory
    assert memory is not None
    assert (memory.peak_bytes, memory.unordered_peak_bytes, memory.unfused_peak_bytes) == (0, 0, 0)
    assert memory.reuses == memory.unfused_reuses and memory.live_bytes == memory.unfused_live_bytes


def test_a_small_buffer_takes_the_storage_of_a_larger_one() -> None:
    def function(x: Tensor) -> Tensor:
        half = torch.sin(x).flip(0)[:128] + 1
        return (half.flip(0) * 2).flip(1) + 1

    compilation = unfused(function, torch.rand(256, 64))
    assert fates(compilation)["mul"] == ("reused", "sin")
    assert compilation.memory.peak_bytes == LARGE + LARGE // 2


def test_storage_is_not_kept_for_later_where_that_would_raise_the_peak() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        flipped = torch.sin(x).flip(0) + 1
        return ((y + flipped[:64]).flip(0) * 2).flip(1) + flipped[64:128]

    compilation = unfused(function, torch.rand(256, 64), torch.rand(64, 64))
    assert "sin" not in [source for _, source in fates(compilation).values()]
    assert compilation.memory.peak_bytes == 2 * LARGE


def test_a_value_that_is_read_elsewhere_is_not_written_over() -> None:
    for read in (
        lambda y: y.flip(0),
        lambda y: y.t().contiguous(),
        lambda y: torch.roll(y, 1, 0),
        lambda y: y + y.flip(1),
    ):
        compilation = unfused(lambda x, read=read: torch.relu(read(torch.sin(x)) * 2 + 1), torch.rand(64, 64))
        for name, (fate, source) in fates(compilation).items():
            assert (fate, source) != ("in_place", "sin"), name


def test_what_the_caller_has_is_never_written_over() -> None:
    for name, (_, source) in fates(unfused(gate, torch.rand(64, 64), torch.rand(64, 64))).items():
        assert source not in ("u", "v"), name
    kept = unfused(lambda x: ((y := torch.sin(x)), torch.relu(y * 2)), torch.rand(64, 64))
    assert "sin" not in [source for _, source in fates(kept).values()]


def test_a_kernel_that_works_in_place_gives_the_right_values() -> None:
    shape = (17, 17)  # no multiple of a vector: the last points would be taken twice
    inputs = [torch.rand(shape, dtype=torch.float64), torch.rand(shape, dtype=torch.float64)]
    for function in (gate, shrinking, diamond):
        compilation = unfused(function, *inputs)
        copies = [tensor.clone() for tensor in inputs]
        (result,) = build(compilation).executable.call(list(inputs))
        torch.testing.assert_close(result, function(*inputs))
        assert all(map(torch.equal, inputs, copies))


def test_pointers_that_share_memory_are_not_restricted_in_cpp() -> None:
    compilation = unfused(gate, torch.rand(64, 64), torch.rand(64, 64))
    signatures = {name: kernel.source.split("extern")[1].split("{")[0] for name, kernel in compilation.cpp.items()}
    (in_place,) = [text for text in signatures.values() if "cos_ptr" in text and "sin_ptr" in text]
    assert "* cos_ptr" in in_place and "* __restrict__ sin_ptr" in in_place


def products_then_sums(x: Tensor, *weights: Tensor) -> list[Tensor]:
    products = [x @ weight for weight in weights]
    return [product.sum() for product in products]


def test_units_run_in_the_order_that_needs_least_memory() -> None:
    """Each product is added up before the next is made, though all were written first."""
    inputs = [torch.rand(256, 64), *(torch.rand(64, 64) for _ in range(6))]
    compilation = compile_program(products_then_sums, *inputs, disable=["shared_operand", "batch"])
    memory = describe_memory(compilation.schedule, compilation.memory)
    assert LARGE < memory.peak_bytes < 2 * LARGE < 6 * LARGE <= memory.unordered_peak_bytes
    results = build(compilation).executable.call(list(inputs))
    for result, wanted in zip(results, products_then_sums(*inputs), strict=True):
        torch.testing.assert_close(result, wanted)


def test_calls_that_draw_random_numbers_stay_as_they_were_written() -> None:
    def function(x: Tensor, *weights: Tensor) -> list[Tensor]:
        products = [torch.multinomial(x.abs() + 1, 8) @ weight.long() for weight in weights]
        return [product.sum() for product in products]

    inputs = [torch.rand(256, 64), *(torch.rand(8, 64) for _ in range(3))]
    compilation = compile_program(function, *inputs)
    units, graph = compilation.schedule.units, compilation.schedule.graph
    assert any(isinstance(unit, ExternNode) for unit in units)
    assert in_order(units, graph) == as_written(units, graph) == list(units)


def test_the_report_tells_which_fusion_needs_more_memory() -> None:
    """What reads the same is made at once, and kept until each product has read it."""
    source = """
import torch
@torch.compile
def f(x, w):
    return (torch.sin(x) @ w).sum(), (torch.cos(x) @ w).sum()
f(torch.rand(1024, 1024), torch.rand(1024, 1024))
"""
    (graph,) = explore(source, Options(device="cpu", target="sm_90", produce=("capture", "lower", "schedule"))).graphs
    growths = [d.numbers["peak_growth_bytes"] for d in graph.decisions if "peak_growth_bytes" in d.numbers]
    assert graph.memory is not None
    assert sum(growths) >= graph.memory.peak_bytes - graph.memory.unfused_peak_bytes > 0
    assert all("more must be alive at a time" in d.message for d in graph.decisions if "peak_growth_bytes" in d.numbers)
