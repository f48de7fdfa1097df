"""Numbers that Python computes from open sizes are eager's: beside tensors, in them, as sizes, and as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

from compiler.compile import Built, observed_compilations

Number = Callable[[int], Any]

#: The first is what the kernels are made for.
SIZES = (7, 10, 13, 5)


def of_a_third(function: Callable[[float], float]) -> Number:
    return lambda n: function(n / 3)


#: Floats by a formula that holds for every size.
FLOATS: Mapping[str, Number] = {
    "n + 0.5": lambda n: n + 0.5,
    "1.5 - n": lambda n: 1.5 - n,
    "0.3 * n": lambda n: 0.3 * n,
    "n / 3": lambda n: n / 3,
    "3 / n": lambda n: 3 / n,
    "n % 2.5": lambda n: n % 2.5,
    "(n / 3) % 2.0": lambda n: (n / 3) % 2.0,
    "(n / -3) % 2.0": lambda n: (n / -3) % 2.0,
    "n ** 0.5": lambda n: n**0.5,
    "n ** -1": lambda n: n**-1,
    "(n / 3) ** 1.5": lambda n: (n / 3) ** 1.5,
    "1.1 ** n": lambda n: 1.1**n,
    "-(n / 3)": lambda n: -(n / 3),
    "abs(n / 3 - 2)": lambda n: abs(n / 3 - 2),
    "round(n / 3, 1)": lambda n: round(n / 3, 1),
    "round(n / 3, 0)": lambda n: round(n / 3, 0),
    "min(n / 3, 2.5)": lambda n: min(n / 3, 2.5),
    "max(n / 3, 2.5)": lambda n: max(n / 3, 2.5),
    "max(n / 3, n / 2 - 1)": lambda n: max(n / 3, n / 2 - 1),
    "(n // 2) / 3": lambda n: (n // 2) / 3,
    "(max(n, 8) // 2) / 3": lambda n: (max(n, 8) // 2) / 3,
    "((n // 2 + 1) // 3) / 7": lambda n: ((n // 2 + 1) // 3) / 7,
    "float(n)": lambda n: float(n),
    "sum([n, n / 2])": lambda n: sum([n, n / 2]),
    "0.1 * n * 30.0": lambda n: 0.1 * n * 30.0,
    "torch.sym_float(n) / 3": lambda n: torch.sym_float(n) / 3,
    **{
        f"math.{name}(n / 3)": of_a_third(getattr(math, name))
        for name in "sqrt cos cosh sin sinh tan tanh atan log2".split()
    },
    "math.asin(1 / (n + 1))": lambda n: math.asin(1 / (n + 1)),
    "math.acos(1 / (n + 1))": lambda n: math.acos(1 / (n + 1)),
}

#: Whole numbers likewise.
INTEGERS: Mapping[str, Number] = {
    "n // 3": lambda n: n // 3,
    "-n // 3": lambda n: -n // 3,
    "n // -3": lambda n: n // -3,
    "n % 5": lambda n: n % 5,
    "-n % 5": lambda n: -n % 5,
    "n % -5": lambda n: n % -5,
    "n ** 2": lambda n: n**2,
    "2 ** n": lambda n: 2**n,
    "round(n / 3)": lambda n: round(n / 3),
    "math.floor(n / 3)": lambda n: math.floor(n / 3),
    "math.ceil(n / 3)": lambda n: math.ceil(n / 3),
    "math.trunc(n / 3)": lambda n: math.trunc(n / 3),
    "math.floor((n + 1) / 3)": lambda n: math.floor((n + 1) / 3),
    "math.floor(n + 1 / 3)": lambda n: math.floor(n + 1 / 3),
    "int(n ** 0.5)": lambda n: int(n**0.5),
    "int(1.5 * n)": lambda n: int(1.5 * n),
    "abs(n - 20)": lambda n: abs(n - 20),
    "min(n, 9)": lambda n: min(n, 9),
    "max(n, 9)": lambda n: max(n, 9),
    "max(n, 9) // 2": lambda n: max(n, 9) // 2,
    "n << 1": lambda n: n << 1,
    "n >> 1": lambda n: n >> 1,
    "n & 6": lambda n: n & 6,
    "n | 1": lambda n: n | 1,
}

#: What Dynamo makes a number of by the size of the call, with a guard, or leaves to eager: another size is another
#: compilation, or none.
BY_SIZE: Mapping[str, Number] = {
    "(n / 3) // 0.7": lambda n: (n / 3) // 0.7,
    "math.exp(n / 3)": lambda n: math.exp(n / 3),
    "math.log(n / 3)": lambda n: math.log(n / 3),
    "math.erf(n / 3)": lambda n: math.erf(n / 3),
    "math.hypot(n, 3.0)": lambda n: math.hypot(n, 3.0),
    "math.fmod(-n / 3, 2.0)": lambda n: math.fmod(-n / 3, 2.0),
    "math.gcd(n, 6)": lambda n: math.gcd(n, 6),
    "math.isqrt(n)": lambda n: math.isqrt(n),
    "~n": lambda n: ~n,
    "divmod(n, 4)[1]": lambda n: divmod(n, 4)[1],
    "n ^ 3": lambda n: n ^ 3,
    "bool(n / 3)": lambda n: bool(n / 3),
}


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def rows(size: int) -> Tensor:
    return torch.randn(size, 4, generator=torch.Generator().manual_seed(size))


def check(program: Callable[[Tensor], dict[str, Any]], compilations: int | None = 1) -> None:
    """Eager's results at every size: numbers are the same ones of the same type, tensors close and of one dtype."""
    made: list[Built] = []
    compiled = torch.compile(program, backend="fusionscope", dynamic=True)
    with observed_compilations(made.append):
        for size in SIZES:
            ours, eager = compiled(rows(size)), program(rows(size))
            assert ours.keys() == eager.keys()
            for name, expected in eager.items():
                if isinstance(expected, Tensor):
                    torch.testing.assert_close(ours[name], expected, msg=partial("{}: {}".format, name))
                else:
                    assert type(ours[name]) is type(expected) and ours[name] == expected, (name, ours[name], expected)
    assert compilations is None or len(made) == compilations


