"""The table of operators that lowering and both code generators are tested with.

A row is a function of tensors and a maker of its inputs for a dtype. "Adding an operator is one function in one file
and its row in this table."
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Samples = Callable[[torch.dtype], list[tuple[Tensor, ...]]]

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
ALL = (*FLOATS, torch.int64, torch.bool)
WHOLE = (torch.int64, torch.int32, torch.uint8, torch.bool)

#: dtypes of which a row gets one sample where it has the first of them: their loops are the same but for the type.
RELATIVES = {torch.float16: (torch.float64,), torch.int64: (torch.int32, torch.uint8, torch.int8)}
#: dtypes that take every second sample from this one on, and the last, in rows where they are not the first: that one
#: has shown what shapes and strides do, and the last sample is of the values at a type's edges, if any is.
IN_TURN = {torch.float16: 0, torch.bfloat16: 1, torch.int64: 1, torch.bool: 0}


@dataclass(frozen=True)
class Operator:
    """One row. `falls_back` marks an operator that is known to become a call of PyTorch's own."""

    name: str
    function: Callable[..., Any]
    samples: Samples
    dtypes: tuple[torch.dtype, ...] = ALL
    falls_back: bool = False

    def calls(self) -> Iterator[tuple[Tensor, ...]]:
        """The inputs of every call: all samples of each dtype or every second one, and one of each relative."""
        for dtype in self.dtypes:
            samples, is_first = self.samples(dtype), dtype == self.dtypes[0]
            yield from samples if is_first or dtype not in IN_TURN else (*samples[IN_TURN[dtype] : -1 : 2], samples[-1])
        relatives = (relative for dtype in self.dtypes for relative in RELATIVES.get(dtype, ()))
        for dtype in relatives:
            if dtype not in self.dtypes:
                yield self.samples(dtype)[0]


# --- inputs


def values(dtype: torch.dtype, *shape: int, low: float = -3.0, high: float = 3.0, seed: int = 0) -> Tensor:
    """Numbers from `low` to `high`, the same at every call."""
    generator = torch.Generator().manual_seed(seed + 1000 * len(shape) + sum(shape))
    uniform = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    if dtype == torch.bool:
        return uniform > (low + high) / 2
    if dtype == torch.uint8:
        uniform = uniform.abs()
    return uniform.round().to(dtype) if not dtype.is_floating_point else uniform.to(dtype)


def edges(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Zeros and infinities of both signs, NaN, and what is near the ends of float16."""
    return [(torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, -2.0, 4.0, 1e-3, 0.01, 60.0], dtype=dtype),)]


def one(dtype: torch.dtype, low: float = -3.0, high: float = 3.0) -> list[tuple[Tensor, ...]]:
    """One tensor: contiguous (whole vectors and a rest), transposed, strided, channels-last, expanded, without
    dimensions, without elements."""
    make = partial(values, dtype, low=low, high=high)
    return [
        (make(3, 37),),
        (make(5, 7).t(),),
        (make(4, 6)[::2, 1::2],),
        (make(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),),
        (make(1, 5).expand(3, 5),),
        (make(),),
        (make(0, 3),),
    ]


def matrices(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [(values(dtype, 3, 5),), (values(dtype, 5, 7).t(),), (values(dtype, 2, 4, 6)[:, ::2, 1:],)]


def special(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Numbers at the edges, where the dtype has them, beside plain ones."""
    if not dtype.is_floating_point:
        return one(dtype)
    edges = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, float("nan"), float("inf"), -float("inf"), 1e-4, 65000.0]
    return [*one(dtype), (torch.tensor(edges, dtype=dtype),)]


