"""Tiles for programs at the sizes of real use, on an H200: nothing is computed."""

from __future__ import annotations

import torch

from bench.fusion.count import schedules_of
from bench.fusion.program import Program, index, tensor
from compiler.codegen.triton.render import plan_tile
from compiler.devices import device_for
from compiler.schedule.group import Group
from compiler.schedule.interleaved import side_by_side
from compiler.schedule.tiles.plan import CooperativePlan, LoopedPlan, PersistentPlan, Plan, PointwisePlan, SplitPlan

Tensor = torch.Tensor
H200 = device_for("sm_90")


def plans_of(function: object, *inputs: object, disable: tuple[str, ...] = ()) -> list[Plan]:
    (compilation,) = schedules_of(Program("", function, inputs), disable=disable)  # type: ignore[arg-type]
    groups = [unit for unit in compilation.schedule.units if isinstance(unit, Group)]
    return [plan_tile(group, compilation.schedule.graph.dtypes, H200) for group in groups]


def last_loop(plan: Plan) -> int:
    """The size of the loop along which neighbouring lanes lie."""
    size = plan.axes[-1].dims[-1].size
    assert isinstance(size, int)
    return size


def test_rows_at_loaded_places_are_added_along_memory() -> None:
    def aggregate(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, target, x[source])

    *_, plan = plans_of(aggregate, tensor("n 128"), index("262144", "n"), index("262144", "n"))
    assert last_loop(plan) == 128


def test_pairs_that_are_interleaved_are_written_by_one_store() -> None:
    def rotate(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
        a, b = x[..., ::2].float(), x[..., 1::2].float()
        return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2).to(x.dtype)

    half = torch.bfloat16
    (plan,) = plans_of(rotate, tensor("b h l 128", half), tensor("l 64"), tensor("l 64"))
    stores = [s.index for s in plan.program.statements if s.op == "store" and s.index is not None]
    # The loop goes over pairs, whose numbers go out by one store: those of neighbouring lanes are next to each other.
    assert len(stores) == 2 and side_by_side(stores) == [[0, 1]]
    assert [index.stride(plan.axes[-1].dims[-1]) for index in stores] == [2, 2]


def test_lanes_follow_small_gaps_where_nothing_large_has_none() -> None:
    def scaled(x: Tensor, bias: Tensor) -> Tensor:
        z = torch.view_as_complex(x)
        size = z.abs()
        return torch.view_as_real(torch.relu(size + bias[:, None]) / (size + 1e-5) * z)

    # Written part by part, not computed for each number of a pair.
    (plan,) = plans_of(scaled, tensor("32 256 l 2"), tensor("256"), disable=("inline",))
    assert last_loop(plan) == 1024


def test_the_sum_of_three_long_rows_is_written_out() -> None:
    (plan,) = plans_of(lambda x: x.sum(0), tensor("3 1000000"))
    assert isinstance(plan, PointwisePlan)


def test_tensors_that_are_stacked_and_reduced_are_read_once_each() -> None:
    """Lanes for the tensors would load each of them in turn, for all lanes but one in vain."""
    tensors = [tensor("n 2048", torch.bfloat16) for _ in range(6)]
    for reduce in (lambda *x: torch.stack(x).mean(0), lambda *x: torch.stack(x, -1).float().std(-1)):
        (plan,) = plans_of(reduce, *tensors)
        assert isinstance(plan, PointwisePlan)
        statements = plan.program.statements
        assert [s.op for s in statements].count("load") == 6 and not any(s.op == "where" for s in statements)


def test_the_columns_of_a_team_are_chosen_by_what_it_reads() -> None:
    def quantise(x: Tensor) -> tuple[Tensor, Tensor]:
        scale = x.abs().amax(0) / 127
        return (x / scale).round().to(torch.int8), scale

    (plan,) = plans_of(quantise, tensor("16384 m"))
    assert isinstance(plan, CooperativePlan)
    assert plan.axes[0].block == 32


