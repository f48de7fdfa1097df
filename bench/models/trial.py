"""One model: run it each way, judge all results against float64, say what was compiled, and time it if asked.

A model is compiled by a first step on one batch and judged by a second step on another, from the same weights and
statistics, so that a value that was compiled in would be seen.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from bench.contest import (
    REPLAYED,
    Outcome,
    Setup,
    compile_with,
    fresh_caches,
    in_order,
    note_failure,
    race_of,
    seconds_of,
    take_times,
)
from bench.models.compiled import Compiled
from bench.models.judge import InDouble, Judgement, judge
from bench.models.model import Model
from bench.models.run import Run
from compiler.capture.recording.torch_trace import graph_break_reasons
from compiler.compile import observed_compilations

#: Characters kept of what a failure says, from its end.
LONGEST_TRACEBACK = 8000

Judge = Callable[[Mapping[str, Tensor]], Judgement]


@dataclass
class Story:
    """What is told of each contestant besides what any benchmark tells."""

    worst: dict[str, str]
    share: dict[str, float]
    second_step_s: dict[str, float]
    tracebacks: dict[str, str]


def run_model(
    model: Model, contestants: Sequence[str], setup: Setup, starting: Callable[[str], None]
) -> dict[str, Any]:
    """The result of one model as plain JSON: what `bench.contest.run_case` gives, and what was compiled."""
    torch._dynamo.reset()
    run, others = _prepare(model, setup)
    outcome, story, compiled = Outcome(), Story({}, {}, {}, {}), Compiled()
    starting("eager")
    plain = run.copied()
    eager = plain.results(plain.callee())
    judge_by = _judge_of(run, eager)
    _note("eager", judge_by(eager), outcome, story)
    outcome.callables["eager"] = lambda: plain.step(plain.callee())
    with ExitStack() as caches:
        for name in in_order(contestants, model.name):
            if name == "eager" or (name in REPLAYED and setup.device.type != "cuda"):
                continue
            starting(name)
            earlier = graph_break_reasons()
            if name not in REPLAYED:
                caches.enter_context(fresh_caches())
            with observed_compilations(compiled.add) if name == "ours" else nullcontext():
                _compile_and_judge(name, run.copied(), others, judge_by, setup, outcome, story)
            if name == "ours":
                counted = {reason: n - earlier.get(reason, 0) for reason, n in graph_break_reasons().items()}
                compiled.breaks = {reason: n for reason, n in counted.items() if n}
        starting("timing")
        samples = take_times(outcome.callables, (), setup) if setup.is_timed else {}
    return {
        **race_of(samples),
        "parameters": sum(parameter.numel() for parameter in run.module.parameters()),
        "batch": setup.batch,
        "max_error": outcome.max_error,
        "eager_error": outcome.max_error["eager"],
        "ours_error": outcome.max_error.get("ours"),
        "share_of_allowed": story.share,
        "worst": story.worst,
        "correct": outcome.correct,
        "compile_s": outcome.compile_s,
        "ours_compile_s": outcome.compile_s.get("ours"),
        "inductor_compile_s": outcome.compile_s.get("inductor_default"),
        "second_step_s": story.second_step_s,
        **compiled.told(outcome.compile_s.get("ours"), story.second_step_s.get("ours")),
        "errors": outcome.errors,
        "tracebacks": story.tracebacks,
    }


def _prepare(model: Model, setup: Setup) -> tuple[Run, dict[str, Tensor]]:
    """The model with a batch to be judged by, and another batch to compile with."""
    example = model.example("small" if setup.size == "small" else "full", setup.device, setup.seed)
    generator = torch.Generator(setup.device).manual_seed(setup.seed)
    judged, others = (_in_dtype(example.inputs(setup.batch, generator), setup.dtype) for _ in range(2))
    return Run(model, example.module.to(setup.dtype), judged), others


def _in_dtype(inputs: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in inputs.items()}


def _judge_of(run: Run, eager: Mapping[str, Tensor]) -> Judge:
    exact = run.in_double()
    with InDouble():
        reference = exact.results(exact.callee())
    return lambda results: judge(results, eager, reference)


def _note(name: str, judged: Judgement, outcome: Outcome, story: Story) -> None:
    outcome.max_error[name], outcome.correct[name] = judged.error, judged.is_right
    story.worst[name], story.share[name] = judged.worst, judged.share


def _compile_and_judge(
    name: str, run: Run, others: dict[str, Tensor], judge_by: Judge, setup: Setup, outcome: Outcome, story: Story
) -> None:
    restore = run.remembered()
    callee = run.callee(lambda function: compile_with(name, function))
    try:
        outcome.compile_s[name] = seconds_of(lambda: replace(run, inputs=others).step(callee), setup.device)
        restore()
        found: dict[str, Tensor] = {}
        story.second_step_s[name] = seconds_of(lambda: found.update(run.results(callee)), setup.device)
        _note(name, judge_by(found), outcome, story)
        outcome.callables[name] = lambda: run.step(callee)
    except Exception as error:  # a compiler's failure is a result
        story.tracebacks[name] = "".join(traceback.format_exception(error))[-LONGEST_TRACEBACK:]
        note_failure(name, error, setup.device, outcome)
