"""Scans of few long rows: the right values, each element read once, and which scans they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from compiler.compile import Generated, build
from compiler.devices import GPUS, device_for
from compiler.lowering.scans import LONG_OF_HALVES
from compiler.runtime.checking.verify import relative_error
from compiler.runtime.interpreter.interpreter import interpret
from compiler.schedule.tiles import look_back
from compiler.schedule.tiles.look_back import LONG_ROW, MOST_ROWS, chunks_of
from tests.compile_program import bytes_moved, call_interpreted, compile_program, compiled_for_gpus, kernel_count

Tensor = torch.Tensor
H200 = device_for("sm_90")
#: A length that no chunk divides, with groups of chunks; one that is a few chunks alone.
LONG, FEW = 20001, LONG_ROW


def rnd(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def whole(*shape: int) -> Tensor:
    return torch.randint(-(1 << 40), 1 << 40, shape, generator=torch.Generator().manual_seed(1))


CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "sums": (lambda x: x.cumsum(-1), (rnd(2, LONG),)),
    "sums of few chunks": (lambda x: x.cumsum(-1), (rnd(FEW),)),
    "sums of bfloat16": (lambda x: x.cumsum(-1), (rnd(1, LONG).bfloat16(),)),
    "sums of float64": (lambda x: x.cumsum(-1), (rnd(2, LONG).double(),)),
    "sums of whole numbers": (lambda x: x.cumsum(0), (whole(LONG),)),
    "counts": (lambda x: (x > 0).cumsum(-1) - 1, (rnd(2, LONG),)),
    "products": (lambda x: x.cumprod(-1), (1 + rnd(2, LONG) / 200,)),
    "largest": (lambda x: x.cummax(-1), (rnd(1, LONG),)),
    "smallest of whole numbers": (lambda x: x.cummin(-1), (whole(1, LONG),)),
    "what stands before and after": (lambda x, y: x.sigmoid().cumsum(-1) * y + 1, (rnd(2, LONG), rnd(2, LONG))),
    "two scans": (lambda x: (x.cumsum(-1), (x * x).cumsum(-1)), (rnd(2, LONG),)),
    "a scan of a scan": (lambda x: x.cumsum(-1).abs().cumsum(-1), (rnd(2, LONG),)),
    "from the end": (lambda x: x.flip(-1).cumsum(-1).flip(-1) + x, (rnd(2, LONG),)),
}


def as_list(results: Any) -> list[Tensor]:
    return list(results) if isinstance(results, tuple | list) else [results]


def in_double(inputs: tuple[Tensor, ...]) -> list[Tensor]:
    return [x.double() if x.is_floating_point() else x for x in inputs]


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that rows which the interpreter gets through have groups of chunks."""
    monkeypatch.setattr(look_back, "SHORTEST", 512)


def looking_back(function: Callable[..., Any], *inputs: Tensor) -> Generated:
    compilation = compile_program(function, *inputs)
    assert [kernel.config["plan"] for kernel in compilation.triton.values()] == ["look_back"]
    return compilation


@pytest.mark.parametrize("name", CASES)
def test_results_are_as_good_as_eager(name: str) -> None:
    function, inputs = CASES[name]
    compilation = looking_back(function, *inputs)
    assert kernel_count(compilation) == (1, 0)
    outputs, exact = as_list(function(*inputs)), as_list(function(*in_double(inputs)))
    assert bytes_moved(compilation) == sum(x.numel() * x.element_size() for x in (*inputs, *outputs))
    bound = 3 * relative_error(outputs, exact) + 64 * torch.finfo(torch.float32).eps
    for results in (call_interpreted(compilation, inputs), build(compilation).executable.call(list(inputs))):
        assert relative_error(results, exact) <= bound
        for result, wanted in zip(results, outputs, strict=True):
            if not wanted.is_floating_point():
                assert torch.equal(result, wanted)


@pytest.mark.parametrize("name", CASES)
def test_kernels_compile_for_gpus_without_spills(name: str) -> None:
    function, inputs = CASES[name]
    (result,) = compiled_for_gpus(looking_back(function, *inputs))
    assert result.spills == 0
    # Who waits reads again and again what others write, past the cache of its own multiprocessor.
    assert "ld.volatile.global" in result.ptx


@pytest.mark.parametrize(
    "function, dtype",
    [
        (lambda x: x.cumsum(-1), torch.float32),
        (lambda x: x.cummax(-1), torch.int64),
        (lambda x: torch.nn.functional.gelu(x).cumsum(-1).tanh(), torch.float32),
        (lambda x: (x.cumsum(-1), (x * x).cumsum(-1)), torch.float32),
    ],
)
def test_the_longest_chunks_fit_the_registers(function: Callable[..., Any], dtype: torch.dtype) -> None:
    (result,) = compiled_for_gpus(looking_back(function, torch.empty(1, 1 << 22, dtype=dtype)))
    assert result.spills == 0


def test_one_long_row_of_half_types_is_scanned_in_two_passes() -> None:
    """Which are quicker: see `LONG_OF_HALVES`."""
    for rows, kernels in ((1, 3), (2, 1)):
        x = torch.empty(rows, LONG_OF_HALVES, dtype=torch.bfloat16)
        assert kernel_count(compile_program(lambda x: x.cumsum(-1), x)) == (kernels, 0)


