"""Whether the launches of a schedule may be recorded as a CUDA graph.

Kernels of our own may: they know no host. Of library calls only those of which it is known: that they neither wait for
the device nor decide by its values what to launch. torch's generator takes part in a recording (a replay draws what a
call would have drawn), so the seeds of our kernels may be drawn in it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from compiler.decisions import Decision
from compiler.ir.library_calls import BY_ROWS_APART, FUSED_CONVOLUTION
from compiler.ir.nodes import ExternNode, LoopGraph
from compiler.lowering.library import ATTENTION, CONVOLUTIONS, PRODUCTS
from compiler.lowering.registry import operator_name
from compiler.schedule.products.library_epilogues import ADDMM_GELU
from compiler.schedule.scheduler import Schedule

#: Fewer launches are not worth a recording: a replay takes the host about as long.
FEWEST_LAUNCHES = 4

#: Library calls that were seen to be recorded and replayed, by their names in ATen.
RECORDABLE = frozenset(
    f"{PRODUCTS} _addmm_activation {CONVOLUTIONS} {ATTENTION} copy_ randint topk sort cumsum embedding_dense_backward"
    " clone".split()
)
#: Calls of our own that are one or several of these.
OWN_CALLS = (FUSED_CONVOLUTION, ADDMM_GELU, BY_ROWS_APART)


def obstacle(schedule: Schedule) -> Decision | None:
    """Why the schedule is not to be recorded; None where it may be."""
    if schedule.graph.symbols or None in schedule.graph.inputs:
        return Decision("replay.open_sizes")
    if len(schedule.units) < FEWEST_LAUNCHES:
        return Decision("replay.few_launches", {"launches": len(schedule.units)})
    calls = (unit for unit in schedule.units if isinstance(unit, ExternNode))
    return next((why for call in calls if (why := _obstacle_of(call)) is not None), None)


def _obstacle_of(call: ExternNode) -> Decision | None:
    name = operator_name(call.target) if isinstance(call.target, torch._ops.OpOverload) else str(call.target)
    if call.crosses_devices:
        return _refused("replay.other_device", name, call)
    if call.target in OWN_CALLS:
        return None
    if not _is_recordable(call.target):
        return _refused("replay.unknown_call", name, call)
    if _drops_out(call):
        return _refused("replay.random_call", name, call)
    return None


def _refused(reason: str, name: str, call: ExternNode) -> Decision:
    return Decision(reason, {"what": name}, (call.name,), tuple(call.lines))


def _is_recordable(target: Any) -> bool:
    return isinstance(target, torch._ops.OpOverload) and target.namespace == "aten" and target._opname in RECORDABLE


def _drops_out(call: ExternNode) -> bool:
    """Whether a library's attention draws its own dropout."""
    named = zip(call.target._schema.arguments, call.arguments, strict=False)
    given = {argument.name: value for argument, value in named} | call.keywords
    return bool(given.get("dropout_p"))


def written_inputs(graph: LoopGraph, by_kernels: Collection[str] = ()) -> frozenset[int]:
    """Positions of the inputs that the graph writes to: `by_kernels`, and the last `copy_` that AOTAutograd leaves in
    it."""
    written = set(by_kernels)
    for call in (node for node in graph.nodes if isinstance(node, ExternNode)):
        schema = getattr(call.target, "_schema", None)
        for argument, value in zip(schema.arguments, call.arguments, strict=False) if schema is not None else ():
            if argument.alias_info is not None and argument.alias_info.is_write:
                written.add(value.buffer)
    return frozenset(position for position, name in enumerate(graph.inputs) if name in written)
