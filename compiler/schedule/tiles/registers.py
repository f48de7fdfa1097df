"""What a tile of a reduction holds in registers and in shared memory, and what its program has to do with that."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from compiler.devices import Device
from compiler.schedule.program.program import Program
from compiler.schedule.program.single_pass import FIELDS
from compiler.schedule.tiles.plan import LoopedPlan, WholeRows

W = TypeVar("W", bound=WholeRows)

#: Threads of a multiprocessor share its registers; so many of them are for addresses and temporaries.
REGISTERS_FOR_ADDRESSES = 24

#: Registers for each sum of a column as the parts of several programs are joined.
_TO_JOIN = 4

#: The same of a loop over blocks, for each tensor that it loads; and the fewest elements that a thread of it takes.
_FOR_EACH_LOAD, _LEAST_AT_ONCE = 8, 4

#: Blocks of a loop that are loaded or worked on at a time, and the capability from which on a load may be under way to
#: shared memory.
LOADED_AHEAD, ASYNCHRONOUS_COPIES = 3, 80


def live_registers(program: Program) -> int:
    """32-bit registers for each element of r: values that a later pass still needs, and those of the pass itself."""
    made: dict[int, int] = {}
    last_use: dict[int, int] = {}
    words: dict[int, int] = {}
    for position, section in enumerate(program.sections):
        for statement in section.statements:
            if statement.level == "r" and statement.op not in ("store", "constant"):
                made[statement.number] = position
                words[statement.number] = max(statement.dtype.itemsize // 4, 1)
            for number in statement.needs:
                last_use[number] = position
    crossing = [
        sum(words[number] for number in made if made[number] <= position < last_use.get(number, -1))
        for position in range(len(program.sections))
    ]
    widest = max(words.values(), default=1)
    return max(crossing, default=0) + 2 * widest


def registers_of_rows(program: Program) -> int:
    """The same with the sums across rows that a program has for each."""
    return live_registers(program) + sum(s.level == "r" for s in program.across)


def registers_for_rows(device: Device) -> int:
    """Registers of a multiprocessor that rows may take; the rest is for what else threads hold."""
    return device.registers_per_multiprocessor * 3 // 4 or 49152


def registers_of_sums(plan: WholeRows) -> int:
    """Of a thread of a program that adds up rows, about: each of its elements has its own sums, what is loaded for all
    rows stays, and joining the parts of several programs takes two words of a double and as many of what is loaded.
    (For the gradient of a layer norm with three sums the assembler takes 184 for 16 elements, 108 for eight, 70 for
    four and 40 for two, where 72 are expected for four.)"""
    program, threads = plan.program, 32 * plan.num_warps
    of_r = [s.index.dims for s in program.statements if s.op == "load" and s.level == "r" and s.index is not None]
    sums = sum(max(s.dtype.itemsize // 4, 1) for s in program.across if s.level == "r")
    kept = sum(dims.isdisjoint(program.space.x) for dims in of_r)
    columns = -(-plan.axes[-1].block // threads)
    elements = -(-plan.axes[0].block * plan.axes[-1].block // threads)
    rows = (live_registers(program) + sums) * elements + kept * columns
    return max(rows, _TO_JOIN * sums * columns) + REGISTERS_FOR_ADDRESSES


def registers_of_loop(program: Program, elements: int) -> int:
    """Of a thread of a loop over blocks, about, where it takes so many elements at a time: what it loads of each and
    what it carries along, and addresses. (For eight and four elements the assembler takes 80 and 56 of three loads and
    a sum relative to the largest, 40 and 30 of one load and such a sum, 57 and 40 of one load and two moments.)"""
    loads = max(len({(s.buffer, s.index) for s in one.statements if s.op == "load"}) for one in program.passes)
    carried = max(sum(len(FIELDS.get(str(s.value), (1,))) for s in one.reductions) for one in program.passes)
    return (loads + carried) * elements + _FOR_EACH_LOAD * (loads + 1)


def leaving_room(plan: LoopedPlan, device: Device) -> LoopedPlan:
    """A loop of large programs by blocks so small that a multiprocessor holds two of them, of which one loads while the
    other waits for the sum of its row. On an H200 a log-softmax of 1,024 rows of 50,304 bfloat16 with a bias and a mask
    takes 136 us by four elements a thread, 143 by eight, 176 by 16; of 512 rows of 50,257 105 and 232."""
    x_axis, r_axis = plan.axes
    threads, block = 32 * plan.num_warps, r_axis.block
    room = device.registers_per_multiprocessor // (2 * threads)
    while block > _LEAST_AT_ONCE * threads and registers_of_loop(plan.program, block // threads) > room:
        block //= 2
    return replace(plan, axes=(x_axis, replace(r_axis, block=block)))


def carries(program: Program) -> bool:
    """Whether its loop carries along a sum that is relative to another result."""
    return any(s.op == "reduce" and s.value in FIELDS for s in program.statements)


def finds_positions(program: Program) -> bool:
    """Whether it finds where the largest or the least element of a row is."""
    return any(s.op == "reduce" and str(s.value).startswith("arg") for s in program.statements)


def stores_elements(program: Program) -> bool:
    """Whether something is stored for each point of the reduction loops."""
    return any(s.op == "store" and s.level == "r" for s in program.statements)


def loading_ahead(plan: W, device: Device) -> W:
    """With the next blocks of its one tensor on their way to shared memory, where that holds them: a program of many
    threads that waits for all of them, or whose loads stand next to their uses, then does not wait for memory as well.
    On an H200 a cross entropy of rows of 50,304 takes 393 us so, not 429, and the sums of 8,192 x 8,192 along both axes
    83, not 86; sums of one row, and loops of two passes, gain nothing or lose."""
    loads = [s for s in plan.program.statements if s.op == "load" and s.level == "r"]
    itemsize = sum(plan.program.dtype_of(s).itemsize for s in loads)
    held = (LOADED_AHEAD - 1) * itemsize * plan.axes[0].block * plan.axes[-1].block
    has_copies = device.capability >= ASYNCHRONOUS_COPIES
    is_held = held <= device.shared_per_block * 3 // 4
    return replace(plan, stages=LOADED_AHEAD) if len(loads) == 1 and has_copies and is_held else plan
