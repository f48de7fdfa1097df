"""Quantisation: numbers as small integers, with a scale and a zero point, and back.

    quantised = clamp(round(x / scale) + zero_point, least, most)          x ~ (quantised - zero_point) * scale

`torch.ao` writes it with the operators of `quantized_decomposed`, which are known once the snippet has imported them.
They are taken apart into ATen's, each as PyTorch's own kernel of it computes. So are ATen's `fake_quantize` operators,
which go there and back at once and say for the gradient where nothing was cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack, unpack
from typing import Any

import torch
from torch import Tensor

from compiler.lowering.registry import decomposes

aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)

# --- ATen's operators, which go there and back at once


def _there_and_back(
    x: Tensor, scale: Any, inverse: Any, zero_point: Any, low: int, high: int, product: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The numbers, and where they were within the range; in `product` is multiplied by the scale."""
    value = torch.round(_computed(x) * inverse) + zero_point
    # A NaN is above nothing, and becomes the least number.
    bounded = torch.where(value > low, value.clamp(max=high), low)
    return ((bounded - zero_point).to(product) * scale).to(x.dtype), (value >= low) & (value <= high)


def _computed(x: Tensor) -> Tensor:
    return x.float() if x.dtype in HALVES else x


@decomposes(aten.fake_quantize_per_tensor_affine_cachemask)
def fake_quantize(x: Tensor, scale: float, zero_point: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    (rounded,) = unpack("f", pack("f", scale))
    (inverse,) = unpack("f", pack("f", 1.0 / rounded))
    return _there_and_back(x, rounded, inverse, zero_point, low, high, torch.float32)


@decomposes(aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams)
def fake_quantize_by_tensors(
    x: Tensor, scale: Tensor, zero_point: Tensor, is_on: Tensor, low: int, high: int
) -> tuple[Tensor, Tensor]:
    """Scale and zero point are of one element, and so is the switch that turns the whole on."""
    single, whole, switch = (_number(one) for one in (scale.float(), zero_point.to(_computed(x).dtype), is_on != 0))
    result, mask = _there_and_back(x, single, 1.0 / single, whole, low, high, torch.float32)
    return torch.where(switch, result, x), ~switch | mask


@decomposes(aten.fake_quantize_per_channel_affine_cachemask)
def fake_quantize_by_channel(
    x: Tensor, scale: Tensor, zero_point: Tensor, axis: int, low: int, high: int
) -> tuple[Tensor, Tensor]:
    dtype = _computed(x).dtype
    single, whole = _beside(x, scale.float(), axis), _beside(x, zero_point.to(dtype), axis)
    return _there_and_back(x, single, 1.0 / single, whole, low, high, dtype)


# --- the operators of torch.ao, as functions of ATen's


def _quantise(x: Tensor, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: torch.dtype) -> Tensor:
    return torch.clamp(torch.round(_computed(x) * (1.0 / scale)) + zero_point, quant_min, quant_max).to(dtype)


def _dequantise(x: Tensor, scale: Any, zero_point: Any, out_dtype: torch.dtype | None) -> Tensor:
    return (x.to(out_dtype or torch.float32) - zero_point) * scale


def _number(value: Any) -> Any:
    """A tensor of one element as one without dimensions, which takes part in arithmetic like a number."""
    return value.reshape(()) if isinstance(value, Tensor) else value


def quantize_per_tensor(x: Tensor, scale: Any, zero_point: Any, low: Any, high: Any, dtype: torch.dtype) -> Tensor:
    return _quantise(x, _number(scale), _number(zero_point), _number(low), _number(high), dtype)


def dequantize_per_tensor(
    x: Tensor, scale: Any, zero_point: Any, low: Any, high: Any, dtype: torch.dtype, *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    return _dequantise(x, _number(scale), _number(zero_point), out_dtype)


def _beside(x: Tensor, channels: Tensor, axis: int) -> Tensor:
    """One number for each channel, in a shape that broadcasts against x."""
    return channels.view([channels.shape[0] if dim == axis % x.dim() else 1 for dim in range(x.dim())])


def quantize_per_channel(
    x: Tensor, scales: Tensor, zero_points: Tensor, axis: int, low: int, high: int, dtype: torch.dtype
) -> Tensor:
    return _quantise(x, _beside(x, scales, axis), _beside(x, zero_points, axis), low, high, dtype)


def dequantize_per_channel(
    x: Tensor, scales: Tensor, zero_points: Tensor | None, axis: int, low: int, high: int, dtype: torch.dtype, *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    centred = x if zero_points is None else x - _beside(x, zero_points, axis)
    return (centred * _beside(x, scales, axis)).to(out_dtype or torch.float32)


def quantize_per_token(
    x: Tensor, scales: Tensor, zero_points: Tensor, low: int, high: int, dtype: torch.dtype
) -> Tensor:
    return x.mul(1.0 / scales).add(zero_points).round().clamp(low, high).to(dtype)


def dequantize_per_token(
    x: Tensor, scales: Tensor, zero_points: Tensor, low: int, high: int, dtype: torch.dtype, output_dtype: torch.dtype
) -> Tensor:
    return ((x - zero_points) * scales).to(output_dtype)


def _range_with_zero(least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    return torch.minimum(least, torch.zeros_like(least)), torch.maximum(most, torch.zeros_like(most))


def choose_qparams(x: Tensor, low: int, high: int, eps: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Scale and zero point, of one element each, that bring the range of x and zero onto the integers."""
    least, most = _range_with_zero(*(extreme.reshape(1) for extreme in torch.aminmax(x)))
    scale = ((most - least) / float(high - low)).float().clamp(min=eps)
    zero_point = torch.clamp(low - torch.round(least / scale).to(torch.int), low, high)
    return scale.to(torch.float64), zero_point.to(torch.int64)


def choose_qparams_symmetric(x: Tensor, low: int, high: int, eps: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The same for a range with zero in its middle."""
    least, most = _range_with_zero(*(extreme.reshape(1) for extreme in torch.aminmax(x)))
    scale = (torch.maximum(-least, most) / (float(high - low) / 2)).float().clamp(min=eps)
    middle = 128 if dtype == torch.uint8 else 0
    return scale.to(torch.float64), torch.full_like(scale, middle, dtype=torch.int64)


#: By the names of the operators.
OF_TORCH_AO: tuple[Callable[..., Any], ...] = (
    quantize_per_tensor, dequantize_per_tensor, quantize_per_channel, dequantize_per_channel, quantize_per_token,
    dequantize_per_token, choose_qparams, choose_qparams_symmetric,
)  # fmt: skip


def decompositions() -> dict[Any, Callable[..., Any]]:
    """The operators of `quantized_decomposed` that are known by now, all overloads, with what takes them apart."""
    namespace = torch.ops.quantized_decomposed
    found = [(getattr(namespace, function.__name__, None), function) for function in OF_TORCH_AO]
    return {
        getattr(packet, overload): function
        for packet, function in found
        if packet is not None
        for overload in packet.overloads()
    }
