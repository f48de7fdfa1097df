"""The tile of a matrix product, and what the device model expects of a product: by the library, and by our kernel.

    time = alone + launch + latency + (memory^p + few^p + products^p)^(1/p) + rest          p = 4, as in cost/kernel.py

    memory      bytes of operands, results and what else is read, each once, over the bandwidth
    products    multiplications of all waves of tiles, at the rate that such a kernel reaches
    few         what one program loads from the cache, and the latency of its steps along k
    rest        what is computed on the sums: after the last step, when nothing else runs in the program

The library is expected to have the best tile for every size, and to share k among programs where tiles are few. The
rates are shares of the data sheet's; where no measurement is named they are assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from compiler.devices import Device
from compiler.ir.ops import cost_of
from compiler.schedule.products.descriptors import may_be_described
from compiler.schedule.products.loops import Product
from compiler.schedule.products.tiles import DESCRIBED, SHALLOW, TILES, Matrices, Precision, Tensors, Tile, programs_of

#: The power of the norm that joins what overlaps in part.
_POWER = 4
_REGISTERS_FOR_ADDRESSES = 32

#: The share of the peak rate that cuBLAS reaches while nothing else limits it. By docs/performance/archive
#: (products_h200.json), one call with relu as its epilogue, bfloat16: 59.5 us expected for (8192, 768) x (768, 3072)
#: and 65.1 found, 28.5 and 31.3 for (8192, 1024) x (1024, 1024), 28.5 and 29.4 for 2048 each; in float32 777 and 786,
#: 349 and 355, 350 and 351. What of the peak such calls reach, 0.60 and less, has launch, latency and waves in it,
#: which `library_us` adds.
LIBRARY_SHARE: Mapping[Precision, float] = {"half": 0.75, "tf32": 0.65, "ieee": 0.75}
#: That of our kernel, by the same calls: in bfloat16 75.7 us expected and 73.5 found, 35.5 and 36.5, 35.2 and 32.3. In
#: float32 the best tiles take 3115, 1407 and 1403 us, which is 0.19 of the peak. TF32: assumed.
TEMPLATE_SHARE: Mapping[Precision, float] = {"half": 0.60, "tf32": 0.50, "ieee": 0.19}
#: That of our kernel where descriptors copy the tiles of two sums, and microseconds of each wave until its first tiles
#: are there and its results stored, where a multiprocessor holds one such program and nothing else runs meanwhile.
DESCRIBED_SHARE, DESCRIBED_START_US = 0.90, 3.0
#: Shares of k among which the library is expected to choose.
_SPLITS = (1, 2, 4, 8, 16)
#: Tiles whose rows are shorter than a line of the cache load that much slower: gates of 1 and 32 rows (4096 x 11008)
#: take 58 and 61 us with 64 columns, 65 and 72 with 32.
LINE_BYTES, NARROW = 128, 1.25
#: Tensor cores of sm_90 take operands from shared memory where a tile has at least so many rows; else these go through
#: registers: the gate of 32 rows takes 62 and 61 us with 32 rows a tile (either layout of the weights), 59 and 57 with
#: 64.
LEAST_ROWS, BY_REGISTERS = 64, 1.5


def may_be_ours(device: Device) -> bool:
    """Whether our kernels can be compiled for the device: older ones than sm_80 lack what they are made of."""
    return device.kind == "cuda" and device.capability >= 80


def tile_of(product: Product, device: Device) -> Tile:
    """The tile of our kernel: the one that was measured to be the fastest, or else the one that is expected to take
    least time, of those that registers and shared memory hold. Price and text ask here."""
    if product.tile is not None:
        return product.tile
    return _tile_of(
        _tiles_for(product, device), product.matrices, _values_of_a_sum(product), tensors_of(product), device
    )


def tiles_within(product: Product, factor: float, device: Device) -> list[Tile]:
    """The tiles that are expected to take at most so many times what the best one takes."""
    matrices, tensors = product.matrices, tensors_of(product)
    fitting = [tile for tile in _tiles_for(product, device) if _is_held(tile, matrices, tensors, device)]
    times = {tile: _busy_of_ours(matrices, tile, tensors, device) for tile in fitting or TILES[matrices.precision][-1:]}
    return [tile for tile, time in times.items() if time <= factor * min(times.values())]


def tensors_of(product: Product) -> Tensors:
    """How many tensors the operands are computed from, a point each for every row or column and step along k."""
    matrices = product.matrices
    reads = {one for member in product.members for one in member.body.reads if matrices.inner in one.index.dims}
    left, right = ([one for one in reads if dim in one.index.dims] for dim in (matrices.rows, matrices.columns))
    return max(1, len(left)), max(matrices.count, len(right))


def _tiles_for(product: Product, device: Device) -> tuple[Tile, ...]:
    matrices = product.matrices
    tiles = TILES[matrices.precision]
    if matrices.count == 1 or matrices.precision != "half":
        return tiles
    if matrices.count == 2 and may_be_described(product, device):
        return (*DESCRIBED, *(tile for tile in tiles if min(tile.m, tile.n) < DESCRIBED[-1].m))
    return (*SHALLOW, *tiles)


def _is_held(tile: Tile, matrices: Matrices, tensors: Tensors, device: Device) -> bool:
    return tile.shared_bytes(matrices.dtype.itemsize, tensors) <= device.shared_per_block


@lru_cache(maxsize=4096)
def _tile_of(tiles: tuple[Tile, ...], matrices: Matrices, values: float, tensors: Tensors, device: Device) -> Tile:
    fitting = [
        tile
        for tile in tiles
        if _is_held(tile, matrices, tensors, device)
        and tile.sums_of_a_thread * values + _REGISTERS_FOR_ADDRESSES <= device.registers_per_thread
    ]
    smallest = TILES[matrices.precision][-1:]
    return min(fitting or smallest, key=lambda tile: _busy_of_ours(matrices, tile, tensors, device))


def _values_of_a_sum(product: Product) -> float:
    """How many registers a thread holds for each of its points: the sums, what is loaded beside them for each point,
    and the intermediate values of a function."""
    dims = {product.matrices.rows, product.matrices.columns}
    accesses = {access for member in product.members for access in member.body.reads}
    beside = [a for a in accesses if a.buffer not in product.produced and dims <= a.index.dims]
    return product.matrices.count + len(beside) * product.matrices.dtype.itemsize / 4 + has_function(product)


def has_function(product: Product) -> bool:
    """Whether anything in it takes several instructions for an element: an exponential, a division."""
    return any(cost_of(i.op) > 1 for member in product.members for i in member.body.instructions)


def template_us(product: Product, moved: int, slots: int, device: Device) -> float:
    """Microseconds of our kernel, which moves so many bytes and computes with the sums for so many issue slots."""
    busy = _busy_of_ours(product.matrices, tile_of(product, device), tensors_of(product), device)
    rest = 2e6 * slots / device.flops
    return device.overhead_us + overlapped(busy, 1e6 * moved / device.bandwidth) + rest


@lru_cache(maxsize=4096)
def library_us(matrices: Matrices, moved: int, device: Device) -> float:
    """Microseconds of the library's kernel."""
    share = LIBRARY_SHARE[matrices.precision]
    busy = min(
        _busy_us(matrices, tile, share, splits, device)
        for tile in TILES[matrices.precision]
        for splits in _SPLITS
        if splits * tile.k <= matrices.sizes[3] or splits == 1
    )
    return device.overhead_us + overlapped(busy, 1e6 * moved / device.bandwidth)