def parts(table: Mapping[str, Number], length: int) -> list[Mapping[str, Number]]:
    """The table in pieces, each one program: to compile takes longer than all else."""
    names = list(table)
    return [{name: table[name] for name in names[start : start + length]} for start in range(0, len(names), length)]


def used(numbers: Mapping[str, Number]) -> Callable[[Tensor], dict[str, Any]]:
    """Each number as the operand of a tensor of floats and one of integers, as an exponent, in new tensors, and given
    to the caller."""

    def program(x: Tensor) -> dict[str, Any]:
        found = {}
        for name, number in numbers.items():
            value = number(x.shape[0])
            found[f"x * ({name})"] = x * value + 1
            found[f"integers + ({name})"] = (x * 4).long() + value
            found[f"torch.tensor({name})"] = torch.tensor(value)
            found[f"torch.full((2,), {name})"] = torch.full((2,), value)
            found[name] = value
        return found

    return program


@pytest.mark.parametrize("numbers", parts({**FLOATS, **INTEGERS}, 10), ids=", ".join)
def test_one_compilation_has_eagers_numbers(numbers: Mapping[str, Number]) -> None:
    check(used(numbers))


@pytest.mark.parametrize("name", BY_SIZE)
def test_numbers_that_dynamo_fixes_are_eagers_too(name: str) -> None:
    check(used({name: BY_SIZE[name]}), compilations=None)


@pytest.mark.parametrize("numbers", parts(INTEGERS, 9), ids=", ".join)
def test_sizes_of_tensors_by_formulas(numbers: Mapping[str, Number]) -> None:
    def program(x: Tensor) -> dict[str, Any]:
        found = {}
        for name, number in numbers.items():
            count = abs(number(x.shape[0])) % 64 + 2
            found[f"torch.ones(2 * ({name}))"] = torch.ones(2 * count, 3) + x[0, 0]
            found[f"torch.arange({name})"] = torch.arange(count) * 2.5
        return found

    check(program)


def test_exponents_steps_and_slices() -> None:
    def program(x: Tensor) -> dict[str, Any]:
        n = x.shape[0]
        return {
            "x ** (n / 3)": x.abs() ** (n / 3),
            "x ** n": x.abs() ** n,
            "(n / 3) ** x": (n / 3) ** x,
            "arange": torch.arange(0.5, n / 3 + 4, 0.25).sum() + x,
            "slice": x[: math.ceil(n / 3)] * 2,
            "clamp": x.clamp(-n / 100, n / 100),
            "leaky_relu": torch.nn.functional.leaky_relu(x, 1 / n),
            "half": x.half() * (n / 3),
            "n > 6": n > 6,
        }

    check(program, compilations=None)


def test_gradients_by_a_number_from_a_size() -> None:
    def scaled(x: Tensor) -> Tensor:
        return (x * math.tanh(x.shape[0] / 30)).sin() * round(x.shape[0] / 3, 1)

    made: list[Built] = []
    compiled = torch.compile(scaled, backend="fusionscope", dynamic=True)
    with observed_compilations(made.append):
        for size in SIZES:
            x = rows(size).requires_grad_()
            ours, eager = compiled(x), scaled(x)
            torch.testing.assert_close(ours, eager)
            gradients = (torch.autograd.grad(result.square().sum(), x)[0] for result in (ours, eager))
            torch.testing.assert_close(*gradients)
    assert len(made) == 2, "a forward and a backward graph"


def test_a_float_argument_that_differs_from_call_to_call() -> None:
    def scaled(x: Tensor, scale: float) -> tuple[Tensor, float]:
        return x * scale + x.shape[0] / scale, scale * 2

    compiled = torch.compile(scaled, backend="fusionscope", dynamic=True)
    for size, scale in zip(SIZES, (0.5, 1.25, -3.0, 1e300), strict=True):
        ours, eager = compiled(rows(size), scale), scaled(rows(size), scale)
        torch.testing.assert_close(ours[0], eager[0])
        assert ours[1] == eager[1]


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.scale = 0.5

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x) * self.scale


def test_floats_of_modules_are_fixed_until_they_change() -> None:
    module, traced = Scaled(), counters["aot_autograd"]
    traced.clear()
    made: list[Built] = []
    compiled = torch.compile(module, backend="fusionscope", dynamic=True)
    with observed_compilations(made.append):
        for size, scale, compilations in zip((*SIZES, 6), (0.5, 0.5, 1.25, -3.0, 7.5), (1, 1, 2, 2, 2), strict=True):
            module.scale = scale
            with torch.no_grad():
                torch.testing.assert_close(compiled(rows(size)), module(rows(size)))
            assert len(made) == compilations, (size, scale)
            assert scale != 0.5 or traced["total"] == 1, "no number of the norm makes torch begin again"
