"""What a tile of a reduction holds in registers and in shared memory, and what its program has to do with that."""

from __future__ import annotations

from dataclasses import replace

from compiler.codegen.program import Program, Section
from compiler.codegen.single_pass import FIELDS
from compiler.codegen.triton.plan import Plan
from compiler.devices import Device

#: Threads of a multiprocessor share its registers; so many of them are for addresses and temporaries.
REGISTERS_FOR_ADDRESSES = 24

#: Blocks of a loop that are loaded or worked on at a time, and the capability from which on a load may be under way to
#: shared memory.
_STAGES, _ASYNCHRONOUS_COPIES = 3, 80


def r_sections(program: Program) -> list[Section]:
    return [section for section in program.sections if section.level == "r"]


def live_registers(program: Program) -> int:
    """32-bit registers for each element of r: values that a later pass still needs, and those of the pass itself."""
    made: dict[int, int] = {}
    last_use: dict[int, int] = {}
    words: dict[int, int] = {}
    for place, section in enumerate(program.sections):
        for statement in section.statements:
            if statement.level == "r" and statement.op not in ("store", "constant"):
                made[statement.number] = place
                words[statement.number] = max(statement.dtype.itemsize // 4, 1)
            for number in statement.needs:
                last_use[number] = place
    crossing = [
        sum(words[number] for number in made if made[number] <= place < last_use.get(number, -1))
        for place in range(len(program.sections))
    ]
    widest = max(words.values(), default=1)
    return max(crossing, default=0) + 2 * widest


def registers(plan: Plan) -> int:
    """Of a whole program, about."""
    threads = 32 * plan.num_warps
    elements = -(-plan.axes[0].block * plan.axes[-1].block // threads)
    return threads * (live_registers(plan.program) * elements + REGISTERS_FOR_ADDRESSES)


def carries(program: Program) -> bool:
    """Whether its loop carries along a sum that is relative to another result."""
    return any(s.op == "reduce" and s.value in FIELDS for s in program.statements)


def loading_ahead(plan: Plan, device: Device) -> Plan:
    """With the next blocks of its one tensor on their way to shared memory, where that holds them: a program of many
    threads that waits for all of them, or whose loads stand next to their uses, then does not wait for memory as well.
    On an H200 a cross entropy of rows of 50,304 takes 393 us so, not 429, and the sums of 8,192 x 8,192 along both axes
    83, not 86; sums of one row, and loops of two passes, gain nothing or lose."""
    loads = [s for s in plan.program.statements if s.op == "load" and s.level == "r"]
    itemsize = sum(plan.program.storage[s.buffer or ""].itemsize for s in loads)
    held = (_STAGES - 1) * itemsize * plan.axes[0].block * plan.axes[-1].block
    has_copies = device.capability >= _ASYNCHRONOUS_COPIES
    return replace(plan, stages=_STAGES) if len(loads) == 1 and has_copies and held <= _share(device) else plan


def _share(device: Device) -> int:
    return device.shared_per_block * 3 // 4
