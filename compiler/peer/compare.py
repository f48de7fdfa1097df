"""The stage `compare`: TorchInductor on the calls that the snippet made, and all three timed against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler.capture.captured import EntryCall
from compiler.options import Options
from compiler.peer.inductor import explore_peer
from compiler.report import Peer, TimingResult
from compiler.runtime.measure import ContestantName, measure


def compare_with_peer(
    entries: Sequence[EntryCall],
    device: torch.device,
    options: Options,
    timing: TimingResult | None,
    with_backward: bool,
) -> tuple[Peer, TimingResult | None]:
    """TorchInductor's kernels for every callable that the snippet compiled, and new times with the peer among them.

    `timing` is what was measured without the peer. It is given back where the peer cannot compile the snippet, which is
    then said in the peer's message, and where no times are wanted. Three contestants that were not interleaved with
    each other would not be comparable, so with the peer all are measured again. `with_backward` asks for its backward
    graphs too, for a snippet that has one.
    """
    kernels, messages, seconds = [], [], 0.0
    compiled: list[Callable[..., Any]] = []
    for entry in entries:
        args, kwargs = entry.copy_arguments()
        try:
            function, explored = explore_peer(entry.eager, args, kwargs, device, options.mode, with_backward)
        except Exception as error:  # the peer's failure is a finding, not a failure of ours
            return Peer(message=f"TorchInductor failed on {entry.name}: {type(error).__name__}: {error}"), timing
        compiled.append(function)
        kernels += explored.kernels
        seconds += explored.compile_s
        messages.append(f"{entry.name}: {explored.message}" if len(entries) > 1 else explored.message or "")
    peer = Peer(kernels=kernels, message=" ".join(messages) or None)
    if timing is None or not entries or not options.timing.enabled:
        return peer, timing
    calls: dict[ContestantName, Callable[[], object]] = {
        "eager": _all(entries, [entry.eager for entry in entries]),
        "compiled": _all(entries, [entry.compiled for entry in entries]),
        "peer": _all(entries, compiled),
    }
    raced = measure(calls, device, options.timing)
    known = {one.name: one.compile_s for one in timing.contestants}
    for one in raced.contestants:
        one.compile_s = seconds if one.name == "peer" else known.get(one.name)
    return peer, raced


def _all(entries: Sequence[EntryCall], functions: Sequence[Callable[..., Any]]) -> Callable[[], object]:
    """One call of each function on the arguments of its entry."""
    calls = [(function, *entry.copy_arguments()) for entry, function in zip(entries, functions, strict=True)]

    def call() -> None:
        for function, args, kwargs in calls:
            function(*args, **kwargs)

    return call
