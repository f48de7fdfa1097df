"""Seconds of compiling by phase: ours and TorchInductor's in the same five, so that they stand beside each other.

Ours are taken by the clock around each step, of all graphs together. What TorchDynamo and TorchInductor took is told by
the counters of torch (`torch._dynamo.utils.compile_times`), which nest: a phase is a counter less those within it, and
what belongs to none of the later phases is capture. A release of torch without a counter tells less, and never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar, get_args

from torch._dynamo.utils import compile_times

from compiler.report import CompilePhase, CompilePhaseName

#: What the stages of a graph are called in `seconds` of what they make; see `compiler.compile`.
STEPS: Mapping[CompilePhaseName, str] = {
    "lowering": "lower",
    "scheduling": "plan",
    "code generation": "generate",
    "build": "build",
}
#: Dynamo's counter of everything that it does for one function, the backend's part included.
_WHOLE = "_compile.compile_inner"
_LOWERING = ("GraphLowering.run", "_recursive_post_grad_passes")
_SCHEDULING = "Scheduler.__init__"
_GENERATED = "GraphLowering.codegen"
#: What is generated, written and loaded; on a GPU Triton's compilation too.
_LOADED = "GraphLowering.compile_to_module"

Seconds = Mapping[str, float]
Name = TypeVar("Name", bound=str)


def counted() -> dict[str, float]:
    """Seconds by the name of torch's counter, since Dynamo was last reset, as it is before each capture."""
    names, values = compile_times(repr="csv", aggregate=True)
    return {name: float(str(value)) for name, value in zip(names, values, strict=True)}


def since(before: Seconds) -> dict[str, float]:
    """What was counted since `before`."""
    return {name: value - before.get(name, 0.0) for name, value in counted().items()}


def ours(counts: Seconds, graphs: Iterable[Seconds]) -> dict[CompilePhaseName, float]:
    """`counts` are those of the capture, `graphs` the seconds of each graph by step."""
    total = added_up(graphs)
    steps = {phase: total.get(step, 0.0) for phase, step in STEPS.items()}
    return {"capture": counts[_WHOLE], **steps} if _WHOLE in counts else steps


def of_inductor(counts: Seconds, waited: float = 0.0) -> dict[CompilePhaseName, float]:
    """`waited` are seconds in which compilers of C++ were waited for beside the counters."""
    if _WHOLE not in counts:
        return {}
    scheduling = counts.get(_SCHEDULING, 0.0)
    generated = counts.get(_GENERATED, 0.0)
    found: dict[CompilePhaseName, float] = {
        "lowering": sum(counts.get(name, 0.0) for name in _LOWERING),
        "scheduling": scheduling,
        "code generation": max(generated - scheduling, 0.0),
        "build": max(counts.get(_LOADED, generated) - generated, 0.0) + waited,
    }
    return {"capture": max(counts[_WHOLE] - sum(found.values()), 0.0), **found}


def added_up(each: Iterable[Mapping[Name, float]]) -> dict[Name, float]:
    """Seconds of several, by name."""
    total: dict[Name, float] = {}
    for seconds in each:
        for name, value in seconds.items():
            total[name] = total.get(name, 0.0) + value
    return total


def side_by_side(
    compiled: Mapping[CompilePhaseName, float], peer: Mapping[CompilePhaseName, float]
) -> list[CompilePhase]:
    """Each phase that either has, in the order in which they come."""
    return [
        CompilePhase(phase=phase, compiled_seconds=_rounded(compiled, phase), peer_seconds=_rounded(peer, phase))
        for phase in get_args(CompilePhaseName)
        if phase in compiled or phase in peer
    ]


def _rounded(seconds: Mapping[CompilePhaseName, float], phase: CompilePhaseName) -> float | None:
    return round(seconds[phase], 6) if phase in seconds else None
