"""The text that a function is sent as runs alone, and does what the function does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from fusionscope_client import NotASource, source_of

SCALE = 2.5
LIMITS = (1, float("inf"))


@dataclass
class FakeTensor:
    """What the client looks at of a tensor: it knows no torch."""

    shape: tuple[int, ...]
    dtype: str = "torch.float32"
    strides: tuple[int, ...] = ()
    requires_grad: bool = False
    least: int = 0
    largest: int = 9

    def is_contiguous(self) -> bool:
        return not self.strides

    def stride(self) -> tuple[int, ...]:
        return self.strides

    def min(self) -> int:
        return self.least

    def max(self) -> int:
        return self.largest


class Doubled:
    factor = 2

    def __call__(self, x: float) -> float:
        return x * self.factor


def helper(x: float) -> float:
    return math.sqrt(x) * SCALE + min(LIMITS)


def scaled(x: float, times: int = 1) -> float:
    return Doubled()(helper(x)) * times


#: Of the module: functions below have parameters and variables of these names.
amount, row, total = object(), object(), object()


def summed(amount: list[float]) -> float:
    total = sum(row * SCALE for row in amount)

    def more(row: float) -> float:
        return row + total

    return more(1.0)


def ran(text: str) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "alone"}
    without_torch = text.replace("import torch\n", "")
    exec(compile(without_torch, "alone.py", "exec"), names)
    return names


def test_a_function_brings_all_that_it_uses() -> None:
    text = source_of(scaled)
    assert ran(text)["scaled"](16.0, 3) == scaled(16.0, 3)  # type: ignore[operator]
    assert "import torch" in text and "import math" in text


def test_names_of_its_own_are_not_those_of_its_module() -> None:
    text = source_of(summed)
    assert ran(text)["summed"]([1.0, 2.0]) == summed([1.0, 2.0])  # type: ignore[operator]


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (FakeTensor((2, 3)), "torch.randn((2, 3), dtype=torch.float32)"),
        (FakeTensor((2,), "torch.bfloat16"), "torch.randn((2,), dtype=torch.bfloat16)"),
        (FakeTensor((), "torch.float64"), "torch.randn((), dtype=torch.float64)"),
        (FakeTensor((4,), "torch.int64", largest=6), "torch.randint(0, 7, (4,), dtype=torch.int64)"),
        (FakeTensor((4,), "torch.bool"), "torch.randint(0, 2, (4,), dtype=torch.bool)"),
        (FakeTensor((4,), requires_grad=True), "torch.randn((4,), dtype=torch.float32).requires_grad_()"),
        (
            FakeTensor((2, 3), strides=(1, 2)),
            "torch.empty_strided((2, 3), (1, 2), dtype=torch.float32).copy_(torch.randn((2, 3), dtype=torch.float32))",
        ),
        (
            FakeTensor((1000, 1_000_000), strides=(1, 0)),
            "torch.randn((1000,), dtype=torch.float32).as_strided((1000, 1000000), (1, 0))",
        ),
        (
            FakeTensor((8, 3), strides=(1, 1)),
            "torch.randn((10,), dtype=torch.float32).as_strided((8, 3), (1, 1))",
        ),
    ],
)
def test_a_tensor_is_sent_as_its_form(tensor: FakeTensor, text: str) -> None:
    assert source_of(helper, tensor).endswith(f"\n\nhelper({text})\n")


EXPANDED = {
    "a row for every column": lambda: torch.randn(4, 1).expand(4, 10**12),
    "one number": lambda: torch.zeros(()).expand(10**12),
    "integers": lambda: torch.tensor([[3], [5]]).expand(2, 10**12),
    "sliding windows": lambda: torch.randn(10).unfold(0, 3, 1),
    "every second column": lambda: torch.randn(6, 8)[:, ::2],
    "a gradient": lambda: torch.randn(3, 1).expand(3, 4).detach().requires_grad_(),
}


@pytest.mark.parametrize("name", EXPANDED)
def test_a_tensor_is_made_with_its_strides_in_as_much_memory(name: str) -> None:
    given = EXPANDED[name]()
    call = source_of(helper, given).splitlines()[-1]
    made = eval(call.removeprefix("helper"), {"torch": torch})
    assert (made.shape, made.stride(), made.dtype) == (given.shape, given.stride(), given.dtype)
    assert made.requires_grad == given.requires_grad
    assert made.untyped_storage().nbytes() <= given.untyped_storage().nbytes()
    if not made.is_floating_point():
        assert set(made[:, 0].tolist()) <= {3, 4, 5}


def test_other_arguments_are_sent_as_they_are() -> None:
    call = source_of(scaled, FakeTensor((2,)), 3, [FakeTensor((1,)), "mean"], None).splitlines()[-1]
    made = "torch.randn(({}), dtype=torch.float32)"
    assert call == f"scaled({made.format('2,')}, 3, [{made.format('1,')}, 'mean'], None)"
    named = source_of(scaled, {"x": FakeTensor((2,)), "n": 3})
    assert named.endswith(f"scaled({{'x': {made.format('2,')}, 'n': 3}})\n")


def test_a_text_and_a_file_are_sent_whole(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("import torch\n")
    assert source_of("import torch\n") == source_of(file) == source_of(str(file)) == "import torch\n"


@dataclass
class SparseTensor(FakeTensor):
    layout: str = "torch.sparse_coo"


WEIGHT = FakeTensor((2,))


def uses_tensor() -> object:
    return WEIGHT


def around() -> object:
    factor = 3

    def inner(x: float) -> float:
        return x * factor

    return inner


@pytest.mark.parametrize(
    ("program", "args", "told"),
    [
        (lambda x: x, (), "give it a name with def"),
        (around(), (), "uses factor of the function around it"),
        (Doubled(), (), "its state is here and not at the service"),
        ("import torch\n", (1,), "Arguments go with a function"),
        (helper, (object(),), "An argument is a object, which cannot be sent: make it within the function"),
        (uses_tensor, (), "WEIGHT is a FakeTensor, which cannot be sent: pass it as an argument, or make it within"),
        (helper, (SparseTensor((3,)),), "a tensor of the layout torch.sparse_coo: make it within the function"),
    ],
)
def test_what_cannot_be_sent_is_told_in_a_sentence(program: object, args: tuple[object, ...], told: str) -> None:
    with pytest.raises(NotASource, match=told):
        source_of(program, *args)