@pytest.mark.parametrize("name", CASES)
def test_each_element_is_loaded_once_and_stored_once(name: str) -> None:
    function, inputs = CASES[name]
    (kernel,) = looking_back(function, *inputs).triton.values()
    own = kernel.source.split("\n@triton.jit\n")[-1]
    assert own.count("tl.load(") == len(inputs)
    assert own.count("tl.store(") == len(as_list(function(*inputs)))


def test_a_chunk_is_left_for_others_before_it_is_scanned() -> None:
    (kernel,) = looking_back(CASES["sums"][0], *CASES["sums"][1]).triton.values()
    assert kernel.source.index("send(cumsum_words + part") < kernel.source.index("tl.cumsum(")
    assert kernel.source.index("tl.cumsum(") < kernel.source.index("look_back(cumsum_words")


def test_scans_that_need_not_wait_for_each_other_wait_together() -> None:
    (kernel,) = looking_back(CASES["two scans"][0], *CASES["two scans"][1]).triton.values()
    own = kernel.source.split("\n@triton.jit\n")[-1]
    sent = [place for place in range(len(own)) if own.startswith("send(", place) and "words + part" in own[place:][:40]]
    assert len(sent) == 2 and max(sent) < own.index("look_back(")


def test_infinities_and_nan_come_out_as_in_eager() -> None:
    x = rnd(4, LONG)
    x[0, :9000], x[1, 9000], x[2, 15000] = float("-inf"), float("inf"), float("nan")
    (sums,) = call_interpreted(looking_back(lambda x: x.cumsum(-1), x), [x])
    torch.testing.assert_close(sums, x.cumsum(-1), equal_nan=True, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("first", [float("-inf"), 3.0])
def test_the_last_of_equal_elements_and_nan_are_where_eager_has_them(first: float) -> None:
    x = rnd(1, LONG).round()
    x[0, :9000], x[0, 15000], x[0, 17000] = first, float("nan"), float("nan")
    values, places = call_interpreted(looking_back(lambda x: x.cummax(-1), x), [x])
    torch.testing.assert_close(values, x.cummax(-1).values, equal_nan=True)
    assert torch.equal(places, x.cummax(-1).indices)


def test_a_launch_waits_for_what_it_sends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that an earlier launch left are another launch's, whatever values they hold."""
    kept: dict[tuple[int, torch.dtype], Tensor] = {}
    zeros = torch.zeros

    def the_same(size: int, dtype: torch.dtype) -> Tensor:
        return kept.setdefault((size, dtype), zeros(size, dtype=dtype))

    x = whole(2, LONG)
    (kernel,) = looking_back(lambda x: x.cumsum(-1), x).triton.values()
    monkeypatch.setattr(torch, "zeros", the_same)
    for one in (x, x - 5):
        interpret(kernel, [one, out := torch.empty_like(one)])
        assert torch.equal(out, one.cumsum(-1))
    (counter,) = (one.view(torch.int64) for (_, dtype), one in kept.items() if dtype == torch.int32)
    assert int(counter) == 2 * kernel.config["grid"][0]  # type: ignore[index]


@pytest.mark.parametrize("device", GPUS, ids=lambda device: device.name)
@pytest.mark.parametrize("itemsize", [2, 4, 8])
@pytest.mark.parametrize("length", [LONG_ROW, 100003, 1 << 20, (1 << 25) + 1, 1 << 31])
@pytest.mark.parametrize("rows", [1, 7, MOST_ROWS])
def test_chunks_cover_the_row_and_their_groups_are_few(rows: int, length: int, itemsize: int, device: Any) -> None:
    chunks = chunks_of(rows, length, itemsize, device)
    assert chunks is not None
    assert (chunks.count - 1) * chunks.length < length <= chunks.count * chunks.length
    assert (chunks.groups - 1) * chunks.of_group < chunks.count <= chunks.groups * chunks.of_group
    # What a program reads of others is no more than it reads of its chunk.
    assert chunks.of_group <= chunks.length and chunks.groups <= chunks.length
    assert 32 * chunks.warps <= device.threads_per_block


def test_many_rows_short_rows_and_cpus_have_one_program_for_each_row() -> None:
    assert chunks_of(MOST_ROWS + 1, LONG, 4, H200) is None
    assert chunks_of(1, LONG_ROW - 1, 4, H200) is None
    assert chunks_of(1, LONG, 4, replace(H200, kind="cpu")) is None
    compilation = compile_program(lambda x: x.cumsum(-1), rnd(2, LONG), dynamic=True)
    assert "look_back" not in {kernel.config["plan"] for kernel in compilation.triton.values()}


def test_what_needs_whole_rows_is_a_kernel_of_its_own() -> None:
    compilation = compile_program(lambda x: torch.softmax(x, -1).cumsum(-1), rnd(2, LONG))
    assert [kernel.config["plan"] for kernel in compilation.triton.values()].count("look_back") == 1
    assert kernel_count(compilation) == (2, 0)
    x = rnd(2, LONG)
    exact = torch.softmax(x.double(), -1).cumsum(-1)
    torch.testing.assert_close(call_interpreted(compilation, [x])[0].double(), exact, rtol=1e-4, atol=1e-5)
