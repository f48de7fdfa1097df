"""What a scan may share a kernel with, and that it stays a scan in the order of its loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from compiler.compile import Generated, Target, build, lower, plan
from compiler.devices import device_for
from compiler.options import Options
from tests.compile_program import bytes_moved, call_interpreted, capture_graph, compile_program, kernel_count
from tests.schedule.test_kernels_and_bytes import rnd

Tensor = torch.Tensor


def check(function: Callable[..., Tensor], *inputs: Tensor, tolerance: float = 1e-5) -> Generated:
    compilation = compile_program(function, *inputs)
    exact = function(*[x.double() for x in inputs])
    for (result,) in (build(compilation).executable.call(list(inputs)), call_interpreted(compilation, inputs)):
        torch.testing.assert_close(result.double(), exact, rtol=tolerance, atol=tolerance * float(exact.abs().max()))
    return compilation


def test_a_reader_at_reversed_positions_is_a_kernel_of_its_own() -> None:
    def function(x: Tensor) -> Tensor:
        total = x.cumsum(-1)
        return total * total.flip(-1)

    compilation = check(function, rnd(64, 32))
    assert kernel_count(compilation) == (2, 0)
    assert "index.different_positions" in {d.verdict.reason for d in compilation.schedule.decisions}


def test_a_reader_of_the_last_element_waits_for_the_whole_row() -> None:
    def function(x: Tensor) -> Tensor:
        total = x.abs().cumsum(-1)
        return total / total[:, -1:]

    assert kernel_count(check(function, rnd(64, 32))) == (2, 0)


def test_a_scan_read_backwards_is_computed_on_the_way() -> None:
    """What is left until the end, as returns from rewards: one kernel, whose loops run backwards."""
    x = rnd(64, 32)
    compilation = check(lambda x: (x * 2).flip(-1).cumsum(-1).flip(-1) + x, x)
    assert kernel_count(compilation) == (1, 0)
    assert bytes_moved(compilation) == 2 * x.nbytes


@pytest.mark.parametrize("length", [100, 5000, 9001])
def test_a_scan_is_carried_through_every_pass_that_needs_it(length: int) -> None:
    """A softmax of running sums: three passes over rows that may be too long for registers."""
    compilation = check(lambda x: torch.softmax(x.cumsum(-1) / 50, -1), rnd(3, length))
    assert kernel_count(compilation) == (1, 0)


def test_a_reduction_of_a_scan_is_not_split_among_programs() -> None:
    compilation = check(lambda x: x.cumsum(-1).amax(-1), rnd(200, 9001), tolerance=1e-4)
    assert {kernel.config["plan"] for kernel in compilation.triton.values()} == {"looped"}


def test_columns_of_a_few_long_ones_are_scanned_in_chunks_side_by_side() -> None:
    """Kernels for the total of each chunk, for the running totals, and for the chunks: neighbours in memory are
    neighbouring rows, which a program takes together. So it is on a CPU, which has no programs that wait."""
    compilation = check(lambda x: x.cumsum(0) * 2, rnd(3, 50000).t(), tolerance=1e-4)
    assert kernel_count(compilation) == (3, 0)


def test_few_long_rows_are_scanned_in_one_kernel_for_a_gpu_and_in_chunks_for_a_cpu() -> None:
    def function(x: Tensor) -> Tensor:
        return x.cumsum(1) * 2

    x = rnd(3, 50000)
    assert kernel_count(check(function, x, tolerance=1e-4)) == (1, 0)
    target = Target(torch.device("cpu"), device_for("sm_90"), Options(device_model="cpu"))
    on_cpu = plan(lower(capture_graph(function, x), target))
    assert kernel_count(on_cpu) == (3, 0)


@pytest.mark.parametrize("dims", [(0, 1), (1, 0)])
def test_a_scan_keeps_its_order_beside_a_reduction_that_reads_in_another(dims: tuple[int, int]) -> None:
    def function(x: Tensor) -> Tensor:
        flat = x.reshape(-1).cumsum(0)
        return flat.reshape(x.shape) / (2 + (x.permute(dims) * x.permute(dims)).sum())

    check(function, rnd(24, 40))


def test_a_stored_scan_is_not_computed_again_at_single_points() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        total = x.cumsum(-1) * 0.5
        return y @ total.t() + total[:, :1].t()

    check(function, rnd(16, 32), rnd(16, 32))


def test_a_scatter_at_places_that_a_scan_counts() -> None:
    """Compaction: the elements that a mask chooses move to the front."""

    def function(x: Tensor) -> Tensor:
        chosen = x > 0
        place = chosen.to(torch.int64).cumsum(0) - 1
        return torch.zeros_like(x).scatter_add(0, torch.where(chosen, place, 0), torch.where(chosen, x, 0.0))

    assert kernel_count(check(function, rnd(300)))[1] == 0


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_running_products_of_a_few_elements_are_arithmetic_that_fuses(length: int) -> None:
    """What comes before each element of a row and what comes after it, as in the gradient of a product."""

    def others(x: Tensor) -> Tensor:
        ones = torch.ones_like(x[:, :1])
        before = torch.cat((ones, x[:, :-1]), -1).cumprod(-1)
        after = torch.cat((ones, x.flip(-1)[:, :-1]), -1).cumprod(-1).flip(-1)
        return before * after * x.prod(-1, keepdim=True)

    compilation = check(others, rnd(37, length))
    assert (kernel_count(compilation) == (1, 0)) == (length <= 4)


def test_short_running_sums_take_infinities_and_half_types_as_long_ones_do() -> None:
    x = torch.tensor([[1.0, float("inf"), -2.0], [float("nan"), 1.0, 2.0], [3e38, 3e38, -1.0]])
    (result,) = call_interpreted(compile_program(lambda x: x.cumsum(-1), x), [x])
    assert torch.equal(result.nan_to_num(9.0), x.cumsum(-1).nan_to_num(9.0))
    halves = torch.tensor([[2048.0, 1.0, 1.0, 1.0]], dtype=torch.float16)
    (result,) = call_interpreted(compile_program(lambda x: x.cumsum(-1), halves), [halves])
    assert result.tolist() == [[2048.0, 2049.0 // 2 * 2, 2050.0, 2052.0]]
