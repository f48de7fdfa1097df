"""Pointwise programs: how much is moved, how much is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.patterns import BF16, Case, Input
from bench.predictions.micro.cases import F32, I64, case


def add(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def total(*inputs: Tensor) -> Tensor:
    result = inputs[0] * 0.5
    for other in inputs[1:]:
        result = result + other
    return result


def scaled(x: Tensor) -> Tensor:
    return x * 3 + 1


def as_half(x: Tensor) -> Tensor:
    return x.to(BF16)


def as_float(x: Tensor) -> Tensor:
    return x.to(F32)


def is_positive(x: Tensor) -> Tensor:
    return x > 0


def four_results(x: Tensor) -> tuple[Tensor, ...]:
    return x + 1, x * 2, x - 3, x.abs()


def clamped(x: Tensor) -> Tensor:
    return x.clamp(-1, 1)


def sines(count: int) -> Callable[[Tensor], Tensor]:
    def chain(x: Tensor) -> Tensor:
        for _ in range(count):
            x = torch.sin(x)
        return x

    return chain


def exponentials(count: int) -> Callable[[Tensor], Tensor]:
    def chain(x: Tensor) -> Tensor:
        for _ in range(count):
            x = torch.exp(-x)
        return x

    return chain


def multiply_adds(count: int) -> Callable[[Tensor], Tensor]:
    def chain(x: Tensor) -> Tensor:
        value = x
        for _ in range(count):
            value = value * x + 1.5
        return value

    return chain


def divisions(count: int) -> Callable[[Tensor, Tensor], Tensor]:
    def chain(x: Tensor, y: Tensor) -> Tensor:
        for _ in range(count):
            x = x / (y + 2)
        return x

    return chain


def integer_divisions(x: Tensor, y: Tensor) -> Tensor:
    return x // (y + 1) + x % (y + 3)


def square_roots(x: Tensor) -> Tensor:
    return torch.sqrt(x) + torch.rsqrt(x + 1)


def powers(x: Tensor, y: Tensor) -> Tensor:
    return torch.pow(x, y)


def error_function(x: Tensor) -> Tensor:
    return F.gelu(x)


def dropout(x: Tensor) -> Tensor:
    return F.dropout(x, 0.25, True)


def pointwise() -> Iterator[Case]:
    for exponent in range(10, 30, 2):
        yield case(f"add_2^{exponent}", add, (1 << exponent,), (1 << exponent,))
    for exponent in (13, 19, 21, 23, 25):
        yield case(f"scaled_2^{exponent}", scaled, (1 << exponent,))
    for count in (1, 2, 3, 4, 6, 8):
        yield case(f"total_of_{count}", total, *[(1 << 24,)] * count)
        yield case(f"small_total_of_{count}", total, *[(1 << 18,)] * count)
    for dtype in (BF16, torch.float16, torch.float64, torch.int8, torch.int32, I64):
        kind: Literal["normal", "index"] = "normal" if dtype.is_floating_point else "index"
        name = str(dtype).removeprefix("torch.")
        yield case(f"scaled_{name}", scaled, Input((1 << 24,), dtype, kind, 100))
        yield case(f"add_{name}", add, *[Input((1 << 22,), dtype, kind, 50)] * 2)
    yield case("as_half", as_half, (1 << 24,))
    yield case("as_float", as_float, Input((1 << 24,), BF16))
    yield case("is_positive", is_positive, (1 << 24,))
    yield case("four_results", four_results, (1 << 24,))
    yield case("clamped", clamped, (1 << 22,))
    yield case("odd_size", scaled, (5_000_011,))
    yield case("odd_rows", add, (3001, 1701), (3001, 1701))


def arithmetic() -> Iterator[Case]:
    for count in (1, 4, 16):
        yield case(f"sines_{count}", sines(count), (1 << 24,))
        yield case(f"exponentials_{count}", exponentials(count), (1 << 24,))
    yield case("sines_8_small", sines(8), (1 << 18,))
    for count in (8, 32, 64):
        yield case(f"multiply_adds_{count}", multiply_adds(count), (1 << 24,))
    for count in (2, 8):
        yield case(f"divisions_{count}", divisions(count), (1 << 24,), (1 << 24,))
    numbers = Input((1 << 23,), I64, "index", 1000)
    yield case("integer_divisions_int64", integer_divisions, numbers, numbers)
    yield case("square_roots", square_roots, Input((1 << 24,), kind="positive"))
    yield case("powers", powers, Input((1 << 23,), kind="positive"), (1 << 23,))
    yield case("error_function", error_function, (1 << 24,))
    yield case("multiply_adds_float64", multiply_adds(16), Input((1 << 22,), torch.float64))
    yield case("sines_float64", sines(2), Input((1 << 22,), torch.float64))
    yield case("dropout", dropout, (1 << 24,))
