"""The sizes of a matrix product, and the tiles that its kernel may have: how much of a result one program makes, and in
which steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from compiler.ir.index import Dim

Precision = Literal["half", "tf32", "ieee"]

#: How many tensors each operand is computed from, left and right: tiles of each are loaded, and held.
Tensors = tuple[int, int]


@dataclass(frozen=True)
class Matrices:
    """The loops of a product and the dtype of its operands: left[b, m, k] times right[b, k, n]. `precision` says what
    multiplies: tensor cores on half types or on rounded float32, or float32 arithmetic. `count` is how many right
    operands there are, each with a sum of its own."""

    rows: Dim
    columns: Dim
    inner: Dim
    batch: Dim | None
    dtype: torch.dtype
    precision: Precision
    count: int = 1

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Batch, m, n, k."""
        dims = (self.batch or Dim("b", 1), self.rows, self.columns, self.inner)
        return tuple(int(dim.size) for dim in dims)  # type: ignore[return-value, arg-type]


@dataclass(frozen=True)
class Tile:
    """Rows and columns of the result that one program makes, how much of k it takes at a time, how many such steps are
    being loaded while one is multiplied."""

    m: int
    n: int
    k: int
    warps: int
    stages: int
    by_descriptors: bool = False

    @property
    def sums_of_a_thread(self) -> int:
        return self.m * self.n // (32 * self.warps)

    def loaded(self, tensors: Tensors) -> int:
        """Elements for each step along k that one program loads."""
        return tensors[0] * self.m + tensors[1] * self.n

    def shared_bytes(self, itemsize: int, tensors: Tensors = (1, 1)) -> int:
        return self.stages * self.k * self.loaded(tensors) * itemsize


_HALF = (
    Tile(128, 256, 64, 8, 3),
    Tile(256, 128, 64, 8, 3),
    Tile(128, 128, 64, 8, 4),
    Tile(128, 64, 64, 4, 4),
    Tile(64, 128, 64, 4, 4),
    Tile(64, 64, 64, 4, 4),
    Tile(64, 32, 64, 4, 5),
    Tile(32, 64, 64, 4, 5),
    Tile(32, 32, 64, 4, 5),
    Tile(16, 64, 64, 4, 5),
    Tile(64, 16, 64, 4, 5),
    Tile(16, 32, 128, 4, 5),
    Tile(16, 16, 128, 4, 5),
)
_TF32 = (
    Tile(128, 128, 32, 8, 4),
    Tile(128, 64, 32, 4, 4),
    Tile(64, 128, 32, 4, 4),
    Tile(64, 64, 32, 4, 4),
    Tile(64, 32, 32, 4, 5),
    Tile(32, 64, 32, 4, 5),
    Tile(32, 32, 32, 4, 5),
    Tile(16, 32, 64, 4, 5),
    Tile(16, 16, 64, 4, 5),
)
_IEEE = (
    Tile(128, 64, 16, 8, 3),
    Tile(64, 128, 16, 8, 3),
    Tile(64, 64, 16, 4, 3),
    Tile(64, 32, 16, 4, 3),
    Tile(32, 64, 16, 4, 3),
    Tile(32, 32, 16, 4, 3),
    Tile(16, 32, 32, 2, 3),
    Tile(16, 16, 32, 1, 3),
)
TILES: Mapping[Precision, tuple[Tile, ...]] = {"half": _HALF, "tf32": _TF32, "ieee": _IEEE}
#: Besides, for several sums: of such tiles in four stages a multiprocessor holds a program less.
SHALLOW = (Tile(64, 64, 64, 4, 3),)

#: Of two sums, where descriptors can be made of the operands: the same tiles by pointers take 1 to 17 % longer.
DESCRIBED = (
    Tile(128, 128, 64, 8, 4, by_descriptors=True),
    Tile(128, 64, 64, 4, 4, by_descriptors=True),
    Tile(64, 128, 64, 4, 4, by_descriptors=True),
    Tile(64, 64, 64, 4, 3, by_descriptors=True),
)


def programs_of(matrices: Matrices, tile: Tile) -> int:
    """Tiles of the result: each has a program of its own."""
    batch, m, n, _ = matrices.sizes
    return batch * -(-m // tile.m) * -(-n // tile.n)
