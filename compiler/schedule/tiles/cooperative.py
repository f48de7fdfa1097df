"""Cooperative reductions: several programs, a team, hold one row. How large a part of it each takes.

    program 0   holds x[0:8192]       sum = 3.1 --+-- all sums: 7.9 -- store x / 7.9
    program 1   holds x[8192:16384]   sum = 4.8 --+-- all sums: 7.9 -- store x / 7.9

A row that is too long for the registers of one program may fit into those of a team. Each program reads its part once,
and what the team reduces is exchanged through memory, a few bytes for each program; then every program goes on with its
part, which it still has. The members of a team must run at the same time, so a team is no larger than what certainly
does: one program for each multiprocessor. Where the device starts some programs together, as a cluster whose members
reach each other's shared memory, a team of no more than these is one, and exchanges what it reduces there.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from compiler.devices import WARP, Device
from compiler.ir.body import Access
from compiler.ir.size import last_power_of_two, next_power_of_two
from compiler.schedule.group import Group
from compiler.schedule.vectors import VECTOR_BYTES

#: Values of 32 bits that a thread holds of its part of the row, and the elements that it has of one tensor.
HELD_WORDS, MOST_ELEMENTS, LEAST_ELEMENTS = 192, 64, 4
#: Threads of a program: so few that several programs share a multiprocessor, and one computes while another waits for
#: its team; more where the team would otherwise be too large. Few threads that hold much leave more of the registers to
#: the row: on an H200 a batch norm of rows of 200,704 takes 141 us by 128 threads of 64 elements, 158 by 256 of 32.
THREADS, MOST_THREADS = 128, 1024
#: Threads and elements of a cluster's programs, the best first. On an H200, in us: a softmax of rows of 131,072 by
#: clusters of sixteen programs of 128 threads of 64 elements 137, of eight of 128 elements 142; a group norm of 98,304
#: by twelve of 64 elements 105, by six of 128 elements 116; a batch norm of 200,704 by sixteen of 256 threads 111, of
#: 512 threads 117, of 128 threads of 128 elements 119.
CLUSTER_SHAPES = ((128, 64), (256, 64), (512, 32))
#: Registers of a thread; and the elements of one that has enough to do with its share of a row that begins anywhere.
MOST_REGISTERS, FEW_ELEMENTS = 255, 16
#: Neighbouring points of x that a program takes where x lies along memory: whole lines of the cache.
COLUMNS_BYTES = 128


#: Registers of a thread besides those of its part of the row, for how many programs run at one time: fitted to a
#: softmax, a batch norm and a group norm of long rows on an H200 (180, 141 and 61 us).
BESIDES = 96
#: The same that the assembler is asked to do with in a cluster, if it spills nothing for it. On an H200 a group norm
#: and SiLU of rows of 65,536 bfloat16, which takes 96 registers by itself, takes 43.1 us so, and 41.3 by 80, when a
#: multiprocessor holds six programs and not five; with words spilled, of float32, 75.4 and not 71.9.
BESIDES_IN_CLUSTERS = 16


@dataclass(frozen=True)
class CooperativeReduction:
    """`size` programs of `warps` warps share a block of `x_block` rows; each takes `r_block` points of r. A
    multiprocessor has registers for `at_once` of them."""

    size: int
    x_block: int
    r_block: int
    warps: int
    at_once: int
    #: Bytes of the narrowest element that is loaded for each point of r.
    itemsize: int
    is_cluster: bool = False
    #: Points of r that each has, where that is less than `r_block`.
    even: int = 0
    #: Registers that a thread of a cluster should do with.
    registers: int = 0

    @property
    def share(self) -> int:
        return self.even or self.r_block

    def waves(self, rows: int, device: Device) -> int:
        """How many programs a multiprocessor runs one after the other."""
        programs = -(-rows // self.x_block) * self.size
        return -(-programs // (device.multiprocessors * self.at_once))

    def wait_of_columns(self, rows: int, device: Device) -> int:
        """How many times as long as rows along memory a wave of columns waits, whose programs meet in shared memory
        first: longer with more elements of fewer bytes, and where no other program has work meanwhile. Fitted to a
        softmax along columns of float32 and of bfloat16 (57 and 95 us) and a batch norm by teams of 128 (109 us)."""
        lonely = -(-3 // self.at_once) if self.at_once < 3 and self.waves(rows, device) > 1 else 1
        return max(4 // self.itemsize, 1) * lonely


def cooperative_reduction(
    rows: int, length: int, held: int, itemsize: int, is_outer: bool, device: Device, leaves_floats: bool = False
) -> CooperativeReduction | None:
    """The reduction for rows of `length` elements, of which a kernel uses `held` tensors again after an exchange. None
    where a part of such a team would not fit into registers, or there is nothing to share. `is_outer` says that
    neighbouring rows lie along memory, with elements of `itemsize` bytes; `leaves_floats`, that all that it exchanges
    is float32."""
    if device.kind != "cuda" or rows < 1:
        return None
    if leaves_floats and not is_outer:
        cluster = _cluster_for(rows, length, held, itemsize, device)
        if cluster is not None:
            return cluster
    words = (held + 2) * max(itemsize // 4, 1)
    x_block = min(COLUMNS_BYTES // itemsize, next_power_of_two(rows)) if is_outer else 1
    for threads in (THREADS, 2 * THREADS, MOST_THREADS):
        registers = min(HELD_WORDS, device.registers_per_multiprocessor * 3 // 4 // threads)
        elements = min(MOST_ELEMENTS, last_power_of_two(registers // words))
        if elements < LEAST_ELEMENTS:
            return None
        r_block = max(elements * threads // x_block, 1)
        if -(-length // r_block) <= device.multiprocessors:
            break
    else:
        return None
    # Where programs are few, each takes less, while the team may still grow.
    while elements > LEAST_ELEMENTS and -(-rows // x_block) * -(-length // r_block) < 2 * device.multiprocessors:
        if -(-length // (r_block // 2)) > device.multiprocessors:
            break
        elements, r_block = elements // 2, r_block // 2
    return _reduction(-(-length // r_block), x_block, elements, threads, held, itemsize, device)


def _cluster_for(rows: int, length: int, held: int, itemsize: int, device: Device) -> CooperativeReduction | None:
    """Programs that are started together, if they hold a row and those of all rows fill the device."""
    most = (last_power_of_two((MOST_REGISTERS - BESIDES) // (held * max(itemsize // 4, 1)))) if held else MOST_ELEMENTS
    for threads, elements in CLUSTER_SHAPES:
        size, share = _shares(length, threads, min(elements, most), itemsize, device.programs_of_cluster)
        held_by_each = next_power_of_two(share) // threads
        if 1 < size <= device.programs_of_cluster and held_by_each >= LEAST_ELEMENTS:
            even = share if share != held_by_each * threads else 0
            team = _reduction(size, 1, held_by_each, threads, held, itemsize, device, is_cluster=True, even=even)
            return team if rows * size >= 2 * device.multiprocessors else None
    return None


def _shares(length: int, threads: int, elements: int, itemsize: int, most: int) -> tuple[int, int]:
    """How many programs share a row, and the points of each: whole blocks, or as many for each, so that all programs
    know alike which of their lanes are outside. A row that begins anywhere is loaded one element at a time, each with a
    mask, so programs are as many, and have as little, as may be: on an H200 a softmax of rows of 50,257 takes 112 us by
    sixteen programs of 3,200, 124 by eight of 6,400, 250 by seven of 8,192; a layer norm of 100,003 62 us by sixteen of
    6,272, 102 by thirteen of 8,192."""
    block = threads * elements
    if length % block == 0:
        return length // block, block
    is_aligned = length * itemsize % VECTOR_BYTES == 0
    size = next_power_of_two(-(-length // block))
    while not is_aligned and 2 * size <= most and length >= 2 * size * threads * FEW_ELEMENTS:
        size *= 2
    step = VECTOR_BYTES // itemsize if is_aligned else threads
    share = min(-(-length // (size * step)) * step, block)
    return -(-length // share), share


def _reduction(
    size: int, x_block: int, elements: int, threads: int, held: int, itemsize: int, device: Device, *,
    is_cluster: bool = False, even: int = 0,
) -> CooperativeReduction | None:  # fmt: skip
    r_block = max(elements * threads // x_block, 1)
    held_by_one = elements * held * max(itemsize // 4, 1)
    at_once = max(1, device.registers_per_multiprocessor // (threads * (held_by_one + BESIDES)))
    registers = min(held_by_one + BESIDES_IN_CLUSTERS, MOST_REGISTERS)
    team = CooperativeReduction(size, x_block, r_block, threads // WARP, at_once, itemsize, is_cluster, even, registers)
    return team if size > 1 else None


def may_cooperate(group: Group) -> bool:
    """Whether a team of programs may hold a row of the group: nothing of it must happen in order or just once."""
    is_known = all(isinstance(dim.size, int) for dim in group.space.dims)
    if not (group.is_cooperative and is_known) or group.has_scan or group.across or group.updated:
        return False
    return bool(reads_of_rows(group))


def reads_of_rows(group: Group) -> list[Access]:
    """What the group reads, from outside of it, along the loops that it reduces: of an expanded tensor that is none."""
    outside = [access for m in group.members for access in m.body.reads if access.buffer not in group.produced]
    return [access for access in outside if not access.index.dims.isdisjoint(group.space.r)]


def exchanges_floats(group: Group) -> bool:
    """Whether all that is reduced for a row is float32."""
    reductions = [member.body.reduction for member in group.members if member.body.reduction is not None]
    return all(i.dtype == torch.float32 and not str(i.value).startswith("arg") for i in reductions)
