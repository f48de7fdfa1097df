"""Functions of tensors, each with inputs, that together use every op and every kind of loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[torch.Tensor, ...]]
    #: Whether terms of either sign are summed: then errors are measured by the largest element of the result.
    sums: bool = False


def _generator(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(sum(map(ord, name)))


def floats(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 2.0) -> torch.Tensor:
    values = torch.randn(shape, generator=_generator(str(shape)), dtype=torch.float64) * scale
    return values.to(dtype)


def special(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Every kind of float beside ordinary ones; enough of them for whole vectors and a rest."""
    odd = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1e-40,
        -1e-40,
        3e38,
        -3e38,
        1e10,
        -70000.0,
        float("inf"),
        -float("inf"),
        float("nan"),
        88.8,
        -104.0,
        2.5,
        -2.5,
        1.5,
        1e-8,
    ]
    return torch.tensor([*odd, *floats(59).tolist()], dtype=torch.float64).to(dtype)


def integers(*shape: int, dtype: torch.dtype = torch.int64, low: int = -20, high: int = 20) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=_generator("bool")).bool()
    low = max(low, torch.iinfo(dtype).min)
    return torch.randint(low, high, shape, generator=_generator(f"{shape}{low}")).to(dtype)


Tensors = tuple[torch.Tensor, ...]


def _specials(dtype: torch.dtype) -> Tensors:
    return (special(dtype),)


def _pairs(dtype: torch.dtype) -> Tensors:
    return integers(67, dtype=dtype), integers(67, dtype=dtype, low=1).clamp(min=1)


def _positives(dtype: torch.dtype) -> Tensors:
    return (floats(35, dtype=dtype).abs() if dtype.is_floating_point else integers(35, dtype=dtype),)


def _matrix_and_row(dtype: torch.dtype) -> Tensors:
    return floats(7, 33, dtype=dtype), floats(33, dtype=dtype)


def _floats(shape: tuple[int, ...], dtype: torch.dtype) -> Tensors:
    return (floats(*shape, dtype=dtype),)


def _rounded(shape: tuple[int, ...]) -> Tensors:
    return (floats(*shape).round(),)


def _near_one(shape: tuple[int, ...]) -> Tensors:
    """Powers of two, whose product is exact: each factor rounds, in whatever order."""
    return (2.0 ** floats(*shape).clamp(-1.4, 1.4).round() if shape[0] < 1000 else torch.ones(shape),)


def _truths(shape: tuple[int, ...]) -> Tensors:
    return (floats(*shape) > -5,)


def _integers(shape: tuple[int, ...], dtype: torch.dtype) -> Tensors:
    return (integers(*shape, dtype=dtype),)


def _extremes() -> torch.Tensor:
    """The ends of 32 bits and what lies beside them, each several times."""
    ends = torch.tensor([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1], dtype=torch.int32)
    return ends[integers(13, 40, low=0) % 6]


UNARY = """neg abs square floor ceil trunc round sign relu sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p
sin cos sigmoid tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma isnan isinf logical_not
signbit""".split()
BINARY = "add sub mul minimum maximum copysign true_divide floor_divide remainder fmod pow atan2 hypot".split()
COMPARISONS = "eq ne lt le gt ge logical_and logical_or logical_xor".split()
INTEGER_BINARY = "add sub mul minimum maximum floor_divide remainder fmod bitwise_and bitwise_or bitwise_xor".split()
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _elementwise() -> list[Case]:
    cases = []
    for name in UNARY:
        function = getattr(torch, name)
        for dtype in (torch.float32, torch.float64):
            # Between its poles log gamma is a difference of logarithms, which is 0 here and there.
            cases.append(Case(f"{name}_{dtype}", function, partial(_specials, dtype), sums=name == "lgamma"))
    for name in (*BINARY, *COMPARISONS):
        function = getattr(torch, name)
        cases.append(Case(name, function, lambda: (special(), special().flip(0).roll(3))))
        cases.append(Case(f"{name}_f64", function, lambda: (special(torch.float64), special(torch.float64).roll(7))))
    for name in (*INTEGER_BINARY, *COMPARISONS):
        for dtype in INTEGERS:
            cases.append(Case(f"{name}_{dtype}", getattr(torch, name), partial(_pairs, dtype)))
    for source in (*INTEGERS, *FLOATS, torch.bool):
        for target in (*INTEGERS, *FLOATS, torch.bool):
            cases.append(
                Case(f"convert_{source}_{target}", partial(torch.Tensor.to, dtype=target), partial(_positives, source))
            )
    for dtype in FLOATS:
        cases.append(
            Case(
                f"activation_{dtype}",
                lambda x, y: torch.relu((x.sin() * y.cos() + x) * y),
                partial(_matrix_and_row, dtype),
            )
        )
    return cases


