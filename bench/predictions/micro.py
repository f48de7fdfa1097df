"""Small programs, most of one kernel, that span what a kernel can be: how it walks memory, what it computes, how much.

A row gives a function and its inputs at the size for a large GPU; on a CPU every size is cut to 64, which keeps the
relations between shapes. Those of `CHOICES` are where a fusion may not pay: what is wanted are both ways to run them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.patterns import BF16, Case, Input

#: The longest side of an input on a CPU.
SMALL_SIDE = 64

F32, I64 = torch.float32, torch.int64


def _case(name: str, function: Callable[..., Any], *inputs: Input | tuple[int, ...]) -> Case:
    full = tuple(one if isinstance(one, Input) else Input(one) for one in inputs)
    return Case(name, function, full, tuple(_small(one) for one in full))


def _small(one: Input) -> Input:
    shape = tuple(min(size, SMALL_SIDE) for size in one.shape)
    return Input(shape, one.dtype, one.kind, min(one.high, SMALL_SIDE))


def _typed(dtype: torch.dtype, *shapes: tuple[int, ...]) -> tuple[Input, ...]:
    return tuple(Input(shape, dtype) for shape in shapes)


def _indices(shape: tuple[int, ...], high: int) -> Input:
    return Input(shape, I64, "index", high)


# Pointwise --------------------------------------------------------------------------------------------------------


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


def _pointwise() -> Iterator[Case]:
    for exponent in range(10, 30, 2):
        yield _case(f"add_2^{exponent}", add, (1 << exponent,), (1 << exponent,))
    for exponent in (13, 19, 21, 23, 25):
        yield _case(f"scaled_2^{exponent}", scaled, (1 << exponent,))
    for count in (1, 2, 3, 4, 6, 8):
        yield _case(f"total_of_{count}", total, *[(1 << 24,)] * count)
        yield _case(f"small_total_of_{count}", total, *[(1 << 18,)] * count)
    for dtype in (BF16, torch.float16, torch.float64, torch.int8, torch.int32, I64):
        kind = "normal" if dtype.is_floating_point else "index"
        name = str(dtype).removeprefix("torch.")
        yield _case(f"scaled_{name}", scaled, Input((1 << 24,), dtype, kind, 100))
        yield _case(f"add_{name}", add, *[Input((1 << 22,), dtype, kind, 50)] * 2)
    yield _case("as_half", as_half, (1 << 24,))
    yield _case("as_float", as_float, Input((1 << 24,), BF16))
    yield _case("is_positive", is_positive, (1 << 24,))
    yield _case("four_results", four_results, (1 << 24,))
    yield _case("clamped", clamped, (1 << 22,))
    yield _case("odd_size", scaled, (5_000_011,))
    yield _case("odd_rows", add, (3001, 1701), (3001, 1701))


def _arithmetic() -> Iterator[Case]:
    for count in (1, 4, 16):
        yield _case(f"sines_{count}", sines(count), (1 << 24,))
        yield _case(f"exponentials_{count}", exponentials(count), (1 << 24,))
    yield _case("sines_8_small", sines(8), (1 << 18,))
    for count in (8, 32, 64):
        yield _case(f"multiply_adds_{count}", multiply_adds(count), (1 << 24,))
    for count in (2, 8):
        yield _case(f"divisions_{count}", divisions(count), (1 << 24,), (1 << 24,))
    numbers = Input((1 << 23,), I64, "index", 1000)
    yield _case("integer_divisions_int64", integer_divisions, numbers, numbers)
    yield _case("square_roots", square_roots, Input((1 << 24,), kind="positive"))
    yield _case("powers", powers, Input((1 << 23,), kind="positive"), (1 << 23,))
    yield _case("error_function", error_function, (1 << 24,))
    yield _case("multiply_adds_float64", multiply_adds(16), Input((1 << 22,), torch.float64))
    yield _case("sines_float64", sines(2), Input((1 << 22,), torch.float64))
    yield _case("dropout", dropout, (1 << 24,))


# How memory is walked ---------------------------------------------------------------------------------------------


def add_transposed(x: Tensor, y: Tensor) -> Tensor:
    return x + y.t()


def transposed(x: Tensor) -> Tensor:
    return (x * 2).t().contiguous()


def heads_apart(x: Tensor) -> Tensor:
    return (x + 1).transpose(1, 2).contiguous()


def channels_last(x: Tensor) -> Tensor:
    return x.relu().to(memory_format=torch.channels_last)


def every_second(x: Tensor) -> Tensor:
    return x[..., ::2] + 1


def every_eighth(x: Tensor) -> Tensor:
    return x[..., ::8] + 1


def second_rows(x: Tensor) -> Tensor:
    return x[::2] * 2


def reversed_row(x: Tensor) -> Tensor:
    return x.flip(-1) + x


def joined(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x, y], 1) + 1


def padded(x: Tensor) -> Tensor:
    return F.pad(x, (3, 5)) * 2


def outer_product(x: Tensor, y: Tensor) -> Tensor:
    return x[:, None] * y[None, :]


def repeated(x: Tensor) -> Tensor:
    return x.repeat(64, 1) + 1


def add_row(x: Tensor, row: Tensor) -> Tensor:
    return x + row


def _walks() -> Iterator[Case]:
    for side in (256, 1024, 4096, 8192):
        yield _case(f"add_transposed_{side}", add_transposed, (side, side), (side, side))
    yield _case("transposed_half", transposed, *_typed(BF16, (4096, 8192)))
    yield _case("transposed_tall", transposed, (65536, 64))
    yield _case("transposed_narrow", transposed, (1 << 20, 8))
    yield _case("heads_apart", heads_apart, *_typed(BF16, (8, 2048, 16, 64)))
    yield _case("channels_last", channels_last, (32, 128, 56, 56))
    for columns in (1024, 8192):
        yield _case(f"every_second_{columns}", every_second, (4096, columns))
        yield _case(f"every_eighth_{columns}", every_eighth, (4096, columns))
    yield _case("second_rows", second_rows, (8192, 4096))
    yield _case("reversed_row", reversed_row, (4096, 4096))
    yield _case("joined", joined, (4096, 2048), (4096, 1024))
    yield _case("padded", padded, (4096, 4096))
    for rows, columns in ((128, 128), (1024, 1024), (8192, 4096)):
        yield _case(f"outer_product_{rows}x{columns}", outer_product, (rows,), (columns,))
        yield _case(f"add_row_{rows}x{columns}", add_row, (rows, columns), (columns,))
        yield _case(f"add_column_{rows}x{columns}", add_row, (rows, columns), (rows, 1))
    yield _case("repeated", repeated, (64, 4096))


def take_rows(table: Tensor, places: Tensor) -> Tensor:
    return table[places] + 1


def take_along(x: Tensor, places: Tensor) -> Tensor:
    return torch.gather(x, 1, places) * 2


def _gathers() -> Iterator[Case]:
    for width in (16, 64, 1024):
        yield _case(f"take_rows_{width}", take_rows, (1 << 16, width), _indices((1 << 14,), 1 << 16))
    yield _case("take_rows_half", take_rows, *_typed(BF16, (50304, 768)), _indices((32768,), 50304))
    for exponent in (12, 18, 26):
        yield _case(f"take_elements_of_2^{exponent}", take_rows, (1 << exponent,), _indices((1 << 22,), 1 << exponent))
    yield _case("take_few_elements", take_rows, (1 << 24,), _indices((1 << 12,), 1 << 24))
    yield _case("take_along", take_along, (4096, 4096), _indices((4096, 1024), 4096))


# Reductions, scans, scatters --------------------------------------------------------------------------------------


def sum_inner(x: Tensor) -> Tensor:
    return x.sum(-1)


def largest_inner(x: Tensor) -> Tensor:
    return x.amax(-1)


def place_of_largest(x: Tensor) -> Tensor:
    return x.argmax(-1)


def sum_outer(x: Tensor) -> Tensor:
    return x.sum(0)


def sum_everything(x: Tensor) -> Tensor:
    return x.sum()


def sum_of_exponentials(x: Tensor) -> Tensor:
    return x.exp().sum(-1)


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def softmax_outer(x: Tensor) -> Tensor:
    return torch.softmax(x, 0)


def layer_norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],))


def mean_of_channels(x: Tensor) -> Tensor:
    return x.mean((0, 2, 3))


def mean_of_images(x: Tensor) -> Tensor:
    return x.mean((2, 3))


def cumulative(x: Tensor) -> Tensor:
    return x.cumsum(-1)


def cumulative_outer(x: Tensor) -> Tensor:
    return x.cumsum(0)


def add_at(target: Tensor, places: Tensor, values: Tensor) -> Tensor:
    return target.scatter_add(0, places, values)


def add_rows_at(target: Tensor, places: Tensor, values: Tensor) -> Tensor:
    return target.index_add(0, places, values)


def put_at(target: Tensor, places: Tensor, values: Tensor) -> Tensor:
    return target.index_put((places,), values)


#: Rows and columns: many short rows to one long one.
INNER = (
    (1 << 20, 16), (1 << 18, 64), (1 << 16, 256), (1 << 14, 1024), (1 << 14, 4096), (1024, 1 << 16), (64, 1 << 20),
    (4, 1 << 22), (1024, 64), (128, 1024), (4096, 128), (16, 16384),
)  # fmt: skip
OUTER = ((1 << 16, 1024), (4096, 4096), (64, 1 << 18), (1 << 20, 16), (1024, 128), (256, 4096), (1 << 18, 64))


def _reductions() -> Iterator[Case]:
    for rows, columns in INNER:
        yield _case(f"sum_inner_{rows}x{columns}", sum_inner, (rows, columns))
    for rows, columns in OUTER:
        yield _case(f"sum_outer_{rows}x{columns}", sum_outer, (rows, columns))
    for exponent in (10, 14, 18, 22, 24, 27):
        yield _case(f"sum_everything_2^{exponent}", sum_everything, (1 << exponent,))
    for rows, columns in ((1 << 18, 64), (16384, 1024), (4096, 8192), (64, 1024), (256, 131072), (8, 1 << 18)):
        yield _case(f"softmax_{rows}x{columns}", softmax, (rows, columns))
        yield _case(f"layer_norm_{rows}x{columns}", layer_norm, (rows, columns))
    yield _case("sum_inner_half", sum_inner, *_typed(BF16, (16384, 4096)))
    yield _case("layer_norm_half", layer_norm, *_typed(BF16, (32768, 768)))
    yield _case("softmax_outer", softmax_outer, (1024, 8192))
    yield _case("largest_inner", largest_inner, (8192, 2048))
    yield _case("place_of_largest", place_of_largest, (8192, 2048))
    yield _case("sum_of_exponentials", sum_of_exponentials, (8192, 4096))
    yield _case("mean_of_channels", mean_of_channels, (32, 256, 28, 28))
    yield _case("mean_of_images", mean_of_images, (64, 512, 14, 14))


def _scans_and_scatters() -> Iterator[Case]:
    for rows, columns in ((16384, 4096), (256, 65536), (4096, 256), (64, 1024)):
        yield _case(f"cumulative_{rows}x{columns}", cumulative, (rows, columns))
    yield _case("cumulative_outer", cumulative_outer, (2048, 4096))
    for exponent in (6, 16, 24):
        places = _indices((1 << 21,), 1 << exponent)
        yield _case(f"add_at_2^{exponent}", add_at, (1 << exponent,), places, (1 << 21,))
    yield _case("add_rows_at", add_rows_at, (65536, 64), _indices((1 << 17,), 65536), (1 << 17, 64))
    yield _case("put_at", put_at, (1 << 22,), _indices((1 << 20,), 1 << 22), (1 << 20,))


# Where a fusion may not pay ---------------------------------------------------------------------------------------


def normalised(x: Tensor) -> Tensor:
    return x / x.abs().sum()


def both_sums(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sum(0), x.sum(1)


def costly_row(x: Tensor, row: Tensor) -> Tensor:
    return x + torch.lgamma(torch.tanh(torch.exp(row)) + 2)


def cheap_row(x: Tensor, row: Tensor) -> Tensor:
    return x + (row * 2 + 1)


def costly_table(table: Tensor, places: Tensor) -> Tensor:
    return torch.erf(torch.sin(torch.exp(table)))[places]


def costly_transposed(x: Tensor) -> Tensor:
    return torch.erf(torch.tanh(x)).t().contiguous()


def softmax_transposed(x: Tensor) -> Tensor:
    return torch.softmax(x, -1).t().contiguous()


def two_readers(x: Tensor) -> tuple[Tensor, Tensor]:
    shared = torch.exp(x)
    return shared + 1, shared.sum(-1)


def sum_and_transposed(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sum(-1), (x + 1).t().contiguous()


def readers_of_one(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    return x + y, x * z


def costly_before_outer_sum(x: Tensor) -> Tensor:
    return torch.erf(torch.tanh(x)).sum(0)


def scan_and_use(x: Tensor) -> Tensor:
    return torch.exp(x).cumsum(-1) * x


def centred_columns(x: Tensor) -> Tensor:
    return x - x.mean(0)


def centred(x: Tensor) -> Tensor:
    return x - x.mean()


def sum_of_gathered(table: Tensor, places: Tensor) -> Tensor:
    return table[places].sum(-1)


def three_statistics(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.abs().max(), x.abs().mean(), x.square().mean()


def _choices() -> Iterator[Case]:
    for exponent in (10, 13, 16, 18, 20, 22, 24):
        yield _case(f"normalised_2^{exponent}", normalised, (1 << exponent,))
    for exponent in (12, 17, 21):
        yield _case(f"centred_2^{exponent}", centred, (1 << exponent,))
        yield _case(f"three_statistics_2^{exponent}", three_statistics, (1 << exponent,))
    for rows, columns in ((64, 64), (1024, 1024), (8192, 4096), (16, 1 << 18)):
        yield _case(f"both_sums_{rows}x{columns}", both_sums, (rows, columns))
        yield _case(f"costly_row_{rows}x{columns}", costly_row, (rows, columns), (columns,))
        yield _case(f"cheap_row_{rows}x{columns}", cheap_row, (rows, columns), (columns,))
        yield _case(f"centred_columns_{rows}x{columns}", centred_columns, (rows, columns))
        yield _case(f"two_readers_{rows}x{columns}", two_readers, (rows, columns))
        yield _case(f"sum_and_transposed_{rows}x{columns}", sum_and_transposed, (rows, columns))
        yield _case(f"costly_transposed_{rows}x{columns}", costly_transposed, (rows, columns))
        yield _case(f"softmax_transposed_{rows}x{columns}", softmax_transposed, (rows, columns))
    for table, places in ((1 << 12, 1 << 22), (1 << 20, 1 << 20), (1 << 22, 1 << 14)):
        yield _case(f"costly_table_{table}_{places}", costly_table, (table,), _indices((places,), table))
    yield _case("costly_before_outer_sum", costly_before_outer_sum, (8192, 2048))
    for rows, columns in ((8192, 2048), (64, 1024)):
        yield _case(f"scan_and_use_{rows}x{columns}", scan_and_use, (rows, columns))
    for exponent in (12, 20, 25):
        yield _case(f"readers_of_one_2^{exponent}", readers_of_one, *[(1 << exponent,)] * 3)
    yield _case("sum_of_gathered", sum_of_gathered, (1 << 20,), _indices((4096, 1024), 1 << 20))


SINGLE: tuple[Case, ...] = (
    *_pointwise(), *_arithmetic(), *_walks(), *_gathers(), *_reductions(), *_scans_and_scatters(),
)  # fmt: skip
CHOICES: tuple[Case, ...] = tuple(_choices())