def test_sums_of_long_rows_and_columns_leave_room_for_what_is_stored() -> None:
    def backward(dy: Tensor, x: Tensor, w: Tensor, mean: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
        normal = (x - mean) * scale
        weighted = dy * w
        rest = normal * (normal * weighted).mean(-1, keepdim=True) + weighted.mean(-1, keepdim=True)
        return (weighted - rest) * scale, (dy * normal).sum(0), dy.sum(0)

    rows, row, column = tensor("n 4096"), tensor("4096"), tensor("n 1")
    (plan,) = plans_of(backward, rows, rows, row, column, column)
    assert plan.axes[0].block * plan.axes[-1].block <= 16 * 32 * plan.num_warps
    assert plan.num_warps <= 16


def test_few_long_rows_are_shared_before_they_are_gathered() -> None:
    def loss(x: Tensor, y: Tensor) -> Tensor:
        p, axes = x.sigmoid(), (0, 2, 3)
        return ((p * y).sum(axes) / (p.sum(axes) + y.sum(axes))).mean()

    (plan,) = plans_of(loss, tensor("16 4 512 512"), tensor("16 4 512 512"))
    assert isinstance(plan, SplitPlan) and plan.parts is not None and plan.parts.count == 4
    # No more programs than the device holds at one time.
    assert plan.splits * 4 * plan.num_warps <= H200.multiprocessors * H200.threads_per_multiprocessor // 32


def test_columns_that_are_stored_beside_their_sum_take_few_elements_a_thread() -> None:
    """Half types, of which a thread would take 16 of each of three tensors."""

    def gradients(raw: Tensor, x: Tensor, g: Tensor) -> tuple[Tensor, ...]:
        slope = g.float() * (x.float().tanh() - x.float()) * raw.float().sigmoid()
        return slope.bfloat16(), slope.sum(0)

    def sums(raw: Tensor, x: Tensor, g: Tensor) -> Tensor:
        return (g.float() * x.float() * raw.float()).sum(0)

    def elements(function: object) -> int:
        (plan,) = plans_of(function, *[tensor("4096 4096", torch.bfloat16)] * 3)
        assert isinstance(plan, SplitPlan)
        return plan.axes[0].block * plan.axes[1].block // (32 * plan.num_warps)

    assert (elements(gradients), elements(sums)) == (8, 16)


def test_few_parts_of_a_variance_are_joined_at_once() -> None:
    """Several values of each part are joined: with as many parts as of a sum, they would fill the registers of a
    multiprocessor, in a kernel that needs none of them until its end."""
    (plan,) = plans_of(lambda x: torch.var_mean(x, (0, 1, 2)), tensor("32 w w c"))
    assert isinstance(plan, SplitPlan)
    assert plan.splits * plan.axes[0].block <= 32 * 32 * plan.num_warps


def test_programs_that_share_columns_take_whole_lines_of_memory_and_as_many_steps_each() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        (plan,) = plans_of(lambda x: x.sum(0), tensor("32768 c", dtype))
        assert isinstance(plan, SplitPlan)
        assert plan.axes[0].block * dtype.itemsize == 128
        assert plan.chunk * plan.splits == 32768


def test_columns_of_few_elements_are_nobody_else_s() -> None:
    """To wait for others takes longer than to go over a few elements more."""

    def summed(x: Tensor) -> Tensor:
        return x.sum(0)

    (plan,) = plans_of(summed, tensor("64 256"))
    assert not isinstance(plan, SplitPlan) and plan.axes[-1].block == 64 and plan.axes[0].block == 8
    (plan,) = plans_of(summed, tensor("4096 256"))
    assert isinstance(plan, SplitPlan)


def test_long_columns_are_few_large_programs_where_several_passes_go_over_them() -> None:
    """Small ones would leave most of each multiprocessor idle while they wait for what they load."""
    (plan,) = plans_of(lambda x: torch.softmax(x, 0), tensor("8192 4096", torch.bfloat16))
    assert isinstance(plan, LoopedPlan)
    assert plan.num_warps == 32 and plan.grid == 128


def elements_of_a_thread(plan: Plan) -> int:
    return plan.axes[-1].block // (32 * plan.num_warps)


def test_threads_take_few_elements_where_tensors_have_gaps_and_what_fits_the_widest_type_elsewhere() -> None:
    half = torch.bfloat16
    (gate,) = plans_of(lambda x: x[..., ::2] * x[..., 1::2].sigmoid(), tensor("n 8192", half))
    (quantise,) = plans_of(lambda x: x.round().to(torch.int8), tensor("n 8192"))
    (heat,) = plans_of(lambda u: torch.nn.functional.pad(u[1:-1] * 2 - u[2:] - u[:-2], (1, 1)), tensor("n 4094"))
    assert [elements_of_a_thread(plan) for plan in (gate, quantise, heat)] == [4, 8, 4]


def test_rows_that_are_looked_up_and_reduced_are_written_out() -> None:
    (plan,) = plans_of(lambda i, w: w[i].amax(1), index("n 8", "v"), tensor("v 256", torch.bfloat16))
    assert isinstance(plan, PointwisePlan) and last_loop(plan) == 256


def test_rows_that_are_looked_up_and_added_to_others_are_written_out() -> None:
    """The places of rows are neighbours for the elements of a row, the rows themselves are neighbours along it."""

    def gradients(i: Tensor, w: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        scaled = w[i] * g[:, None]
        return scaled.sum(1), torch.zeros_like(w).index_put((i,), scaled, accumulate=True)

    *_, plan = plans_of(gradients, index("65536 5", "40000"), tensor("40000 128"), tensor("65536 128"))
    assert plan.program.scatters and isinstance(plan, PointwisePlan) and last_loop(plan) == 128


def test_values_of_many_programs_are_few_for_each_thread_that_joins_them() -> None:
    """The last program holds all of them at once, in a kernel that needs few registers until then."""
    (plan,) = plans_of(lambda x, y: (x - y).abs().log1p().sum(1).mean(), tensor("65536 136"), tensor("65536 136"))
    assert plan.rows_in_turn is not None and plan.rows_in_turn.count <= 64 * 32 * plan.num_warps


def test_a_long_reduction_that_reads_with_gaps_takes_few_elements_a_thread() -> None:
    (plan,) = plans_of(lambda p, m: (p.abs().sum(-1) * m).sum(), tensor("1048576 4"), tensor("1048576"))
    assert isinstance(plan, SplitPlan) and elements_of_a_thread(plan) == 2


def test_what_is_read_along_rows_with_gaps_serves_several_rows() -> None:
    def distances(x: Tensor, y: Tensor) -> Tensor:
        return (x[:, None] - y[None]).square().sum(-1).sqrt()

    (plan,) = plans_of(distances, tensor("4096 3"), tensor("4096 3"))
    assert [axis.name for axis in plan.axes] == ["y", "x"]


def test_so_do_what_rows_share_and_values_that_are_added_up_in_a_thread() -> None:
    """Four values of each row, and four of each element of a row, are read: tiles of rows serve both."""

    def overlap(a: Tensor, b: Tensor) -> Tensor:
        sides = torch.minimum(a[:, None, 2:], b[None, :, 2:]) - torch.maximum(a[:, None, :2], b[None, :, :2])
        return sides.clamp(min=0).prod(-1)

    (plan,) = plans_of(overlap, tensor("4096 4"), tensor("2048 4"))
    assert [axis.block for axis in plan.axes] == [16, 64]


def test_a_row_that_all_rows_share_is_gone_over_by_few_warps() -> None:
    (plan,) = plans_of(lambda a, b: (a[:, None] + b).abs().amax(1), tensor("8192"), tensor("8192"))
    assert plan.num_warps == 4


def test_lanes_of_loads_that_are_one_element_off_lie_close_and_in_large_programs() -> None:
    def step(u: Tensor) -> Tensor:
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return torch.nn.functional.pad(u[1:-1, 1:-1] + 0.1 * around, (1, 1, 1, 1))

    (plan,) = plans_of(step, tensor("4096 4096"))
    assert plan.axes[0].block == 2 * 32 * plan.num_warps == 512


def test_no_more_programs_are_started_than_the_device_can_feed() -> None:
    (plan,) = plans_of(lambda x: (x[:, None] < x[:, :, None]).sum(-1), tensor("8192 128"))
    assert isinstance(plan.grid, int) and plan.grid <= 32768


def test_blocks_of_scans_are_small() -> None:
    for plan in (
        *plans_of(lambda x: x.cumsum(1), tensor("64 512 512")),
        *plans_of(lambda x: x.cumsum(1), tensor("4096 8192")),
    ):
        assert isinstance(plan, LoopedPlan) and plan.axes[0].block * plan.axes[-1].block == 1024


def test_what_is_long_for_one_element_is_taken_by_more_threads() -> None:
    def sines(x: Tensor) -> Tensor:
        for _ in range(10):
            x = torch.sin(x) * 0.9 + 0.1
        return x

    plans = [*plans_of(sines, tensor("16777216", torch.bfloat16)), *plans_of(torch.sin, tensor("16777216"))]
    assert [(elements_of_a_thread(plan), plan.num_warps) for plan in plans] == [(4, 8), (8, 4)]


def test_taps_of_each_channel_that_lie_side_by_side_are_taken_by_many_threads() -> None:
    """Weights of channels x taps, whose next channel is four elements away."""

    def causal(x: Tensor, weight: Tensor) -> Tensor:
        padded = torch.nn.functional.pad(x, (0, 0, 3, 0))
        return sum(padded[:, tap : tap + 1024] * weight[:, tap] for tap in range(4)).relu()  # type: ignore[union-attr]

    (plan,) = plans_of(causal, tensor("b l m", torch.bfloat16), tensor("m 4", torch.bfloat16))
    assert plan.axes[-1].block == 2 * 32 * plan.num_warps


def test_few_elements_are_taken_by_many_threads() -> None:
    (plan,) = plans_of(lambda x: x.tanh(), tensor("65536"))
    assert (elements_of_a_thread(plan), plan.num_warps) == (2, 4)
    (plan,) = plans_of(lambda x: x.sin().sum(), tensor("256"))
    assert (elements_of_a_thread(plan), plan.num_warps) == (1, 8)


def test_elements_whose_places_are_looked_up_are_taken_one_by_a_thread_and_by_large_programs_in_small_images() -> None:
    def plan_of(size: int) -> Plan:
        (plan,) = plans_of(
            lambda x, grid: torch.nn.functional.grid_sample(x, grid, align_corners=False),
            tensor(f"8 16 {size} {size}"),
            tensor("8 256 256 2"),
        )
        return plan

    large, small = plan_of(256), plan_of(128)
    assert elements_of_a_thread(large) == 1
    assert (elements_of_a_thread(small), small.num_warps) == (2, 32)


def test_values_that_are_looked_up_one_by_one_are_few_for_each_thread() -> None:
    (plan,) = plans_of(lambda x, t: t[x.floor().long()] * x, tensor("4194304"), tensor("256"))
    assert elements_of_a_thread(plan) == 4


def test_bytes_beside_each_other_are_taken_as_close_as_floats() -> None:
    def neighbours(x: Tensor) -> Tensor:
        return sum((x.roll((i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)), torch.zeros_like(x))

    for dtype, elements in ((torch.uint8, 8), (torch.float32, 2)):
        (plan,) = plans_of(neighbours, tensor("2048 2048", dtype))
        assert elements_of_a_thread(plan) == elements


def test_kernels_of_very_many_loads_take_one_element_a_thread() -> None:
    def recurrence(x: Tensor) -> Tensor:
        state = torch.zeros_like(x[0])
        for part in x:
            state = torch.tanh(0.5 * state + part)
        return state

    few, many = (plans_of(recurrence, tensor(f"{steps} 1048576"))[0] for steps in (12, 66))
    assert (elements_of_a_thread(few), elements_of_a_thread(many)) == (4, 1)


def test_short_rows_with_elements_that_are_looked_up_are_held_by_one_warp() -> None:
    def scores(x: Tensor, table: Tensor, place: Tensor) -> Tensor:
        return torch.softmax(x + table[place].view(49, 49, 12).permute(2, 0, 1), -1)

    half = torch.float16
    (plan,) = plans_of(scores, tensor("256 12 49 49", half), tensor("169 12", half), index("2401", "169"))
    assert (plan.axes[0].block, plan.num_warps) == (8, 1)


def test_a_sum_that_stores_each_element_too_takes_few_of_them_a_thread() -> None:
    (plan,) = plans_of(lambda x: ((y := x.float() * 0.5), y.isfinite().all()), tensor("33554432", torch.float16))
    assert isinstance(plan, SplitPlan) and elements_of_a_thread(plan) == 8


def test_rows_that_are_made_of_small_tables_are_taken_several_at_once() -> None:
    def forces(p: Tensor, m: Tensor) -> Tensor:
        apart = p[None] - p[:, None]
        return (apart * (m[None] * (apart.square().sum(-1) + 1e-2).pow(-1.5))[..., None]).sum(1)

    (plan,) = plans_of(forces, tensor("4096 3"), tensor("4096"))
    assert isinstance(plan, LoopedPlan) and plan.axes[0].block == 8


def test_short_rows_with_more_to_compute_than_memory_hides_are_held_by_one_warp() -> None:
    def entropy(x: Tensor) -> Tensor:
        chances = torch.softmax(x.float(), -1)
        return -(chances * torch.log(chances + 1e-9)).sum(-1)

    def tile_of(function: object, shape: str, dtype: torch.dtype = torch.float32) -> tuple[int, int]:
        (plan,) = plans_of(function, tensor(shape, dtype))
        return plan.axes[0].block, plan.num_warps

    assert tile_of(entropy, "65536 512") == (2, 1)
    assert tile_of(entropy, "16384 1024") == (1, 1)
    # Memory hides a softmax, and a layer norm.
    for function in (lambda x: torch.softmax(x, -1), lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:])):
        assert tile_of(function, "65536 512")[1] > 1


def test_loops_in_several_passes_leave_room_for_two_programs() -> None:
    def masked(x: Tensor, bias: Tensor, banned: Tensor) -> Tensor:
        return torch.log_softmax((x.float() + bias).masked_fill(banned > 0, -1e9), -1)

    def norm(x: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x, x.shape[-1:])

    half = torch.bfloat16
    (plan,) = plans_of(masked, tensor("512 50257", half), tensor("50257"), tensor("50257"))
    assert (type(plan), plan.axes[-1].block, plan.num_warps) == (LoopedPlan, 2048, 16)
    # One tensor whose rows begin anywhere.
    (plan,) = plans_of(norm, tensor("1024 40001", half))
    assert (type(plan), plan.axes[-1].block, plan.num_warps) == (LoopedPlan, 4096, 16)


def test_short_rows_that_leave_lanes_empty_or_begin_anywhere_are_held_by_one_warp() -> None:
    def warps_of(rows: int, length: int) -> list[int]:
        return [plan.num_warps for plan in plans_of(lambda x: torch.softmax(x, -1), tensor(f"{rows} {length}"))]

    assert warps_of(50000, 513) == warps_of(32768, 800) == warps_of(32768, 257) == [1]

    def gradients(x: Tensor, y: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        first, second = x * g, y * g
        return first - y * (second * x).sum(-1, keepdim=True), second - x * (first * y).sum(-1, keepdim=True)

    (of_two,) = plans_of(gradients, tensor("16384 768"), tensor("16384 768"), tensor("16384 1"))
    assert of_two.num_warps == 1
    # Rows that fill their blocks, few rows, and rows that are long gain nothing.
    assert 1 not in (*warps_of(32768, 1000), *warps_of(1000, 800), *warps_of(16384, 4000))


def test_rows_that_are_written_the_other_way_take_few_elements_a_thread_and_columns_many() -> None:
    half = torch.bfloat16

    def from_rows(x: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x, (192,)).permute(0, 3, 1, 2).contiguous()

    def from_columns(x: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x.permute(0, 2, 3, 1), (192,))

    (rows,) = plans_of(from_rows, tensor("32 w w 192", half))
    (columns,) = plans_of(from_columns, tensor("32 192 w w", half))
    assert rows.axes[0].block == columns.axes[0].block == 32
    assert (rows.num_warps, columns.num_warps) == (16, 4)


def test_a_sum_of_everything_is_one_block_for_each_of_many_large_programs() -> None:
    (plan,) = plans_of(lambda x: x.sum(), tensor("67108864"))
    assert isinstance(plan, SplitPlan) and plan.chunk == plan.axes[-1].block
    assert plan.num_warps == 32


def test_short_rows_that_are_added_up_are_taken_several_at_a_time() -> None:
    """Each program waits for the sums of its rows, one block after the other, and leaves sums to join."""

    def gradients(x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        return x * (g * x).sum(1, keepdim=True), (g * x).sum(0)

    (plan,) = plans_of(gradients, tensor("32768 768"), tensor("32768 768"))
    assert plan.axes[0].block * plan.axes[1].block == 4096
    assert plan.rows_in_turn is not None and 132 < plan.rows_in_turn.count <= 264


def test_sums_of_rows_leave_room_for_programs_that_load_the_next_rows() -> None:
    """Of as many threads as a multiprocessor has registers for, all of which run at the same time."""

    def gradients(given: Tensor, x: Tensor, weight: Tensor, before: Tensor) -> tuple[Tensor, ...]:
        given = given.float()
        scaled = given * weight
        gradient = before + scaled - x * (scaled * x).mean(1, keepdim=True)
        return gradient, gradient.sum(0), (given * x).sum(0), given.sum(0)

    half = torch.bfloat16
    (plan,) = plans_of(gradients, tensor("16384 768", half), tensor("16384 768"), tensor("768"), tensor("16384 768"))
    assert isinstance(plan, PersistentPlan) and plan.stages > 1 and plan.axes[0].block == 1 and plan.num_warps == 8
    assert plan.parts is not None and 2 * 132 < plan.parts.count <= 3 * 132

    def of_heads(given: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        given, x = given.float(), x.float()
        return (given * x.square().mean(1, keepdim=True)).to(half), (given * x).sum(0)

    (plan,) = plans_of(of_heads, tensor("131072 128", half), tensor("131072 128", half))
    assert plan.rows_in_turn is not None and 2 * 132 < plan.rows_in_turn.count <= 3 * 132
    assert plan.axes[0].block * plan.axes[1].block == 4096


def test_short_rows_of_many_tensors_are_taken_by_few_elements_a_thread() -> None:
    """What a thread loads and stores of them lives at the same time."""
    names = [f"t{number}" for number in range(7)]

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        total = sum(tensors, tensors[0]).prod(-1, keepdim=True)
        return *(one * total for one in tensors), *(one > total for one in tensors)

    (plan,) = plans_of(function, *(tensor("1048576 2") for _ in names))
    assert isinstance(plan, PersistentPlan) and plan.axes[0].block * 2 == 2 * 32 * plan.num_warps
