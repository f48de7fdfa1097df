"""What a compiled graph is called by: its wrapper, or that with its launches recorded once the first calls show that it
pays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from compiler.capture.captured import Phase
from compiler.devices import Device
from compiler.replay.by_sizes import CallBySizes, places_of_sizes
from compiler.replay.decision import ReplayDecision
from compiler.replay.legality import obstacle, written_inputs
from compiler.replay.replayed import Call, Choice, Facts, ReplayedCall
from compiler.schedule.scheduler import Schedule

Replayed = ReplayedCall | CallBySizes


def replayed_or_not(
    call: Call,
    schedule: Schedule,
    kernels: Mapping[str, Callable[..., None]],
    device: torch.device,
    model: Device,
    choice: Choice,
    phase: Phase,
) -> Replayed | ReplayDecision:
    """What to call instead of `call`, a graph's wrapper on the GPU `device`; or why there is nothing."""
    if choice == "off":
        return ReplayDecision("replay.off")
    if phase != "inference" and choice != "on":
        return ReplayDecision("replay.training")
    why = obstacle(schedule)
    if why is not None:
        return why
    from compiler.replay.recorder import CudaRecorder
    from compiler.runtime.triton_launch import TritonLauncher

    number = torch.cuda.current_device() if device.index is None else device.index
    launchers = [kernel for kernel in kernels.values() if isinstance(kernel, TritonLauncher)]
    facts = Facts(len(schedule.units), model.bandwidth, written_inputs(schedule.graph))
    recorder = CudaRecorder(number, launchers)

    def make() -> ReplayedCall:
        return ReplayedCall(call, facts, recorder, choice)

    places = places_of_sizes(schedule.graph)
    return CallBySizes(call, places, make) if places else make()
