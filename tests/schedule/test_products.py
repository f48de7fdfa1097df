"""What joins a matrix product and what does not, with the numbers that it rests on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from bench.fusion.count import schedules_of
from bench.predictions.tiles import kinds_of
from bench.programs.products import PROGRAMS
from compiler.compile import Planned, Target, build, generate, lower, plan
from compiler.decisions import Refuse, message_of
from compiler.devices import H200, Device, cpu_device
from compiler.lowering.decompositions import decompositions
from compiler.options import Options
from compiler.schedule.group import Group
from compiler.schedule.products.best_tile import library_us, tensors_of, tile_of
from compiler.schedule.products.loops import Product
from compiler.schedule.products.tiles import TILES
from compiler.schedule.rules import Fuse
from tests.compile_program import call_interpreted, compile_program

Tensor = torch.Tensor


def scheduled(
    function: Callable[..., Any], *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32, device: Device = H200,
    **options: Any,
) -> Planned:  # fmt: skip
    with FakeTensorMode():
        graph = make_fx(function, decompositions())(*(torch.empty(shape, dtype=dtype) for shape in shapes))
    compilation = plan(lower(graph, Target(torch.device("cpu"), device, Options(**options))))
    return compilation


def verdict_on(compilation: Planned, a: str, b: str) -> Fuse | Refuse:
    """The last verdict on two nodes."""
    return next(d.verdict for d in reversed(compilation.schedule.decisions) if (d.a, d.b) == (a, b))


def products(compilation: Planned) -> list[Product]:
    return [group for group in compilation.groups if isinstance(group, Product)]


def relu(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x @ w)


def test_a_large_product_stays_with_the_library_and_says_by_how_much() -> None:
    compilation = scheduled(relu, (8192, 4096), (4096, 4096), dtype=torch.bfloat16)
    verdict = verdict_on(compilation, "mm", "relu")
    assert isinstance(verdict, Refuse) and verdict.reason == "profit.library"
    numbers = verdict.numbers
    assert numbers["fused_us"] > numbers["unfused_us"] * (1 - numbers["least_gain"])
    assert 0 < numbers["library_us"] < numbers["unfused_us"]
    assert not products(compilation)


def test_a_small_product_takes_in_what_follows() -> None:
    verdict = verdict_on(scheduled(relu, (512, 512), (512, 512), dtype=torch.bfloat16), "mm", "relu")
    assert isinstance(verdict, Fuse) and verdict.reason == "fused.epilogue"
    assert verdict.score.bytes_saved == 2 * 512 * 512 * 2


def test_the_product_reaches_memory_only_where_something_else_reads_it() -> None:
    (alone,) = products(scheduled(relu, (64, 64), (64, 64)))
    assert alone.stored == {"relu"}
    (both,) = products(scheduled(lambda x, w: (relu(x, w), (x @ w).sort(0).values), (64, 64), (64, 64)))
    assert both.stored == {"relu", "mm"}


@pytest.mark.parametrize(
    ("options", "device", "dtype", "reason"),
    [
        ({"rules_off": ["epilogue"]}, H200, torch.float32, "policy.disabled"),
        ({"largest_group": 1}, H200, torch.float32, "policy.group_size"),
        ({"forbid": [["mm", "relu"]]}, H200, torch.float32, "policy.forbidden"),
        ({}, H200, torch.float64, "kind.extern"),
        ({}, cpu_device(2), torch.float32, "kind.extern"),
    ],
)
def test_the_library_keeps_it(options: dict[str, Any], device: Device, dtype: torch.dtype, reason: str) -> None:
    compilation = scheduled(relu, (64, 64), (64, 64), dtype=dtype, device=device, **options)
    verdict = verdict_on(compilation, "mm", "relu")
    assert isinstance(verdict, Refuse) and verdict.reason == reason
    assert not products(compilation)


@pytest.mark.parametrize(
    ("function", "pair", "reasons"),
    [
        (lambda x, w: (x @ w) + (x @ w).t(), ("mm", "add"), {"index.different_positions"}),
        (lambda x, w: (x @ w)[:32].exp(), ("mm", "exp"), {"shape.numel"}),
        (lambda x, w: (x @ w).amax(1), ("mm", "amax"), {"kind.not_pointwise"}),
        (lambda x, w: torch.cumsum(x @ w, 1), ("mm", "cumsum"), {"kind.not_pointwise"}),
        (lambda x, w: (x.exp() @ w, x.exp()), ("exp", "mm"), {"profit.operand_needed"}),
        # As many points as the product has multiplications.
        (lambda x, w: (x @ w)[:, :, None] * x[:, None, :], ("mm", "mul"), {"shape.numel"}),
    ],
)
def test_what_cannot_join_a_product(function: Callable[..., Any], pair: tuple[str, str], reasons: set[str]) -> None:
    compilation = scheduled(function, (64, 64), (64, 64))
    verdict = verdict_on(compilation, *pair)
    assert isinstance(verdict, Refuse) and verdict.reason in reasons


def test_what_needs_more_than_one_element_is_named_though_the_pair_needs_one() -> None:
    found = scheduled(lambda x, w: (x @ w).sigmoid().exp().sum(), (64, 64), (64, 64))
    verdict = verdict_on(found, "mm", "sigmoid")
    assert isinstance(verdict, Refuse) and verdict.reason == "kind.not_pointwise"
    assert verdict.numbers["unlike"].startswith("sum")


def test_a_forced_pair_skips_the_profit_test_alone() -> None:
    forced = scheduled(relu, (4096, 4096), (4096, 4096), force=[["mm", "relu"]])
    assert len(products(forced)) == 1
    refused = scheduled(lambda x, w: (x @ w).amax(1), (64, 64), (64, 64), force=[["mm", "amax"]])
    assert not products(refused)


def test_chains_find_together_before_a_product_takes_one_in() -> None:
    def layers(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        y = x @ w
        return (y * 0.5 * (1 + torch.tanh(y))) @ v

    compilation = scheduled(layers, (128, 64), (64, 64), (64, 64))
    assert [isinstance(unit, Group) for unit in compilation.schedule.units] == [True, False]


def test_shared_memory_holds_a_tile_of_each_tensor_that_an_operand_is_computed_from() -> None:
    def joined(a: Tensor, b: Tensor, c: Tensor, d: Tensor, w: Tensor) -> Tensor:
        return torch.cat([a, b, c, d], 1) @ w

    parts = [(4096, 256)] * 4
    (product,) = products(scheduled(joined, *parts, (1024, 256), dtype=torch.bfloat16, force=[["cat", "mm"]]))
    assert tensors_of(product) == (4, 1)
    tile = tile_of(product, H200)
    assert tile.shared_bytes(2, (4, 1)) == tile.stages * tile.k * (4 * tile.m + tile.n) * 2 <= H200.shared_per_block


def test_what_an_operand_comes_from_is_computed_before_it_on_a_cpu() -> None:
    """Though the product took it in later: a GPU's kernel computes all of it at once, a CPU one group after another."""

    def joined(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
        return torch.cat([a.sin(), b], 1) @ w

    forced = [["cat", "mm"], ["sin", "mm"]]
    knobs = {"disable": ["inline", "vertical"]}
    (product,) = products(
        scheduled(joined, (512, 64), (512, 64), (128, 64), dtype=torch.bfloat16, force=forced, knobs=knobs)
    )
    assert [sorted(group.stored) for group in product.before] == [["sin"], ["cat"]]


def test_tiles_fit_the_device_and_spare_registers_for_what_follows() -> None:
    (light,) = products(scheduled(relu, (8192, 1024), (1024, 3072), dtype=torch.bfloat16, force=[["mm", "relu"]]))
    (heavy,) = products(
        scheduled(
            lambda x, w, a, b: torch.tanh(x @ w) * a + b, (8192, 1024), (1024, 3072), (8192, 3072), (8192, 3072),
            dtype=torch.bfloat16, force=[["mm", "tanh"], ["mm", "mul"], ["mm", "add"]],
        )
    )  # fmt: skip
    assert tile_of(heavy, H200).sums_of_a_thread < tile_of(light, H200).sums_of_a_thread
    for tiles in TILES.values():
        assert all(tile.shared_bytes(4 if tiles is not TILES["half"] else 2) <= H200.shared_per_block for tile in tiles)


def test_the_librarys_time_is_that_of_the_h200() -> None:
    """(8192, 4096) x (4096, 4096) in bfloat16 took about 370 us, inferred from a measured total."""
    (product,) = products(
        scheduled(relu, (8192, 4096), (4096, 4096), dtype=torch.bfloat16, force=[["mm", "relu"]])
    )  # fmt: skip
    assert library_us(product.matrices, 3 * 64 << 20, H200) == pytest.approx(370, rel=0.1)


def linear_relu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.relu(torch.addmm(b, x, w))


def linear_gelu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    y = torch.addmm(b, x, w).float()
    return (0.5 * y * (1 + torch.tanh(0.79788456080287 * (y + 0.044715 * y * y * y)))).to(x.dtype)


SHAPES = ((2048, 512), (512, 512), (512,))


@pytest.mark.parametrize(
    ("function", "dtype", "target"),
    [
        (linear_relu, torch.bfloat16, "aten._addmm_activation.default"),
        (linear_relu, torch.float32, "aten._addmm_activation.default"),
        (linear_gelu, torch.bfloat16, "addmm_gelu"),
        (linear_gelu, torch.float32, None),
        (lambda x, w, b: torch.relu(torch.addmm(b, x, w, alpha=2)), torch.bfloat16, None),
        (lambda x, w, b: torch.relu(torch.addmm(b, x, w)) * 2, torch.bfloat16, None),
        (lambda x, w, b: torch.relu(torch.addmm(b, x, w)).t() * 1, torch.bfloat16, None),
        (lambda x, w, b: (torch.relu(torch.addmm(b, x, w)), torch.addmm(b, x, w)), torch.bfloat16, None),
    ],
)
def test_the_library_ends_its_product_with_exactly_two_activations(
    function: Callable[..., Any], dtype: torch.dtype, target: str | None
) -> None:
    compilation = scheduled(function, *SHAPES, dtype=dtype)
    calls = [unit for unit in compilation.schedule.units if not isinstance(unit, Group)]
    found = {str(call.target) for call in calls if call.covers}
    assert found == ({target} if target else set())
    if target:
        assert len(compilation.schedule.units) == 1
        assert compilation.schedule.decisions[-1].reason == "fused.library_epilogue"
        assert set(calls[0].covers) == {node.name for node in compilation.schedule.graph.nodes}


@pytest.mark.parametrize("function", [linear_relu, linear_gelu])
def test_the_librarys_epilogue_is_right(function: Callable[..., Tensor]) -> None:
    inputs = [torch.randn(shape, dtype=torch.bfloat16) / 8 for shape in SHAPES]
    compilation = scheduled(function, *SHAPES, dtype=torch.bfloat16)
    (result,) = build(generate(compilation, wants_triton=True)).executable.call(list(inputs))
    exact = function(*(tensor.double() for tensor in inputs))
    assert float((result.double() - exact).norm() / exact.norm()) < torch.finfo(torch.bfloat16).eps


def gram(x: Tensor) -> Tensor:
    return torch.relu(x @ x.t())


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (relu, ((20, 1), (1, 30))),
        (gram, ((1, 40),)),
        (lambda x: gram(x.expand(20, 40)), ((1, 40),)),
    ],
)
def test_products_without_loops_of_their_own_stay_with_the_library(
    function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]
) -> None:
    assert not products(scheduled(function, *shapes))


