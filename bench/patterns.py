"""The pattern suite: 30 functions with inputs, at a size that fills a large GPU and at one that suits two CPU cores.

Each case says what limits it. Those limited by memory are what fusion is for, and have their own geometric mean; a
matrix product, a gather and a call too small to fill the device have another floor than bytes over bandwidth.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from bench import functions as f
from bench.gradients import ForwardAndBackward

Limit = Literal["memory", "arithmetic", "gather", "launch"]
Size = Literal["full", "small", "tiny"]

BF16 = torch.bfloat16


@dataclass(frozen=True)
class Input:
    """A random tensor: standard normal, its absolute value ("positive"), whole numbers below `high` ("index", int64
    unless another integer type is asked for), numbers from 0 to 1 ("uniform"), or true for every other one ("mask")."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    kind: Literal["normal", "positive", "index", "uniform", "mask"] = "normal"
    high: int = 0

    def make(self, generator: torch.Generator) -> torch.Tensor:
        device = generator.device
        if self.kind == "index":
            dtype = torch.int64 if self.dtype.is_floating_point else self.dtype
            return torch.randint(0, self.high, self.shape, generator=generator, device=device, dtype=dtype)
        if self.kind == "mask":
            return torch.rand(self.shape, generator=generator, device=device) < 0.5
        if self.kind == "uniform":
            return torch.rand(self.shape, generator=generator, device=device, dtype=self.dtype)
        values = torch.randn(self.shape, generator=generator, device=device, dtype=self.dtype)
        return values.abs() if self.kind == "positive" else values


