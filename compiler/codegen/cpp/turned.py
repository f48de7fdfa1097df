"""What a transposing kernel reads or writes across the direction of its vectors, turned square by square.

    float y_turned[32 * 32];
    fs::turn(y_ptr + 2048 * x1_start + x0_start, 2048, x1_end - x1_start, x0_end - x0_start, y_turned, 32);
    for x0 ...:  for x1 ...:  add_ptr[...] = x_ptr[...] + y_turned[32 * (x0 - x0_start) + (x1 - x1_start)]

A compiler would gather such elements one by one. Turned are the accesses that run along the square's other variable,
of buffers whose memory this kernel touches in one way only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from compiler.codegen.cpp.ops import storage_type
from compiler.codegen.cpp.plan import Plan
from compiler.codegen.program import Statement
from compiler.ir.index import Dim, Indirect
from compiler.ir.size import text_of


@dataclass(frozen=True)
class Turned:
    """One access by way of a small square array, which has a row for each point of `across`."""

    statement: Statement
    #: Of the array.
    name: str
    ctype: str
    inner: Dim
    across: Dim
    edge: int

    @property
    def place(self) -> str:
        """The element of the array that belongs to the present point."""
        across, inner = self.across.name, self.inner.name
        return f"{self.edge} * ({across} - {across}_start) + ({inner} - {inner}_start)"

    @property
    def declaration(self) -> str:
        return f"{self.ctype} {self.name}[{self.edge} * {self.edge}];"

    def call(self, pointer: str) -> str:
        """The line that fills the array, or for a store empties it."""
        index = self.statement.index
        assert index is not None
        square = (self.inner, self.across)

        def at_start(atom: Dim | Indirect) -> str:
            assert isinstance(atom, Dim)
            return f"{atom.name}_start" if atom in square else atom.name

        start = f"{pointer} + {index.render(at_start, '/')}"
        stride = text_of(index.stride(self.inner) or 0)
        inner, across = (f"{dim.name}_end - {dim.name}_start" for dim in square)
        if self.statement.op == "load":
            return f"fs::turn({start}, {stride}, {inner}, {across}, {self.name}, {self.edge});"
        return f"fs::turn({self.name}, {self.edge}, {across}, {inner}, {start}, {stride});"


def turned_accesses(plan: Plan, written_over: Collection[str]) -> dict[int, Turned]:
    """By statement, the accesses that are turned. Buffers of `written_over` share their memory with another one."""
    if plan.across is None or plan.inner is None or plan.shape != "pointwise":
        return {}
    inner, across, program = plan.inner, plan.across, plan.program
    taken = {statement.target for statement in program.statements}
    found: dict[int, Turned] = {}
    for statement in program.statements:
        buffer = statement.buffer
        if buffer is None or buffer in written_over or (buffer in program.reads and buffer in program.writes):
            continue
        if not _runs_along(statement, inner, across):
            continue
        name = f"{statement.target if statement.op == 'load' else buffer}_turned"
        while name in taken:
            name += "_"
        taken.add(name)
        ctype = storage_type(program.storage[buffer])
        found[statement.number] = Turned(statement, name, ctype, inner, across, plan.block)
    return found


def _runs_along(statement: Statement, inner: Dim, across: Dim) -> bool:
    """Whether a load or store without a mask takes neighbours along `across`, and others along `inner`."""
    index = statement.index
    is_plain = statement.op == "load" and not statement.operands
    is_plain |= statement.op == "store" and not statement.is_scatter and len(statement.operands) == 1
    if not is_plain or index is None or not index.is_affine:
        return False
    return index.stride(across) == 1 and index.stride(inner) not in (None, 0, 1)