def test_an_operand_that_turns_out_to_be_the_other_one_is_computed_before() -> None:
    """A copy of a repeated row reads, once it is computed where it is needed, what the other operand is."""
    rows = torch.randn(1, 7).expand(130, 7)
    compilation = compile_program(lambda x: (x @ x.contiguous().mT) / 7, rows)
    (result,) = call_interpreted(compilation, [rows])
    torch.testing.assert_close(result, (rows @ rows.mT) / 7)


def test_a_part_of_a_product_that_loops_read_is_refused_with_both_sizes() -> None:
    compilation = scheduled(lambda x, w: torch.relu((x @ w)[:, :5]), (16, 8), (8, 16))
    (decision,) = [d for d in compilation.schedule.decisions if (d.a, d.b) == ("mm", "relu")]
    assert message_of(decision.reason, decision.names) == "mm runs 256 iterations, relu runs 80 iterations"


def test_products_are_made_by_the_tile_that_they_were_priced_with() -> None:
    """Sizes that no tile divides, prologues, epilogues and several sums."""
    kinds = [kind for program in PROGRAMS.values() for planned in schedules_of(program) for kind in kinds_of(planned)]
    assert kinds.count(("product", True)) >= 7 and all(is_made_as_priced for _, is_made_as_priced in kinds)
