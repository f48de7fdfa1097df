"""`fusionscope bench --suite predictions`: what the model of the device says of each kernel, beside its time.

plan      record every program, schedule it, render its kernels and both sides of each choice
compile   on a GPU, in processes of their own, while the next programs are being recorded
measure   each kernel alone and each side of a choice, with the stopwatch of the product
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from rich.console import Console

from bench.contest import sentence_of
from bench.environment import CLOCK, copy_bandwidth, describe, write_json
from bench.predictions import trial
from bench.predictions.compiling import Compilers, compilers
from bench.predictions.kernels import PlannedGraph, plan
from bench.predictions.programs import Program, programs, record
from bench.predictions.scatter import draw
from bench.predictions.summary import summarise, tables
from compiler.devices import device_for
from compiler.runtime.timing.stopwatch import stopwatch
from compiler.wording import counted

METHOD = (
    "Every kernel is timed alone, and each way of a choice as a whole, in interleaved rounds: {clock}. Medians of at "
    "least {runs} samples, in microseconds. An error is |predicted / measured - 1|. `scheduled` kernels are those that "
    "the programs run; `alternatives` are those that stand only on one side of a choice. A choice is two legal ways to "
    "run the same nodes that the scheduler weighed; it agrees where the way that it took is the faster one."
)


def run(asked: argparse.Namespace, chosen: Sequence[str], device_name: str, console: Console) -> int:
    """0 if all kernels were measured, 1 if some could not be, 2 for a mistake in the request."""
    known = programs()
    missing = [name for name in chosen if name not in known]
    if missing:
        console.print(f"No program {', '.join(missing)}; a name is the suite and the case, such as micro/copy.")
        return 2
    device = torch.device(device_name)
    size = asked.size or ("full" if device.type == "cuda" else "small")
    document = _document(asked, device, size)
    planned, failures = _plan(asked, [known[name] for name in chosen or known], device, size)
    # What was recorded stays until the end: looking through it for garbage would take longer than many samples.
    gc.collect()
    gc.freeze()
    for number, graph in enumerate(planned):
        try:
            kernels, choices = trial.measure(graph, asked.repeat, asked.max_seconds)
        except Exception as error:  # the next program may do
            failures[graph.recorded.program.name] = sentence_of(error)
            continue
        document["kernels"] += kernels
        document["choices"] += choices
        if number % 20 == 0:
            write_json(asked.out, document)
            print(f"{number} of {len(planned)} graphs measured", file=sys.stderr, flush=True)
    document["failures"] = failures
    document["summary"] = summarise(document["kernels"], document["choices"])
    _write(asked, document, console)
    return 1 if failures or any(kernel["error"] for kernel in document["kernels"]) else 0


def _document(asked: argparse.Namespace, device: torch.device, size: str) -> dict[str, Any]:
    bandwidth = copy_bandwidth(device, stopwatch(device))
    return {
        "suite": "predictions",
        "size": size,
        "method": METHOD.format(clock=CLOCK[device.type], runs=asked.repeat),
        "environment": describe(device, bandwidth, asked.seed),
        "device_model": dataclasses.asdict(device_for(device)),
        "kernels": [],
        "choices": [],
    }


def _plan(
    asked: argparse.Namespace, wanted: Sequence[Program], device: torch.device, size: Any
) -> tuple[list[PlannedGraph], dict[str, str]]:
    """The graphs of all programs, their kernels compiled; and what failed, as sentences."""
    planned: list[PlannedGraph] = []
    failures: dict[str, str] = {}
    with compilers(device) if device.type == "cuda" else nullcontext() as pool:
        for number, program in enumerate(wanted):
            try:
                for graph in record(program, size, device, asked.seed):
                    planned.append(plan(graph, device, device_for(device)))
                    _submit(pool, planned[-1])
            except Exception as error:  # a program that fails is a result
                failures[program.name] = sentence_of(error)
            if number % 20 == 0:
                print(f"{number} of {len(wanted)} programs planned", file=sys.stderr, flush=True)
        refused = pool.failures() if pool is not None else {}
    for built in planned:
        for name, kernel in built.kernels.items():
            if kernel.rendered.source in refused:
                built.failures[name] = refused[kernel.rendered.source]
    return planned, failures


def _submit(pool: Compilers | None, graph: PlannedGraph) -> None:
    if pool is None:
        return
    for kernel in graph.rendered:
        pool.submit(kernel, [graph.layouts[name].dtype for name in kernel.parameters])


def _write(asked: argparse.Namespace, document: dict[str, Any], console: Console) -> None:
    text = tables(document)
    console.print(text, markup=False)
    for program, sentence in document["failures"].items():
        console.print(f"{program}: {sentence}", markup=False)
    for kernel in document["kernels"]:
        if kernel["error"]:
            console.print(f"{kernel['program']} {kernel['name']}: {kernel['error']}", markup=False)
    write_json(asked.out, document)
    if asked.out is not None:
        asked.out.with_suffix(".md").write_text(text)
        scheduled = [kernel for kernel in document["kernels"] if kernel["role"] == "scheduled"]
        title = f"{counted(len(scheduled), 'kernel')} on {document['environment']['device']}"
        asked.out.with_suffix(".svg").write_text(draw(scheduled, title))
