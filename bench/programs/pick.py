"""Choosing operands: what a generator of statements sees of the program so far."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from bench.programs.program import FLOATING, INTEGRAL, Kind
from bench.programs.worlds import Worlds

T = TypeVar("T")


class NothingFits(Exception):
    """No tensor of the program can be an operand of the operator that was drawn."""


@dataclass(frozen=True)
class Draft:
    """The right side of an assignment, or with `writes` a whole statement that changes that tensor."""

    code: str
    kind: Kind
    operands: tuple[str, ...]
    writes: str | None = None
    results: int = 1


class Pick:
    """Random choices among the tensors that a program has so far; later ones are likelier: programs get deep."""

    def __init__(self, rng: random.Random, worlds: Worlds, names: list[str]) -> None:
        self.rng = rng
        self.worlds = worlds
        self.names = names

    def value(self, name: str) -> Tensor:
        return self.worlds.tensor(name)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.value(name).shape)

    def tensor(self, fits: Callable[[Tensor], bool] = lambda _: True, exact: bool = False) -> str:
        found = [n for n in self.names if fits(self.value(n)) and (not exact or self.worlds.is_exact(n))]
        if not found:
            raise NothingFits
        return found[max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))]

    def floating(self, exact: bool = False, rank: int = 0) -> str:
        return self.tensor(lambda t: t.dtype.is_floating_point and t.dim() >= rank, exact)

    def integral(self) -> str:
        return self.tensor(lambda t: not t.dtype.is_floating_point and t.dtype != torch.bool, True)

    def mask(self) -> str:
        return self.tensor(lambda t: t.dtype == torch.bool, True)

    def ranked(self, rank: int = 1) -> str:
        """With so many dimensions at least, none of them empty."""
        return self.tensor(lambda t: t.dim() >= rank and t.numel() > 0)

    def like(self, name: str, fits: Callable[[Tensor], bool] = lambda _: True, exact: bool = False) -> str:
        """A tensor that broadcasts with `name`, mostly another one."""
        shape = self.shape(name)
        other = self.tensor(lambda t: broadcasts(shape, tuple(t.shape)) and fits(t), exact)
        return other if other != name or self.chance(0.3) else self.tensor(
            lambda t: broadcasts(shape, tuple(t.shape)) and fits(t), exact
        )  # fmt: skip

    def dim(self, name: str) -> int:
        rank = self.value(name).dim()
        return self.rng.randrange(-rank, rank)

    def dims(self, name: str) -> tuple[int, ...]:
        rank = self.value(name).dim()
        return tuple(sorted(self.rng.sample(range(rank), self.rng.randint(1, rank))))

    def slice_of(self, size: int) -> str:
        """A slice that is not empty, as text."""
        start = self.rng.randrange(size)
        stop = self.rng.randint(start + 1, size)
        step = self.rng.choice([1, 1, 2, 3])
        return f"{start or ''}:{stop if stop < size else ''}" + (f":{step}" if step > 1 else "")

    def subscript(self, name: str) -> str:
        """A basic index, as text: slices, places, new dimensions."""
        parts: list[str] = []
        for size in self.shape(name):
            kind = self.rng.random()
            if kind < 0.15:
                parts.append(str(self.rng.randrange(-size, size)))
            elif kind < 0.7:
                parts.append(self.slice_of(size))
            else:
                parts.append(":")
        if self.chance(0.1):
            parts.insert(self.rng.randint(0, len(parts)), "None")
        return ", ".join(parts) or "..."

    def number(self) -> str:
        """A multiple of 1/8, or an integer."""
        return str(self.choice([-2, -1, 0, 1, 2, 3, 0.5, -0.25, 1.5, 0.125]))

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def choice(self, options: Sequence[T]) -> T:
        return self.rng.choice(options)

    def floating_dtype(self) -> str:
        return self.rng.choices(list(FLOATING), [2, 2, 5, 1])[0]

    def integral_dtype(self) -> str:
        return self.choice(list(INTEGRAL))


def broadcasts(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b)))
