"""Uniform numbers: four in a row are the words of one Philox draw, and eight of those that are only compared, however
a kernel's lanes lie along them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.codegen.same_code import first_of_each_code
from compiler.compile import build
from compiler.ir import interpret
from compiler.schedule.group import Batch, Group
from tests.compile_program import call_interpreted, compile_program


def by_one(x: Tensor) -> Tensor:
    return torch.rand_like(x) + x


def transposed(x: Tensor) -> Tensor:
    return (torch.rand_like(x) + x).t().contiguous()


def behind_a_softmax(x: Tensor) -> Tensor:
    return F.softmax(x, -1) * torch.rand_like(x)


def summed_over_rows(x: Tensor) -> Tensor:
    return (torch.rand_like(x) + x).sum(0)


def a_part(x: Tensor) -> Tensor:
    return torch.rand(x.shape[0], x.shape[1] + 2)[:, 2:] + x


def overwritten_in_part(x: Tensor) -> Tensor:
    """A choice by position between a number and what is drawn."""
    numbers = torch.rand_like(x)
    numbers[0] = 0.0
    return numbers * x


def compared(x: Tensor) -> Tensor:
    return (torch.rand_like(x) > 0.25) * x


def compared_behind_a_softmax(x: Tensor) -> Tensor:
    return F.softmax(x, -1) * (torch.rand_like(x) > 0.25)


def five_layers(x: Tensor) -> Tensor:
    """Each in a kernel of its own, as the product between them is the library's."""
    for _ in range(5):
        x = F.dropout(torch.mm(x, x.t()) / 64, 0.5).relu() + torch.rand(64, 64)
    return x


@pytest.mark.parametrize(
    "function, shape, generator",
    [
        (by_one, (7, 33), "uniform_by_fours"),
        (by_one, (2,), "uniform"),
        (compared, (7, 33), "shared_by_eights"),
        (compared, (4,), "shared_by_fours"),
        (compared_behind_a_softmax, (5, 64), "shared_by_eights"),
        (compared_behind_a_softmax, (5, 68), "shared_by_fours"),
        (compared_behind_a_softmax, (5, 66), "shared"),
        (transposed, (64, 64), None),
        (behind_a_softmax, (5, 66), "uniform"),
        (behind_a_softmax, (2, 5000), None),
        (summed_over_rows, (40, 64), None),
        (summed_over_rows, (9000, 2), None),
        (a_part, (6, 62), None),
        (overwritten_in_part, (4,), None),
        (overwritten_in_part, (11,), None),
        (five_layers, (64, 64), None),
    ],
)
def test_every_kernel_draws_the_numbers_of_the_loop_ir(
    function: Callable[[Tensor], Tensor], shape: tuple[int, ...], generator: str | None
) -> None:
    x = torch.randn(shape)
    compilation = compile_program(function, x)
    texts = "".join(kernel.source for kernel in compilation.triton.values())
    assert generator is None or f" {generator}(seeds" in texts
    runs = []
    for run in (lambda: interpret.run(compilation.loops, [x]), lambda: call_interpreted(compilation, [x])):
        torch.manual_seed(7)
        runs.append(run()[0])
    torch.manual_seed(7)
    runs.append(build(compilation).executable.call([x])[0])
    for ours in runs[1:]:
        torch.testing.assert_close(ours, runs[0], rtol=1e-4, atol=1e-4)


def test_equal_layers_draw_from_their_seeds_in_one_code() -> None:
    compilation = compile_program(five_layers, torch.randn(64, 64))
    assert len(set(first_of_each_code(compilation.triton).values())) == 1 < len(compilation.triton)
    compilation = compile_program(five_layers, torch.randn(64, 64), target="cpu")
    assert len(set(first_of_each_code(compilation.cpp).values())) == 1 < len(compilation.cpp)
    torch.manual_seed(7)
    assert len(set(build(compilation).executable.call([torch.ones(64, 64)])[0].flatten().tolist())) > 1000


