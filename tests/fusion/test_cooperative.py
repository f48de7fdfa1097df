"""Rows that a team of programs holds: the right values, each element read once, and which rows they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from math import inf, nan
from typing import Any

import pytest
import torch

from compiler.compile import Generated
from compiler.devices import GPUS, device_for
from compiler.runtime.checking.verify import relative_error
from compiler.runtime.interpreter.interpreter import interpret
from compiler.schedule.tiles.cooperative import cooperative_reduction
from tests.compile_program import bytes_moved, call_interpreted, compile_program, compiled_for_gpus, kernel_count

Tensor = torch.Tensor
H200 = device_for("sm_90")


#: Bytes, by the release of Triton and the program: they are in the code that it generates, whoever assembles it.
SPILLED_WITH_AN_OLDER_TRITON = {("3.6", "softmax"): 24}


def triton_release() -> str:
    return ".".join(version("triton").split(".")[:2])


def rnd(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def normalised_images(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.relu(torch.nn.functional.batch_norm(x, None, None, w, b, True))


CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "softmax": (lambda x: torch.softmax(x, -1), (rnd(2, 50001),)),
    "softmax of bfloat16": (lambda x: torch.softmax(x, -1), (rnd(2, 50001).bfloat16(),)),
    "softmax of columns": (lambda x: torch.softmax(x, 0), (rnd(3000, 70),)),
    "batch norm in training": (normalised_images, (rnd(16, 6, 60, 60) + 10, rnd(6), rnd(6))),
    "layer norm of a long row": (lambda x: torch.nn.functional.layer_norm(x, (50001,)), (rnd(2, 50001) + 100,)),
    "distance to the mean, and to the largest": (
        lambda x: (x - x.mean(-1, keepdim=True), x.amax(-1), x.argmax(-1), x - x.amax(-1, keepdim=True)),
        (rnd(2, 50001),),
    ),
    "two exchanges": (
        lambda x: (x - x.mean(-1, keepdim=True)).abs() / (x - x.mean(-1, keepdim=True)).abs().amax(-1, keepdim=True),
        (rnd(2, 50001),),
    ),
    "truth": (lambda x: x * (x > 4).any(-1, keepdim=True), (rnd(2, 50001),)),
}


def as_list(results: Any) -> list[Tensor]:
    return list(results) if isinstance(results, tuple | list) else [results]


def cooperative(function: Callable[..., Any], *inputs: Tensor) -> Generated:
    compilation = compile_program(function, *inputs)
    assert [kernel.config["plan"] for kernel in compilation.triton.values()] == ["team"]
    return compilation


@pytest.mark.parametrize("name", CASES)
def test_results_are_as_good_as_eager(name: str) -> None:
    function, inputs = CASES[name]
    compilation = cooperative(function, *inputs)
    assert kernel_count(compilation) == (1, 0)
    outputs = as_list(function(*inputs))
    assert bytes_moved(compilation) == sum(x.numel() * x.element_size() for x in (*inputs, *outputs))
    exact = as_list(function(*[x.double() for x in inputs]))
    bound = 3 * relative_error(outputs, exact) + 64 * torch.finfo(torch.float32).eps
    assert relative_error(call_interpreted(compilation, inputs), exact) <= bound


@pytest.mark.parametrize("name", CASES)
def test_kernels_compile_for_gpus_without_spills(name: str) -> None:
    function, inputs = CASES[name]
    compilation = cooperative(function, *inputs)
    for result in compiled_for_gpus(compilation):
        assert result.spills == 0
        # Who waits reads again and again what others write, past the cache of its own multiprocessor.
        assert "acquire" in result.ptx or "ld.volatile.global" in result.ptx


def test_no_team_holds_a_row_of_one_value() -> None:
    """Of an expanded tensor nothing lies along the row."""
    x = rnd(1, 300).expand(50000, 300)
    compilation = compile_program(lambda x: (x - x.mean(0)) / (x.std(0) + 1e-6), x)
    assert "team" not in {kernel.config["plan"] for kernel in compilation.triton.values()}


def test_infinities_and_nan_come_out_as_in_eager() -> None:
    x = rnd(6, 20001)
    x[0] = -inf
    x[1, 100], x[2, 15000], x[3, :10000] = inf, nan, -inf
    x[4, 7], x[4, 19000] = inf, nan
    compilation = cooperative(lambda x: torch.softmax(x, -1), x)
    torch.testing.assert_close(call_interpreted(compilation, [x])[0], torch.softmax(x, -1), equal_nan=True)


def test_counters_are_left_as_they_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Tensor] = []
    zeros = torch.zeros

    def remembered(*arguments: Any, **keywords: Any) -> Tensor:
        made.append(zeros(*arguments, **keywords))
        return made[-1]

    x = rnd(1, 50001)
    compilation = cooperative(CASES["layer norm of a long row"][0], x)
    (kernel,) = compilation.triton.values()
    monkeypatch.setattr(torch, "zeros", remembered)
    interpret(kernel, [x, torch.empty_like(x)])
    counters = [one for one in made if one.dtype == torch.int32]
    assert len(counters) == 1 and not counters[0].any()


def test_a_launch_waits_for_what_it_sends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that an earlier launch left are another launch's, whatever values they hold."""
    kept: dict[tuple[int, torch.dtype], Tensor] = {}
    zeros = torch.zeros

    def the_same(size: int, dtype: torch.dtype) -> Tensor:
        return kept.setdefault((size, dtype), zeros(size, dtype=dtype))

    x = rnd(1, 20001)
    (kernel,) = cooperative(lambda x: torch.softmax(x, -1), x).triton.values()
    monkeypatch.setattr(torch, "zeros", the_same)
    for one in (x, 3 * x):
        interpret(kernel, [one, out := torch.empty_like(one)])
        torch.testing.assert_close(out, torch.softmax(one, -1))
    (counter,) = (one.view(torch.int64) for (_, dtype), one in kept.items() if dtype == torch.int32)
    assert int(counter) == 2 * kernel.config["grid"][0]  # type: ignore[index]


