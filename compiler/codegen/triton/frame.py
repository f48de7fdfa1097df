"""The interface between the printer of a kernel and the printers of its parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from compiler.codegen.triton.reductions.across import Gathering
from compiler.codegen.triton.reductions.reducing import Reductions
from compiler.codegen.triton.reductions.states import States
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.codegen.triton.writer import Writer
from compiler.schedule.program.program import Section
from compiler.schedule.tiles.plan import Axis, Plan


class KernelFrame(Protocol):
    """A kernel that is being printed: its plan, those who print statements and reductions, and its loops."""

    plan: Plan
    writer: Writer
    printer: StatementPrinter
    reductions: Reductions
    gathering: Gathering | None
    states: States
    vectors: tuple[Axis, ...]

    @property
    def blocks(self) -> dict[str, int]: ...

    def place_axis(self, axis: Axis, block: str) -> None: ...

    def print_sections(self, sections: Iterable[Section]) -> None: ...

    def comment_pass(self, section: Section, number: int) -> None: ...

    def print_statements(self, section: Section, pass_number: int) -> None: ...

    def print_loop(
        self, section: Section, pass_number: int, first: str, last: str, start: str = "", step: str = ""
    ) -> None: ...

    def print_tail(self) -> None: ...