def positive(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return one(dtype, low=0.1, high=4.0)


def fractions(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return one(dtype, low=-0.9, high=0.9)


def two(dtype: torch.dtype, low: float = -3.0, high: float = 3.0) -> list[tuple[Tensor, ...]]:
    """Two tensors: alike (whole vectors and a rest), broadcast both ways, of unlike layouts, without dimensions,
    without elements."""
    make = partial(values, dtype, low=low, high=high)
    return [
        (make(3, 37), make(3, 37, seed=1)),
        (make(3, 1), make(5, seed=1)),
        (make(5, 3).t(), make(3, 5, seed=1)),
        (make(5, 3).t(), make(5, 3, seed=1).t()),
        (make(), make(3, seed=1)),
        (make(3), make(seed=1)),
        (make(0, 3), make(3, seed=1)),
    ]


def divisors(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Pairs whose second has no zero (integers) or has some (floats)."""
    pairs = two(dtype)
    if dtype.is_floating_point:
        edges = torch.tensor([1.0, -1.0, 0.0, 6.0, -6.0, 7.5, float("inf"), float("nan")], dtype=dtype)
        return [*pairs, (edges.repeat(8), edges.repeat_interleave(8))]
    return [(a, torch.where(b == 0, torch.ones_like(b), b)) for a, b in pairs]


def with_nan(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    if not dtype.is_floating_point:
        return two(dtype)
    nan = float("nan")
    return [
        *two(dtype),
        (torch.tensor([nan, 1.0, nan, 2.0], dtype=dtype), torch.tensor([1.0, nan, nan, 1.0], dtype=dtype)),
    ]


def mixed(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Two tensors of unlike dtypes, one of them without dimensions in places."""
    others = (torch.float32, torch.float16, torch.int64, torch.int32, torch.bool, torch.uint8, torch.float64)
    pairs = [(values(dtype, 3, 5), values(other, 3, 5, seed=1)) for other in others]
    return [*pairs, *((values(dtype, 3), values(other, seed=1)) for other in others)]


def three(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [
        (values(dtype, 3, 5), values(dtype, 5, seed=1), values(dtype, 3, 1, low=0.5, high=2.0)),
        (values(dtype, 5, 3).t(), values(dtype, 3, 5, seed=1), values(dtype, low=0.5, high=2.0)),
    ]


def images(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    image = values(dtype, 2, 4, 6, 8)
    return [(image,), (image.contiguous(memory_format=torch.channels_last),)]


def indexed(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """A matrix, and places in its first dimension, of which some count from the end."""
    return [
        (values(dtype, 4, 5), torch.tensor([3, 0, -1, 2, 2])),
        (values(dtype, 5, 4).t(), torch.tensor([[3, 0], [1, -4]])),
        (values(dtype, 4, 5), torch.zeros(0, dtype=torch.int64)),
    ]


def looked_up(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """The same for operators that take a single place too."""
    return [*unsigned(indexed)(dtype), (values(dtype, 4, 5), torch.tensor(2))]


def unsigned(samples: Samples) -> Samples:
    """The same with every place counted from the start, for operators that take no others."""
    return lambda dtype: [(x, index.abs() % x.shape[0]) for x, index in samples(dtype)]


# --- rows


def rows(
    function_names: str, samples: Samples, dtypes: tuple[torch.dtype, ...] = ALL, module: Any = torch
) -> list[Operator]:
    return [Operator(name, getattr(module, name), samples, dtypes) for name in function_names.split()]


UNARY = [
    *rows("sin cos tan atan sinh cosh tanh asinh exp exp2 expm1 sigmoid erf erfc", one),
    *rows(
        "neg abs sign relu floor ceil trunc round square isnan isinf isfinite signbit logical_not nan_to_num", special
    ),
    *rows("asin acos atanh", fractions),
    *rows("log log2 log10 log1p sqrt rsqrt reciprocal lgamma", positive),
    *rows("acosh", partial(one, low=1.0, high=4.0)),
    *rows("bitwise_not", one, WHOLE),
    *rows("frac sgn sinc deg2rad rad2deg positive isposinf isneginf isreal", special),
    Operator("logit", lambda x: torch.logit(x, 1e-2), fractions, FLOATS),
    Operator("round.decimals", lambda x: torch.round(x, decimals=2), one, FLOATS),
]

ACTIVATIONS = [
    *rows(
        "gelu silu mish elu selu celu leaky_relu hardswish hardsigmoid hardtanh relu6 softplus softsign tanhshrink"
        " hardshrink softshrink logsigmoid",
        one,
        FLOATS,
        F,
    ),
    Operator("gelu.tanh", lambda x: F.gelu(x, approximate="tanh"), one, FLOATS),
    Operator("threshold", lambda x: F.threshold(x, 0.5, -1.0), one, FLOATS),
    Operator("threshold.whole", lambda x: F.threshold(x * 33554433, -1.5, 0.5), one, (torch.int64,)),
    Operator("glu", lambda x: F.glu(x, 0), lambda d: [(values(d, 4, 5),)], FLOATS),
    Operator("prelu", F.prelu, lambda d: [(values(d, 2, 3, 4), values(d, 3, seed=1))], FLOATS),
    Operator("addcmul", lambda a, b, c: torch.addcmul(a, b, c, value=2), three, FLOATS),
    Operator("addcdiv", lambda a, b, c: torch.addcdiv(a, b, c, value=2), three, FLOATS),
    Operator("lerp", lambda a, b, c: torch.lerp(a, b, c), three, FLOATS),
    # Dynamo writes these by a primitive of its own.
    Operator("addcmul_.value", lambda a, b, c: a.clone().addcmul_(b, c, value=2.0), three, FLOATS),
    Operator("addcdiv_.value", lambda a, b, c: a.clone().addcdiv_(b, c.abs() + 1, value=-2.0), three, FLOATS),
]


def gradient_of_smooth_l1(a: Tensor, b: Tensor) -> Tensor:
    x = a - b
    return torch.ops.aten.smooth_l1_loss_backward(torch.ones_like(x), x, torch.zeros_like(x), 0, 0.5)  # type: ignore[no-any-return]


BINARY = [
    *rows("add sub mul atan2 hypot copysign heaviside logaddexp xlogy", two),
    *rows("true_divide floor_divide remainder fmod", divisors),
    *rows("maximum minimum fmax fmin", with_nan),
    *rows("eq ne lt le gt ge logical_and logical_or logical_xor isclose", with_nan),
    *rows("bitwise_and bitwise_or bitwise_xor", two, WHOLE),
    Operator("bitwise_left_shift", torch.bitwise_left_shift, partial(two, low=0, high=70), (torch.int64, torch.int32)),
    Operator(
        "bitwise_right_shift", torch.bitwise_right_shift, partial(two, low=-9, high=9), (torch.int64, torch.int32)
    ),
    Operator("bitwise_right_shift.bytes", lambda a, b: ~a >> b, partial(two, low=0, high=9), (torch.uint8,)),
    Operator("remainder.number", lambda a: (64 * a % 0.3 > 0.15, torch.fmod(64 * a, -0.3) > 0.1), one, FLOATS),
    Operator("smooth_l1.gradient", gradient_of_smooth_l1, with_nan, FLOATS),
    Operator("add.mixed", torch.add, mixed),
    Operator("mul.mixed", torch.mul, mixed),
    Operator("lt.mixed", torch.lt, mixed),
    Operator("div.mixed", lambda a, b: a / (b + 1), mixed),
    Operator("maximum.mixed", torch.maximum, mixed),
    Operator("div.floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), divisors),
    Operator("div.trunc", lambda a, b: torch.div(a, b, rounding_mode="trunc"), divisors),
    Operator("add.alpha", lambda a, b: torch.add(a, b, alpha=2), two, (*FLOATS, torch.int64)),
    Operator("rsub", lambda a: 2 - a, one, (*FLOATS, torch.int64)),
    Operator("pow", torch.pow, partial(two, low=0.5), FLOATS),
    Operator("pow.whole", torch.pow, partial(two, low=-9, high=9), WHOLE),
    Operator("add.wraps", lambda a: (a * 100 + a) * 3, one, (torch.uint8, torch.int8, torch.int32)),
]

SCALARS = [
    *(
        Operator(f"pow.{e}", partial(lambda x, e: x**e, e=e), partial(one, low=0.5), (*FLOATS, torch.int64))
        for e in (0, 1, 2, 3, 4, 7, 0.5, -0.5, -1, -2, 2.5)
    ),
    *(Operator(f"pow.{e}.edges", partial(lambda x, e: x**e, e=e), edges, FLOATS) for e in (-1.5, 1.5, 2.5)),
    Operator("pow.base", lambda x: torch.pow(3.0, x), one),
    Operator("pow.base_of_two", lambda x: (torch.pow(2.0, x), 0.125**x, torch.pow(1.0, x), torch.pow(-2.0, x)), one),
    Operator("add.scalar", lambda x: x + 2.5, one),
    Operator("mul.scalar", lambda x: x * 3, one),
    Operator("div.scalar", lambda x: x / 3, one),
    Operator("floordiv.scalar", lambda x: x // 2, one),
    Operator("remainder.scalar", lambda x: x % -2, one),
    Operator("gt.scalar", lambda x: x > 0.1, one),
    Operator("eq.scalar", lambda x: x == 1, one),
    Operator("eq.rounded", lambda x: x == 0.1, lambda d: [(torch.tensor([0.1, 0.2]).to(d),)]),
    Operator(
        "scalars.wrap",
        lambda x: (x + 300, x - 300, x * -1, x == -2, x > -2, x % -2, x // -2),
        one,
        (torch.uint8, torch.int8, torch.int32),
    ),
    Operator("clamp", lambda x: x.clamp(-1, 1.5), special),
    Operator("clamp.min", lambda x: x.clamp(min=0), special),
    Operator("clamp.max", lambda x: x.clamp(max=1), special),
    Operator("clamp.tensors", torch.clamp, three),
    Operator("bitwise_and.scalar", lambda x: x & 1, one, WHOLE),
    Operator("where", lambda a, b: torch.where(a > b, a, b), two),
    Operator("where.scalar", lambda a: torch.where(a > 0, a, 0.5), one),
    Operator("where.mixed", lambda a, b: torch.where(a > 0, a, b), mixed),
    Operator("masked_fill", lambda a, b: a.masked_fill(b > 0, 1), two),
]

CASTS = [
    *(
        Operator(f"to.{str(to).removeprefix('torch.')}", partial(lambda x, to: x.to(to), to=to), one)
        for to in (
            torch.float32,
            torch.float16,
            torch.bfloat16,
            torch.float64,
            torch.int64,
            torch.int32,
            torch.int8,
            torch.bool,
        )
    ),
    Operator("clone", torch.clone, one),
    Operator("contiguous", lambda x: x.t().contiguous(), lambda d: matrices(d)[:2]),
    Operator("type_as", lambda a, b: a.type_as(b) + 1, mixed),
]

DIMS: list[dict[str, Any]] = [{}, {"dim": 0}, {"dim": -1, "keepdim": True}]


def reduced(function: Callable[..., Any], options: dict[str, Any]) -> Callable[[Tensor], Any]:
    return lambda x: function(x, **options)


def reductions(
    names: str, options: list[dict[str, Any]], samples: Samples = matrices, dtypes: Any = ALL
) -> list[Operator]:
    return [
        Operator(
            f"{name}{'.' if o else ''}{'.'.join(o)}{o.get('dim', '')}",
            reduced(getattr(torch, name), o),
            samples,
            dtypes,
        )
        for name in names.split()
        for o in options
    ]


REDUCTIONS = [
    *reductions("sum mean amax amin any all logsumexp count_nonzero", [{"dim": 0}, {"dim": (0, 1)}]),
    *reductions("sum mean amax amin any all argmax argmin prod", [{"dim": -1, "keepdim": True}]),
    # What is left of a sum that cancels would be judged without regard to its summands.
    *reductions("max min sum mean any all argmax argmin prod var std", [{}], partial(one, low=-1.0)),
    *reductions("max min prod argmax", [{"dim": 0}, {"dim": 1, "keepdim": True}]),
    *reductions(
        "var std var_mean std_mean", [{"dim": 0}, {"dim": (0, 1), "keepdim": True}, {"dim": 1, "correction": 0}]
    ),
    *reductions("nansum nanmean", [{"dim": 0}], special),
    *(
        Operator(f"norm.{p}", partial(lambda x, p: torch.linalg.vector_norm(x, p, dim=-1), p=p), matrices, FLOATS)
        for p in (0, 1, 2, 3, float("inf"), -float("inf"))
    ),
    Operator("norm.of_one", lambda x: torch.linalg.vector_norm(x[:, :1], 3, dim=-1), matrices, FLOATS),
    Operator("norm.all", lambda x: x.norm(), matrices, FLOATS),
    Operator("sum.dtype", lambda x: x.sum(0, dtype=torch.float32), matrices),
    Operator("sum.empty", lambda x: (x.sum(0), x.prod(0), x.any(0), x.all(0)), lambda d: [(values(d, 0, 3),)]),
    Operator("mean.empty", lambda x: x.mean(0), lambda d: [(values(d, 0, 3),)], FLOATS),
    Operator("sum.images", lambda x: x.sum((2, 3)), images),
    Operator(
        "amax.nan",
        lambda x: (x.amax(0), x.argmax()),
        lambda d: [(torch.tensor([1.0, float("nan"), 3.0, float("nan")], dtype=d),)],
        FLOATS,
    ),
    Operator("argmax.ties", lambda x: x.argmax(1), lambda d: [(torch.ones(3, 5, dtype=d),)]),
]

OPERATORS = [*UNARY, *ACTIVATIONS, *BINARY, *SCALARS, *CASTS, *REDUCTIONS]
