"""Scans by look-back: what each program leaves of its chunk, and how it joins the chunks before it.

    x = tl.load(...)
    cumsum_own = tl.sum(x, 0)                                   what the chunk comes to, which others wait for,
    send(cumsum_words + part, cumsum_own, launch)               is left before anything else is done
    cumsum = tl.cumsum(x, 0)
    cumsum_before = sum of the chunks before it in its group    look_back(...)
    send(...)                                                   the last of a group leaves what the group comes to, and
                                                                with look_back(...) what all groups so far do
    cumsum_before += what all groups before come to             look_back(...)
    cumsum = cumsum_before + cumsum

`schedule/tiles/look_back.py` says why the order of these sums is always the same. What is left are words of 64 bits, 32
of a value and the number of the launch: a word says by itself whether it is there, so that no memory has to be in
order, and nothing has to be cleared for the next launch. A value of 64 bits is two words, each with the number.
Whoever waits does so for programs that have started, since places are drawn in that order.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import torch

from compiler.codegen.triton.reductions.scanning import Scans
from compiler.codegen.triton.reductions.shared_rows import COUNTERS_OF_WORDS, WORD
from compiler.codegen.triton.values.ops import DTYPES
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.codegen.triton.writer import Writer
from compiler.devices import WARP
from compiler.ir.size import known, next_power_of_two
from compiler.schedule.program.program import Statement
from compiler.schedule.tiles.plan import LookBackPlan

HELPERS: dict[str, str] = {
    "send_wide": '''@triton.jit
def send_wide(pointer, apart, value, launch):
    """Leave 64 bits in two words that lie `apart`, each with the number of the launch."""
    bits = value.to(tl.int64, bitcast=True)
    tl.store(pointer, (bits << 32) | launch)
    tl.store(pointer + apart, (bits >> 32 << 32) | launch)
''',
    "look_back": '''@triton.jit
def look_back(pointer, is_before, launch):
    """The 32 bits that programs before this one leave at these places, when all of them are there; 0 elsewhere."""
    words = tl.load(pointer, is_before, other=launch, volatile=True)
    while any_lane((words & 0xFFFFFFFF) != launch):
        words = tl.load(pointer, is_before, other=launch, volatile=True)
    return (words >> 32).to(tl.int32)
''',
    "look_back_wide": '''@triton.jit
def look_back_wide(pointer, apart, is_before, launch):
    """The same of 64 bits in two words that lie `apart`."""
    low = look_back(pointer, is_before, launch).to(tl.int64) & 0xFFFFFFFF
    return (look_back(pointer + apart, is_before, launch).to(tl.int64) << 32) | low
''',
}


class LookBack:
    """Prints the scans of a plan of which several programs have one row."""

    def __init__(self, plan: LookBackPlan, printer: StatementPrinter, writer: Writer, scans: Scans) -> None:
        self.plan = plan
        self.printer, self.writer, self.scans = printer, writer, scans
        #: Scans of the chunk alone, so far.
        self.pending: list[Statement] = []
        self.has_last_lane = self.has_indices = False

    @property
    def _groups(self) -> int:
        return -(-self.plan.splits // self.plan.chunks.of_group)

    @property
    def _bases(self) -> int:
        """Where in the words of a row those begin of what all groups before one come to."""
        return self.plan.splits + self._groups

    @property
    def _words_of_row(self) -> int:
        """Words that a row has of each value: one for each chunk, and two for each group of chunks; the last group
        has another one besides that nobody reads."""
        return self._bases + self._groups + 1 if self._groups > 1 else self.plan.splits

    @property
    def _words(self) -> int:
        """Words of a value, or of one of its halves."""
        return self._words_of_row * known(self.plan.axes[0].numel)

    @cached_property
    def _starts(self) -> tuple[dict[tuple[int, int], int], int]:
        """Where the words of each value of each scan start in the workspace, in bytes, and its size."""
        starts: dict[tuple[int, int], int] = {}
        size = 0
        for statement in self.plan.program.scans:
            for which, dtype in enumerate(self.scans.kind_of(statement).dtypes):
                starts[statement.number, which] = size
                size += self._words * WORD * max(dtype.itemsize // 4, 1)
        return starts, size

    @property
    def config(self) -> dict[str, int]:
        """What a launch needs to know."""
        return {"workspace_bytes": self._starts[1], "counters": COUNTERS_OF_WORDS, "chunks": self.plan.splits}

    def in_order(self, statements: Iterable[Statement]) -> list[Statement]:
        """The statements with all that needs no scan before what needs one, and so on: scans that do not need each
        other wait together."""
        depth: dict[int, int] = {}
        scans = {scan.number for scan in self.plan.program.scans}
        found = list(statements)
        for statement in found:
            depth[statement.number] = max((depth.get(n, 0) + (n in scans) for n in statement.needs), default=0)
        return sorted(found, key=lambda statement: depth[statement.number])

    def take(self, statement: Statement) -> None:
        """The scan of the chunk, and what it comes to, which is left for others."""
        scan, values = self.scans.kind_of(statement), self.scans.values(statement)
        names = self.scans.names(statement, scan)
        if scan.kind == "sum":
            self.writer.line(f"{names[0]}_own = tl.sum({values[0]}, 0)", statement.nodes)
        else:
            self.scans.block(statement, scan, values)
            if not self.has_last_lane:
                self.scans.last_lane()
                self.has_last_lane = True
            for name in names:
                self.writer.line(f"{name}_own = tl.sum(tl.where(last_lane, {name}, 0), 0)", statement.nodes)
        for which, (name, dtype) in enumerate(zip(names, scan.dtypes, strict=True)):
            start = self._starts[0][statement.number, which]
            base = f"(workspace_ptr + {start})" if start else "workspace_ptr"
            row = f" + x_block * {self._words_of_row}" if known(self.plan.axes[0].numel) > 1 else ""
            self.writer.line(f"{name}_words = {base}.to(tl.pointer_type(tl.int64)){row}", statement.nodes)
            self._send(statement, f"{name}_words + part", f"{name}_own", dtype)
        if scan.kind == "sum":
            self.scans.block(statement, scan, values)
        self.pending.append(statement)

    def before(self, statement: Statement) -> None:
        """What has to come before a statement that needs the scan of a row."""
        if not statement.needs.isdisjoint(pending.number for pending in self.pending):
            self._finish()

    def _finish(self) -> None:
        self.printer.helpers |= {"any_lane", "look_back", "send"}
        pending, self.pending = self.pending, []
        size, groups = self.plan.chunks.of_group, self._groups
        if not self.has_indices:
            self._places()
        first = f"group * {size} + " if groups > 1 else ""
        for statement in pending:
            self._join(statement, "before", f"{first}lanes", "lanes < mate")
        if groups > 1:
            self.writer.line(f"if mate == {size - 1}:")
            with self.writer.indented():
                self.writer.line(f"groups = tl.arange(0, {max(next_power_of_two(groups), WARP * self.plan.num_warps)})")
                for statement in pending:
                    self._leave_group(statement)
            for statement in pending:
                self._join(statement, "groups", f"{self._bases} + group + lanes", "lanes < tl.minimum(group, 1)")
        for statement in pending:
            scan = self.scans.kind_of(statement)
            names = self.scans.names(statement, scan)
            before = [f"{name}_before" for name in names]
            if groups > 1:
                text = scan.join([f"{name}_groups" for name in names], before)
                self.writer.line(f"{', '.join(before)} = {text}", statement.nodes)
            self.writer.line(f"{', '.join(names)} = {scan.join(before, names)}", statement.nodes)

    def _places(self) -> None:
        """Where a chunk stands, and lanes for what stands before it: as many as threads at the least, so that one of
        them reads a word, and not one of each warp."""
        self.has_indices = True
        size, groups = self.plan.chunks.of_group, self._groups
        lanes = max(next_power_of_two(size), WARP * self.plan.num_warps)
        self.writer.line("# What stands before the chunk, always in the same order: chunks of its group, and groups.")
        if groups > 1:
            self.writer.line(f"group = part // {size}")
        self.writer.line(f"mate = part % {size}" if groups > 1 else "mate = part")
        self.writer.line(f"lanes = tl.arange(0, {lanes})")

    def _join(self, statement: Statement, suffix: str, place: str, is_before: str) -> None:
        """What the programs before come to, those that have left words at these places of a row."""
        scan = self.scans.kind_of(statement)
        names, lanes = self.scans.names(statement, scan), []
        for name, dtype, identity in zip(names, scan.dtypes, scan.identities, strict=True):
            found = f"look_back({name}_words + {place}, {is_before}, launch)"
            if dtype.itemsize == WORD:
                self.printer.helpers.add("look_back_wide")
                found = f"look_back_wide({name}_words + {place}, {self._words}, {is_before}, launch)"
            if dtype.is_floating_point:
                found += f".to({DTYPES[dtype]}, bitcast=True)"
            # Lanes of nobody are zeros.
            text = found if scan.kind == "sum" else f"tl.where({is_before}, {found}, {identity})"
            lanes.append(f"{name}_{suffix}_left")
            self.writer.line(f"{lanes[-1]} = {text}", statement.nodes)
        targets = ", ".join(f"{name}_{suffix}" for name in names)
        self.writer.line(f"{targets} = {scan.total(lanes)}", statement.nodes)

    def _leave_group(self, statement: Statement) -> None:
        """The last program of a group leaves what the group comes to, and, for the next group, what all so far do."""
        scan = self.scans.kind_of(statement)
        names = self.scans.names(statement, scan)
        totals = [f"{name}_total" for name in names]
        text = scan.join([f"{name}_before" for name in names], [f"{name}_own" for name in names])
        self.writer.line(f"{', '.join(totals)} = {text}", statement.nodes)
        for name, total, dtype in zip(names, totals, scan.dtypes, strict=True):
            self._send(statement, f"{name}_words + {self.plan.splits} + group", total, dtype)
        self._join(statement, "base", f"{self.plan.splits} + groups", "groups < group")
        text = scan.join([f"{name}_base" for name in names], totals)
        self.writer.line(f"{', '.join(totals)} = {text}", statement.nodes)
        for name, total, dtype in zip(names, totals, scan.dtypes, strict=True):
            self._send(statement, f"{name}_words + {self._bases} + group + 1", total, dtype)

    def _send(self, statement: Statement, place: str, value: str, dtype: torch.dtype) -> None:
        if dtype.itemsize == WORD:
            self.printer.helpers.add("send_wide")
            self.writer.line(f"send_wide({place}, {self._words}, {value}, launch)", statement.nodes)
        else:
            self.printer.helpers.add("send")
            self.writer.line(f"send({place}, {value}, launch)", statement.nodes)
