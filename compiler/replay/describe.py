"""The replay decision of a graph in the report's terms."""

from __future__ import annotations

from typing import Literal

from compiler import report
from compiler.decisions import Decision
from compiler.ir.nodes import ExternNode
from compiler.ir.size import hint
from compiler.replay.price import Times
from compiler.replay.replayed import Choice, ReplayedCall
from compiler.schedule.memory.lifetimes import storage_bytes
from compiler.schedule.scheduler import Schedule


def describe_replay(schedule: Schedule, made: ReplayedCall | Decision, option: Choice) -> report.Replay:
    """`made` is what is called instead of the graph's wrapper, or why nothing is."""
    decision = made if isinstance(made, Decision) else made.decision
    told = report.Replay(
        **decision.told(),
        numbers=dict(decision.numbers),
        option=option,
        node=next(iter(decision.nodes), None),
        launches=len(schedule.units),
        library_calls=sum(isinstance(unit, ExternNode) for unit in schedule.units),
    )
    if isinstance(made, ReplayedCall):
        told.launched, told.replayed = _times(made.launched_times), _times(made.replayed_times)
        told.recordings, told.replays, told.launched_calls = made.recordings, made.replays, made.launched
        predicted = decision.numbers.get("replay_us")
        told.predicted_host_us = None if predicted is None else float(predicted)
        if decision.verdict == "replayed":
            _describe_recording(schedule, made, told)
    return told


def _describe_recording(schedule: Schedule, call: ReplayedCall, told: report.Replay) -> None:
    told.recorded_launches, told.recorded_library_calls = told.launches, told.library_calls
    for position, name in enumerate(schedule.graph.inputs):
        if name is not None:
            size = hint(storage_bytes(schedule.graph.buffers[name]))
            told.inputs.append(report.ReplayInput(name=name, bytes=size, way=_way_of(position, call)))
    told.copied_in_bytes, told.copied_out_bytes = call.copied_in.bytes, call.copied_out.bytes
    told.held_bytes = call.given.held.bytes if call.given is not None and call.given.held is not None else 0
    told.pool_bytes = call.pool_bytes()


def _way_of(position: int, call: ReplayedCall) -> Literal["in_place", "copied", "held"]:
    if position in call.copied:
        return "copied"
    return "held" if position in call.held_inputs else "in_place"


def _times(times: Times | None) -> report.CallTimes | None:
    if times is None:
        return None
    return report.CallTimes(measured_host_us=round(times.host_us, 1), measured_elapsed_us=round(times.elapsed_us, 1))
