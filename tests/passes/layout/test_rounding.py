"""Float32 convolutions that the library rounds to TF32 in one layout, or in both."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from compiler.options import Options
from compiler.passes.layout.choice import LayoutChoice, describe_layout
from compiler.passes.layout.rounding import (
    EXACT_ERROR,
    LEAST_ROUNDED_ERROR,
    Question,
    is_rounded_on_h200,
    measured_rounding,
    question_of,
    rounding_of,
)
from compiler.passes.price import Convolution
from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import relative_error
from tests.compile_program import compile_program
from tests.passes.layout.test_channels_last import CompiledForGpu

CPU = torch.device("cpu")
#: Half the distance of two numbers of TF32 beside one.
TF32_UNIT = 2.0**-11


def question(image: tuple[int, ...], weight: tuple[int, ...], **geometry: Any) -> Question:
    usual = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "is_transposed": False, "output_padding": (0, 0)}
    return Question(image, weight, **{**usual, "groups": 1, **geometry}, device=CPU, settings=())


QUESTIONS = {
    "plain": question((2, 8, 40, 30), (16, 8, 3, 3)),
    "padded": question((2, 8, 40, 30), (16, 8, 5, 3), padding=(2, 1)),
    "strided": question((2, 8, 40, 33), (16, 8, 3, 3), stride=(2, 3), padding=(1, 1)),
    "dilated": question((2, 8, 40, 30), (16, 8, 3, 3), padding=(4, 4), dilation=(4, 4)),
    "patches": question((2, 3, 64, 64), (16, 3, 16, 16), stride=(16, 16)),
    "one pixel": question((2, 8, 40, 30), (16, 8, 1, 1)),
    "grouped": question((2, 8, 40, 30), (16, 2, 3, 3), padding=(1, 1), groups=4),
    "small": question((1, 8, 3, 2), (16, 8, 3, 3), padding=(1, 1)),
    "transposed": question((2, 8, 20, 30), (8, 16, 4, 4), is_transposed=True, stride=(2, 2), padding=(1, 1)),
    "transposed, gaps": question((2, 8, 20, 30), (8, 16, 1, 1), is_transposed=True, stride=(2, 2)),
    "transposed, far": question((2, 8, 20, 30), (8, 16, 3, 3), is_transposed=True, padding=(2, 2), dilation=(2, 2)),
    "transposed, longer": question(
        (2, 8, 5, 4), (8, 4, 5, 5), is_transposed=True, stride=(3, 2), padding=(2, 1), output_padding=(2, 1), groups=2
    ),
}


def rounded_to_tf32(value: Tensor) -> Tensor:
    return ((value.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("name", QUESTIONS)
def test_errors_of_either_layout_are_found(name: str) -> None:
    asked = QUESTIONS[name]

    def library(image: Tensor, weight: Tensor) -> Tensor:
        if image.is_contiguous():
            return asked.call(image, weight)
        return asked.call(rounded_to_tf32(image), rounded_to_tf32(weight))

    found = measured_rounding(asked, library)
    assert found.is_measured and not found.is_rounded
    assert found.kept_error < torch.Size(asked.filter).numel() ** 0.5 * torch.finfo(torch.float32).eps
    assert found.is_rounded_if_moved and LEAST_ROUNDED_ERROR < found.moved_error < 2 * TF32_UNIT


def test_autocast_has_no_part_in_it() -> None:
    asked = QUESTIONS["padded"]

    def library(image: Tensor, weight: Tensor) -> Tensor:
        return F.conv2d(image, weight, padding=asked.padding)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = measured_rounding(asked, library)
    assert not found.is_rounded and not found.is_rounded_if_moved


def test_a_table_tells_where_there_is_no_gpu() -> None:
    def convolution(channels: int, side: int, is_transposed: bool, images: int = 32) -> Convolution:
        image = images, channels, 28, 28
        return Convolution(image, (channels, channels, side, side), image, 1, torch.float32, is_transposed)

    assert is_rounded_on_h200(convolution(64, 3, False)) and is_rounded_on_h200(convolution(64, 4, True))
    assert not is_rounded_on_h200(convolution(16, 3, False))
    assert not is_rounded_on_h200(convolution(64, 3, True, images=1))
    values = [torch.empty(shape) for shape in ((32, 16, 28, 28), (16, 16, 3, 3))]
    arguments = (*values, None, [1], [1, 1], [1], False, [0], 1)
    asked = question_of(convolution(16, 3, False), arguments)
    assert (asked.stride, asked.padding, asked.dilation, asked.output_padding) == ((1, 1), (1, 1), (1, 1), (0, 0))
    found = rounding_of(convolution(16, 3, False), arguments)
    assert not found.is_measured and found.kept_error == EXACT_ERROR and found.is_rounded_if_moved


def large_then_small(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return F.conv2d(F.conv2d(x, a, padding=3).relu(), b, padding=1).sigmoid()


INPUTS = torch.randn(32, 64, 56, 56), torch.randn(64, 64, 7, 7), torch.randn(64, 64, 3, 3)


def records(**knobs: Any) -> dict[str, LayoutChoice]:
    return {choice.reason: choice for choice in compile_program(large_then_small, *INPUTS, **knobs).layouts}


def test_a_convolution_that_is_exact_in_eager_stays_and_others_of_its_region_move() -> None:
    found = records()
    assert {reason: choice.nodes for reason, choice in found.items()} == {
        "layout.precision": ("convolution",),
        "layout.channels_last": ("convolution_1",),
    }
    kept = describe_layout(found["layout.precision"])
    assert kept.verdict == "kept"
    assert kept.predicted_moved_us is not None and kept.predicted_kept_us is not None
    assert kept.predicted_moved_us < kept.predicted_kept_us
    assert kept.numbers["kept_error"] < LEAST_ROUNDED_ERROR < kept.numbers["moved_error"]
    assert "2e-07" in kept.message and "3e-04" in kept.message and "tf32" in kept.message
    assert kept.message.endswith("errors are predicted")


def test_the_knob_takes_the_faster_one() -> None:
    (choice,) = records(tf32=True).values()
    assert choice.reason == "layout.rounded" and choice.verdict == "channels_last"
    assert choice.nodes == ("convolution", "convolution_1")
    assert describe_layout(choice).verdict == "channels_last"
    assert [kept.reason for kept in records(tf32=True, disable=["layout"]).values()] == ["policy.disabled"]


def test_without_tf32_the_knob_does_nothing() -> None:
    with torch.backends.cudnn.flags(allow_tf32=False):
        assert set(records(tf32=True)) == {"layout.library"}


@pytest.mark.parametrize("value", [1, "yes", None])
def test_the_knob_is_true_or_false(value: Any) -> None:
    with pytest.raises(ValueError, match="tf32"):
        Options(knobs={"tf32": value})


def test_transposed_convolutions_in_float32_give_what_eager_gives() -> None:
    def function(x: Tensor, a: Tensor, bias: Tensor) -> Tensor:
        return F.conv_transpose2d(x, a, bias, 2, 1).relu()

    inputs = torch.randn(8, 64, 64, 64), torch.randn(64, 64, 4, 4), torch.randn(64)
    backend = CompiledForGpu()
    torch._dynamo.reset()
    with torch.no_grad():
        found = torch.compile(function, backend=backend, dynamic=False)(*inputs)
        eager, exact = function(*inputs), function(*(value.double() for value in inputs))
    (compilation,) = backend.compilations
    assert [choice.reason for choice in compilation.layouts] == ["layout.channels_last"]
    assert found.stride() == eager.stride() and is_correct(found, exact, eager)


#: Shapes of image and filter, and the arguments of the call.
ON_GPU: dict[str, tuple[Any, ...]] = {
    "many channels": (F.conv2d, (32, 64, 56, 56), (64, 64, 3, 3), {"padding": 1}),
    "patches": (F.conv2d, (32, 3, 224, 224), (768, 3, 16, 16), {"stride": 16}),
    "few channels": (F.conv2d, (32, 16, 112, 112), (32, 16, 3, 3), {"padding": 1}),
    "one image": (F.conv2d, (1, 64, 56, 56), (64, 64, 7, 7), {"padding": 3}),
    "groups": (F.conv2d, (8, 64, 28, 28), (64, 32, 3, 3), {"padding": 1, "groups": 2}),
    "transposed": (F.conv_transpose2d, (16, 64, 56, 56), (64, 64, 4, 4), {"stride": 2, "padding": 1}),
    "transposed, small": (F.conv_transpose2d, (1, 64, 16, 16), (64, 64, 4, 4), {"stride": 2, "padding": 1}),
}


@pytest.mark.gpu
@pytest.mark.parametrize("may_round", [False, True])
@pytest.mark.parametrize("name", ON_GPU)
def test_only_with_the_knob_results_are_less_exact_than_eager_s(name: str, may_round: bool) -> None:
    call, image, weight, named = ON_GPU[name]

    def function(x: Tensor, a: Tensor) -> Tensor:
        return torch.relu(call(x, a, **named))

    seen: list[Built] = []
    torch._dynamo.reset()
    torch.manual_seed(0)
    x, a = torch.randn(image, device="cuda"), torch.randn(weight, device="cuda")
    with torch.no_grad(), observed_compilations(seen.append):
        ours = torch.compile(function, backend=fusionscope, options={"knobs": {"tf32": may_round}})  # type: ignore[dict-item]  # ours
        found, eager = ours(x, a), function(x, a)
        exact = function(x.double(), a.double())
    (compilation,) = seen
    (choice,) = compilation.layouts
    assert choice.reason != ("layout.precision" if may_round else "layout.rounded")
    if choice.reason in ("layout.precision", "layout.rounded"):
        assert choice.numbers["errors"] == "measured"
    if choice.reason == "layout.rounded":
        assert LEAST_ROUNDED_ERROR < relative_error(found, exact) < 16 * TF32_UNIT
    else:
        assert is_correct(found, exact, eager)
        was_exact = (eager.double() - exact).norm() < LEAST_ROUNDED_ERROR * exact.norm()
        assert not was_exact or (found.double() - exact).norm() < LEAST_ROUNDED_ERROR * exact.norm()
