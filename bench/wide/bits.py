"""Whole numbers and their bits."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.wide.declare import index, program

INT32, UINT8 = torch.int32, torch.uint8


@program(index(1 << 24, high=1 << 31, dtype=INT32))
def ones_in_a_word(x: Tensor) -> Tensor:
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    return (((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24


@program(index(1 << 23, high=1 << 31))
def mixed_up_words(x: Tensor) -> Tensor:
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return x ^ (x >> 16)


@program(index(1 << 24, high=1 << 31, dtype=INT32))
def shifts_and_exclusive_ors(x: Tensor) -> Tensor:
    for _ in range(3):
        x = x ^ (x << 13)
        x = x ^ ((x >> 17) & 0x7FFF)
        x = x ^ (x << 5)
    return x


@program(index(1 << 23, high=1 << 16, dtype=INT32), index(1 << 23, high=1 << 16, dtype=INT32))
def bits_of_two_numbers_in_turn(x: Tensor, y: Tensor) -> Tensor:
    words = []
    for word in (x, y):
        for shift, kept in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            word = (word | (word << shift)) & kept
        words.append(word)
    return words[0] | (words[1] << 1)


@program(index(1 << 21, 3, high=1024, dtype=INT32))
def bits_of_a_point_in_turn(point: Tensor) -> Tensor:
    for shift, kept in ((16, 0x030000FF), (8, 0x0300F00F), (4, 0x030C30C3), (2, 0x09249249)):
        point = (point | (point << shift)) & kept
    return point[:, 0] | (point[:, 1] << 1) | (point[:, 2] << 2)


@program(index(2048, 8, high=1 << 31), index(2048, 8, high=1 << 31))
def bits_that_differ_between_codes(a: Tensor, b: Tensor) -> Tensor:
    x = a[:, None] ^ b
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    return (((((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101) & 0xFFFFFFFF) >> 24).sum(-1)


@program(index(16, 1024, 1024, 4, high=256, dtype=UINT8))
def colours_in_a_word(image: Tensor) -> Tensor:
    red, green, blue, alpha = image.to(INT32).unbind(-1)
    return red | (green << 8) | (blue << 16) | (alpha << 24)


@program(index(16, 1024, 1024, high=1 << 31, dtype=INT32))
def colours_of_a_word(word: Tensor) -> Tensor:
    return torch.stack([(word >> shift) & 255 for shift in (0, 8, 16, 24)], 1).to(UINT8)


@program(index(1 << 23, high=200000))
def year_month_and_day(days: Tensor) -> tuple[Tensor, ...]:
    shifted = days + 719468
    era = shifted // 146097
    day = shifted - era * 146097
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    rest = day - (365 * year + year // 4 - year // 100)
    month = (5 * rest + 2) // 153
    return year + era * 400, month, rest - (153 * month + 2) // 5 + 1


@program(index(1 << 23, high=1 << 20), index(1 << 23, high=1000))
def quotient_and_remainder(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x // (y + 1), x % (y + 1)


@program(index(1 << 24, high=30000, dtype=torch.int16), index(1 << 24, high=30000, dtype=torch.int16))
def sum_that_saturates(a: Tensor, b: Tensor) -> Tensor:
    return (a.to(INT32) + b.to(INT32)).clamp(-32768, 32767).to(torch.int16)


@program(index(1 << 22, high=1 << 24, dtype=INT32))
def gray_code_and_back(x: Tensor) -> tuple[Tensor, Tensor]:
    code = x ^ (x >> 1)
    back = code
    for shift in (1, 2, 4, 8, 16):
        back = back ^ (back >> shift)
    return code, back


@program(index(8192, 1024, high=2, dtype=UINT8))
def parity_of_rows_and_columns(bit: Tensor) -> tuple[Tensor, Tensor]:
    return bit.sum(0) % 2, bit.sum(1) % 2


@program(index(1 << 22, high=1 << 12))
def power_modulo_a_prime(x: Tensor) -> Tensor:
    result = torch.ones_like(x)
    for bit in (1, 0, 1, 1, 0, 1):
        result = result * result % 65521
        result = result * x % 65521 if bit else result
    return result