def test_dropouts_in_one_launch_draw_from_their_own_seeds_after_those_of_others() -> None:
    def after_a_sum(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        total = (F.dropout(x, 0.5) + F.dropout(x, 0.25)).sum()
        return F.dropout(y * total, 0.3), F.dropout(z + total, 0.2)

    inputs = [torch.rand(60, 37) + 1, torch.rand(64, 64) + 1, torch.rand(2000) + 1]
    compilation = compile_program(after_a_sum, *inputs)
    assert [type(group) for group in compilation.groups] == [Group, Batch]
    runs = []
    for run in (lambda: interpret.run(compilation.loops, inputs), lambda: call_interpreted(compilation, inputs)):
        torch.manual_seed(7)
        runs.append(run())
    torch.testing.assert_close(runs[1], runs[0])


def test_rows_that_share_a_bias_are_dropped_out_as_in_cpp() -> None:
    """Kernels for GPUs draw one word for eight elements."""
    x, bias = torch.randn(900, 1024).bfloat16(), torch.randn(1024).bfloat16()
    compilation = compile_program(lambda x, b: F.dropout(F.gelu(x + b), 0.1, True), x, bias)
    (kernel,) = compilation.triton.values()
    assert " shared_by_eights(seeds" in kernel.source
    torch.manual_seed(7)
    expected = build(compilation).executable.call([x, bias])[0]
    torch.manual_seed(7)
    torch.testing.assert_close(call_interpreted(compilation, [x, bias])[0], expected, rtol=2**-6, atol=1e-6)


def test_numbers_that_share_a_word_are_compared_all_but_independently() -> None:
    numbers = interpret.uniform_compared(torch.tensor(7), torch.arange(1 << 19))
    for bound in (1 / 32, 0.1, 0.5):
        is_below = (numbers < bound).double()
        spread = (bound * (1 - bound)) ** 0.5
        assert abs(float(is_below.mean()) - bound) < 5 * spread / 2**9.5
        pairs = (is_below - bound).view(-1, 2).prod(1) / spread**2
        assert abs(float(pairs.mean())) < 5 / 2**9


@pytest.mark.parametrize("rounds, are_enough", [(7, True), (4, False)])
def test_each_bit_of_a_counter_and_of_a_seed_decides_each_bit_of_a_draw_half_of_the_time(
    rounds: int, are_enough: bool
) -> None:
    """The strict avalanche criterion, for the counters and seeds that programs have: positions and any 64 bits."""
    samples = 4096
    seeds = torch.randint(-(2**63), 2**63 - 1, (samples,), generator=torch.Generator().manual_seed(0))
    counters = torch.arange(samples)
    words = torch.stack(interpret.philox(seeds, counters, rounds))
    bits = torch.arange(32)
    flipped = [(seeds ^ (1 << bit if bit < 63 else -(2**63)), counters) for bit in range(64)]
    flipped += [(seeds, counters ^ (1 << bit)) for bit in range(32)]
    for seed, counter in flipped:
        changed = torch.stack(interpret.philox(seed, counter, rounds)) ^ words
        shares = ((changed[..., None] >> bits) & 1).double().mean(1)
        # Of 12,288 pairs of bits, chance alone exceeds six standard deviations once in 40,000 runs.
        if float((shares - 0.5).abs().max()) > 6 * 0.5 / samples**0.5:
            assert not are_enough
            return
    assert are_enough


def test_what_a_dropout_keeps_in_one_place_tells_nothing_of_another() -> None:
    """Of masks in a row, of other seeds, and at all distances up to many rows."""
    count = 1 << 18
    masks = [interpret.uniform_compared(torch.tensor(seed), torch.arange(count)) < 0.1 for seed in (7, 8, 7 + 2**32)]
    centred = [(mask.double() - 0.1) / 0.3 for mask in masks]
    for other in centred:
        spectrum = torch.fft.rfft(centred[0]) * torch.fft.rfft(other).conj()
        correlation = torch.fft.irfft(spectrum, n=count) / count
        if other is centred[0]:
            correlation[0] = 0.0
        assert float(correlation.abs().max()) < 6.5 / count**0.5


def test_few_numbers_below_a_bound_have_words_of_their_own() -> None:
    counts = [
        "rand_compared" in str(compile_program(lambda x, p=p: (torch.rand_like(x) < p) + x, torch.randn(8)).loops)
        for p in (1e-3, 0.1)
    ]
    assert counts == [False, True]
