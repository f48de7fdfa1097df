"""Timing the kernels of a graph: each alone, and both sides of each choice, beside what the model says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from bench.contest import sentence_of
from bench.predictions.classes import class_of
from bench.predictions.kernels import MeasuredKernel, PlannedGraph, arguments_of, buffer_values
from compiler.codegen.rendered import RenderedKernel
from compiler.options import Timing
from compiler.runtime.cpp.library import compile_kernels
from compiler.runtime.timing.measure import Samples, take_samples
from compiler.runtime.timing.stopwatch import Call, stopwatch
from compiler.runtime.triton.launch import TritonLauncher
from compiler.schedule.cost.kernel import cost_parts, group_cost
from compiler.schedule.records.choices import Choice

Launchers = Mapping[str, Callable[..., None]]


def measure(planned: PlannedGraph, runs: int, max_seconds: float) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The records of the graph's kernels and of its choices, as plain JSON; times are microseconds."""
    device = planned.maker.runs_on
    launchers = _launchers(planned, device)
    values = buffer_values(planned)
    calls = _calls(planned, launchers, values)
    for number, (_, apart, together) in enumerate(planned.choices):
        for side, names in (("apart", apart), ("together", together)):
            if len(names) > 1 and all(name in calls for name in names):
                calls[f"{side} of choice {number}"] = _in_turn([calls[name] for name in names])
    timing = Timing(min_runs=runs, max_seconds=max_seconds)
    samples = take_samples(calls, stopwatch(device), device, timing) if calls else {}
    kernels = [_kernel_record(planned, name, launchers, samples) for name in planned.kernels]
    choices = [_choice_record(planned, number, samples) for number in range(len(planned.choices))]
    return kernels, choices


def _launchers(planned: PlannedGraph, device: torch.device) -> Launchers:
    kernels: dict[str, RenderedKernel] = {
        name: kernel.rendered for name, kernel in planned.kernels.items() if name not in planned.failures
    }
    if device.type == "cuda":
        return {name: TritonLauncher(kernel) for name, kernel in kernels.items()}
    # A kernel's name is that of its group, as an identifier.
    compiled = compile_kernels(list(kernels.values())) if kernels else {}
    return {name: compiled[kernel.name] for name, kernel in kernels.items()}


def _calls(planned: PlannedGraph, launchers: Launchers, values: Mapping[str, torch.Tensor]) -> dict[str, Call]:
    """A call of each kernel that can be launched; why another cannot is noted in `planned.failures`."""
    calls: dict[str, Call] = {}
    for name, launch in launchers.items():
        try:
            arguments = arguments_of(planned.kernels[name].rendered, values)
            launch(*arguments)
            calls[name] = _call(launch, arguments)
        except Exception as error:  # what cannot be launched is a result
            planned.failures[name] = sentence_of(error)
    return calls


def _call(launch: Callable[..., None], arguments: tuple[Any, ...]) -> Call:
    return lambda: launch(*arguments)


def _in_turn(calls: list[Call]) -> Call:
    def run() -> None:
        for call in calls:
            call()

    return run


def _kernel_record(
    planned: PlannedGraph, name: str, launchers: Launchers, samples: Mapping[str, Samples]
) -> dict[str, Any]:
    kernel = planned.kernels[name]
    recorded, config = planned.recorded, kernel.rendered.config
    launcher = launchers.get(name)
    return {
        "program": recorded.program.name,
        "graph": recorded.name,
        "name": name,
        "role": kernel.role,
        "class": class_of(kernel.group, planned.layouts),
        "nodes": len(kernel.group.members),
        **_prediction(planned, kernel),
        **_times(samples.get(name), "measured"),
        "grid": _first(config.get("grid")),
        "plan": config.get("plan"),
        "config": {key: value for key, value in config.items() if key not in ("grid", "plan")},
        "registers": getattr(launcher, "registers", None),
        "spills": getattr(launcher, "spills", None),
        "shared_bytes": getattr(launcher, "shared_bytes", None),
        "source_digest": kernel.source_digest,
        "error": planned.failures.get(name),
    }


def _prediction(planned: PlannedGraph, kernel: MeasuredKernel) -> dict[str, Any]:
    model = planned.maker.model
    cost = group_cost(kernel.group, planned.layouts, model)
    parts = cost_parts(kernel.group, planned.layouts, model)
    return {"predicted_us": cost.microseconds, "bytes": cost.bytes, "parts": parts}


def _first(grid: Any) -> int | None:
    return int(grid[0]) if grid else None


def _times(samples: Samples | None, name: str) -> dict[str, float | None]:
    if samples is None:
        return {f"{name}_us": None, f"{name}_low_us": None, f"{name}_high_us": None}
    low, high = samples.quartiles_ms
    return {
        f"{name}_us": samples.median_ms * 1e3,
        f"{name}_low_us": low * 1e3,
        f"{name}_high_us": high * 1e3,
        "samples": len(samples.samples_ms),
    }


def _choice_record(planned: PlannedGraph, number: int, samples: Mapping[str, Samples]) -> dict[str, Any]:
    choice: Choice
    choice, apart, together = planned.choices[number]

    def taken_of(side: str, names: tuple[str, ...]) -> Samples | None:
        return samples.get(names[0] if len(names) == 1 else f"{side} of choice {number}")

    return {
        "program": planned.recorded.program.name,
        "graph": planned.recorded.name,
        "kind": choice.kind,
        "apart": list(apart),
        "together": list(together),
        "is_taken": choice.is_taken,
        "predicted_apart_us": choice.apart_us,
        "predicted_together_us": choice.together_us,
        **_times(taken_of("apart", apart), "measured_apart"),
        **_times(taken_of("together", together), "measured_together"),
    }