@dataclass(frozen=True)
class Case:
    """One function with its inputs: `full` for a GPU, `small` for a CPU, about 1/16 to 1/64 of it, and, for the cases
    of the smoke suite, `tiny`. A case that `is_random` draws a dropout mask and is checked by statistics. One that
    `has_gradients` is a forward and a backward pass, whose outputs are those of the function and all gradients."""

    name: str
    function: Callable[..., Any]
    full: tuple[Input, ...]
    small: tuple[Input, ...]
    limit: Limit = "memory"
    tiny: tuple[Input, ...] = ()
    is_random: bool = False
    has_gradients: bool = False

    def call(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What is called, timed and checked of the function, compiled or not."""
        return ForwardAndBackward(function) if self.has_gradients else function

    def inputs(self, size: Size, device: torch.device, seed: int) -> tuple[torch.Tensor, ...]:
        """Fresh inputs, the same for the same seed whichever cases ran before."""
        generator = torch.Generator(device).manual_seed(seed + zlib.crc32(self.name.encode()) % 2**31)
        specifications: tuple[Input, ...] = getattr(self, size)
        return tuple(one.make(generator) for one in specifications)


def _normal(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> tuple[Input, ...]:
    return tuple(Input(shape, dtype) for shape in shapes)


def _norm_inputs(rows: int, columns: int, wide: int, narrow: int) -> tuple[Input, ...]:
    """`wide` tensors of rows x columns and `narrow` ones of one row, in bfloat16."""
    return _normal(*[(rows, columns)] * wide, *[(columns,)] * narrow, dtype=BF16)


def _embedding(batch: int, length: int, words: int, width: int) -> tuple[Input, ...]:
    return (Input((batch, length), kind="index", high=words), *_normal((words, width), (width,), (width,)))


def _statistics(batch: int, channels: int) -> tuple[Input, ...]:
    mean, weight, bias = _normal((channels,), (channels,), (channels,))
    return *_normal((batch, channels, 56, 56)), mean, Input((channels,), kind="positive"), weight, bias


def _positive(elements: int) -> tuple[Input, ...]:
    return (Input((elements,), kind="positive"),) * 4


ROWS = _normal((16384, 4096))
FEW_ROWS = _normal((1024, 4096))

CASES: tuple[Case, ...] = (
    Case("complex_activation", f.complex_activation, _normal((1 << 25,), (1 << 25,)), _normal((1 << 21,), (1 << 21,))),
    Case(
        "mlp_dead_code",
        f.mlp_dead_code,
        _normal((512, 2048), (2048, 4096), (2048, 4096), (4096, 2048), dtype=BF16),
        _normal((128, 512), (512, 1024), (512, 1024), (1024, 512), dtype=BF16),
        limit="arithmetic",
    ),
    Case(
        "gelu_by_hand",
        f.gelu_by_hand,
        _normal((16, 1024, 3072), dtype=BF16),
        _normal((4, 256, 3072), dtype=BF16),
    ),
    Case(
        "toy_graph_break",
        f.toy_graph_break,
        _normal((1 << 22,), (1 << 22,)),
        _normal((1 << 18,), (1 << 18,)),
        tiny=_normal((64,), (64,)),
    ),
    Case("trig_10000", f.trig, _normal((10000,), (10000,)), _normal((10000,), (10000,)), limit="launch"),
    Case(
        "small_pointwise",
        f.small_pointwise,
        _normal((1024,)),
        _normal((1024,)),
        limit="launch",
        tiny=_normal((1024,)),
    ),
    Case("softmax_by_hand", f.softmax_by_hand, ROWS, FEW_ROWS, tiny=_normal((64, 128))),
    Case("softmax_wide", f.softmax_by_hand, _normal((512, 131072)), _normal((16, 131072))),
    Case("layernorm", f.layernorm, _norm_inputs(16384, 4096, 1, 2), _norm_inputs(1024, 4096, 1, 2)),
    Case("rmsnorm", f.rmsnorm, _norm_inputs(16384, 4096, 1, 1), _norm_inputs(1024, 4096, 1, 1)),
    Case("residual_ln_gelu", f.residual_ln_gelu, _norm_inputs(16384, 4096, 2, 2), _norm_inputs(1024, 4096, 2, 2)),
    Case(
        "bias_gelu_dropout",
        f.bias_gelu_dropout,
        _norm_inputs(16384, 4096, 1, 1),
        _norm_inputs(1024, 4096, 1, 1),
        tiny=_norm_inputs(64, 128, 1, 1),
        is_random=True,
    ),
    Case(
        "cross_entropy",
        f.cross_entropy,
        (*_normal((8192, 50304)), Input((8192,), kind="index", high=50304)),
        (*_normal((128, 50304)), Input((128,), kind="index", high=50304)),
    ),
    Case(
        "rope",
        f.rope,
        _normal((8, 32, 2048, 128), (2048, 128), (2048, 128), dtype=BF16),
        _normal((2, 8, 512, 128), (512, 128), (512, 128), dtype=BF16),
    ),
    Case(
        "swiglu",
        f.swiglu,
        _normal((4096, 4096), (4096, 11008), (4096, 11008), dtype=BF16),
        _normal((256, 512), (512, 1376), (512, 1376), dtype=BF16),
        limit="arithmetic",
    ),
    Case(
        "linear_bias_gelu",
        f.linear_bias_gelu,
        _normal((8192, 4096), (4096, 4096), (4096,), dtype=BF16),
        _normal((512, 512), (512, 512), (512,), dtype=BF16),
        limit="arithmetic",
    ),
    Case("batchnorm_relu", f.batchnorm_relu, _statistics(64, 256), _statistics(4, 256)),
    Case(
        "batchnorm_train",
        f.batchnorm_train,
        _normal((64, 256, 56, 56), (256,), (256,)),
        _normal((4, 256, 56, 56), (256,), (256,)),
    ),
    Case(
        "groupnorm_silu",
        f.groupnorm_silu,
        _normal((16, 512, 64, 64), (512,), (512,), dtype=BF16),
        _normal((4, 128, 64, 64), (128,), (128,), dtype=BF16),
    ),
    Case("col_sum", f.col_sum, _normal((65536, 1024)), _normal((4096, 1024))),
    Case("full_sum", f.full_sum, _normal((1 << 26,)), _normal((1 << 22,))),
    Case("var_mean", f.var_mean, ROWS, FEW_ROWS),
    Case("transpose_add", f.transpose_add, _normal((8192, 8192), (8192, 8192)), _normal((2048, 2048), (2048, 2048))),
    Case("multi_out", f.multi_out, _normal((16384, 2048)), _normal((1024, 2048))),
    Case("sibling_reductions", f.sibling_reductions, _normal((8192, 8192)), _normal((2048, 2048))),
    Case(
        "attention_by_hand",
        f.attention_by_hand,
        _normal(*[(8, 16, 1024, 64)] * 3, dtype=BF16),
        _normal(*[(2, 4, 256, 64)] * 3, dtype=BF16),
        limit="arithmetic",
    ),
    Case("adamw", f.adamw, _positive(1 << 25), _positive(1 << 21)),
    Case(
        "embedding_ln",
        f.embedding_ln,
        _embedding(16, 1024, 50304, 1024),
        _embedding(4, 256, 3144, 1024),
        limit="gather",
    ),
    Case("quantize_int8", f.quantize_int8, ROWS, FEW_ROWS, tiny=_normal((64, 128))),
    Case("cumsum", f.cumsum, ROWS, FEW_ROWS),
)

PATTERNS: dict[str, Case] = {case.name: case for case in CASES}
SMOKE: dict[str, Case] = {case.name: case for case in CASES if case.tiny}
