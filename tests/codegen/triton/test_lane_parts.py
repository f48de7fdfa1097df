"""Short rows that begin anywhere: a few lanes have a row in parts, and what they make of it is what rows come to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from bench.fusion.count import schedules_of
from bench.fusion.program import Program, tensor
from compiler.compile import generate
from compiler.schedule.tiles import lane_parts as tile_lane_parts
from tests.compile_program import call_interpreted, compile_program, compiled_for_gpus


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x.float(), -1).to(x.dtype)


def norm(x: Tensor) -> Tensor:
    return F.layer_norm(x.float(), x.shape[-1:])


def masked(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    is_low = x < -1
    return x.masked_fill(is_low, -torch.inf).amax(-1), is_low.any(-1), is_low.logical_not().all(-1)


def products(x: Tensor) -> tuple[Tensor, Tensor]:
    whole = (x * 8).int()
    return (1 + x / 64).prod(-1), whole.amin(-1)


def shifted(x: Tensor) -> Tensor:
    """A load under a mask of its own."""
    return F.pad(x, (1, 0))[:, :-1].sum(-1) + x.sum(-1)


@pytest.mark.parametrize("function", [softmax, norm, masked, products, shifted])
@pytest.mark.parametrize("length", [17, 33, 49, 77, 197])
def test_rows_in_parts_come_to_what_rows_do(
    function: Callable[..., object], length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tile_lane_parts, "_PROGRAMS", 0)
    x = torch.randn(37, length, generator=torch.Generator().manual_seed(0))
    compilation = compile_program(function, x)
    assert all(int(str(kernel.config["RBLOCK"])) < length for kernel in compilation.triton.values())
    found, wanted = call_interpreted(compilation, [x]), function(x)
    for one, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        torch.testing.assert_close(one, other, rtol=2e-6, atol=2e-6)


def config_of(function: Callable[..., object], *sizes: int, dtype: torch.dtype = torch.float32) -> dict[str, int]:
    """The launch's numbers. At sizes of real use: nothing is computed."""
    (compilation,) = schedules_of(Program("", function, (tensor(" ".join(map(str, sizes)), dtype),)))
    (kernel,) = generate(compilation, True).triton.values()
    return {name: value for name, value in kernel.config.items() if isinstance(value, int)}


def test_rows_that_begin_where_vectors_do_are_whole() -> None:
    assert config_of(softmax, 300_000, 64)["RBLOCK"] == 64
    assert config_of(softmax, 300_000, 65)["RBLOCK"] < 64


def test_rows_that_nearly_fill_a_tile_are_whole() -> None:
    assert config_of(softmax, 300_000, 57)["RBLOCK"] == 64


def test_few_rows_are_whole() -> None:
    assert config_of(softmax, 500, 49)["RBLOCK"] == 64
    assert config_of(softmax, 150_000, 49)["RBLOCK"] < 32


def test_what_has_a_place_or_runs_along_a_row_is_whole() -> None:
    assert config_of(lambda x: x.argmax(-1), 300_000, 49)["RBLOCK"] == 64
    assert config_of(lambda x: x.cumsum(-1), 300_000, 49)["RBLOCK"] == 64


def test_parts_of_a_row_take_fewer_steps_from_lane_to_lane() -> None:
    """Four for sixteen lanes, where a warp takes five, and for two rows by each."""
    compilation = compile_program(norm, torch.zeros(300_000, 33))
    (kernel,), (result,) = compilation.triton.values(), compiled_for_gpus(compilation)
    rows, lanes = int(str(kernel.config["XBLOCK"])), int(str(kernel.config["RBLOCK"]))
    sums_of_a_thread = 2 * rows * lanes // (32 * int(str(kernel.config["num_warps"])))
    assert lanes == 16 and result.ptx.count("shfl.sync") == 4 * sums_of_a_thread


def gradients(x: Tensor, gradient: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of a layer norm without its mean: sums along rows and across them."""
    scale = (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    normed, inner = x * scale, gradient * weight
    return (inner - normed * (inner * normed).mean(-1, keepdim=True)) * scale, (gradient * normed).sum(0), x.amax(0)


@pytest.mark.parametrize("length", [17, 33, 49, 77])
def test_what_rows_in_parts_come_to_across_them(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_lane_parts, "_PROGRAMS", 0)
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(*shape, generator=generator) for shape in ((70, length), (70, length), (length,))]
    compilation = compile_program(gradients, *inputs)
    assert any(int(str(kernel.config.get("RBLOCK", length))) < length for kernel in compilation.triton.values())
    for one, other in zip(call_interpreted(compilation, inputs), gradients(*inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
