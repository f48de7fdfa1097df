"""Launches left out of a recording, so that their results need no copy: which, and that all results stay the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from compiler.codegen.wrapper import render_parts
from compiler.replay.describe import describe_replay
from compiler.replay.price import Copies, gain_of_tail
from compiler.replay.replayed import WATCHED_CALLS, Facts, ReplayedCall
from compiler.replay.tail import Tail, tails_of
from compiler.runtime.executable import build_parts
from tests.compile_program import _interpret, call_interpreted, compile_program
from tests.replay.pretended import PretendedRecorder


def calls_of_libraries(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Nothing but library calls, each with a result of its own or for the next one."""
    made = torch.sort(x).values
    for _ in range(5):
        made = torch.sort(made, descending=True, dim=0).values
    last = torch.topk(made, 3).values
    return made, last, torch.sort(last, dim=0).values, made.t(), x


X = torch.randn(6, 8)


def test_both_parts_together_give_what_the_whole_gives() -> None:
    made = compile_program(calls_of_libraries, X)
    assert made.schedule is not None and made.memory is not None
    whole = made.build().call([X])
    count = len(made.schedule.units)
    assert count == 8
    for start in range(count + 1):
        text = render_parts(made.schedule, made.memory, made.cpp, start)
        head, tail = build_parts(made.schedule, text, {}, torch.device("cpu"))
        found = tail([X], head([X]))
        for mine, expected in zip(found, whole, strict=True):
            assert torch.equal(mine, expected) and mine.stride() == expected.stride()


