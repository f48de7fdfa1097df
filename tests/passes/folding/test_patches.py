"""Convolutions whose windows do not overlap are products, and nothing that a caller sees changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from compiler.backend import fusionscope
from compiler.devices import H200
from compiler.options import Options
from compiler.passes.layout.patches import with_products
from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import leaves, to_double
from tests.compile_program import capture_graph, compile_program, kernel_count
from tests.passes.folding.as_eager import check_as_eager
from tests.passes.layout.test_channels_last import CompiledForGpu, convolutions

aten = torch.ops.aten

#: Image, filter: an image of three channels, one of many, and one with a rim that no window covers.
STEM, MANY, RIM = ((2, 3, 32, 48), (16, 3, 8, 16)), ((2, 8, 8, 12), (16, 8, 2, 3)), ((2, 8, 11, 10), (16, 8, 2, 4))
Program = tuple[Callable[..., Any], tuple[tuple[int, ...], tuple[int, ...]], bool]


def convolved(x: Tensor, a: Tensor, v: Tensor | None = None) -> Tensor:
    assert x.dim() == a.dim()  # which makes the image the first of the graph's inputs
    return F.conv2d(x, a, v, stride=a.shape[2:])


def tokens(x: Tensor, a: Tensor, v: Tensor) -> Tensor:
    y = convolved(x, a, v)
    return F.layer_norm(y.flatten(2).transpose(1, 2), (16,))


def returned(x: Tensor, a: Tensor, v: Tensor) -> Tensor:
    return convolved(x, a, v)


def normalised_before(x: Tensor, a: Tensor, v: Tensor) -> Tensor:
    y = F.layer_norm(x, x.shape[1:])
    return convolved(y, a) * v[:, None, None]


def read_by_another(x: Tensor, a: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    y = convolved(x, a, v)
    return F.conv2d(y, v.view(16, 1, 1, 1), groups=16), torch.sort(y, dim=1, stable=True)[0], y[:, :4]


#: What is computed, of which sizes, and whether the image is channels-last.
PROGRAMS: dict[str, Program] = {
    "tokens": (tokens, STEM, False),
    "returned": (returned, STEM, False),
    "returned channels-last": (returned, ((2, 8, 5, 6), (16, 8, 1, 1)), True),
    "normalised before": (normalised_before, MANY, False),
    "read by another": (read_by_another, MANY, False),
    "a rim": (returned, RIM, False),
    "tokens with a rim": (tokens, RIM, False),
    "one pixel": (tokens, ((2, 8, 5, 6), (16, 8, 1, 1)), True),
}


def inputs_of(name: str, dtype: torch.dtype = torch.bfloat16) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    _, shapes, is_channels_last = PROGRAMS[name]
    x, a, v = (torch.randn(shape, generator=generator).to(dtype) for shape in (*shapes, (16,)))
    return [x.to(memory_format=torch.channels_last) if is_channels_last else x, a, v]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_product_computes_the_same(name: str) -> None:
    """The graph that is lowered, run by ATen."""
    function, inputs = PROGRAMS[name][0], inputs_of(name)
    graph, records = with_products(capture_graph(function, *inputs), H200, Options())
    assert len(records) == 1
    graph.recompile()
    with torch.no_grad():
        found, eager, exact = graph(*inputs), function(*inputs), function(*to_double(inputs))
    for (_, ours), (_, theirs), (_, reference) in zip(leaves(found), leaves(eager), leaves(exact), strict=False):
        assert is_correct(ours, reference, theirs)


@pytest.mark.parametrize("name", ("normalised before", "read by another", "tokens with a rim"))
def test_results_and_strides_are_those_of_eager(name: str) -> None:
    check_as_eager(PROGRAMS[name][0], CompiledForGpu(), lambda: inputs_of(name))


@pytest.mark.gpu
@pytest.mark.parametrize("name", PROGRAMS)
def test_on_a_gpu_too(name: str) -> None:
    check_as_eager(PROGRAMS[name][0], fusionscope, lambda: [value.cuda() for value in inputs_of(name)])


def test_patches_are_read_by_the_product_from_what_computes_the_image() -> None:
    inputs = inputs_of("tokens")
    compilation = compile_program(lambda x, a, v: tokens(x.relu(), a, v), *inputs)
    assert not convolutions(compilation)
    assert kernel_count(compilation) == (2, 0)


def test_the_record_says_what_was_expected() -> None:
    (record,) = compile_program(tokens, *inputs_of("tokens")).layouts
    assert (record.reason, record.nodes) == ("layout.patches", ("convolution",))
    assert record.numbers["product_us"] < record.numbers["kept_us"]


def kept(function: Callable[..., Any], *inputs: Tensor, **knobs: Any) -> bool:
    return len(convolutions(compile_program(function, *inputs, **knobs))) == 1


def stem(x: Tensor, a: Tensor, b: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    y = F.conv2d(x, a, v, stride=2, padding=3).relu()
    return F.conv2d(F.max_pool2d(y, 3, 2, 1), b), y


def overlapping(x: Tensor, a: Tensor, b: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    return F.conv2d(x, a, v, stride=(1, 2), padding=(2, 0)), F.conv2d(x, a[:, :, :3, :3], padding=1).sin()


def far_apart(x: Tensor, a: Tensor, b: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    y = F.conv2d(x, a, v, stride=4, padding=3)
    return F.conv2d(y, b), y


def windows(dtype: torch.dtype = torch.bfloat16) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 3, 37, 30), (16, 3, 7, 7), (16, 16, 3, 3), (16,))
    x, *others = (torch.randn(shape, generator=generator).to(dtype) for shape in shapes)
    x[1, 2, 7, 29] = torch.inf  # which none of the zeros may meet that a row is filled up with
    return [x, *others]


@pytest.mark.parametrize("function", (stem, overlapping, far_apart))
@pytest.mark.parametrize("device", ("cpu", pytest.param("cuda", marks=pytest.mark.gpu)))
def test_a_convolution_of_few_channels_is_a_product_over_windows(function: Callable[..., Any], device: str) -> None:
    def inputs() -> list[Tensor]:
        return [value.to(device) for value in windows()]

    backend = CompiledForGpu() if device == "cpu" else fusionscope
    torch._dynamo.reset()
    with torch.no_grad():
        eager, exact = function(*inputs()), function(*to_double(inputs()))
        found = torch.compile(function, backend=backend, dynamic=False)(*inputs())
    assert is_correct(found, exact, eager)
    assert [one.stride() for one in found] == [one.stride() for one in eager]
    if isinstance(backend, CompiledForGpu):
        channels = [call.tensor_arguments[0].layout.shape[1] for call in convolutions(backend.compilations[0])]
        assert 3 not in channels


def test_what_is_no_product_stays_a_convolution() -> None:
    x, a, v = inputs_of("tokens")
    assert kept(returned, x.to(memory_format=torch.channels_last), a, v)
    many, filters = x.repeat(1, 4, 1, 1), a.repeat(1, 4, 1, 1)
    assert kept(lambda x, a: F.conv2d(x, a, stride=(8, 8)), many, filters)  # windows overlap
    assert kept(lambda x, a: F.conv2d(x, a, stride=(8, 16), padding=1), many, filters)
    assert kept(returned, x.float(), a.float(), v.float())
    assert kept(returned, x, a[:15], v[:15])  # the products' loads take eight numbers
    assert kept(returned, x, a, v, target="cpu")
    assert kept(returned, x, a, v, disable=["patches"])