def overlapped(*terms: float) -> float:
    """What terms take that overlap in part."""
    return sum(term**_POWER for term in terms) ** (1 / _POWER)


def _busy_of_ours(matrices: Matrices, tile: Tile, tensors: Tensors, device: Device) -> float:
    share = DESCRIBED_SHARE if tile.by_descriptors else TEMPLATE_SHARE[matrices.precision]
    return _busy_us(matrices, tile, share, 1, device, tensors)


def _busy_us(
    matrices: Matrices, tile: Tile, share: float, splits: int, device: Device, tensors: Tensors | None = None
) -> float:
    """What the multiprocessors take, one wave of tiles after another."""
    tensors = tensors or (1, matrices.count)
    k = -(-matrices.sizes[3] // tile.k) * tile.k / splits
    programs = programs_of(matrices, tile) * splits
    resident = _resident(matrices, tile, tensors, programs, device) if matrices.count > 1 else 1
    waves = -(-programs // (device.multiprocessors * resident))
    rate = _peak(matrices.precision, device) * share / device.multiprocessors
    products = 2e6 * tile.m * tile.n * matrices.count * k / rate
    loads = 1e6 * tile.loaded(tensors) * k * matrices.dtype.itemsize / device.multiprocessor_bandwidth
    if matrices.count > 1:
        loads *= NARROW if tile.n * matrices.dtype.itemsize < LINE_BYTES else 1.0
        loads *= BY_REGISTERS if tile.m < LEAST_ROWS and matrices.precision == "half" else 1.0
    steps = k / tile.k * device.step_us / (tile.stages - 1)
    start = DESCRIBED_START_US if tile.by_descriptors and resident == 1 else 0.0
    joining = device.split_us if splits > 1 else 0.0
    return waves * (overlapped(resident * products, resident * loads, steps) + start) + joining


def _resident(matrices: Matrices, tile: Tile, tensors: Tensors, programs: int, device: Device) -> int:
    """How many programs a multiprocessor has at one time. Of single products that is not asked: the shares of the peak
    rate are fitted to those without it, and where sums are several the tiles in shared memory decide."""
    registers = (matrices.count * tile.sums_of_a_thread + _REGISTERS_FOR_ADDRESSES) * 32 * tile.warps
    held = min(
        device.shared_per_multiprocessor // (tile.shared_bytes(matrices.dtype.itemsize, tensors) + 1024),
        device.registers_per_multiprocessor // registers,
        -(-programs // device.multiprocessors),
    )
    return max(held, 1)


def _peak(precision: Precision, device: Device) -> float:
    rates = {"half": device.half_product_flops, "tf32": device.tf32_product_flops, "ieee": device.flops}
    return rates[precision] or device.flops
