"""What is taken apart in our own way is what the operator gives."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.backend import fusionscope
from compiler.lowering.decompositions import decompositions
from tests.lowering.checks import lowered

aten = torch.ops.aten


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("has_weight", [True, False], ids=["weight", "no weight"])
@pytest.mark.parametrize("has_bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_a_group_norm_is_the_operators(
    dtype: torch.dtype, has_weight: bool, has_bias: bool, layout: torch.memory_format
) -> None:
    torch.manual_seed(0)
    x = (3 * torch.randn(2, 6, 5, 7) + 1).to(dtype).contiguous(memory_format=layout)
    weight, bias = (torch.randn(6).to(dtype) if has else None for has in (has_weight, has_bias))
    in_double = [None if one is None else one.double() for one in (x, weight, bias)]
    expected = torch.native_group_norm(*in_double, 2, 6, 35, 3, 1e-5)  # type: ignore[arg-type, call-arg]
    found = decompositions()[aten.native_group_norm.default](x, weight, bias, 2, 6, 35, 3, 1e-5)
    assert [one.dtype for one in found] == [dtype] * 3 and [one.shape for one in found] == [x.shape, (2, 3), (2, 3)]
    # Results are of magnitude 4 and less, the sums of 70 numbers behind them of float32 at least.
    tolerance = 4 * torch.finfo(dtype).eps + 70 * torch.finfo(torch.float32).eps * (dtype != torch.float64)
    tolerance += 1e-14
    for one, wanted in zip(found, expected, strict=True):
        assert (one.double() - wanted).abs().max() <= tolerance * max(1.0, float(wanted.abs().max()))
    assert found[0].is_contiguous(memory_format=layout)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_the_gradient_of_a_silu_is_the_operators(dtype: torch.dtype) -> None:
    x = torch.tensor([-1e4, -90.0, -20.0, -1.2784, -0.5, 0.0, 0.5, 3.0, 20.0, 90.0, 1e4]).to(dtype)
    gradient = torch.linspace(-2, 2, 11).to(dtype)
    wanted = aten.silu_backward(gradient.double(), x.double())
    found = decompositions()[aten.silu_backward.default](gradient, x)
    assert found.dtype == dtype
    # Of magnitude 2 at the most; the difference from 1 of the sigmoid of -1.28 is taken of numbers of magnitude 1.
    assert (found.double() - wanted).abs().max() <= 8 * torch.finfo(dtype).eps


def test_what_has_no_lowering_is_decomposed_by_every_release_of_torch() -> None:
    targets = (
        aten.t.default, aten.transpose.int, aten.split.Tensor, aten.unbind.int, aten.unbind_copy.int,
        aten.rsub.Tensor, aten.rsub.Scalar, aten.square.default, aten.bernoulli.default, aten.true_divide.Tensor,
        aten.zeros.default, aten.ones.default, aten.zeros_like.default, aten.ones_like.default, aten.new_zeros.default,
        aten.new_ones.default, aten.all.default, aten.all.dim, aten.std.correction, aten.std_mean.correction,
        aten.linalg_vector_norm.default, aten.nan_to_num.default, aten._unsafe_view.default,
        aten.masked_fill.Scalar, aten.masked_fill.Tensor, aten.clamp_min.default, aten.clamp_min.Tensor,
        aten.clamp_max.default, aten.clamp_max.Tensor, aten.min.other, aten.max.other, aten.detach.default,
        aten.squeeze.default, aten.unsafe_split.Tensor, aten.unsafe_split_with_sizes.default,
        aten._unsafe_index.Tensor, aten._unsafe_index_put.default, aten.expand_copy.default, aten.diagonal_copy.default,
        aten.unfold_copy.default, aten.unsqueeze_copy.default, aten.squeeze_copy.dims,
    )  # fmt: skip
    known = decompositions()
    composed = {target for target in targets if target._can_decompose()}
    assert [target for target in targets if target not in known and target not in composed] == []


@pytest.mark.parametrize("operator", [torch.pixel_shuffle, torch.pixel_unshuffle])
def test_shuffled_pixels_lie_as_the_kernels_for_gpus_leave_them(operator: Any) -> None:
    """A view of them is legal then."""
    with FakeTensorMode():
        image = torch.empty(2, 16, 4, 4, device="cuda").to(memory_format=torch.channels_last)
        graph = make_fx(lambda x: operator(x, 2).view(2, -1), decomposition_table=decompositions())(image)
        assert graph(image).stride() == (256, 1)


@pytest.mark.gpu
@pytest.mark.parametrize("operator", [torch.pixel_shuffle, torch.pixel_unshuffle])
def test_shuffled_pixels_lie_as_eagers_on_a_gpu(operator: Any) -> None:
    image = torch.randn(2, 16, 4, 4, device="cuda").to(memory_format=torch.channels_last)
    compiled, expected = torch.compile(operator, backend=fusionscope)(image, 2), operator(image, 2)
    assert compiled.stride() == expected.stride() and torch.equal(compiled, expected)


@pytest.mark.parametrize("loss", [torch.nn.functional.mse_loss, torch.nn.functional.huber_loss])
def test_the_gradient_of_the_mean_of_nothing_is_empty(loss: Any) -> None:
    """As of what a mask has picked, where it is false everywhere."""
    x, target = torch.randn(0, 5, requires_grad=True), torch.randn(0, 5)
    mean = torch.compile(loss, backend=fusionscope)(x, target)
    mean.backward()
    assert mean.isnan() and x.grad is not None and x.grad.shape == (0, 5)


@pytest.mark.parametrize("sizes", [(2, 40), (40, 3)])
def test_windows_of_one_for_all_are_added_up_at_once(sizes: tuple[int, int]) -> None:
    """As the envelope of `torch.istft`; PyTorch's decomposition adds up place by place, in a copy of the whole each."""
    dim = sizes.index(40)

    def windows(gradient: Tensor) -> Tensor:
        return aten.unfold_backward(gradient, sizes, dim, 16, 4)

    gradient = torch.randn(*(7 if size == 40 else 1 for size in sizes), 16)
    assert len(lowered(windows, gradient).nodes) <= 3
    whole = gradient.double().expand(*(7 if size == 40 else size for size in sizes), 16)
    result = torch.compile(windows, backend=fusionscope)(gradient)
    torch.testing.assert_close(result.double(), windows(whole), rtol=1e-6, atol=1e-6)


def _permuted(*sizes: int) -> Tensor:
    """Its last dimension is the outermost one in memory."""
    return torch.arange(float(prod(sizes))).view(sizes[-1], *sizes[:-1]).movedim(0, -1)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("x", [_permuted(5, 6), _permuted(2, 3, 5), _permuted(6, 10)[::2, ::2]])
def test_what_is_put_into_a_tensor_lies_as_the_tensor(x: Tensor, accumulate: bool) -> None:
    def put(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
        return x.put(index, source, accumulate)

    arguments = x, torch.tensor([[1, -1], [7, 3]]), torch.tensor([[0.5, 1.5], [2.5, 3.5]])
    result, expected = torch.compile(put, backend=fusionscope)(*arguments), put(*arguments)
    assert result.stride() == expected.stride() and torch.equal(result, expected)
