"""Depthwise convolutions are loops over windows, and nothing that a caller sees changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from compiler.backend import fusionscope
from compiler.runtime.checking.judge import is_correct
from compiler.schedule import together, windows
from compiler.schedule.windows import over_windows
from tests.compile_program import call_interpreted, compile_program, kernel_count
from tests.passes.folding.as_eager import check_as_eager
from tests.passes.layout.test_channels_last import CompiledForGpu, convolutions

Program = tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], bool]


def three(x: Tensor, a: Tensor, v: Tensor) -> Tensor:
    return F.relu(F.conv2d(x, a, v, padding=1, groups=x.shape[1]) + x)


def strided(x: Tensor, a: Tensor, v: Tensor) -> Tensor:
    return F.conv2d(x, a, v, stride=(2, 1), padding=(2, 1), dilation=(1, 2), groups=x.shape[1])


def seven(x: Tensor, a: Tensor, v: Tensor) -> Tensor:
    return F.layer_norm(F.conv2d(x, a, v, padding=3, groups=x.shape[1]).permute(0, 2, 3, 1), x.shape[1:2])


def causal(x: Tensor, a: Tensor, v: Tensor) -> Tensor:
    return F.silu(F.conv1d(x, a, v, padding=3, groups=x.shape[1])[..., : x.shape[2]])


def twice(x: Tensor, a: Tensor, v: Tensor) -> Tensor:
    """Two filters for each channel."""
    return F.conv2d(x, a, v, groups=x.shape[1]).sigmoid()


#: What is computed, of which image and filters, and whether the image is channels-last.
PROGRAMS: dict[str, Program] = {
    "three": (three, (2, 6, 8, 5), (6, 1, 3, 3), False),
    "three channels-last": (three, (2, 16, 8, 5), (16, 1, 3, 3), True),
    "strided": (strided, (2, 6, 9, 8), (6, 1, 3, 2), True),
    "seven": (seven, (1, 8, 8, 7), (8, 1, 7, 7), True),
    "causal": (causal, (2, 6, 20), (6, 1, 4), False),
    "twice": (twice, (1, 4, 8, 6), (8, 1, 3, 3), False),
}


def inputs_of(name: str, dtype: torch.dtype = torch.bfloat16) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    _, image, filters, is_channels_last = PROGRAMS[name]
    x, a, v = (torch.randn(shape, generator=generator).to(dtype) for shape in (image, filters, filters[:1]))
    return [x.to(memory_format=torch.channels_last) if is_channels_last else x, a, v]


@pytest.fixture
def several_to_a_lane(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However few windows there are, and in a loop where they are long."""
    monkeypatch.setattr(together, "LEAST_POINTS", 1)
    monkeypatch.setattr(windows, "MANY_RESULTS", 1)
    monkeypatch.setattr(windows, "LONGEST", 300)
    over_windows.cache_clear()
    yield
    over_windows.cache_clear()


@pytest.mark.usefixtures("several_to_a_lane")
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_strides_are_those_of_eager(name: str) -> None:
    backend = CompiledForGpu()
    check_as_eager(PROGRAMS[name][0], backend, lambda: inputs_of(name))
    assert not convolutions(backend.compilations[0])


@pytest.mark.gpu
@pytest.mark.usefixtures("several_to_a_lane")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_on_a_gpu_too(name: str, dtype: torch.dtype) -> None:
    check_as_eager(PROGRAMS[name][0], fusionscope, lambda: [value.cuda() for value in inputs_of(name, dtype)])


def test_what_follows_is_in_the_loop_and_the_record_says_so() -> None:
    compilation = compile_program(three, *inputs_of("three channels-last"))
    assert kernel_count(compilation) == (1, 0)
    assert ("layout.depthwise", ("convolution",)) in [(record.reason, record.nodes) for record in compilation.layouts]


@pytest.mark.usefixtures("several_to_a_lane")
@pytest.mark.parametrize(
    ("function", "image", "filters", "plans"),
    [
        (three, (2, 16, 8, 5), (16, 1, 3, 3), ["pointwise"]),
        (lambda x, a, v: F.conv2d(x, a, v, padding=3, groups=8), (1, 8, 8, 7), (8, 1, 7, 7), ["looped"]),
        (causal, (1, 3, 600), (3, 1, 5), ["pointwise"]),
    ],
)
def test_kernels_of_several_windows_a_lane(
    function: Callable[..., Any], image: tuple[int, ...], filters: tuple[int, ...], plans: list[str]
) -> None:
    generator = torch.Generator().manual_seed(0)
    x, a, v = (torch.randn(shape, generator=generator) for shape in (image, filters, filters[:1]))
    x = x.to(memory_format=torch.channels_last) if x.dim() == 4 else x
    compilation = compile_program(function, x, a, v)
    assert sorted(str(kernel.config["plan"]) for kernel in compilation.triton.values()) == plans
    given = dict(zip("xav", (x, a, v), strict=True))
    (found,) = call_interpreted(compilation, [given[str(name)[0]] for name in compilation.schedule.graph.inputs])
    assert is_correct(found, function(x.double(), a.double(), v.double()), function(x, a, v))


def test_images_whose_sizes_differ_from_call_to_call_are_loops_too() -> None:
    x, a, v = inputs_of("three")
    torch._dynamo.mark_dynamic(x, (2, 3))
    compilation = compile_program(three, x, a, v)
    assert not convolutions(compilation) and kernel_count(compilation) == (1, 0)


def test_what_is_not_depthwise_or_too_wide_stays_a_call() -> None:
    def kept(function: Callable[..., Any], *inputs: Tensor, **knobs: Any) -> bool:
        return len(convolutions(compile_program(function, *inputs, **knobs))) == 1

    x, a, v = inputs_of("three")
    assert kept(three, x, a, v, disable=["depthwise"])
    assert kept(three, x, a, v, target="cpu")
    assert kept(lambda x, a: F.conv2d(x, a, groups=3), x, a.repeat(1, 2, 1, 1))
    assert kept(lambda x, a: F.conv_transpose2d(x, a, groups=6), x, a)
    assert kept(
        lambda x, a: F.conv1d(x, a, padding=25, groups=6), *inputs_of("causal")[:1], torch.randn(6, 1, 50).bfloat16()
    )


def test_an_image_is_turned_before_and_not_in_the_loop() -> None:
    """A kernel that loads windows along rows and stores along channels takes more than both that it would save."""

    def normalised(x: Tensor, a: Tensor) -> Tensor:
        return F.layer_norm(F.conv2d(x, a, padding=1, groups=96).permute(0, 2, 3, 1), (96,))

    x, a = torch.empty(16, 96, 56, 56, dtype=torch.bfloat16), torch.empty(96, 1, 3, 3, dtype=torch.bfloat16)
    compilation = compile_program(normalised, x, a)
    (turned,) = [group for group in compilation.groups if "x" in group.read_buffers]
    (loop,) = [group for group in compilation.groups if "convolution" in group.produced]
    assert "convolution" not in turned.produced and not turned.produced.isdisjoint(loop.read_buffers)
