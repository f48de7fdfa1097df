"""Print stores that lie side by side as one store of a two-dimensional tile: see `compiler.schedule.interleaved`.

tl.store(c_ptr + 3 * x0, a)                lanes = tl.arange(0, 4)[None, :]
tl.store(c_ptr + (3 * x0 + 1), b)    ->    row = tl.reshape(tl.join(tl.join(a, c), tl.join(b, 0)), [XBLOCK, 4])
tl.store(c_ptr + (3 * x0 + 2), c)          tl.store(c_ptr + (3 * x0)[:, None] + lanes, row, lanes < 3)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from compiler.codegen.triton.values.ops import DTYPES, convert
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.codegen.triton.writer import store_text
from compiler.ir.float8 import FLOAT8
from compiler.ir.ops import compute_dtype
from compiler.ir.size import next_power_of_two
from compiler.schedule.interleaved import side_by_side
from compiler.schedule.program.program import Section, Statement
from compiler.schedule.tiles.plan import PersistentPlan, PointwisePlan

_OF_POINTS = frozenset("x")


def interleaved_stores(section: Section, printer: StatementPrinter) -> list[tuple[Statement, ...]]:
    """The stores of a section, of parts of one whole, that go together, each row in the order in which it lies."""
    program, plan = printer.program, printer.plan
    axes = [axis.name for axis in printer.vectors]
    if not isinstance(plan, PointwisePlan | PersistentPlan) or plan.rows_in_turn or axes not in (["x"], ["x", "r"]):
        return []
    of_whole: defaultdict[str, list[Statement]] = defaultdict(list)
    for s in section.statements:
        whole = program.wholes.get(s.buffer or "")
        if s.op == "store" and s.level == "x" and whole is not None and program.dtype_of(s) not in FLOAT8:
            of_whole[whole].append(s)
    rows: list[tuple[Statement, ...]] = []
    for stores in of_whole.values():
        runs = side_by_side([s.index for s in stores if s.index is not None])
        rows += [tuple(stores[position] for position in run) for run in runs]
    return rows


def store_of_row(row: Sequence[Statement], printer: StatementPrinter) -> str:
    """The line that stores a row for each of the points along x."""
    first = row[0]
    assert first.buffer is not None and first.index is not None
    width = next_power_of_two(len(row))
    values = [_along_points(s, printer) for s in row]
    values += values[-1:] * (width - len(row))
    lanes = f"tl.arange(0, {width})[None, :]"
    spread = "[:, None]" if len(printer.vectors) == 1 else ""
    masks = [f"({mask}){spread}" for mask in printer.store_masks(first, _OF_POINTS)]
    masks += [f"({lanes} < {len(row)})"] if width > len(row) else []
    address = f"{printer.pointer(first.buffer)} + ({printer.offset(first.index)}){spread} + {lanes}"
    tile = f"tl.reshape({_joined(values)}, [{printer.vectors[0].block_name}, {width}])"
    return store_text(address, tile, masks)


def _along_points(store: Statement, printer: StatementPrinter) -> str:
    """What is stored, with a value for each point."""
    number = store.operands[0]
    value, dtype = printer.operand(number), compute_dtype(printer.program.dtype_of(store))
    if value.is_constant:
        return f"tl.full({printer.shape(_OF_POINTS)}, {value.infix}, {DTYPES[dtype]})"
    return printer.spread(convert(value, dtype), printer.axes_of[number], _OF_POINTS)


def _joined(values: Sequence[str]) -> str:
    """Values as one tensor, whose last dimensions are the digits of their positions in binary."""
    if len(values) == 1:
        return values[0]
    return f"tl.join({_joined(values[::2])}, {_joined(values[1::2])})"
