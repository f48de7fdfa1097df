"""What follows a convolution goes into its filter and its call, and nowhere else does anything change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.nn import functional as F

from compiler.compile import Generated
from compiler.devices import H200
from compiler.ir.library_calls import FUSED_CONVOLUTION
from compiler.options import Options
from compiler.passes.layout.decide import lower_in_layout
from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import to_double
from tests.compile_program import capture_graph, compile_program, kernel_count
from tests.passes.layout.test_channels_last import CompiledForGpu

IMAGE, FILTER, VECTOR = (4, 16, 12, 10), (16, 16, 3, 3), (16,)


def normalised(x: Tensor, v: Tensor) -> Tensor:
    return F.batch_norm(x, v, v.abs() + 1, v + 2, v)


def plain(x: Tensor, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    return F.conv2d(normalised(F.conv2d(x, a, v, padding=1), v).relu(), b)


def residual(x: Tensor, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    return F.conv2d((x + normalised(F.conv2d(x, a, padding=1), v)).relu(), b)


def two_branches(x: Tensor, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    left, right = F.conv2d(x, a, padding=1), F.conv2d(x, b, v, padding=1)
    return F.conv2d((normalised(left, v) + normalised(right, v)).relu(), b)


def by_hand(x: Tensor, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    scaled = (F.conv2d(x, a, stride=2, dilation=2) - v[:, None, None]) / 2 * v[None, :, None, None] - 0.5
    return F.conv2d(scaled.relu(), b)


def bias_alone(x: Tensor, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    return F.conv2d((F.conv2d(x, a, padding=1) + v.view(-1, 1, 1)).relu(), b)


FOLDED: tuple[Callable[..., Tensor], ...] = (plain, residual, two_branches, by_hand, bias_alone)


def inputs_of(dtype: torch.dtype = torch.float16) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = (IMAGE, FILTER, FILTER, VECTOR)
    return [torch.randn(shape, generator=generator).to(dtype) / (3 * len(shape)) for shape in shapes]


def fused_calls(compilation: Generated) -> int:
    return sum(getattr(unit, "target", None) is FUSED_CONVOLUTION for unit in compilation.schedule.units)


@pytest.mark.parametrize("function", FOLDED, ids=lambda function: function.__name__)
def test_folded_results_are_as_near_to_float64_as_eager(function: Callable[..., Tensor]) -> None:
    inputs, backend = inputs_of(), CompiledForGpu()
    torch._dynamo.reset()
    with torch.no_grad():
        eager, exact = function(*inputs), function(*to_double(inputs))
        found = torch.compile(function, backend=backend, dynamic=False)(*inputs)
    assert fused_calls(backend.compilations[0]) == 1
    assert is_correct(found, exact, eager)
    assert found.stride() == eager.stride()


def test_a_pass_over_the_result_is_spared() -> None:
    folded, kept = (compile_program(plain, *inputs_of(), disable=disable) for disable in ([], ["folding"]))
    assert fused_calls(kept) == 0 and not kept.foldings
    assert kernel_count(folded)[1] == kernel_count(kept)[1] == 2
    order = [getattr(unit, "target", "kernel") for unit in folded.schedule.units]
    first = order.index(FUSED_CONVOLUTION)
    assert order[first + 1] == torch.ops.aten.convolution.default  # nothing lies between the two calls


def test_what_folding_spares_counts_for_the_layout_that_it_needs() -> None:
    (folded,), (kept,) = (
        compile_program(plain, *inputs_of(), disable=disable).layouts for disable in ([], ["folding"])
    )
    (record,) = compile_program(plain, *inputs_of()).foldings
    assert folded.numbers["kept_us"] - kept.numbers["kept_us"] == pytest.approx(record.numbers["saved_us"])


def test_the_record_names_what_was_folded() -> None:
    (record,) = compile_program(residual, *inputs_of()).foldings
    assert record.verdict == "folded" and record.numbers["saved_us"] > record.numbers["filter_us"]
    assert record.nodes[0] == "convolution" and record.nodes[-1] == "relu"


def test_the_call_stands_for_all_nodes_that_it_computes() -> None:
    compilation = compile_program(plain, *inputs_of())
    (record,) = compilation.foldings
    (call,) = [unit for unit in compilation.schedule.units if getattr(unit, "target", None) is FUSED_CONVOLUTION]
    assert set(call.origins) == set(record.nodes)  # type: ignore[union-attr]


@pytest.mark.parametrize("function", FOLDED, ids=lambda function: function.__name__)
def test_loops_and_what_was_removed_name_nodes_of_the_captured_graph(function: Callable[..., Tensor]) -> None:
    graph = capture_graph(function, *inputs_of())
    loops, _, foldings = lower_in_layout(graph, H200, Options())
    assert any(folding.verdict == "folded" for folding in foldings)
    known = {node.name for node in graph.graph.nodes}
    assert {origin for node in loops.nodes for origin in node.origins} <= known
    assert {removed.node for removed in loops.removed} <= known


def kept(function: Callable[..., Any], *inputs: Tensor, **knobs: Any) -> list[str]:
    compilation = compile_program(function, *inputs, **knobs)
    assert fused_calls(compilation) == 0
    return [record.reason for record in compilation.foldings]


def test_what_is_returned_or_read_by_loops_alone_is_kept() -> None:
    assert kept(lambda x, a, b, v: normalised(F.conv2d(x, a), v).relu(), *inputs_of()) == ["folding.slower"]
    assert kept(lambda x, a, b, v: normalised(F.conv2d(x, a), v).relu().sum(), *inputs_of()) == ["folding.slower"]


def test_filters_of_one_pixel_on_few_pixels_are_products_instead() -> None:
    def function(x: Tensor, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
        return F.conv2d(normalised(F.conv2d(x, a[..., :1, :1]), v).relu(), b)

    assert fused_calls(compile_program(function, *inputs_of())) == 0
    many = [torch.randn(8, 16, 24, 24).half(), *inputs_of()[1:]]
    assert fused_calls(compile_program(function, *many)) == 1


def test_what_does_not_move_is_kept() -> None:
    x, a, b, v = inputs_of(torch.float32)
    assert kept(plain, x, a[..., :1, :1], b[..., :1, :1], v) == ["folding.layout"]
    assert kept(plain, *inputs_of(), disable=["layout"]) == ["folding.layout"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, a, b, v: F.conv2d(F.relu6(normalised(F.conv2d(x, a), v)), b),
        lambda x, a, b, v: F.conv2d(F.batch_norm(F.conv2d(x, a), None, None, v, v, training=True).relu(), b),
        lambda x, a, b, v: F.conv2d((y := F.conv2d(x, a)).mul(v[:, None, None]).relu(), b) + y.sum(),
        lambda x, a, b, v: F.conv2d((F.conv2d(x, a) * v[:8]).relu(), b),
        lambda x, a, b, v: F.conv2d(F.conv2d(x, a[:, :1], groups=16).relu(), b),
        lambda x, a, b, v: F.conv2d((2 * (y := F.conv2d(x, a)) + y).relu(), b),
        lambda x, a, b, v: F.conv2d((F.conv2d(x.float(), a.float()).half() * v[:, None, None]).relu(), b),
        lambda x, a, b, v: (v * v + v).relu() + (2 * v[0] + v[1]).relu() + (a.flatten(1) * 2 + 1).relu().sum(),
        lambda x, a, b, v: F.conv2d((2 - F.conv2d(x, a) - v[:, None, None]).relu(), b)[:, :, :0],
    ],
    ids=[
        "relu6",
        "training",
        "read twice",
        "along columns",
        "groups",
        "added to itself",
        "of another dtype",
        "no image",
        "negated",
    ],
)
def test_what_is_no_chain_is_left_alone(function: Callable[..., Any]) -> None:
    x, a, b, v = inputs_of()
    compilation = compile_program(function, x[..., :12], a, b, v)
    assert fused_calls(compilation) == 0


def test_the_call_asks_the_library_once_for_what_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU cuDNN has no kernel at all; the call then is ATen's operators, and does not ask again."""
    from compiler.ir import library_calls

    asked: list[int] = []

    def refuse(*_: Any) -> Tensor:
        asked.append(1)
        raise RuntimeError("no engine")

    class OnGpu(Tensor):
        is_cuda = True

    monkeypatch.setattr(library_calls, "_fused", refuse)
    x, a, _, v = inputs_of(torch.float32)
    fused, geometry = library_calls.FusedConvolution(), ([1, 1], [1, 1], [1, 1])
    image = x.as_subclass(OnGpu)
    for _ in range(2):
        found = fused(image, a, v, x, *geometry)
    assert len(asked) == 1
    torch.testing.assert_close(found.as_subclass(Tensor), (F.conv2d(x, a, v, padding=1) + x).relu())


def test_filters_and_sums_of_all_convolutions_are_computed_in_one_launch() -> None:
    """Each reads parameters alone. That a filter's kernel once waited for the scale, which it now computes for itself,
    must not keep it behind the sums of the same convolution."""

    def net(x: Tensor, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
        for weight in (a, b, a * 2):
            x = normalised(F.conv2d(x, weight, padding=1), v).relu()
        return F.conv2d(x, b)

    shapes = ((32, 256, 14, 14), (256, 256, 3, 3), (256, 256, 3, 3), (256,))
    with FakeTensorMode():
        compilation = compile_program(net, *[torch.empty(shape, dtype=torch.float16) for shape in shapes])
    assert fused_calls(compilation) == 3
    kernels = [place for place, unit in enumerate(compilation.schedule.units) if not hasattr(unit, "target")]
    calls = len(compilation.schedule.units) - len(kernels)
    assert (len(kernels), calls) == (2, 4)  # one before the first call, one that stores the result as eager does
