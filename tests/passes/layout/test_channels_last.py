"""Convolutions laid out channels-last: results, their strides and what they share are eager's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.backend import BoxedGraph
from compiler.capture.autograd.aot import compile_through_aot
from compiler.compile import Generated, Target, build, generate, lower, plan
from compiler.devices import device_for
from compiler.ir.nodes import ExternNode
from compiler.options import Options
from compiler.passes.layout.choice import LayoutChoice
from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import leaves, to_double
from tests.compile_program import compile_program, kernel_count
from tests.passes.layout.programs import IMAGE, PROGRAMS, chain, inputs_of, residual_block

aten = torch.ops.aten


def moved(compilation: Generated) -> list[LayoutChoice]:
    return [choice for choice in compilation.layouts if choice.verdict == "channels_last"]


def convolutions(compilation: Generated, target: Any = aten.convolution.default) -> list[ExternNode]:
    calls = [node for node in compilation.loops.nodes if isinstance(node, ExternNode)]
    return [node for node in calls if node.target is target]


def is_channels_last(stride: tuple[Any, ...], shape: tuple[Any, ...]) -> bool:
    return torch.empty_strided(shape, stride).is_contiguous(memory_format=torch.channels_last)


class CompiledForGpu:
    """A function compiled as for an H200, and run by the C++ kernels with its layouts."""

    def __init__(self, **knobs: Any) -> None:
        self.knobs = knobs
        self.compilations: list[Generated] = []

    def __call__(self, graph: torch.fx.GraphModule, examples: Any) -> Any:
        def compile_part(part: torch.fx.GraphModule, _: Any) -> Any:
            target = Target(torch.device("cpu"), device_for("sm_90"), Options(knobs=self.knobs))
            compilation = generate(plan(lower(part, target)), wants_triton=False)
            self.compilations.append(compilation)
            return BoxedGraph(build(compilation).executable.call)

        return compile_through_aot(graph, examples, compile_part)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_strides_and_aliases_are_those_of_eager(name: str) -> None:
    function, _ = PROGRAMS[name]
    inputs, ours = inputs_of(name), inputs_of(name)
    exact = to_double(inputs_of(name))
    backend = CompiledForGpu()
    torch._dynamo.reset()
    with torch.no_grad():
        eager = function(*inputs)
        reference = function(*exact)
        found = torch.compile(function, backend=backend, dynamic=False)(*ours)
    (compilation,) = backend.compilations
    assert moved(compilation), compilation.layouts
    assert is_correct((found, ours), (reference, exact), (eager, inputs))
    pairs = list(zip(tensors(found), tensors(eager), strict=True))
    assert [a.stride() for a, _ in pairs] == [b.stride() for _, b in pairs]
    assert shared_storage([a for a, _ in pairs]) == shared_storage([b for _, b in pairs])


def tensors(results: Any) -> list[Tensor]:
    return [value for _, value in leaves(results) if isinstance(value, Tensor)]


def shared_storage(results: list[Tensor]) -> list[list[bool]]:
    places = [tensor.untyped_storage().data_ptr() for tensor in results]
    return [[a == b for b in places] for a in places]


def test_every_convolution_of_a_region_reads_and_writes_channels_last() -> None:
    compilation = compile_program(residual_block, *inputs_of("residual block"))
    (choice,) = moved(compilation)
    assert len(choice.nodes) == 2
    for node in convolutions(compilation):
        image, weight = node.tensor_arguments[:2]
        ((_, result),) = [output for output in node.outputs if output is not None]
        for layout in (image.layout, weight.layout, result):
            assert is_channels_last(layout.stride, layout.shape)


def test_only_what_enters_is_converted_and_what_leaves_is_stored_in_eager_s_strides() -> None:
    """The image and both filters; the result is written contiguous by the loop that computes it."""
    compilation = compile_program(chain, *inputs_of("chain"))
    (choice,) = moved(compilation)
    assert [(c.what, c.source) for c, _ in choice.conversions if c.what != "output"] == [
        ("image", "x"), ("filter", "a"), ("filter", "b"),
    ]  # fmt: skip
    (output,) = [c for c, _ in choice.conversions if c.what == "output"]
    (last,) = [group for group in compilation.groups if output.name in group.stored]
    assert last.stored == {output.name} and output.source in last.produced


def test_one_pixel_filters_and_depthwise_ones_need_no_conversion() -> None:
    compilation = compile_program(PROGRAMS["separable"][0], *inputs_of("separable"))
    (choice,) = moved(compilation)
    assert [conversion.what for conversion, _ in choice.conversions if conversion.what != "output"] == ["image"]


def test_filters_of_one_pixel_are_products_over_the_channels() -> None:
    """Of pixels times channels, as they lie in memory; with a stride, or few channels, it stays a convolution."""
    compilation = compile_program(PROGRAMS["bottleneck"][0], *inputs_of("bottleneck"))
    calls = [node for node in compilation.loops.nodes if isinstance(node, ExternNode)]
    assert [node.target for node in calls] == [aten.mm.default, aten.convolution.default, aten.addmm.default]
    products = [node for node in calls if node.target != aten.convolution.default]
    for node in products:
        left, right = node.tensor_arguments[-2:]
        assert (left.layout.shape, left.layout.stride) == ((2 * 12 * 10, 16), (16, 1))
        assert (right.layout.shape, right.layout.stride) == ((16, 16), (1, 16))

    def kept(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return torch.conv2d(torch.conv2d(torch.conv2d(x, a, padding=1), b, stride=2).relu(), b[:4])

    x, a, _ = inputs_of("chain")
    compilation = compile_program(kept, x, a, a[..., :1, :1])
    assert moved(compilation) and len(convolutions(compilation)) == 3


def test_the_figures_of_a_record_add_up() -> None:
    compilation = compile_program(chain, *inputs_of("chain"))
    (choice,) = moved(compilation)
    assert choice.numbers["moved_us"] < choice.numbers["kept_us"]
    assert choice.numbers["bytes"] == sum(size for _, size in choice.conversions)
    # x, both filters and the result, each read and written once in two bytes an element
    elements = 2 * 16 * 12 * 10 + 2 * 16 * 16 * 9 + 2 * 16 * 12 * 10
    assert choice.numbers["bytes"] == 2 * 2 * elements


def test_the_knob_turns_it_off() -> None:
    compilation = compile_program(chain, *inputs_of("chain"), disable=["layout"])
    assert [choice.reason for choice in compilation.layouts] == ["policy.disabled"]
    assert kernel_count(compilation)[0] == 2


def test_an_image_that_is_channels_last_already_is_left_so() -> None:
    x, a, b = inputs_of("chain")
    compilation = compile_program(chain, x.to(memory_format=torch.channels_last), a, b)
    assert [choice.reason for choice in compilation.layouts] == ["layout.eager"]


def test_a_region_whose_conversions_cost_more_than_it_gains_is_kept() -> None:
    """The library is as fast with filters of one pixel either way, and so nothing pays for three copies."""
    x, a, b = inputs_of("chain")
    compilation = compile_program(chain, x, a[..., :1, :1], b[..., :1, :1])
    (choice,) = compilation.layouts
    assert choice.reason == "layout.slower"
    assert choice.numbers["kept_us"] <= choice.numbers["moved_us"]


def layouts_in_float32(groups: int = 1, channels: int = 64, side: int = 3, batch: int = 2) -> list[str]:
    """The reasons of the records of a convolution that stays one."""
    x, a = torch.randn(batch, channels, 56, 56), torch.randn(channels, channels // groups, side, side)

    def convolved(x: Tensor, a: Tensor) -> Tensor:
        return torch.conv2d(x, a, None, 1, side // 2, 1, groups)

    compilation = compile_program(convolved, x, a, disable=["depthwise"])
    return [choice.reason for choice in compilation.layouts]


def test_in_float32_moves_what_is_rounded_alike_in_both_layouts() -> None:
    """Dense ones of many channels and small filters always take TF32, depthwise ones never."""
    assert layouts_in_float32() == ["layout.channels_last"]
    assert layouts_in_float32(side=5) == ["layout.channels_last"]
    assert layouts_in_float32(groups=64, batch=32) == ["layout.channels_last"]
    assert layouts_in_float32(side=7, batch=32) == ["layout.precision"]
    assert layouts_in_float32(groups=2, batch=32) == ["layout.precision"]
    assert layouts_in_float32(channels=16) == ["layout.slower"]


def test_in_float32_without_tf32_only_depthwise_convolutions_gain() -> None:
    # Once torch.testing is loaded, flags can be set in no other way than this.
    with torch.backends.cudnn.flags(allow_tf32=False):
        assert layouts_in_float32() == ["layout.library"]
        assert layouts_in_float32(groups=64, batch=32) == ["layout.channels_last"]


def test_regions_are_weighed_apart() -> None:
    """One of large filters moves, one of few single pixels does not; no loop reads tensors of both."""

    def function(x: Tensor, a: Tensor, y: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return torch.conv2d(x, a).relu(), torch.conv2d(y, b).relu()

    shapes = (IMAGE, (16, 16, 3, 3), IMAGE, (12, 16, 1, 1))
    compilation = compile_program(function, *(torch.randn(shape, dtype=torch.bfloat16) for shape in shapes))
    assert {choice.reason: choice.nodes for choice in compilation.layouts} == {
        "layout.channels_last": ("convolution",), "layout.slower": ("convolution_1",),
    }  # fmt: skip


def test_what_hangs_together_by_a_loop_is_one_region() -> None:
    compilation = compile_program(PROGRAMS["branches"][0], *inputs_of("branches"))
    (choice,) = compilation.layouts
    assert len(choice.nodes) == 4


def test_on_a_cpu_nothing_moves_and_the_record_says_so() -> None:
    compilation = compile_program(chain, *inputs_of("chain"), target="cpu")
    assert [choice.reason for choice in compilation.layouts] == ["layout.library"]


def test_sizes_that_differ_from_call_to_call_are_left_alone() -> None:
    compilation = compile_program(chain, *inputs_of("chain"), dynamic=True)
    assert [choice.reason for choice in compilation.layouts] == ["layout.open_sizes"]
