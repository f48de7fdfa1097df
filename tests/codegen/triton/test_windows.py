"""Windows on a GPU: each lane goes over its own, loads are whole, and the values are those of the tile that it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from compiler.compile import Generated
from compiler.schedule.cost.kernel import group_cost
from compiler.schedule.group import Group
from compiler.schedule.windows import over_windows
from tests.compile_program import call_interpreted, compile_program, compiled_for_gpus

INF, NAN = float("inf"), float("nan")


def image(channels_last: bool, numbers: tuple[float, ...] = ()) -> Tensor:
    """Small whole numbers, so that many are equal, with `numbers` among them."""
    torch.manual_seed(len(numbers))
    x = torch.randint(-3, 3, (2, 8, 6, 7)).float()
    for place, number in enumerate(numbers):
        x[torch.randint(3 * len(numbers), x.shape) == place] = number
    return x.to(memory_format=torch.channels_last if channels_last else torch.contiguous_format)


def largest(x: Tensor) -> Any:
    return torch.ops.aten.max_pool2d_with_indices(x.neg(), [3, 2], [2, 1], [1, 1], [1, 2], True)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "largest": largest,
    "average": lambda x: F.avg_pool2d(x.relu() * 2, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x.relu(), (4, 5)),
    "interpolated": lambda x: F.interpolate(x.relu(), size=(11, 5), mode="bilinear", align_corners=False),
    "mirrored": lambda x: F.max_pool2d(F.pad(x, (2, 1, 3, 1), mode="reflect"), 3, 1),
}


def interpreted(function: Callable[..., Any], *inputs: Tensor) -> tuple[Generated, list[Any]]:
    compilation = compile_program(function, *inputs)
    given = dict(zip(signature(function).parameters, inputs, strict=True))
    return compilation, call_interpreted(compilation, [given[str(name)] for name in compilation.schedule.graph.inputs])


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lanes_that_go_over_windows_compute_what_eager_does(name: str, channels_last: bool) -> None:
    x = image(channels_last, (-INF, INF))
    x = x if name in ("largest", "mirrored") else image(channels_last)
    compilation, results = interpreted(PROGRAMS[name], x)
    assert {kernel.config["plan"] for kernel in compilation.triton.values()} == {"pointwise"}
    expected = PROGRAMS[name](x)
    for result, right in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        torch.testing.assert_close(result, right)


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_of_several_nan_and_of_equals_the_first_is_the_position(kind: str) -> None:
    torch.manual_seed(0)
    x = torch.tensor([NAN, -INF, INF, 1.0, 1.0, 2.0])[torch.randint(6, (5, 300))]
    compilation, (result,) = interpreted(lambda x: getattr(x, kind)(0), x)
    assert [kernel.config["plan"] for kernel in compilation.triton.values()] == ["pointwise"]
    order = torch.where(x.isnan(), -INF, -x if kind == "argmax" else x)
    order = torch.where(x.isnan() | (order > -INF), order, torch.finfo(x.dtype).min)  # NaN is before infinity
    assert torch.equal(result, torch.stack([column.tolist().index(min(column)) * torch.ones(()) for column in order.T]))


@pytest.mark.parametrize(("row", "plan"), [(4, "persistent"), (6, "persistent"), (7, "pointwise")])
def test_a_short_row_that_fills_no_tile_is_gone_over_by_one_lane(row: int, plan: str) -> None:
    x = torch.randn(50, row)
    compilation, (result,) = interpreted(lambda x: x.amax(1) - x.amin(1), x)
    assert [kernel.config["plan"] for kernel in compilation.triton.values()] == [plan]
    torch.testing.assert_close(result, x.amax(1) - x.amin(1))


@pytest.mark.parametrize("padding", [0, 1])
def test_a_relu_of_the_elements_of_a_window_keeps_what_is_no_number(padding: int) -> None:
    def program(x: Tensor) -> Tensor:
        return F.max_pool2d((x * 2).relu(), 3, 2, padding)

    x = image(True, (-INF, NAN))
    compilation, (result,) = interpreted(program, x)
    assert len(compilation.triton) == 1
    torch.testing.assert_close(result, program(x), equal_nan=True)


def fake(*shapes: tuple[int, ...]) -> list[Tensor]:
    """Half types in channels-last, and vectors."""
    tensors = [torch.empty(shape, dtype=torch.bfloat16) for shape in shapes]
    return [t.to(memory_format=torch.channels_last) if t.dim() == 4 else t for t in tensors]


def pooled(x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    return F.max_pool2d(F.relu(x * scale.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)), 3, 2, 1)


def enlarged(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


@pytest.mark.parametrize("function", [pooled, enlarged])
def test_what_a_window_loads_in_channels_last_is_loaded_in_whole_pieces(function: Callable[..., Any]) -> None:
    shapes = [(32, 64, 112, 112), (64,), (64,)][: len(signature(function).parameters)]
    with FakeTensorMode():
        compilation = compile_program(function, *fake(*shapes))
    (result,) = compiled_for_gpus(compilation)
    loads = [line for line in result.ptx.splitlines() if "ld.global" in line]
    assert len(loads) in (4, 11) and all("v4.b32" in line for line in loads)
    assert result.shared_bytes == 0 and result.spills == 0


def test_what_windows_share_is_computed_again_where_that_is_cheap_alone() -> None:
    def costly(x: Tensor) -> Tensor:
        return enlarged(F.gelu(x, approximate="none").double().erf().exp().float().to(x.dtype))

    with FakeTensorMode():
        cheap_one = compile_program(pooled, *fake((32, 64, 400, 400), (64,), (64,)))
        costly_one = compile_program(costly, *fake((32, 64, 112, 112)))
    assert (len(cheap_one.groups), len(costly_one.groups)) == (1, 2)


def test_a_prediction_of_windows_is_near_what_their_bytes_take() -> None:
    with FakeTensorMode():
        compilation = compile_program(pooled, *fake((32, 64, 400, 400), (64,), (64,)))
    (group,) = compilation.groups
    cost = group_cost(group, compilation.schedule.graph.buffers, compilation.model)
    floor = 1e6 * 2 * 32 * 64 * (400 * 400 + 200 * 200) / compilation.model.bandwidth
    assert floor < cost.microseconds < 1.2 * floor  # measured on an H200: see docs/performance/archive


def test_long_rows_and_rows_along_memory_are_no_windows() -> None:
    programs: list[tuple[Callable[[Tensor], Tensor], tuple[int, ...], bool]] = [
        (lambda x: x.sum(0), (4, 512), True),
        (lambda x: x.sum(0), (64, 512), False),
        (lambda x: x.sum(1), (512, 4), False),
        (lambda x: x.unfold(0, 5, 2).sum(-1), (512,), True),
    ]
    for function, shape, is_one in programs:
        compilation = compile_program(function, torch.zeros(shape))
        (group,) = compilation.groups
        assert isinstance(group, Group) and (over_windows(group) is not None) is is_one
        alike = replace(group, name="other")
        assert (over_windows(alike) is not None) is is_one


def test_means_of_windows_are_rounded_once() -> None:
    """Variances of windows are differences of such means."""
    compilation = compile_program(
        lambda x: F.avg_pool2d(x * x, 7, 1) - F.avg_pool2d(x, 7, 1) ** 2, torch.rand(2, 3, 64, 64)
    )
    texts = [result.ptx for result in compiled_for_gpus(compilation)]
    assert any("fma.rn.f32" in text for text in texts) and not any("div.full.f32" in text for text in texts)


def test_what_a_window_needs_once_for_each_channel_does_not_wait_for_masks_of_its_points() -> None:
    def depthwise(a: Tensor, b: Tensor, c: Tensor, bias: Tensor, filters: Tensor) -> Tensor:
        bias = bias.view(-1, 1, 1)
        gated = (b + bias) * F.hardsigmoid(c + bias) * bias
        channels = torch.cat([torch.cat([a + 1, (a + a.mean()).exp()], 1), gated], 1)
        return F.conv2d(channels, filters, padding=2, groups=filters.shape[0])

    torch.manual_seed(0)
    shapes = [(2, 20, 5, 5), (2, 12, 5, 5), (2, 12, 1, 1)]
    inputs = [torch.randn(shape).to(memory_format=torch.channels_last) for shape in shapes]
    inputs += [torch.randn(12), torch.randn(52, 1, 5, 5)]
    _, (result,) = interpreted(depthwise, *inputs)
    torch.testing.assert_close(result, depthwise(*inputs))


def test_one_result_of_a_long_text_has_no_lanes_to_loop_side_by_side() -> None:
    """It was taken for windows whose last loop is left, and had no loop for their lanes."""
    x = torch.linspace(0.1, 1.0, 6)

    def function(x: Tensor) -> Tensor:
        return (x[:, None] - x).abs().sin().exp().cos().tanh().sigmoid().log().abs().sqrt().sum()

    _, (result,) = interpreted(function, x)
    torch.testing.assert_close(result, function(x))


@pytest.mark.parametrize("is_gradient", [False, True])
def test_windows_of_one_size_take_one_division(is_gradient: bool) -> None:
    def program(x: Tensor) -> Tensor:
        if is_gradient:
            return torch.ops.aten.avg_pool2d_backward(x, x.new_zeros(2, 3, 66, 66), [3, 3], [1], [0], False, True, None)
        return F.avg_pool2d(x, 3, 1)

    x = torch.rand(2, 3, 64, 64)
    compilation, (result,) = interpreted(program, x)
    (kernel,) = compilation.triton.values()
    assert kernel.source.count(" = divide(") == 1
    torch.testing.assert_close(result.double(), program(x.double()), rtol=4 * 2.0**-23, atol=0)
