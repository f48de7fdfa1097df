"""Scans by look-back: the size of a chunk, for rows too long and too few for one program each.

    program 0   x[0:4096]        sum 3.1 --.                    stores 0 + its running sums
    program 1   x[4096:8192]     sum 4.8 --+--.                 stores 3.1 + its running sums
    program 2   x[8192:12288]    sum 1.0 --+--+--.              stores 3.1 + 4.8 + its running sums

Each program has one chunk of a row in its registers, so that a scan reads once and writes once. It leaves what its
chunk comes to as soon as it knows that, and waits for those before it alone, which have started before it. In
"Single-pass Parallel Prefix Scan with Decoupled Look-back" (Merrill and Garland, NVIDIA NVR-2016-002) a program takes
the last sum of all before it that it finds; which one that is differs from run to run, and with it how a result is
rounded. Here the order of all sums is fixed, and results are the same bit for bit: chunks form groups, and a program
adds what the chunks before it in its group come to, and what all groups before it do. The latter is one value, which
the last program of the group before has left: that adds what each group comes to, so that no chain of programs waits.

What it takes beside its bytes is the wait for the slowest of the programs before it that run at the same time. On an
H200 running sums of 2^25 float32 take 97 us, a copy 69, two passes 112. Neighbours in the order of programs are chunks
of different rows, where there are several, so that fewer wait for each other: 256 rows take 76 us, by one program for
each row 148. Threads that hold much wait less often: by 16, 32 and 64 elements one row takes 129, 106 and 97 us.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from compiler.devices import WARP, Device
from compiler.ir.size import last_power_of_two
from compiler.schedule.group import Group

#: More rows keep a GPU busy by one program each, and shorter ones are done so as soon.
MOST_ROWS, LONG_ROW = 512, 1 << 14
#: Elements of a chunk at the most and at the least, and chunks of each multiprocessor that keep it busy.
LONGEST, SHORTEST, ENOUGH = 8192, 2048, 1
#: Bytes of its elements that a thread holds at the least, warps of a program at the most, and registers of a thread
#: besides its elements.
BYTES_OF_THREAD, MOST_WARPS, BESIDES = 128, 4, 63
#: Chunks of a group, if groups are no more than these; as many chunks are a group of their own.
OF_GROUP, MOST_GROUPS, ONE_GROUP = 32, 512, 64


@dataclass(frozen=True)
class Chunks:
    """A row in `count` chunks of `length` elements of `itemsize` bytes, each of which `warps` warps take; `of_group`
    chunks are a group."""

    length: int
    count: int
    of_group: int
    warps: int
    itemsize: int

    @property
    def groups(self) -> int:
        """The groups of a row."""
        return -(-self.count // self.of_group)

    def waits(self, rows: int, device: Device) -> int:
        """How often a multiprocessor's programs wait for those before them, one after the other, in exchanges of a
        team: fitted on the H200 to one, four, 64 and 256 rows, of which those of few wait for more others."""
        words = self.length * max(self.itemsize // 4, 1)
        at_once = max(1, device.registers_per_multiprocessor // (words + self.warps * WARP * BESIDES))
        waves = -(-rows * self.count // (device.multiprocessors * at_once))
        return round(waves * max(1.7 - log2(rows) / 7, 0.3))


def chunks_of(rows: int, length: int, itemsize: int, device: Device) -> Chunks | None:
    """How programs share rows of `length` elements that are scanned, with `itemsize` bytes carried along for each; None
    where each row is one program's."""
    if device.kind != "cuda" or not 0 < rows <= MOST_ROWS or length < LONG_ROW:
        return None
    wanted = rows * length // (ENOUGH * device.multiprocessors)
    most = last_power_of_two(LONGEST * 4 // max(itemsize, 4))
    chunk = min(most, max(SHORTEST, last_power_of_two(wanted)))
    count = -(-length // chunk)
    of_group = OF_GROUP
    while of_group * MOST_GROUPS < count:
        of_group *= 2
    of_group = count if count <= ONE_GROUP else of_group
    warps = last_power_of_two(min(MOST_WARPS, chunk * max(itemsize, 4) // (BYTES_OF_THREAD * WARP)))
    return Chunks(chunk, count, of_group, warps, max(itemsize, 4))


def may_look_back(group: Group) -> bool:
    """Whether programs can share the rows that a group scans: nothing of it needs all of a row, or happens once for
    each row."""
    is_known = all(isinstance(dim.size, int) for dim in group.space.dims)
    if not is_known or not group.has_scan or group.across:
        return False
    for member in group.members:
        has_effect = member.name in group.stored or member.node.is_scatter or member.node.check is not None
        if member.body.reduction is not None or (has_effect and member.body.dims.isdisjoint(group.space.r)):
            return False
    return True


def bytes_of_scans(group: Group) -> int:
    """The bytes of all that a group's scans carry along for one element."""
    total = 0
    for member in group.members:
        scan = member.body.scan
        if scan is not None:
            total += sum(member.body.instructions[number].dtype.itemsize for number in scan.operands)
    return total
