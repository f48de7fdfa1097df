"""Tiles of a matrix product that several programs share, each with a part of k.

    tiles   1 2 3 ... 32 programs, 48 steps along k each    ->    128 programs, 12 steps each; the last of four adds up

Where a result has few tiles, each program waits for its loads, step after step, on a device most of which does nothing.
Sharing k among programs shortens that, for what it takes to leave sums in memory and to add them up.

    time = start + (memory^p + waves * (products^4 + loads^4 + steps^4)^(p/4))^(1/p) + joining

The constants are fitted to 320 kernels on an H200 (bfloat16, 1 to 512 rows, up to 11008 columns, 4 to 172 steps along
k): the root mean square of the error is 7 %, and the tile that is expected to be the best takes 3 % longer than the
best one on average. Half types alone were measured, and one tensor for each operand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from compiler.devices import Device
from compiler.schedule.products.tiles import TILES, Matrices, Tile, programs_of, tiles_of

#: Microseconds until the first tiles are there, besides a launch; of a step along k until its loads have come; and of
#: leaving sums and waiting for the last program, with the bytes per second at which sums are left and read.
START_US, STEP_US, JOIN_US, JOIN_RATE = 3.1, 0.78, 0.92, 34e9
#: The share of the peak rate, bytes per second of one multiprocessor, and how much longer memory takes than a copy.
SHARE, LOAD_RATE, MEMORY = 0.66, 112e9, 1.23
#: Tensor cores take longer for tiles of few rows, whose operands go through registers.
LEAST_ROWS, BY_REGISTERS = 64, 2.85
POWER, INNER_POWER = 1.8, 4
#: Into how many parts k is divided, with at least so many steps each.
SPLITS, LEAST_STEPS = (2, 3, 4, 6, 8), 2
#: Programs to each multiprocessor: with more than these tiles are not shared, and no more are made by that.
ENOUGH, MOST = 2, 4
#: What sharing must gain.
LEAST_GAIN = 0.05
#: Besides the tiles of kernels without parts: of more steps at once.
LONG = (
    Tile(16, 64, 128, 4, 4),
    Tile(32, 32, 128, 4, 4),
    Tile(32, 64, 128, 4, 4),
    Tile(64, 32, 128, 4, 4),
    Tile(64, 64, 128, 4, 3),
)


@lru_cache(maxsize=4096)
def shared_tile(matrices: Matrices, alone: Tile, device: Device) -> Tile:
    """The tile, with its parts, that gains most over `alone`, whose programs each go along all of k; `alone` itself
    where none gains enough."""
    tiles = shared_tiles(matrices, alone, device)
    found = min(tiles, key=lambda tile: shared_us(matrices, tile, device), default=alone)
    return found if gain(matrices, found, alone, device) <= 1 - LEAST_GAIN else alone


def gain(matrices: Matrices, tile: Tile, alone: Tile, device: Device) -> float:
    """What a shared tile is expected to take, as a share of the time of one that is not."""
    return shared_us(matrices, tile, device) / shared_us(matrices, alone, device)


def shared_tiles(matrices: Matrices, alone: Tile, device: Device) -> Iterator[Tile]:
    """The shared tiles that may be worth it: no larger ones than `alone`, of which it is known that registers do."""
    if matrices.precision != "half" or matrices.count > 1 or device.kind != "cuda":
        return
    if programs_of(matrices, alone) > ENOUGH * device.multiprocessors:
        return
    for tile in (*TILES["half"], *LONG):
        fits = tile.shared_bytes(matrices.dtype.itemsize) <= device.shared_per_block
        if not fits or tile.sums_of_a_thread > alone.sums_of_a_thread:
            continue
        for splits in SPLITS:
            steps = -(-matrices.sizes[3] // tile.k) // splits
            if steps >= LEAST_STEPS and tiles_of(matrices, tile) * splits <= MOST * device.multiprocessors:
                yield replace(tile, splits=splits)


def shared_us(matrices: Matrices, tile: Tile, device: Device) -> float:
    """Microseconds of our kernel by this tile, shared or not."""
    batch, m, n, k = matrices.sizes
    itemsize = matrices.dtype.itemsize
    part = -(-k // tile.k) * tile.k / tile.splits
    programs = programs_of(matrices, tile)
    resident = _resident(tile, programs, itemsize, device)
    waves = -(-programs // (device.multiprocessors * resident))
    rate = SHARE * device.half_product_flops / device.multiprocessors
    products = 2e6 * tile.m * tile.n * part / rate * (BY_REGISTERS if tile.m < LEAST_ROWS else 1.0)
    loads = 1e6 * (tile.m + tile.n) * part * itemsize / LOAD_RATE
    steps = part / tile.k * STEP_US / (tile.stages - 1)
    busy = waves * _norm(INNER_POWER, resident * products, resident * loads, steps)
    memory = MEMORY * 1e6 * itemsize * batch * (m * k + k * n + m * n) / device.bandwidth
    joining = JOIN_US + 1e6 * 4 * tile.m * tile.n * tile.splits / JOIN_RATE if tile.splits > 1 else 0.0
    overhead = device.alone_us + device.launch_us + device.latency_us
    return overhead + START_US + _norm(POWER, busy, memory) + joining


def _resident(tile: Tile, programs: int, itemsize: int, device: Device) -> int:
    """How many programs a multiprocessor has at one time."""
    threads = device.warp_size * tile.warps
    held = min(
        device.shared_per_multiprocessor // (tile.shared_bytes(itemsize) + 1024),
        device.registers_per_multiprocessor // ((tile.sums_of_a_thread + 32) * threads),
        device.threads_per_multiprocessor // threads,
        -(-programs // device.multiprocessors),
    )
    return max(held, 1)


def _norm(power: float, *terms: float) -> float:
    return float(sum(term**power for term in terms) ** (1 / power))
