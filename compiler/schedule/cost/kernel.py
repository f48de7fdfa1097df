"""What the device model expects of a kernel: bytes, operations, microseconds. All figures here are predictions.

    time = alone + launch + latency + work + ends                     alone: once for several kernels in a row
    work = (memory^p + cache^p + arithmetic^p + few^p)^(1/p)          each in microseconds; p = 4

    memory      bytes that memory moves, over its bandwidth: each element once, in whole sectors; what later passes find
                no more in the cache; and what the cache must write back of others to make room for them
    cache       bytes that the cache gives: the later passes' and those at loaded places, over its bandwidth; what
                windows load again, over that of the near caches; and single sectors that lanes write for themselves,
                over their rate
    arithmetic  issue slots over the rate at which the multiprocessors that have a program issue them
    few         what one program does, where there are too few to keep memory busy: its blocks one after another
    ends        the second part of a split reduction, and exchanges of programs that share a row; steps of loops along
                columns in few programs, which nothing hides; updates of one place, that wait for each other

The norm lies between the largest of its terms (they overlap) and their sum (they do not); its power, and every rate, is
fitted to kernels measured on an H200; `docs/performance/archive/README.md` shows how well. What a kernel will be like
(how many programs, how many passes) is predicted by `shape.py`, and what it asks for counted by `work.py`. Sizes that
differ from call to call count as what they were in the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import zip_longest
from typing import Any

from compiler.devices import Device
from compiler.ir.nodes import ExternNode, Layout
from compiler.schedule.cost.moved import moved_by_call, moved_by_group, moved_by_touches
from compiler.schedule.cost.shape import Shape, shape_of, shape_on_cpu
from compiler.schedule.cost.slots import unit_slots
from compiler.schedule.cost.touches import Touch, iterations, touches_of, traffic_by
from compiler.schedule.cost.work import Work, stores_half_types, work_of
from compiler.schedule.group import Batch, Group, parts_of
from compiler.schedule.products.best_tile import library_us, overlapped, template_us, tile_of
from compiler.schedule.products.loops import Product
from compiler.schedule.products.tiles import Matrices, programs_of
from compiler.schedule.tiles.choose import choose_tile
from compiler.schedule.tiles.plan import LoopTile
from compiler.schedule.windows import over_windows

#: Threads of a multiprocessor from which on it issues at its full rate.
ENOUGH_THREADS = 512


@dataclass(frozen=True)
class Cost:
    """What one kernel is expected to move, compute and take; `passes` are those over its reduction loops."""

    bytes: int
    operations: int
    microseconds: float
    passes: int = 0


def operations(group: Group) -> int:
    """Weighted arithmetic operations of a kernel that computes each value once; see `OpInfo.cost`."""
    counts = zip(group.members, iterations(group), strict=True)
    return sum(member.body.operations * count for member, count in counts)


@dataclass(frozen=True)
class Terms:
    """The terms of a prediction, in microseconds."""

    memory: float
    cache: float
    arithmetic: float
    few: float
    ends: float

    def total(self, device: Device) -> float:
        return device.overhead_us + overlapped(self.memory, self.cache, self.arithmetic, self.few) + self.ends


def sequence_us(costs: Sequence[Cost], device: Device) -> float:
    """What kernels take one after another."""
    return sum(cost.microseconds for cost in costs) - device.alone_us * max(len(costs) - 1, 0)


def terms_of(work: Work, shape: Shape, device: Device) -> Terms:
    """The terms for a kernel of this work and shape; rates are bytes or operations per second."""
    resident = resident_programs(shape, device)
    busy = max(min(shape.programs, device.multiprocessors), 1)
    lost = _lost(work, shape, device)
    moved = work.read + work.written + lost
    displaced = min(device.dirty_share * moved, device.dirty_bytes) - min(work.written, device.dirty_bytes)
    memory = (moved + max(displaced, 0.0)) / device.bandwidth
    # A multiprocessor sends single sectors at up to twice its share of what the cache takes.
    sector_rate = device.sector_rate * min(1.0, 2 * busy / device.multiprocessors)
    cache = (work.again - lost + work.gathered) / device.l2_bandwidth + work.updates / sector_rate
    if device.kind == "cpu":
        return Terms(1e6 * memory, 1e6 * cache, 2e6 * sum(work.slots.values()) / device.flops, 0.0, 0.0)
    cache += work.near / device.near_bandwidth
    threads = shape.threads * -(-resident // busy)
    issued = device.flops / 2 * busy / device.multiprocessors * min(1.0, threads / ENOUGH_THREADS)
    arithmetic = 1e6 * sum(work.slots.values()) / issued
    bytes_us = 1e6 * (work.read + work.written + work.again) / (device.multiprocessor_bandwidth * busy)
    steps_us = shape.steps * shape.step_weight * device.step_us
    return Terms(
        memory=1e6 * memory,
        cache=1e6 * cache,
        arithmetic=arithmetic,
        # A program that is alone on its multiprocessor waits for what it loads and computes in turn.
        few=arithmetic * busy / resident + max(bytes_us, steps_us),
        ends=device.split_us * (shape.is_split + shape.joins_rows)
        + device.lone_step_us * shape.lone_steps
        + (device.cluster_exchange_us if shape.in_clusters else device.exchange_us) * shape.exchanges
        + 1e6 * work.crowd / device.crowd_rate,
    )


def resident_programs(shape: Shape, device: Device) -> int:
    """How many programs the device holds at one time."""
    of_one = min(max(device.threads_per_multiprocessor // max(shape.threads, 1), 1), 32)
    return max(min(shape.programs, of_one * device.multiprocessors), 1)


def lost_from_cache(group: Group, layouts: dict[str, Layout], device: Device) -> int:
    """Of the bytes that later passes read again, those that the cache is expected not to hold any more."""
    found = _parts_by_shape(group, layouts, device)
    return round(sum(_lost(work, shape, device) for work, shape in found))


def _lost(work: Work, shape: Shape, device: Device) -> float:
    at_once = work.read * resident_programs(shape, device) / max(shape.programs * shape.blocks, 1)
    return work.again * (1 - _cache_share(at_once, device))


def _cache_share(footprint: float, device: Device) -> float:
    """The share of what was read before that is still in the cache, where so many bytes were read since."""
    return max(0.0, min(1.0, 2.0 - footprint / device.l2_bytes))


def work_and_shape(
    group: Group,
    layouts: Mapping[str, Layout],
    device: Device,
    touches: Sequence[Touch] | None = None,
    shares_launch: bool = False,
) -> tuple[Work, Shape]:
    """What one kernel asks for, and how it runs: on a GPU by its tile. `touches` are those of the group, if they are
    known; it may share a launch with others."""
    is_gpu = device.kind == "cuda"
    if is_gpu:
        storage = {buffer: layouts[buffer].dtype for buffer in group.accesses}
        run, tile = choose_tile(group, storage, device, shares_launch)
        if group.space.r and isinstance(tile, LoopTile):
            group, touches = over_windows(group) or run, None
    traffic = traffic_by(group, touches_of(group, layouts) if touches is None else touches)
    shape = shape_of(group, tile, device) if is_gpu else shape_on_cpu(group, traffic, layouts, device)
    return work_of(group, traffic, layouts, shape, is_gpu), shape


def group_cost(group: Group, layouts: dict[str, Layout], device: Device) -> Cost:
    """The expected cost of running `group` as one kernel on `device`."""
    if isinstance(group, Product):
        return _cost_of_product(group, layouts, device)
    parts = parts_of(group)
    touches = [touches_of(part, layouts) for part in parts]
    found = _parts_by_shape(group, layouts, device, touches)
    return Cost(
        sum(moved_by_touches(of_part, layouts).bytes for of_part in touches),
        sum(work.operations for work, _ in found),
        _microseconds(found, device),
        max(shape.passes for _, shape in found),
    )


def _parts_by_shape(
    group: Group, layouts: dict[str, Layout], device: Device, touches: Sequence[Sequence[Touch]] = ()
) -> list[tuple[Work, Shape]]:
    shares_launch = isinstance(group, Batch)
    parts = zip_longest(parts_of(group), touches)
    return [work_and_shape(part, layouts, device, of_part, shares_launch) for part, of_part in parts]


def _microseconds(parts: Sequence[tuple[Work, Shape]], device: Device) -> float:
    """What one kernel takes. On a CPU its parts are functions, which it calls one after the other."""
    if device.kind == "cpu":
        return sum(terms_of(*part, device).total(device) for part in parts) - device.overhead_us * (len(parts) - 1)
    return _side_by_side(parts, device).total(device)


def _side_by_side(parts: Sequence[tuple[Work, Shape]], device: Device) -> Terms:
    """The terms of a kernel's parts, whose programs run at the same time: what they share adds up, what one program
    waits for does not."""
    memory, cache, arithmetic, few, ends = zip(*(astuple(terms_of(*part, device)) for part in parts), strict=True)
    return Terms(sum(memory), sum(cache), sum(arithmetic), max(few), max(ends))


def _cost_of_product(product: Product, layouts: dict[str, Layout], device: Device) -> Cost:
    moved = moved_by_group(product, layouts).bytes
    if product.library is not None:
        return Cost(moved, operations(product), library_us(product.matrices, moved, device))
    time = template_us(product, moved, slots_besides(product, layouts, device), device)
    return Cost(moved, operations(product), time)


def slots_besides(product: Product, layouts: dict[str, Layout], device: Device) -> int:
    """Issue slots of what is fused into a product: with each sum, and with each element of an operand for every tile
    that it is loaded for."""
    batch, m, n, k = product.matrices.sizes
    tile = tile_of(product, device)
    loaded = m * k * -(-n // tile.n)
    is_fast = stores_half_types(product, layouts)
    total = 0
    calls = {call.name for call in product.calls}
    for member in product.members:
        is_sum = member.name in calls
        for _, is_after, count in unit_slots(member.body, is_fast):
            # Of the sum itself the multiplication is no work besides.
            points = m * n if is_after or not is_sum else loaded
            total += round(batch * points * (count if is_after or not is_sum else max(count - 1, 0)))
    return total


def cost_parts(group: Group, layouts: dict[str, Layout], device: Device) -> dict[str, Any]:
    """What the prediction of `group_cost` is made of, as plain JSON: microseconds, bytes by how they are walked, and
    operations by the unit that does them."""
    fixed = {name: getattr(device, name) for name in ("alone_us", "launch_us", "latency_us")}
    if isinstance(group, Product):
        return fixed | _parts_of_product(group, layouts, device)
    found = _parts_by_shape(group, layouts, device)
    moved: Counter[str] = Counter()
    slots: Counter[str] = Counter()
    for work, _ in found:
        moved.update(work.bytes)
        slots.update(work.slots)
    return fixed | {
        **{f"{name}_us": value for name, value in asdict(_side_by_side(found, device)).items()},
        "bytes": dict(moved),
        "slots": dict(slots),
        "read_again": sum(work.again for work, _ in found),
        "updates": sum(work.updates for work, _ in found),
        "programs": sum(shape.programs for _, shape in found),
        "passes": max(shape.passes for _, shape in found),
    }


def _parts_of_product(product: Product, layouts: dict[str, Layout], device: Device) -> dict[str, Any]:
    moved = moved_by_group(product, layouts).bytes
    slots = slots_besides(product, layouts, device)
    return {
        "memory_us": 1e6 * moved / device.bandwidth,
        "arithmetic_us": template_us(product, 0, slots, device) - device.overhead_us,
        **dict.fromkeys(("cache_us", "few_us", "ends_us"), 0.0),
        "bytes": {"contiguous": moved},
        "slots": {"simple": slots},
        "read_again": 0,
        "updates": 0,
        "programs": programs_of(product.matrices, tile_of(product, device)),
        "passes": 1,
    }


def extern_cost(call: ExternNode, matrices: Matrices, layouts: dict[str, Layout], device: Device) -> Cost:
    """The expected cost of a matrix product by the library."""
    batch, m, n, k = matrices.sizes
    moved = moved_by_call(call, layouts).bytes
    return Cost(moved, 2 * batch * m * n * k, library_us(matrices, moved, device))