def products(x: torch.Tensor, weights: list[torch.Tensor], last: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Kernels whose results take over the memory of others, and two results."""
    for weight in weights:
        x = torch.relu(x @ weight) + x
    return x @ last, x.sum(0)


def test_memory_that_was_taken_over_is_not_asked_for() -> None:
    inputs = torch.randn(4, 8), [torch.randn(8, 8) for _ in range(4)], torch.randn(8, 16)
    made = compile_program(products, *inputs)
    assert made.schedule is not None and made.memory is not None
    assert any(buffer.fate == "reused" for buffer in made.memory.buffers.values())
    kernels = {name: partial(_interpret, kernel) for name, kernel in made.triton.items()}
    given = [inputs[0], *inputs[1], inputs[2]]
    whole = call_interpreted(made, given)
    for tail in tails_of(made.schedule, made.memory):
        text = render_parts(made.schedule, made.memory, made.triton, tail.start)
        head, rest = build_parts(made.schedule, text, kernels, torch.device("cpu"))
        assert all(torch.equal(a, b) for a, b in zip(rest(given, head(given)), whole, strict=True))


def dropouts(x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
    """Kernels of one code, each with seeds of its own, on both sides of where a tail may begin."""
    for weight in weights:
        x = torch.nn.functional.dropout(x @ weight, 0.5)
    return x


def test_a_tail_draws_from_the_seeds_of_its_own_kernels() -> None:
    inputs = torch.randn(4, 8), [torch.randn(8, 8) for _ in range(8)]
    made = compile_program(dropouts, *inputs)
    assert made.schedule is not None and made.memory is not None
    kernels = {name: partial(_interpret, kernel) for name, kernel in made.triton.items()}
    assert len({kernel.first_seed for kernel in made.triton.values()}) > 1
    given = [inputs[0], *inputs[1]]
    torch.manual_seed(0)
    whole = call_interpreted(made, given)
    tails = tails_of(made.schedule, made.memory)
    assert tails
    for start in range(1, len(made.schedule.units)):
        text = render_parts(made.schedule, made.memory, made.triton, start)
        head, rest = build_parts(made.schedule, text, kernels, torch.device("cpu"))
        torch.manual_seed(0)
        assert all(torch.equal(a, b) for a, b in zip(rest(given, head(given)), whole, strict=True))


def test_a_tail_begins_with_what_makes_an_output_and_makes_none_that_is_held() -> None:
    made = compile_program(calls_of_libraries, X)
    assert made.schedule is not None and made.memory is not None
    assert tails_of(made.schedule, made.memory) == (
        Tail(7, 1, frozenset({2})),
        Tail(6, 2, frozenset({1, 2})),
        Tail(5, 3, frozenset({0, 1, 2, 3})),
    )
    assert tails_of(made.schedule, made.memory, held={1}) == (Tail(7, 1, frozenset({2})),)
    assert tails_of(made.schedule, made.memory, held={2}) == ()


@pytest.mark.parametrize(("copied", "left", "launches", "pays"), [
    (Copies(1, 2**25), Copies(0, 0), 1, True),  # 15 us of copying for a launch of 10
    (Copies(1, 2**25), Copies(0, 0), 3, False),
    (Copies(1, 4096), Copies(0, 0), 1, False),
    (Copies(3, 3 * 2**26), Copies(1, 2**26), 2, True),
])  # fmt: skip
def test_a_tail_pays_where_its_launches_cost_less_than_the_copies(
    copied: Copies, left: Copies, launches: int, pays: bool
) -> None:
    assert (gain_of_tail(copied, left, launches, launch_us=10.0, bandwidth=4.3e12) > 0) == pays


def with_tail(inputs: list[Any]) -> list[Any]:
    return tail_of(inputs, head_of(inputs))


def head_of(inputs: list[Any]) -> list[Any]:
    x, weight = inputs
    return [x * weight, (x + weight).sum()]


def tail_of(inputs: list[Any], kept: list[Any]) -> list[Any]:
    """New memory, the recording's, a view of the same, and the caller's."""
    x, _ = inputs
    product, total = kept
    return [product.repeat(2**20), product, product[1:], total, x, x[1:]]


def test_results_keep_their_values_and_only_those_of_the_recording_are_copied() -> None:
    recorder = PretendedRecorder()
    tail = Tail(99, 1, frozenset({0}))
    call = ReplayedCall(
        with_tail, Facts(100, 4e12, tails=(tail,), split=lambda start: (head_of, tail_of)), recorder, "auto"
    )
    weight, kept = torch.tensor([1.0, 2.0, 3.0]), []
    for step in range(WATCHED_CALLS + 3):
        x = torch.full((3,), float(step))
        kept.append((call([x, weight]), x))
    assert call.tail == tail and recorder.recorded == 1 and call.replays == 3
    assert call.copied_out == Copies(2, 12 + 4)
    for step, ((large, product, part, total, given, view), x) in enumerate(kept):
        assert product.tolist() == [step, 2 * step, 3 * step] and large[-3:].tolist() == product.tolist()
        assert part.data_ptr() == product[1:].data_ptr() and total.item() == 3 * step + 6
        assert given is x and view.data_ptr() == x[1:].data_ptr()


def test_a_recording_is_described() -> None:
    made = compile_program(calls_of_libraries, X)
    assert made.schedule is not None
    recorder = PretendedRecorder()
    call = ReplayedCall(lambda inputs: [inputs[0] + 1], Facts(8, 4e12), recorder, "auto")
    alive = [torch.randn(6, 8) for _ in range(WATCHED_CALLS + 6)]
    for x in alive:
        call([x])
    call.tail = Tail(7, 1, frozenset({2}))
    told = describe_replay(made.schedule, call, "auto")
    assert (told.verdict, told.reason, told.option) == ("replayed", "replay.replayed", "auto")
    assert (told.launches, told.library_calls) == (8, 8)
    assert (told.recorded_launches, told.recorded_library_calls, told.launched_after) == (7, 7, ["aten.sort"])
    assert [(one.bytes, one.way) for one in told.inputs] == [(6 * 8 * 4, "copied")]
    assert (told.copied_in_bytes, told.copied_out_bytes, told.held_bytes) == (192, 192, 0)
    assert (told.recordings, told.replays, told.launched_calls, told.pool_bytes) == (1, 6, 0, 4096)
    assert told.launched is not None and told.launched.measured_host_us == 500.0
    assert told.replayed is not None and told.predicted_host_us is not None
