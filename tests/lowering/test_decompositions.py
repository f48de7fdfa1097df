"""What is taken apart in our own way is what the operator gives."""

from __future__ import annotations

import pytest
import torch

from compiler.lowering.decompositions import decompositions

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
