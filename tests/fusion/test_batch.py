"""Kernels that share a launch: which do, what they compute, and which do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler.compile import build
from compiler.schedule.group import Batch
from tests.compile_program import bytes_moved, call_interpreted, compile_program, compiled_for_gpus, kernel_count

Tensor = torch.Tensor


def rnd(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def small_states(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    return a * 0.9, b.sigmoid(), c.sum(1), torch.softmax(a, 0), c.t().contiguous() + 1


def steps(ga: Tensor, a: Tensor, gb: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """A step for two parameters, and what is computed from the first new one."""
    new = a - 0.1 * ga
    return new, b - 0.1 * gb, new.view(8, 8).t().flatten().cumsum(0)


def uneven_parts(x: Tensor) -> tuple[Tensor, ...]:
    one, two, three = x.tensor_split(3, -1)
    return one.sin(), two.erf().sum(0), three.argmax(1)


CASES: dict[str, tuple[Any, tuple[Tensor, ...]]] = {
    "small states": (small_states, (rnd(64), rnd(100), rnd(32, 48))),
    "parts of a tensor": (uneven_parts, (rnd(33, 100),)),
    "other types": (
        lambda x, i, b: (x.double() + 1, i * 2, ~b),
        (rnd(70), torch.arange(33), torch.arange(50) % 3 == 0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_launch_computes_all(name: str) -> None:
    function, inputs = CASES[name]
    compilation = compile_program(function, *inputs)
    assert kernel_count(compilation) == (1, 0)
    assert isinstance(compilation.groups[0], Batch)
    wanted = list(function(*inputs))
    for results in (build(compilation).executable.call(list(inputs)), call_interpreted(compilation, inputs)):
        for result, want in zip(results, wanted, strict=True):
            torch.testing.assert_close(result, want, rtol=1e-5, atol=1e-5)


def test_a_part_does_not_share_its_rows_among_programs() -> None:
    """Alone, each sum would: they would join their parts in scratch memory, which a launch of several does not have."""
    inputs = (rnd(197, 768), rnd(192, 768))
    compilation = compile_program(lambda a, b: ((a * 2).sum(0), b.sum(0)), *inputs)
    (kernel,) = compilation.triton.values()
    assert kernel.config["plan"] == "batch" and "workspace" not in kernel.source
    assert compiled_for_gpus(compilation)
    for result, x, factor in zip(call_interpreted(compilation, inputs), inputs, (2, 1), strict=True):
        torch.testing.assert_close(result, (x.double() * factor).sum(0).float(), rtol=1e-5, atol=1e-4)


def test_a_reduction_that_would_be_slower_as_a_part_keeps_its_launch() -> None:
    """Its few results leave most of the device idle as soon as programs cannot share its rows."""
    inputs = (rnd(4096, 48), rnd(100))
    compilation = compile_program(lambda x, y: (x.sum(0), y.sin()), *inputs)
    assert kernel_count(compilation) == (2, 0)
    (refusal,) = [decision.verdict for decision in compilation.schedule.decisions]
    assert refusal.reason == "profit.slower" and refusal.numbers["fused_us"] > refusal.numbers["unfused_us"]


def test_each_part_reads_for_itself() -> None:
    """Bytes are those of the parts: a launch is spared, not a read."""
    inputs = CASES["small states"][1]
    together = compile_program(small_states, *inputs)
    apart = compile_program(small_states, *inputs, disable=("batch",))
    assert kernel_count(apart)[0] == 3
    assert bytes_moved(together) == bytes_moved(apart)


def test_what_needs_a_result_waits_for_the_next_launch() -> None:
    inputs = (rnd(64), rnd(64) + 1, rnd(100), rnd(100) + 1)
    compilation = compile_program(steps, *inputs)
    assert kernel_count(compilation) == (2, 0)
    (first, second) = compilation.groups
    assert isinstance(first, Batch) and not isinstance(second, Batch)
    for results in (build(compilation).executable.call(list(inputs)), call_interpreted(compilation, inputs)):
        torch.testing.assert_close(results, list(steps(*inputs)), rtol=1e-5, atol=1e-5)


def test_what_is_large_is_not_made_earlier_for_a_launch() -> None:
    """Results that stand behind another kernel would be kept while it runs."""

    def function(x: Tensor) -> tuple[Tensor, ...]:
        return x.sin().sort().values, torch.ones(600, 600), torch.ones(10) * 2

    compilation = compile_program(function, rnd(600, 600))
    sizes = {len(group.stored): group.stored for group in compilation.groups}
    assert sizes.keys() == {1, 2} and sizes[1] == {"sin"}


def test_no_launch_grows_without_limit() -> None:
    inputs = [rnd(10 + place) for place in range(40)]
    compilation = compile_program(lambda *tensors: tuple(x.sin() for x in tensors), *inputs)
    assert kernel_count(compilation) == (3, 0)
    assert "policy.batch_size" in {d.verdict.reason for d in compilation.schedule.decisions}


def test_a_long_reduction_keeps_its_launch() -> None:
    """Its row is shared among programs, which takes scratch memory."""
    compilation = compile_program(lambda x, y: (x.sum(), y.sin()), rnd(1 << 20), rnd(100))
    assert kernel_count(compilation) == (2, 0)


def test_places_that_differ_from_call_to_call_keep_a_launch_of_their_own() -> None:
    """Strides may be open where sizes are not: the second layout of one shape makes them so."""
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: (x * 2, x.sum(1), x.softmax(0)), backend="fusionscope")
    for stride in ((7, 1), (1, 5), (20, 2)):
        x = rnd(200).as_strided((5, 7), stride)
        for result, want in zip(compiled(x), (x * 2, x.sum(1), x.softmax(0)), strict=True):
            torch.testing.assert_close(result, want)
