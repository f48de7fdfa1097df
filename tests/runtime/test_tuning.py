"""Products by measurement: the fastest way is taken and kept; a damaged file is no figure. Clocks are made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.compile import Generated, Target, generate, lower, plan
from compiler.devices import H200
from compiler.lowering.decompositions import decompositions
from compiler.options import Options
from compiler.runtime.timing.stopwatch import Call
from compiler.runtime.triton import tuning
from compiler.runtime.triton.tuning import Tuning
from compiler.schedule.products.loops import Product

Clock = Callable[[list[Call]], list[float | None]]
CPU = torch.device("cpu")
SHAPES = ((512, 256), (256, 384), (512, 384))


def scaled_sum(x: Tensor, w: Tensor, r: Tensor) -> Tensor:
    return torch.tanh(x @ w + r) * 0.5


def compiled(
    clock: Clock, function: Callable[..., Tensor] = scaled_sum, shapes: Sequence[tuple[int, ...]] = SHAPES
) -> Generated:
    """As on a GPU in that mode, but for who measures."""
    with FakeTensorMode():
        graph = make_fx(function, decompositions())(*(torch.empty(shape, dtype=torch.bfloat16) for shape in shapes))
    lowered = lower(graph, Target(CPU, H200, Options()))
    tuning = Tuning(CPU, H200, lowered.loops.buffers, clock)
    return generate(plan(lowered, tuning=tuning), wants_triton=True)


def products(compilation: Generated) -> list[Product]:
    return [group for group in compilation.groups if isinstance(group, Product)]


class Made:
    """A clock by which the library takes `library_us`, and the best kernel, at place `best`, `ours_us`."""

    def __init__(self, library_us: float, ours_us: float, best: int) -> None:
        self.library_us, self.ours_us, self.best = library_us, ours_us, best
        self.asked = 0

    def __call__(self, calls: list[Call]) -> list[float | None]:
        self.asked += 1
        if len(calls) == 1:
            return [self.library_us]
        return [None if place == 0 else self.ours_us + abs(place - self.best) for place in range(len(calls))]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path))
    (tmp_path / "tuned").mkdir(mode=0o700)
    return tmp_path / "tuned"


def test_the_fastest_tile_is_taken_where_our_kernel_is_faster() -> None:
    clock = Made(library_us=50.0, ours_us=10.0, best=2)
    compilation = compiled(clock)
    (product,) = products(compilation)
    tile = Tuning(CPU, H200, compilation.loops.buffers)._tiles(replace(product, tile=None))[2]
    assert product.tile == tile
    assert {key: compilation.triton[product.name].config[key] for key in ("MBLOCK", "NBLOCK", "KBLOCK")} == {
        "MBLOCK": tile.m, "NBLOCK": tile.n, "KBLOCK": tile.k
    }  # fmt: skip
    (decision,) = [d for d in compilation.schedule.decisions if d.verdict.reason == "fused.epilogue"]
    assert (decision.verdict.numbers["fused_us"], decision.verdict.numbers["library_us"]) == (10.0, 50.0)


def test_the_library_keeps_a_product_that_it_is_faster_with() -> None:
    assert not products(compiled(Made(library_us=10.0, ours_us=50.0, best=1)))


def gate(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    return torch.sigmoid(x @ w) * (x @ v)


GATE = ((512, 256), (256, 256), (256, 256))


@pytest.mark.parametrize(("ours_us", "count"), [(20.0, 2), (22.0, 1)])
def test_products_of_one_operand_are_one_kernel_where_that_is_faster(ours_us: float, count: int) -> None:
    """Two calls of 10 us and the loops that need both, of 3.7 us as predicted, take 21.5 us in a row."""
    compilation = compiled(Made(library_us=10.0, ours_us=ours_us, best=1), gate, GATE)
    assert max((product.matrices.count for product in products(compilation)), default=1) == count


def test_tensors_of_one_kernel_are_not_the_same_memory() -> None:
    """The two weights of a gate lie alike, and the cache would give the second one."""
    seen: list[list[int]] = []

    def clock(calls: list[Call]) -> list[float | None]:
        seen.extend([tensor.data_ptr() for tensor in call.tensors] for call in calls if hasattr(call, "tensors"))
        return [1.0] * len(calls)

    compiled(clock, gate, GATE)
    assert seen and all(len(set(pointers)) == len(pointers) for pointers in seen)


def test_what_was_measured_once_is_not_measured_again(cache: Path) -> None:
    first = Made(50.0, 10.0, 2)
    chosen = compiled(first).triton
    tuning._figures.clear()
    again = Made(1.0, 99.0, 1)
    assert {n: k.source for n, k in compiled(again).triton.items()} == {n: k.source for n, k in chosen.items()}
    assert first.asked > 0 and again.asked == 0
    assert any(cache.iterdir())


@pytest.mark.parametrize("text", ["", "{", "[]", "[1.0, 99]", "[-1.0, 0]"])
def test_a_damaged_file_is_measured_anew(cache: Path, text: str) -> None:
    first = Made(50.0, 10.0, 2)
    chosen = compiled(first).triton
    tuning._figures.clear()
    for file in cache.iterdir():
        if not file.suffix:
            file.write_text(text)
    again = Made(50.0, 10.0, 2)
    assert {n: k.source for n, k in compiled(again).triton.items()} == {n: k.source for n, k in chosen.items()}
    assert again.asked == first.asked
