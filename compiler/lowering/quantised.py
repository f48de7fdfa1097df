"""Quantisation: numbers as small integers, with a scale and a zero point, and back.

    quantised = clamp(round(x / scale) + zero_point, least, most)          x ~ (quantised - zero_point) * scale

`torch.ao` writes it with the operators of `quantized_decomposed`, which are known once the snippet has imported them.
They are taken apart into ATen's, each as PyTorch's own kernel of it computes. ATen's `fake_quantize` operators, which
go there and back at once and say for the gradient where nothing was cut off, are lowered here.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack, unpack
from typing import Any

import torch
from torch import Tensor

from compiler.ir.index import ZERO
from compiler.ir.ops import compute_dtype, ops
from compiler.lowering.builder import Builder
from compiler.lowering.registry import lowers
from compiler.lowering.values import Position, TensorValue
from compiler.lowering.views import wrap

aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)
SINGLE = torch.float32

# --- there and back at once


def _there_and_back(
    build: Builder, x: TensorValue, least: int, most: int, parameters: Callable[[Position], tuple[Any, Any, Any]],
    product: torch.dtype = SINGLE,
) -> tuple[TensorValue, TensorValue]:  # fmt: skip
    """The numbers, and where they were within the range. `parameters` gives the scale, one divided by it and the zero
    point of an element; in `product` is multiplied by the scale."""
    dtype = compute_dtype(x.dtype)
    low, high = (lambda: ops.constant(least, dtype)), (lambda: ops.constant(most, dtype))

    def quantised(position: Position) -> tuple[Any, Any, Any]:
        scale, inverse, zero_point = parameters(position)
        return scale, zero_point, ops.add(ops.round(ops.mul(x.load(position), inverse)), zero_point)

    def element(position: Position) -> Any:
        scale, zero_point, value = quantised(position)
        # A NaN is above nothing, and becomes the least number.
        bounded = ops.where(ops.gt(value, low()), ops.minimum(value, high()), low())
        return ops.mul(ops.to_dtype(ops.sub(bounded, zero_point), product), ops.to_dtype(scale, product))

    def is_within(position: Position) -> Any:
        _, _, value = quantised(position)
        return ops.logical_and(ops.ge(value, low()), ops.le(value, high()))

    result = build.pointwise(x.shape, x.dtype, element)
    return result, build.pointwise(x.shape, torch.bool, is_within, label="mask")


@lowers(aten.fake_quantize_per_tensor_affine_cachemask.default)
def fake_quantize(
    build: Builder, x: TensorValue, scale: float, zero_point: int, quant_min: int, quant_max: int
) -> tuple[TensorValue, TensorValue]:
    dtype, (rounded,) = compute_dtype(x.dtype), unpack("f", pack("f", scale))
    (inverse,) = unpack("f", pack("f", 1.0 / rounded))

    def parameters(position: Position) -> tuple[Any, Any, Any]:
        return ops.constant(rounded, SINGLE), ops.constant(inverse, dtype), ops.constant(zero_point, dtype)

    return _there_and_back(build, x, quant_min, quant_max, parameters)


def _loaded(x: TensorValue, scale: TensorValue, zero_point: TensorValue, position: Position) -> tuple[Any, Any, Any]:
    """The parameters at a position of theirs."""
    dtype = compute_dtype(x.dtype)
    given = ops.to_dtype(scale.load(position), SINGLE)
    inverse = ops.truediv(ops.constant(1.0, SINGLE), given)
    return given, ops.to_dtype(inverse, dtype), ops.to_dtype(zero_point.load(position), dtype)


@lowers(aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default)
def fake_quantize_by_tensors(
    build: Builder, x: TensorValue, scale: TensorValue, zero_point: TensorValue, fake_quant_enabled: TensorValue,
    quant_min: int, quant_max: int,
) -> tuple[TensorValue, TensorValue]:  # fmt: skip
    """Scale and zero point are of one element, and so is the switch that turns the whole on."""

    def only(tensor: TensorValue) -> TensorValue:
        return tensor.view((), lambda position: (ZERO,) * tensor.rank)

    result, mask = _there_and_back(
        build, x, quant_min, quant_max, lambda position: _loaded(x, only(scale), only(zero_point), ())
    )
    switch = only(fake_quant_enabled)

    def chosen(position: Position) -> Any:
        is_on = ops.to_dtype(switch.load(()), torch.bool)
        return ops.where(is_on, result.load(position), x.load(position))

    def is_within(position: Position) -> Any:
        is_off = ops.logical_not(ops.to_dtype(switch.load(()), torch.bool))
        return ops.logical_or(is_off, mask.load(position))

    return (
        build.pointwise(x.shape, x.dtype, chosen, label="chosen"),
        build.pointwise(x.shape, torch.bool, is_within, label="chosen_mask"),
    )


@lowers(aten.fake_quantize_per_channel_affine_cachemask.default)
def fake_quantize_by_channel(
    build: Builder, x: TensorValue, scale: TensorValue, zero_point: TensorValue, axis: int, quant_min: int,
    quant_max: int,
) -> tuple[TensorValue, TensorValue]:  # fmt: skip
    at = wrap(axis, x.rank)
    return _there_and_back(
        build, x, quant_min, quant_max, lambda position: _loaded(x, scale, zero_point, (position[at],)),
        product=compute_dtype(x.dtype),
    )  # fmt: skip


# --- the operators of torch.ao, as functions of ATen's


def _quantise(x: Tensor, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: torch.dtype) -> Tensor:
    x = x.float() if x.dtype in HALVES else x
    return torch.clamp(torch.round(x * (1.0 / scale)) + zero_point, quant_min, quant_max).to(dtype)


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
DECOMPOSITIONS: tuple[Callable[..., Any], ...] = (
    quantize_per_tensor, dequantize_per_tensor, quantize_per_channel, dequantize_per_channel, quantize_per_token,
    dequantize_per_token, choose_qparams, choose_qparams_symmetric,
)  # fmt: skip


def decompositions_of_quantisation() -> dict[Any, Callable[..., Any]]:
    """The operators of `quantized_decomposed` that are known by now, all overloads, with what takes them apart."""
    namespace = torch.ops.quantized_decomposed
    found = [(getattr(namespace, function.__name__, None), function) for function in DECOMPOSITIONS]
    return {
        getattr(packet, overload): function
        for packet, function in found
        if packet is not None
        for overload in packet.overloads()
    }
