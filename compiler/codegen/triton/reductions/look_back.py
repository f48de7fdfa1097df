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
Whoever waits does so for programs that have started, since tickets are drawn in that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from compiler.codegen.triton.reductions.shared_rows import COUNTERS_OF_WORDS, WORD, SharedRowPrinter
from compiler.codegen.triton.values.ops import DTYPES
from compiler.devices import WARP
from compiler.ir.size import known, next_power_of_two
from compiler.schedule.program.program import Statement
from compiler.schedule.tiles.plan import LookBackPlan


class LookBackPrinter(SharedRowPrinter):
    """Prints the scans of a plan of which several programs have one row."""

    plan: LookBackPlan
    # Of a scan, neighbours are those that do not wait for each other.
    has_rows_together = True

    def __init__(self, plan: LookBackPlan) -> None:
        super().__init__(plan)
        #: Scans of the chunk alone, so far.
        self.pending: list[Statement] = []
        self.has_last_lane = self.has_indices = False

    @property
    def _bases(self) -> int:
        """Where in the words of a row those begin of what all groups before one come to."""
        return self.splits + self.plan.chunks.groups

    @property
    def _words_of_row(self) -> int:
        """Words that a row has of each value: one for each chunk, and two for each group of chunks; the last group
        has another one besides that nobody reads."""
        groups = self.plan.chunks.groups
        return self._bases + groups + 1 if groups > 1 else self.splits

    @property
    def _words(self) -> int:
        """Words of a value, or of one of its halves."""
        return self._words_of_row * known(self.x_axis.numel)

    @cached_property
    def _starts(self) -> tuple[dict[int, int], int]:
        """Where the words of each scan start in the workspace, in bytes, and its size."""
        starts: dict[int, int] = {}
        size = 0
        for statement in self.program.scans:
            starts[statement.number] = size
            size += self._words * WORD * max(self.scans.kind_of(statement).dtype.itemsize // 4, 1)
        return starts, size

    @property
    def scratch(self) -> dict[str, int]:
        return {"workspace_bytes": self._starts[1], "counters": COUNTERS_OF_WORDS, "chunks": self.splits}

    @property
    def how(self) -> str:
        return f", by {self.splits} programs that look back at those before them"

    def draw_program_id(self) -> str:
        return self.draw_with_launch()

    def in_order(self, statements: Sequence[Statement]) -> list[Statement]:
        """The statements with all that needs no scan before what needs one, and so on: scans that do not need each
        other wait together."""
        depth: dict[int, int] = {}
        scans = {scan.number for scan in self.program.scans}
        found = super().in_order(statements)
        for statement in found:
            depth[statement.number] = max((depth.get(n, 0) + (n in scans) for n in statement.needs), default=0)
        return sorted(found, key=lambda statement: depth[statement.number])

    def print_scan(self, statement: Statement, is_looped: bool) -> None:
        """The scan of the chunk, and what it comes to, which is left for others."""
        scan, value, name = self.scans.kind_of(statement), self.scans.value(statement), statement.target
        if scan.kind == "sum":
            self.writer.line(f"{name}_own = tl.sum({value}, 0)", statement.nodes)
        else:
            self.scans.block(statement, scan, value)
            if not self.has_last_lane:
                self.scans.last_lane()
                self.has_last_lane = True
            self.writer.line(f"{name}_own = tl.sum(tl.where(last_lane, {name}, 0), 0)", statement.nodes)
        row = f" + x_block * {self._words_of_row}" if known(self.x_axis.numel) > 1 else ""
        self.writer.point_to(f"{name}_words", self._starts[0][statement.number], "tl.int64", statement.nodes, row)
        self._send(statement, "part", f"{name}_own")
        if scan.kind == "sum":
            self.scans.block(statement, scan, value)
        self.pending.append(statement)

    def before(self, statement: Statement) -> None:
        """What has to come before a statement that needs the scan of a row."""
        if not statement.needs.isdisjoint(pending.number for pending in self.pending):
            self._finish()

    def _finish(self) -> None:
        pending, self.pending = self.pending, []
        size, groups = self.plan.chunks.of_group, self.plan.chunks.groups
        if not self.has_indices:
            self._print_positions()
        first = f"group * {size} + " if groups > 1 else ""
        for statement in pending:
            self._join(statement, "before", f"{first}lanes", "lanes < mate")
        if groups > 1:
            with self.writer.block(f"if mate == {size - 1}"):
                self.writer.line(f"groups = tl.arange(0, {max(next_power_of_two(groups), WARP * self.plan.num_warps)})")
                for statement in pending:
                    self._leave_group(statement)
            for statement in pending:
                self._join(statement, "groups", f"{self._bases} + group + lanes", "lanes < tl.minimum(group, 1)")
        for statement in pending:
            scan, name = self.scans.kind_of(statement), statement.target
            before = f"{name}_before"
            if groups > 1:
                self.writer.line(f"{before} = {scan.join(f'{name}_groups', before)}", statement.nodes)
            self.writer.line(f"{name} = {scan.join(before, name)}", statement.nodes)

    def _print_positions(self) -> None:
        """Where a chunk stands, and lanes for what stands before it: as many as threads at the least, so that one of
        them reads a word, and not one of each warp."""
        self.has_indices = True
        size, groups = self.plan.chunks.of_group, self.plan.chunks.groups
        lanes = max(next_power_of_two(size), WARP * self.plan.num_warps)
        self.writer.line("# What stands before the chunk, always in the same order: chunks of its group, and groups.")
        if groups > 1:
            self.writer.line(f"group = part // {size}")
        self.writer.line(f"mate = part % {size}" if groups > 1 else "mate = part")
        self.writer.line(f"lanes = tl.arange(0, {lanes})")

    def _join(self, statement: Statement, suffix: str, index: str, is_before: str) -> None:
        """What the programs before come to, those that have left words at these offsets of a row."""
        scan, name = self.scans.kind_of(statement), statement.target
        found = f"look_back({name}_words + {index}, {is_before}, launch)"
        if scan.dtype.itemsize == WORD:
            found = f"look_back_wide({name}_words + {index}, {self._words}, {is_before}, launch)"
        if scan.dtype.is_floating_point:
            found += f".to({DTYPES[scan.dtype]}, bitcast=True)"
        # Lanes of nobody are zeros.
        text = found if scan.kind == "sum" else f"tl.where({is_before}, {found}, {scan.identity})"
        self.writer.line(f"{name}_{suffix}_left = {text}", statement.nodes)
        self.writer.line(f"{name}_{suffix} = {scan.collapse(f'{name}_{suffix}_left', 0)}", statement.nodes)

    def _leave_group(self, statement: Statement) -> None:
        """The last program of a group leaves what the group comes to, and, for the next group, what all so far do."""
        scan, name = self.scans.kind_of(statement), statement.target
        total = f"{name}_total"
        self.writer.line(f"{total} = {scan.join(f'{name}_before', f'{name}_own')}", statement.nodes)
        self._send(statement, f"{self.splits} + group", total)
        self._join(statement, "base", f"{self.splits} + groups", "groups < group")
        self.writer.line(f"{total} = {scan.join(f'{name}_base', total)}", statement.nodes)
        self._send(statement, f"{self._bases} + group + 1", total)

    def _send(self, statement: Statement, index: str, value: str) -> None:
        words = f"{statement.target}_words + {index}"
        is_wide = self.scans.kind_of(statement).dtype.itemsize == WORD
        call = f"send_wide({words}, {self._words}," if is_wide else f"send({words},"
        self.writer.line(f"{call} {value}, launch)", statement.nodes)
