"""What a caller may rely on while a graph is watched, recorded and replayed, with a recorder that pretends."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler.replay.describe import describe_replay
from compiler.replay.price import BUSY_SHARE, Copies, Times, weigh
from compiler.replay.replayed import MOST_RECORDINGS, MOST_WATCHED_CALLS, WATCHED_CALLS, Choice, Facts
from tests.compile_program import compile_program
from tests.replay.pretended import HOST_BOUND, PretendedRecorder, pretended, replayed_call


def scaled(inputs: list[Any]) -> list[Any]:
    x, weight = inputs
    return [x * weight, (x + weight).sum()]


def test_outputs_keep_their_values_after_later_calls() -> None:
    call, recorder = pretended(scaled)
    x, weight = torch.ones(3), torch.tensor([1.0, 2.0, 3.0])
    kept = []
    for step in range(8):
        x.fill_(step)
        kept.append(call([x, weight]))
    assert recorder.recorded == 1 and recorder.replays == 8 - WATCHED_CALLS
    for step, (product, total) in enumerate(kept):
        assert product.tolist() == [step, 2 * step, 3 * step] and total.item() == 3 * step + 6
    assert call.decision.reason == "replay.replayed"
    assert "10 launches" in call.decision.message and "500 us" in call.decision.message


def test_inputs_that_come_at_new_addresses_are_copied_and_others_are_not() -> None:
    call, recorder = pretended(scaled)
    weight, alive = torch.tensor([1.0, 2.0, 3.0]), []
    for step in range(8):
        alive.append(torch.full((3,), float(step)))
        product, _ = call([alive[-1], weight])
        assert product.tolist() == [step, 2 * step, 3 * step]
    assert recorder.recorded == 1
    weight.mul_(2)  # in place: the recording reads what is there now
    assert call([alive[5], weight])[0].tolist() == [10, 20, 30]
    assert recorder.recorded == 1 and recorder.replays == 6


def test_an_input_that_is_replaced_once_is_recorded_anew() -> None:
    call, recorder = pretended(scaled)
    x = torch.ones(3)
    weights = [torch.full((3,), float(n)) for n in range(1, 4)]
    for weight in (weights[0], weights[1]):
        for _ in range(6):
            assert torch.equal(call([x, weight])[0], weight)
    assert recorder.recorded == 2
    alone = call._addresses.copied()
    assert alone == ()
    for weight in weights * 2:
        assert torch.equal(call([x, weight])[0], weight)
    assert recorder.recorded == 3 and call._addresses.copied() == (1,)
    assert call.decision.numbers["copied_bytes"] == 12 + 4 + 12


def counting(inputs: list[Any]) -> list[Any]:
    count, x = inputs
    count.add_(1)
    return [x + count]


def test_what_a_call_writes_to_is_written_once_in_every_call() -> None:
    call, recorder = pretended(counting, written=(0,))
    count, x = torch.zeros(1), torch.ones(2)
    for step in range(1, 9):
        (result,) = call([count, x])
        assert count.item() == step and result.tolist() == [1 + step] * 2
    assert recorder.recorded == 1


def test_a_written_input_that_moves_is_never_copied_and_ends_replays() -> None:
    call, recorder = pretended(counting, written=(0,))
    counts, x = [torch.full((1,), float(n)) for n in range(12)], torch.ones(2)
    for start, count in enumerate(counts):
        (result,) = call([count, x])
        assert count.item() == start + 1 and result.tolist() == [2 + start] * 2
    assert recorder.recorded == MOST_RECORDINGS
    assert call.decision.reason == "replay.inputs_move" and "input 0" in call.decision.message


def added(inputs: list[Any]) -> list[Any]:
    return [sum(inputs[1:], inputs[0])]


def test_inputs_that_begin_to_move_one_after_another_do_not_end_replays() -> None:
    call, recorder = pretended(added)
    inputs, alive = [torch.full((2,), float(n)) for n in range(8)], []
    for _ in range(5):
        call(inputs)
    for n in range(8):
        for _ in range(3):
            alive.append(inputs[n])
            inputs[n] = inputs[n] + 1
            assert torch.equal(call(inputs)[0], sum(inputs[1:], inputs[0]))
    assert recorder.recorded <= MOST_RECORDINGS
    assert call.decision.reason == "replay.inputs_move"  # eight inputs are more than it puts up with


def test_a_busy_device_is_left_alone() -> None:
    call, recorder = pretended(scaled, PretendedRecorder(Times(host_us=500.0, elapsed_us=500.0 * BUSY_SHARE + 1)))
    inputs = [torch.ones(3), torch.ones(3)]
    for _ in range(6):
        call(inputs)
    assert call.decision.reason == "replay.device_bound" and call.decision.message and not recorder.recorded


def test_memory_that_is_not_there_is_not_recorded_with() -> None:
    recorder = PretendedRecorder()
    recorder.free = 1000
    found = {}
    trials: tuple[tuple[int, Choice], ...] = ((400, "auto"), (600, "auto"), (600, "on"))
    for peak, choice in trials:
        call = replayed_call(scaled, Facts(10, 4e12, peak_bytes=peak), recorder, choice)
        for _ in range(WATCHED_CALLS + 2):
            call([torch.ones(3), torch.ones(3)])
        found[peak, choice] = call.decision.reason
    assert found == {
        (400, "auto"): "replay.replayed", (600, "auto"): "replay.memory", (600, "on"): "replay.asked_for",
    }  # fmt: skip


def test_a_device_that_is_never_done_in_time_is_left_alone() -> None:
    call, recorder = pretended(scaled, PretendedRecorder(times=None))
    inputs = [torch.ones(3), torch.ones(3)]
    for _ in range(MOST_WATCHED_CALLS + 1):
        assert call.decision.reason == "replay.watching"
        call(inputs)
    assert call.decision.reason == "replay.behind" and call.decision.message and not recorder.recorded


@pytest.mark.parametrize(("times", "launches", "copies", "reason"), [
    (HOST_BOUND, 10, Copies(1, 4096), "replay.replayed"),
    (HOST_BOUND, 10, Copies(1, 2**30), "replay.slower"),
    (HOST_BOUND, 10, Copies(300, 4096), "replay.slower"),
    (HOST_BOUND, 10, Copies(1, 2**26), "replay.slower"),  # 31 us of a device that may be as busy as the host
    (Times(16.0, 16.0), 4, Copies(1, 4), "replay.slower"),
    (Times(500.0, 870.0), 33, Copies(1, 9682944), "replay.gaps"),
    (Times(500.0, 8700.0), 33, Copies(1, 9682944), "replay.device_bound"),
    (Times(500.0, 870.0), 33, Copies(1, 2**26), "replay.device_bound"),
])  # fmt: skip
def test_replays_pay_for_the_copies_that_they_need(times: Times, launches: int, copies: Copies, reason: str) -> None:
    decision = weigh(times, launches, copies, 4.3e12)
    assert decision.reason == reason and decision.message


@pytest.mark.parametrize(("times", "copies", "is_of_step", "reason"), [
    (Times(450.0, 770.0, True), Copies(2, 4096), True, "replay.idle_between"),
    (Times(450.0, 578.0, True), Copies(12, 25192448), True, "replay.idle_between"),  # a block's gradients
    (Times(450.0, 770.0, True), Copies(2, 4096), False, "replay.device_bound"),  # its caller may wait for results
    (Times(450.0, 770.0, False), Copies(2, 4096), True, "replay.device_bound"),
    (Times(450.0, 770.0, True), Copies(2, 2**27), True, "replay.device_bound"),  # copies that the device would wait for
    (Times(100.0, 770.0, True), Copies(30, 4096), True, "replay.device_bound"),
    (HOST_BOUND, Copies(2, 4096), True, "replay.replayed"),
])  # fmt: skip
def test_between_the_graphs_of_a_step_an_idle_device_waits_for_the_host(
    times: Times, copies: Copies, is_of_step: bool, reason: str
) -> None:
    decision = weigh(times, 5, copies, 4.3e12, is_of_step=is_of_step)
    assert decision.reason == reason and decision.message


def test_on_another_stream_and_within_a_recording_of_the_caller_launches_go_out_one_by_one() -> None:
    call, recorder = pretended(scaled)
    inputs = [torch.ones(3), torch.ones(3)]
    recorder.captures = True
    for _ in range(5):
        call(inputs)
    assert call.decision.reason == "replay.watching"
    recorder.captures = False
    for _ in range(5):
        call(inputs)
    replays = recorder.replays
    assert recorder.recorded == 1 and replays == 2
    recorder.captures = True
    assert call(inputs)[0].tolist() == [1, 1, 1]
    recorder.captures, recorder.current_stream = False, 8
    assert call(inputs)[0].tolist() == [1, 1, 1]
    assert recorder.replays == replays
    recorder.current_stream = 7
    call(inputs)
    assert (recorder.recorded, recorder.replays) == (1, replays + 1)


@pytest.mark.parametrize("calls", range(10))
def test_the_caller_may_record_after_any_number_of_calls(calls: int) -> None:
    call, recorder = pretended(scaled)
    inputs = [torch.ones(3), torch.ones(3)]
    for _ in range(calls):
        call(inputs)
    recorder.captures, replays = True, recorder.replays
    assert call(inputs)[0].tolist() == [1, 1, 1]
    assert recorder.replays == replays


def test_a_failed_recording_is_told_and_the_call_is_made() -> None:
    call, _ = pretended(counting, PretendedRecorder(fails_with="operation not permitted"), written=(0,))
    count, x = torch.zeros(1), torch.ones(2)
    for step in range(1, 7):
        assert call([count, x])[0].tolist() == [1 + step] * 2
    assert call.decision.reason == "replay.failed" and "operation not permitted" in call.decision.message


def test_an_error_of_the_call_itself_reaches_the_caller() -> None:
    def fails(inputs: list[Any]) -> list[Any]:
        raise ValueError("not this")

    call, _ = pretended(fails)
    for _ in range(6):
        with pytest.raises(ValueError, match="not this"):
            call([torch.ones(1)])


def with_views(inputs: list[Any]) -> list[Any]:
    (x,) = inputs
    made = (x * 2).reshape(2, 3)
    return [made, made.t(), x[1:4], None, 5, (x + 1).expand(4, 6), made.sum(), x, made]


def test_views_stay_views_of_what_they_were() -> None:
    call, recorder = pretended(with_views)
    x = torch.arange(6.0)
    for _ in range(5):
        made, turned, part, nothing, number, wide, total, given, again = call([x])
    assert given is x and again is made
    assert recorder.replays == 2 and (nothing, number, total.item()) == (None, 5, 30)
    assert turned.data_ptr() == made.data_ptr() and turned.stride() == (1, 3) and torch.equal(turned, made.t())
    assert part.data_ptr() == x[1:].data_ptr() and part.tolist() == [1, 2, 3]
    assert wide.shape == (4, 6) and wide.stride() == (0, 1) and wide[3].tolist() == [1, 2, 3, 4, 5, 6]
    later = call([x])
    assert later[0].data_ptr() != made.data_ptr()


def test_an_output_within_a_copied_input_is_a_view_of_the_callers() -> None:
    call, _ = pretended(with_views)
    alive = [torch.arange(6.0) + n for n in range(6)]
    for x in alive:
        assert call([x])[2].data_ptr() == x[1:].data_ptr()
    assert call.decision.verdict == "replayed"


def test_an_expanded_input_that_moves_cannot_be_copied() -> None:
    call, _ = pretended(scaled)
    alive = [torch.ones(1) for _ in range(6)]
    for x in alive:
        assert call([x.expand(3), torch.ones(3)])[0].tolist() == [1, 1, 1]
    assert call.decision.reason == "replay.overlapping"


def test_it_may_be_called_in_inference_mode_and_out_of_it() -> None:
    call, recorder = pretended(scaled)
    alive = [torch.full((3,), float(n)) for n in range(8)]
    for n, x in enumerate(alive):
        with torch.inference_mode(n % 2 == 1), torch.no_grad():
            assert call([x, x])[0].tolist() == [n * n] * 3
    assert recorder.replays


def test_asked_for_it_is_recorded_whatever_the_times() -> None:
    call, recorder = pretended(scaled, PretendedRecorder(times=None), choice="on")
    inputs = [torch.ones(3), torch.ones(3)]
    for _ in range(5):
        call(inputs)
    assert call.decision.reason == "replay.asked_for" and call.decision.message and recorder.replays == 2


def one_by_libraries(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    for _ in range(5):
        x = torch.sort(x, descending=True, dim=0).values
    return x, torch.topk(x, 3).values


def test_a_recording_is_described() -> None:
    made = compile_program(one_by_libraries, torch.randn(6, 8))
    call = replayed_call(lambda inputs: [inputs[0] + 1], Facts(6, 4e12), PretendedRecorder())
    alive = [torch.randn(6, 8) for _ in range(WATCHED_CALLS + 6)]
    for x in alive:
        call([x])
    told = describe_replay(made.schedule, call, "auto")
    assert (told.verdict, told.reason, told.option) == ("replayed", "replay.replayed", "auto")
    assert (told.launches, told.library_calls, told.recorded_launches, told.recorded_library_calls) == (6, 6, 6, 6)
    assert [(one.bytes, one.way) for one in told.inputs] == [(6 * 8 * 4, "copied")]
    assert (told.copied_in_bytes, told.copied_out_bytes, told.held_bytes) == (192, 192, 0)
    assert (told.recordings, told.replays, told.launched_calls, told.pool_bytes) == (1, 6, 0, 4096)
    assert told.launched is not None and told.launched.measured_host_us == 500.0
    assert told.replayed is not None and told.predicted_host_us is not None