def _across_rows(x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    """Elements of one, two and eight bytes read across the rows."""
    return sum((other.t().float() for other in others), x)


def _turned() -> tuple[torch.Tensor, ...]:
    others = (torch.int8, torch.bfloat16, torch.float64)
    return floats(100, 70), *(integers(70, 100, dtype=torch.int64).to(dtype) for dtype in others)


def _loops() -> list[Case]:
    mask = integers(40, 50, dtype=torch.bool)
    return [
        Case("broadcast", lambda x, y: x + y[:, None], lambda: (floats(20, 30), floats(20))),
        Case("transposed", _across_rows, _turned),
        Case("permuted", lambda x: x.permute(2, 0, 1).contiguous() * 2, lambda: (floats(40, 5, 60),)),
        Case("transposed_batch", lambda x: x.transpose(1, 2).exp(), lambda: (floats(3, 64, 128),)),
        Case("sliced", lambda x: x[3:, ::2] * 2, lambda: (floats(20, 31),)),
        Case("flipped", lambda x: x.flip(0, 1) + 1, lambda: (floats(20, 31),)),
        Case("cat", lambda x, y: torch.cat([x, y, x * 2], 1), lambda: (floats(20, 31), floats(20, 7))),
        Case("pad", lambda x: F.pad(x, (1, 2, 3, 4), value=0.5), lambda: (floats(20, 31),)),
        Case("where", lambda c, x: torch.where(c, x, -x), lambda: (mask, floats(40, 50))),
        Case("masked_fill", lambda c, x: x.masked_fill(c, float("-inf")), lambda: (mask, floats(40, 50))),
        Case("triu", lambda x: torch.triu(x, 1), lambda: (floats(33, 35),)),
        Case("reshape", lambda x: x.t().reshape(-1) + 1, lambda: (floats(33, 35),)),
        Case("embedding", lambda i, w: F.embedding(i, w), lambda: (integers(5, 9, low=0), floats(21, 40))),
        Case("index_select", lambda x, i: x[:, i], lambda: (floats(11, 21), integers(50, low=0))),
        Case("gather", lambda x, i: x.gather(1, i), lambda: (floats(9, 21), integers(9, 33, low=0))),
        Case("arange", lambda x: torch.arange(x.shape[0]) + x, lambda: (floats(77),)),
        Case("empty", lambda x: x.exp() + 1, lambda: (floats(0, 5),)),
        Case("scalar", lambda x: x.exp() + 1, lambda: (floats(),)),
        Case("large", lambda x: x * 2 + 1, lambda: (floats(70001),)),
        Case("few_long_rows", lambda x, y: x * y, lambda: (floats(3, 30011), floats(30011))),
        Case("float64_large", lambda x: x.sin() * x.exp(), lambda: (floats(40001, dtype=torch.float64),)),
    ]


def _reductions() -> list[Case]:
    cases = []
    shapes = {
        "rows": ((13, 77), 1),
        "columns": ((77, 13), 0),
        "wide_columns": ((50, 700), 0),
        "all": ((9, 11), (0, 1)),
        "middle": ((5, 30, 7), 1),
        "outer_and_inner": ((6, 7, 33), (0, 2)),
        "long": ((40000,), 0),
        "long_columns": ((9000, 33), 0),
        "long_rows": ((2, 50001), 1),
        "many_rows": ((3000, 20), 1),
    }
    for place, (shape, dims) in shapes.items():
        for name in ("sum", "amax", "amin", "mean"):
            for dtype in FLOATS if place in ("rows", "columns", "long") else (torch.float32,):
                cases.append(
                    Case(
                        f"{name}_{place}_{dtype}",
                        partial(getattr(torch, name), dim=dims),
                        partial(_floats, shape, dtype),
                        sums=True,
                    )
                )
        if isinstance(dims, int):
            cases += [
                Case(f"{name}_{place}", partial(getattr(torch, name), dim=dims), partial(_rounded, shape))
                for name in ("argmax", "argmin")
            ]
            cases.append(Case(f"prod_{place}", partial(torch.prod, dim=dims), partial(_near_one, shape)))
            cases += [
                Case(f"{name}_{place}", partial(getattr(torch, name), dim=dims), partial(_truths, shape))
                for name in ("any", "all")
            ]
            cases.append(Case(f"int_sum_{place}", partial(torch.sum, dim=dims), partial(_integers, shape, torch.int32)))
            cases.append(Case(f"int_max_{place}", partial(torch.amax, dim=dims), partial(_integers, shape, torch.int8)))
    nan = [
        Case(
            f"{name}_of_nan_{dim}",
            partial(getattr(torch, name), dim=dim),
            lambda: (torch.where(integers(20, 30) == 3, float("nan"), floats(20, 30)),),
        )
        for name in ("amax", "amin", "argmax", "argmin", "sum")
        for dim in (0, 1)
    ]
    composed = [
        Case("softmax", lambda x: x.softmax(-1), lambda: (floats(17, 100),)),
        Case("softmax_0", lambda x: x.softmax(0), lambda: (floats(17, 100),)),
        Case("log_softmax", lambda x: x.log_softmax(-1), lambda: (floats(17, 100, dtype=torch.bfloat16),)),
        Case(
            "layer_norm",
            lambda x, w, b: F.layer_norm(x, (100,), w, b),
            lambda: (floats(17, 100), floats(100), floats(100)),
            sums=True,
        ),
        Case("var", lambda x: x.var(1), lambda: (floats(17, 100),)),
        Case("norm", lambda x: x.norm(dim=0), lambda: (floats(17, 100),)),
        Case("argmax_all", lambda x: x.argmax(), lambda: (floats(17, 100).round(),)),
        Case("argmax_of_integers", lambda x: x.argmax(1), lambda: (_extremes(),)),
        Case("argmin_of_integers", lambda x: x.argmin(0), lambda: (_extremes(),)),
        Case("sum_of_none", lambda x: x.sum(1), lambda: (floats(17, 0),)),
        Case("cross_entropy", lambda x, y: F.cross_entropy(x, y), lambda: (floats(32, 20), integers(32, low=0))),
        Case("gelu", lambda x: F.gelu(x), lambda: (floats(17, 100),)),
        Case("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), lambda: (floats(17, 100),)),
        Case("mean_of_products", lambda x, y: (x * y).mean(), lambda: (floats(170, 300), floats(300))),
    ]
    return cases + nan + composed


CASES = [*_elementwise(), *_loops(), *_reductions()]