@pytest.mark.parametrize("device", GPUS, ids=lambda device: device.name)
@pytest.mark.parametrize("is_outer", [False, True])
@pytest.mark.parametrize("length", [300, 5000, 20000, 200704, 1 << 20, 1 << 24])
@pytest.mark.parametrize("rows", [1, 40, 5000])
def test_a_team_covers_the_row_and_fits_the_device(rows: int, length: int, is_outer: bool, device: Any) -> None:
    for held in (1, 4, 20):
        team = cooperative_reduction(rows, length, held, 4, is_outer, device)
        if team is not None:
            assert 2 <= team.size <= device.multiprocessors
            assert (team.size - 1) * team.r_block < length <= team.size * team.r_block
            assert 32 * team.warps <= device.threads_per_block
            assert held * team.r_block * team.x_block <= device.registers_per_multiprocessor


def normalised_channels(x: Tensor) -> Tensor:
    return torch.relu(torch.nn.functional.batch_norm(x, None, None, None, None, True))


def normalised_groups(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.nn.functional.silu(torch.nn.functional.group_norm(x, 2, w, b))


#: Functions, inputs, programs of a cluster, and points of each.
CLUSTERS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], int, int]] = {
    **{name: (*CASES[name], 16, 3200) for name in ("softmax", "layer norm of a long row", "two exchanges")},
    "batch norm, in even shares": (normalised_channels, (rnd(64, 2, 56, 56) + 3,), 16, 12544),
    "group norm with weights": (normalised_groups, (rnd(2, 32, 64, 64) + 1, rnd(32), rnd(32)), 8, 8192),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_programs_that_start_together_leave_each_other_what_they_reduce(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few multiprocessors, so that few rows fill them.
    monkeypatch.setattr("tests.compile_program.device_for", lambda _: replace(H200, multiprocessors=14))
    function, inputs, size, share = CLUSTERS[name]
    compilation = cooperative(function, *inputs)
    (kernel,) = compilation.triton.values()
    assert kernel.config["cluster"] == size and "workspace_bytes" not in kernel.config
    assert f"part * {share}" in kernel.source or kernel.config["RBLOCK"] == share
    # Weights of channels are few values, and on their way while programs wait for each other.
    assert "tl.load" not in kernel.source.split("    wait_at(gate_1)")[1]
    exact = function(*[x.double() for x in inputs])
    bound = 3 * relative_error([function(*inputs)], [exact]) + 64 * torch.finfo(torch.float32).eps
    assert relative_error(call_interpreted(compilation, inputs), [exact]) <= bound
    (result,) = compiled_for_gpus(compilation)
    assert result.spills is not None
    assert result.spills <= SPILLED_WITH_AN_OLDER_TRITON.get((triton_release(), name), 0)
    assert "barrier.cluster.wait" in result.ptx and "st.async.shared::cluster" in result.ptx


def test_the_registers_of_a_group_norm_and_silu_leave_room_for_six_programs_of_a_cluster() -> None:
    half = torch.bfloat16
    inputs = torch.empty(16, 512, 64, 64, dtype=half), torch.empty(512, dtype=half), torch.empty(512, dtype=half)
    functional = torch.nn.functional
    compilation = cooperative(lambda x, w, b: functional.silu(functional.group_norm(x, 32, w, b)), *inputs)
    (result,) = compiled_for_gpus(compilation)
    assert result.spills == 0 and result.registers is not None
    assert 6 * 128 * result.registers <= H200.registers_per_multiprocessor


def test_few_rows_columns_and_what_is_no_float_are_not_in_clusters() -> None:
    def is_cluster(rows: int, length: int, is_outer: bool, leaves_floats: bool) -> bool:
        team = cooperative_reduction(rows, length, 1, 4, is_outer, H200, leaves_floats)
        return team is not None and team.is_cluster

    assert is_cluster(512, 131072, False, True)
    assert not is_cluster(16, 131072, False, True)
    assert not is_cluster(512, 1 << 20, False, True)
    assert not is_cluster(512, 131072, True, True)
    assert not is_cluster(512, 131072, False, False)


@pytest.mark.parametrize(
    "length, size, share",
    [(131072, 16, 8192), (98304, 12, 8192), (40000, 8, 5000), (100003, 16, 6272), (50257, 16, 3200), (20001, 8, 2560)],
)
def test_a_cluster_shares_a_row_in_whole_blocks_or_evenly(length: int, size: int, share: int) -> None:
    team = cooperative_reduction(1024, length, 1, 4, False, H200, True)
    assert team is not None and team.is_cluster and (team.size, team.share, team.warps) == (size, share, 4)


def test_nothing_is_held_together_on_a_cpu_or_in_symbolic_sizes() -> None:
    assert cooperative_reduction(4, 50000, 1, 4, False, replace(H200, kind="cpu")) is None
    compilation = compile_program(lambda x: torch.softmax(x, -1), rnd(4, 50001), dynamic=True)
    assert "team" not in {kernel.config["plan"] for kernel in compilation.triton.values()}


def test_a_knob_turns_it_off() -> None:
    compilation = compile_program(lambda x: torch.softmax(x, -1), rnd(600, 50001), disable=("team",))
    assert [kernel.config["plan"] for kernel in compilation.triton.values()] == ["looped"]
