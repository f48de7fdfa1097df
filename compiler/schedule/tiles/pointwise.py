"""Tiles of kernels without a reduction: one axis through all loops, or two where a transpose needs both."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from compiler.devices import Device
from compiler.ir.index import Dim, Index, Indirect, points_of
from compiler.ir.size import hint, is_multiple, last_power_of_two, next_power_of_two
from compiler.schedule.cost.work import NEAR_CACHE
from compiler.schedule.group import Group
from compiler.schedule.program.program import Program
from compiler.schedule.tiles.plan import BYTES_PER_THREAD, Axis, LoopTile, warps_for
from compiler.schedule.tiles.text import Text, touching_program
from compiler.schedule.tiles.vectors import Moves, moves_of
from compiler.schedule.tiles.walk import Access, accesses_of, fastest, near_bytes, unit_bytes, with_last
from compiler.schedule.vectors import VECTOR_BYTES

#: Threads of a program, one for each multiprocessor, that take one element each.
_ALONE = 128

#: Programs of each multiprocessor, up to which threads take few elements, so that more of them wait at a time.
_SMALL = 3

#: Elements that a thread takes at the most: of half types and bytes, beside elements of 32 bits, and where accesses
#: have gaps; and accesses of which so few are no windows.
_MOST_AT_ONCE, _MOST_OF_WIDE, _MOST_APART, _FEW_ACCESSES = 16, 8, 4, 4
#: Elements from one element to the next that are a wide gap.
_WIDE_GAP = 3
#: Instructions of a thread that are fetched once for all warps.
_LARGEST_CODE = 1800
#: Points of a side of a tile at the least.
_SHORTEST_SIDE = 4
#: Points of a loop from which on lanes go along it.
_LONG_ENOUGH = 4

#: What threads take, and how many warps a program has, where many accesses move one element by an instruction: a
#: thread's neighbours are as many elements away, and a device starts no more than one program in a cycle or so. On an
#: H200 gradients of 16 x 1024 x 1024 float32 by six loads that are one element off take 66 us by 512 elements and four
#: warps, 52 by eight, 85 by 128 elements and four; 32 million sums of three in rows of odd length 81 us by 1,024
#: elements, 73 by 512.
_FEW_AT_ONCE, _MANY_WARPS, _WARPS = 2, 8, 4

#: Warps of a program whose lanes look up neighbours in one image, where the near cache of a multiprocessor holds a few:
#: programs that run at a time should not be of many.
#: On an H200 a grid sample of 16 x 32 images of 128 x 128 float32 takes 109 us by programs of 256 elements and eight
#: warps, 100 by 512 and sixteen, 87 by 1,024 and 32, and 74 by 2,048 and 32.
_WARPS_OF_AN_IMAGE = 32

#: Loads and stores of a kernel that loads everything first, so that two elements of each fill the registers. On an
#: H200 sixteen steps of a recurrence on 262,144 states (69 of them) take 37.6 us by two elements a thread, 26.8 by one.
_MANY_ACCESSES = 64

#: Points of a tile of pairs along the last loop, and in all. On an H200 the pixels of 16 x 48 x 256 x 256 bfloat16 as
#: four times as many channels take 65 us by one axis, 54 where a program takes both pixels of a pair.
_ALONG_PAIRS, _OF_PAIRS = 128, 1024

#: A tile of what is read again for each row: so many rows, and lanes along a row. On an H200 the distances of 4,096
#: points to 4,096 others take 37 us by 1,024 elements of a row, 21 so.
_ROWS_AT_ONCE, _ALONG_ROWS = 16, 64

#: Instructions for each element up to which memory hides them.
_MEMORY_HIDES = 30


#: Elements of a row that a program takes, and its warps, where so many values are the same for a whole row, of rows so
#: long: it loads each of them once. By one axis through all rows every element finds and loads its own. On an H200 the
#: gradient of 16384 x 50264 bfloat16 logits, by four values of a row, takes 1160 us by 1,024 elements of one axis, 845
#: so, 1031 by eight warps and 1035 by half as many elements (a copy 782); norms by four values of a channel of 3,136 or
#: 12,544 elements take as long either way.
_OF_A_ROW, _BY_ROW, _LONG_ROW = 2048, 4, 2048
#: Of fewer programs for each multiprocessor the shares differ.
_PROGRAMS_OF_ROWS = 16
#: Programs of each multiprocessor that copy rows from loaded indices.
_PROGRAMS_OF_LOOKED_UP = 8


def pointwise_tile(group: Group, storage: Mapping[str, torch.dtype], device: Device) -> LoopTile:
    """The tile of a group without reduction loops, whose loops are simple; `storage` gives the dtype of every buffer
    that it touches."""
    program, text = touching_program(group, storage), Text(group)
    accesses, dims = accesses_of(program), program.space.x
    if not dims:
        return LoopTile((Axis("x", (), 1, is_scalar=True),), 1)
    dims = with_last(dims, fastest(dims, near_bytes(accesses, dims)))
    other = _transposed_dim(accesses, dims)
    if other is not None:
        return _transposed(with_last(dims[:-1], other), dims[-1:], len(accesses), device, text)
    other = _interleaved_dim(accesses, dims)
    if other is not None:
        return _interleaved(with_last(dims[:-1], other), dims[-1:])
    moves = moves_of(program, dims)
    if 2 * moves.alone > moves.all and _is_read_for_each_row(accesses, dims):
        # Several rows at once, so that what is read along a row serves all of them.
        return LoopTile((Axis("y", dims[:-1], _ROWS_AT_ONCE), Axis("x", dims[-1:], _ALONG_ROWS)), _WARPS)
    if not moves.alone and _finds_much_by_row(accesses, dims, device):
        # A piece of one row for each program.
        return LoopTile((Axis("y", dims[:-1], 1, is_scalar=True), Axis("x", dims[-1:], _OF_A_ROW)), _WARPS)
    at_once, points = _at_once(accesses, moves, dims), points_of(dims)
    block, warps = _pointwise_block(points, accesses, *_within_code_size(*at_once, text), device)
    is_enough = points >= 2 * block * _PROGRAMS_OF_LOOKED_UP * device.multiprocessors
    if is_enough and _looks_up_rows(program, accesses, dims):
        block *= 2
    return LoopTile((Axis("x", dims, block, is_scalar=block == 1),), warps)


def _transposed_dim(accesses: list[Access], dims: tuple[Dim, ...]) -> Dim | None:
    """The loop that must be a tile axis of its own: most bytes of the accesses that the last loop strides through are
    contiguous along it, and it has points enough for a side of a tile."""
    inner = dims[-1]
    if hint(inner.size) < _SHORTEST_SIDE:
        return None
    strided = [a for a in accesses if a.index.stride(inner) not in (0, 1, -1)]
    unit = unit_bytes(strided, dims[:-1])
    best = max(unit, key=lambda dim: unit[dim], default=None)
    return best if best is not None and unit[best] and hint(best.size) >= _SHORTEST_SIDE else None


def _interleaved_dim(accesses: list[Access], dims: tuple[Dim, ...]) -> Dim | None:
    """A loop of two points that lie side by side in what the last loop goes through by twos, as the pixels of a row do
    that become two channels. Each point by itself takes half of every sector."""
    inner = dims[-1]
    if len(dims) < 2 or hint(inner.size) < _ALONG_PAIRS:
        return None
    along = [a for a in accesses if inner in a.index.dims]
    pairs = [d for d in dims[:-1] if d.size == 2]
    for dim in pairs:
        halves = [a for a in along if a.index.stride(dim) == 1 and a.index.stride(inner) == 2]
        whole = [a for a in along if a.index.stride(inner) in (1, -1)]
        if halves and len(halves) + len(whole) == len(along):
            return dim
    return None


def _transposed(
    y_dims: tuple[Dim, ...], x_dims: tuple[Dim, ...], accesses: int, device: Device, text: Text
) -> LoopTile:
    """Tiles of up to 64 x 64, so that a row of the tile is whole sectors of memory in both directions; half as large
    where there is much to compute, as the registers of 16 elements leave room for fewer threads. On an H200 eight steps
    of z^2 + c on 2,048 x 2,048 float32 take 18.7 us by 16 elements a thread (59 registers), 16.6 by eight (32). The
    last loop keeps its side: boxes of 85 values for each point of a grid take 64 us so, 85 where it does not."""
    x_size, y_size = (points_of(dims) for dims in (x_dims, y_dims))
    side = 64 if accesses <= 4 else 32
    if (x_size // side) * (y_size // side) < device.multiprocessors * 2:
        side = 32
    x_block, y_block = min(side, next_power_of_two(x_size)), min(side, next_power_of_two(y_size))
    if hint(y_dims[-1].size) < side:
        y_block = min(y_block, max(next_power_of_two(hint(y_dims[-1].size)), 4))
    per_thread = 16 if side == 64 else 8
    if side == 64 and text.is_longer_than(_MEMORY_HIDES):
        y_block, per_thread = min(y_block, side // 2), 8
    axes = (Axis("y", y_dims, y_block), Axis("x", x_dims, x_block))
    return LoopTile(axes, warps_for(x_block * y_block, per_thread))


def _interleaved(y_dims: tuple[Dim, ...], x_dims: tuple[Dim, ...]) -> LoopTile:
    """Tiles of several rows of both points of a pair, whose last loop is `y_dims[-1]`."""
    x_block = min(_ALONG_PAIRS, next_power_of_two(hint(x_dims[0].size)))
    y_block = min(_OF_PAIRS // x_block, next_power_of_two(points_of(y_dims)))
    return LoopTile((Axis("y", y_dims, y_block), Axis("x", x_dims, x_block)), _WARPS)


def _is_read_for_each_row(accesses: list[Access], dims: tuple[Dim, ...]) -> bool:
    """Whether what is read along the last loop with gaps between its elements is the same for all rows."""
    if len(dims) < 2 or hint(dims[-1].size) < _ALONG_ROWS or hint(dims[-2].size) < _ROWS_AT_ONCE:
        return False
    apart = [a for a in accesses if a.index.stride(dims[-1]) not in (0, 1, -1)]
    return bool(apart) and all(a.index.dims == {dims[-1]} and not a.index.indirections for a in apart)


def _looks_up_rows(program: Program, accesses: list[Access], dims: tuple[Dim, ...]) -> bool:
    """Whether whole rows are copied from loaded indices: threads wait twice for each, and should ask for
    more at a time. On an H200 4,194,304 elements of rows of an embedding take 13.8 us by 32 bytes a thread, 13.1 by 64;
    of bfloat16 13.7 and 13.1."""
    loads = [s.index for s in program.statements if s.op == "load" and s.index is not None]
    along = [a for a in accesses if dims[-1] in a.index.dims]
    finds_rows = not program.scatters and any(index.indirections and index.stride(dims[-1]) == 1 for index in loads)
    return finds_rows and len(along) == 2 and all(a.index.stride(dims[-1]) == 1 for a in along)


def _finds_much_by_row(accesses: list[Access], dims: tuple[Dim, ...], device: Device) -> bool:
    """Whether many values are loaded that are the same for a long row, beside half types that lie along it."""
    is_fixed = len(dims) > 1 and all(isinstance(dim.size, int) for dim in dims)
    if not is_fixed or hint(dims[-1].size) < _LONG_ROW or not is_multiple(dims[-1].size, VECTOR_BYTES // 2):
        return False
    along = [a for a in accesses if dims[-1] in a.index.dims]
    by_row = [a for a in accesses if a.index.dims and a not in along and not a.index.indirections]
    is_known = len(along) + len(by_row) == sum(bool(a.index.dims) or bool(a.index.indirections) for a in accesses)
    fills = points_of(dims) >= _OF_A_ROW * device.multiprocessors * _PROGRAMS_OF_ROWS
    return len(by_row) >= _BY_ROW and is_known and fills and all(a.itemsize == 2 for a in along)


def _at_once(accesses: list[Access], moves: Moves, dims: tuple[Dim, ...]) -> tuple[int, int]:
    """How many neighbouring elements a thread takes at the most, and how many warps a program has. Each thread with as
    many as 16 bytes have of them, lanes load whole rows; where elements have gaps between them, a thread that takes
    several makes the gaps between lanes as many times as large."""
    along = [a for a in accesses if dims[-1] in a.index.dims or a.index.indirections]
    if moves.all > _FEW_ACCESSES:
        of_single = _where_many_move_alone(along, moves)
        if of_single is not None:
            return of_single
    elif 2 * moves.alone > moves.all:
        return _MOST_APART, _WARPS
    if len(along) <= _FEW_ACCESSES:
        # Linear interpolation between entries of a table takes 15.8 us by eight elements, 15.3 by four.
        has_gaps = moves.looked_up > 0 or any(_is_apart(access, dims) for access in accesses)
        return _most_of_few(along, has_gaps), _WARPS
    return _most_of_many(along, dims)


def _where_many_move_alone(along: list[Access], moves: Moves) -> tuple[int, int] | None:
    """The share of a thread where half of many accesses move one element by an instruction: lanes then lie close."""
    is_of_bytes = all(access.itemsize == 1 for access in along)
    if 2 * moves.looked_up > moves.all:
        # Closest where memory tells most indices, unless several read one element of an image that is enlarged. A grid
        # sample of 8 x 16 x 256 x 256 takes 121 us by one element, 126 by two, 133 by four, by eight warps.
        is_sampled = moves.sampled == moves.looked_up and all(_is_near(access) for access in along)
        return (_FEW_AT_ONCE, _WARPS_OF_AN_IMAGE) if is_sampled else (1, _MANY_WARPS)
    if len(along) > _MANY_ACCESSES and min(access.itemsize for access in along) >= 4:
        return 1, _MANY_WARPS
    if is_of_bytes and 2 * moves.alone >= moves.all and not moves.placed and not moves.looked_up:
        # As many lie in a line as of floats with small gaps: a step of the game of life on 16,777,216 takes 57 us by
        # two elements, 49 by four, 46 by eight.
        return _MOST_OF_WIDE, _WARPS
    if 2 * moves.alone >= moves.all >= 2 * (moves.placed + moves.looked_up):
        return _FEW_AT_ONCE, _MANY_WARPS
    # No more bytes than floats: where memory has them at computed indices they are no vectors.
    return (_MOST_APART, _WARPS) if is_of_bytes and 2 * moves.placed > moves.all else None


def _most_of_few(along: list[Access], has_gaps: bool) -> int:
    """Elements of a thread where few accesses are made: the vector of the widest one, since Triton gives a thread as
    many neighbours of each tensor. An int8 beside float32 takes 27 us by eight elements, 33 by sixteen; the halves of
    interleaved pairs of bfloat16 60 by four, 77 by eight, and bytes of pairs of float32 46, not 140."""
    if has_gaps:
        return _MOST_APART
    return _MOST_AT_ONCE if max((access.itemsize for access in along), default=1) <= 2 else _MOST_OF_WIDE


def _most_of_many(along: list[Access], dims: tuple[Dim, ...]) -> tuple[int, int]:
    """The share of a thread where most of many accesses move vectors: close where most have gaps, or a third has large
    ones. Four taps of each of 1,024 channels, side by side, take 279 us by eight elements of 33,554,432 bfloat16, a
    kernel of the same accesses by fewer 95."""
    apart = [access for access in along if _is_apart(access, dims)]
    far = [access for access in apart if abs(hint(access.index.step(dims[-1]))) >= _WIDE_GAP]
    if 2 * len(apart) > len(along) or 3 * len(far) > len(along):
        return _FEW_AT_ONCE, _MANY_WARPS
    widest = max(access.itemsize for access in along)
    wide = [access for access in along if access.itemsize == widest]
    if 3 * len(wide) >= len(along):
        return max(VECTOR_BYTES // widest, 1), _WARPS
    is_large = 2 * max(access.bytes for access in wide) >= max(access.bytes for access in along)
    return (_MOST_OF_WIDE if is_large and widest > 2 else _MOST_AT_ONCE), _WARPS


def _is_near(access: Access) -> bool:
    """Whether all elements that an access may be at, where memory tells, fit into half of a near cache."""
    loaded = [(atom, factor) for atom, factor in access.index.terms if isinstance(atom, Indirect)]
    low, high = Index(0, tuple(loaded)).bounds
    return hint(high - low) * access.itemsize <= NEAR_CACHE // 2


def _within_code_size(at_once: int, warps: int, text: Text) -> tuple[int, int]:
    """As many elements as keep the code size of a thread within the instruction cache; many warps
    that go through it in step where elements are few, or of half types. On an H200 ten sines and ninety sums and
    products of 16,777,216 bfloat16 take 283 us by sixteen elements, 218 by four, 209 by four in programs of eight
    warps; but the gradients of a loss of many labels in float32 53.3 by four warps and 56.4 by eight, twelve costly
    steps of 4,194,304 52.2 and 53.2, a pendulum's six sines of 2,097,152 15.7 and 15.9, and by eight elements 17.5;
    three powers for each of 8,388,608 89 us by eight elements, 84 by four."""
    few = at_once
    while few > _FEW_AT_ONCE and text.is_longer_than(_LARGEST_CODE // few):
        few //= 2
    in_step = few <= _FEW_AT_ONCE or (few < at_once and at_once > _MOST_OF_WIDE)
    return few, max(warps, _MANY_WARPS) if in_step else warps


def _is_apart(access: Access, dims: tuple[Dim, ...]) -> bool:
    """Whether an access has the same gaps from lane to lane; those between bytes are small beside a line of memory.
    What is the same for all of a short last loop goes along the loop before that."""
    if access.itemsize == 1:
        return False
    step = access.index.stride(dims[-1])
    if step == 0 and len(dims) > 1 and hint(dims[-1].size) < _LONG_ENOUGH:
        step = access.index.stride(dims[-2])
    return step is not None and abs(hint(step)) > 1


def _pointwise_block(numel: int, accesses: list[Access], at_once: int, warps: int, device: Device) -> tuple[int, int]:
    """Elements of a program and its warps: each thread moves 32 bytes of the narrowest tensor if that leaves enough
    registers, but no more than `at_once` elements, and no more programs wait than keep all multiprocessors busy. Where
    one element a thread does not fill the device, that is all there is to wait for, and the least text to fetch."""
    if numel <= _ALONE * device.multiprocessors:
        block = min(_ALONE, next_power_of_two(numel))
        return block, max(1, block // 32)
    itemsize = min((a.itemsize for a in accesses), default=4)
    per_thread = max(BYTES_PER_THREAD // itemsize, 4)
    per_thread = last_power_of_two(min(per_thread, at_once, max(16 // itemsize, 64 // max(len(accesses), 1), 2)))
    # Few elements are taken by many threads: 64 rows of 1,024 bfloat16 and their tanh take 6.0 us by two elements a
    # thread, 6.4 by eight in programs of one warp.
    # 256 looked-up rows of 768 bfloat16 and their tanh take 6.8 us by eight, 6.6 by four, 6.3 by two; sums of seventeen
    # tensors of 150,528 10.2 by eight and 7.4 by two.
    while per_thread > _FEW_AT_ONCE and numel < per_thread * warps * 32 * device.multiprocessors * _SMALL:
        per_thread //= 2
    while warps > 1 and numel < per_thread * warps * 32 * device.multiprocessors:
        warps //= 2
    return per_thread * warps * 32, warps
