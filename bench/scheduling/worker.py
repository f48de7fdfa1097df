"""One case of the suite in a process of its own, whose caches are empty. Writes one line of JSON.

python -m bench.scheduling.worker KIND BLOCKS
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

from bench.scheduling.programs import KINDS
from compiler.devices import device_for
from compiler.garbage import garbage_kept
from compiler.ir.nodes import ExternNode
from compiler.lowering.lower import lower
from compiler.options import Options
from compiler.schedule.memory.plan import plan_memory
from compiler.schedule.scheduler import schedule

Result = TypeVar("Result")


def main() -> None:
    kind, blocks = sys.argv[1], int(sys.argv[2])
    graph = KINDS[kind](blocks).graph()
    with garbage_kept():
        loops, lower_s = timed(lambda: lower(graph))
        planned, schedule_s = timed(lambda: schedule(loops, device_for("sm_90"), Options()))
        _, memory_s = timed(lambda: plan_memory(planned))
    calls = sum(isinstance(unit, ExternNode) for unit in planned.units)
    told: dict[str, Any] = {
        "blocks": blocks,
        "nodes": len(loops.nodes),
        "lower_s": lower_s,
        "schedule_s": schedule_s,
        "memory_s": memory_s,
        "total_s": lower_s + schedule_s + memory_s,
        "ms_per_node": 1e3 * (lower_s + schedule_s + memory_s) / len(loops.nodes),
        "kernels": len(planned.units) - calls,
        "library_calls": calls,
        "decisions": len(planned.decisions),
    }
    print(json.dumps({key: round(value, 4) if isinstance(value, float) else value for key, value in told.items()}))


def timed(step: Callable[[], Result]) -> tuple[Result, float]:
    """What a step gives, and the processor seconds that it took in this process."""
    started = time.process_time()
    result = step()
    return result, time.process_time() - started


if __name__ == "__main__":
    main()
