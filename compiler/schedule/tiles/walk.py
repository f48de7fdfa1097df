"""How a kernel walks memory: along which loops its loads and stores are contiguous, and how many bytes that is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.devices import SECTOR
from compiler.ir.index import Dim, Index, points_of
from compiler.ir.size import hint
from compiler.schedule.program.program import Program

#: What has small gaps counts for a small part of as many bytes that have none.
NEAR_SHARE = 8


@dataclass(frozen=True)
class Access:
    index: Index
    bytes: int
    itemsize: int


def accesses_of(program: Program) -> list[Access]:
    """Every load and store with the bytes that it touches."""
    return list(accesses_by_index(program).values())


def accesses_by_index(program: Program) -> dict[tuple[str | None, Index | None], Access]:
    """The same by buffer and index."""
    found: dict[tuple[str | None, Index | None], Access] = {}
    points = points_of(program.space.dims)
    for statement in program.statements:
        if statement.op in ("load", "store") and statement.index is not None:
            index, itemsize = statement.index, program.dtype_of(statement).itemsize
            low, high = index.bounds
            # Distinct ones, by the loops that it depends on and by the range that it stays in; loaded ones may be any.
            elements = points if index.indirections else min(index.points, hint(high - low) + 1)
            found[statement.buffer, index] = Access(index, elements * itemsize, itemsize)
    return found


def unit_bytes(accesses: list[Access], dims: tuple[Dim, ...]) -> dict[Dim, int]:
    """For each loop the bytes of the accesses that walk memory element by element along it."""
    return {dim: sum(a.bytes for a in accesses if a.index.stride(dim) in (1, -1)) for dim in dims}


def near_bytes(accesses: list[Access], dims: tuple[Dim, ...]) -> dict[Dim, int]:
    """The same with what has small gaps between its elements, as the parts of complex numbers have, and is contiguous
    along no loop: lanes along another one would go from sector to sector. On an H200 products of 8 Mi complex64 with a
    function of their magnitudes take 146 us by lanes along a bias, as nothing else is contiguous."""
    found = dict.fromkeys(dims, 0)
    for access in accesses:
        strides = [(dim, access.index.stride(dim)) for dim in dims]
        contiguous = [dim for dim, stride in strides if stride in (1, -1)]
        for dim in contiguous:
            found[dim] += access.bytes
        for dim, stride in strides if not contiguous else ():
            if stride is not None and 0 < abs(hint(stride)) * access.itemsize < SECTOR:
                found[dim] += access.bytes // NEAR_SHARE
    return found


def loads_along_r(program: Program) -> bool:
    """Whether most of what a reduction loads is contiguous along r, and not along x."""
    loads = accesses_of(replace(program, statements=tuple(s for s in program.statements if s.op == "load")))
    along_x, along_r = (sum(unit_bytes(loads, dims).values()) for dims in (program.space.x, program.space.r))
    return along_r > along_x


def with_last(dims: tuple[Dim, ...], last: Dim) -> tuple[Dim, ...]:
    return (*(dim for dim in dims if dim != last), last)


def fastest(dims: tuple[Dim, ...], unit: dict[Dim, int]) -> Dim:
    """The loop along which most bytes are contiguous; the last one among equals."""
    return max(reversed(dims), key=lambda dim: unit[dim])


@dataclass(frozen=True)
class Walk:
    """How a reduction walks memory: bytes contiguous along r, along x, and the size of the narrowest element."""

    along_r: int
    along_x: int
    itemsize: int

    @property
    def is_outer(self) -> bool:
        """Whether neighbours in memory are different points of x."""
        return self.along_x > self.along_r

    @property
    def is_mixed(self) -> bool:
        return min(self.along_x, self.along_r) * 8 > max(self.along_x, self.along_r)
