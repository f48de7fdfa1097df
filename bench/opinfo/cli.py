"""`fusionscope bench --suite opinfo`: run the sweep, print its figures, write them as JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from bench.environment import write_json
from bench.opinfo import database, programs
from bench.opinfo.sweep import Progress, Request, document, sweep
from compiler.wording import counted

#: Problems and fallbacks that are printed; the file has all of them.
PRINTED = 40


def run(asked: argparse.Namespace, chosen: Sequence[str], device: str, console: Console) -> int:
    """0 if every sample that ran was right, 1 if not, 2 for a mistake in the request."""
    known = [*database.operators(), *(f"{database.PROGRAM}{name}" for name in programs.PROGRAMS)]
    unknown = [name for name in chosen if name not in known]
    if unknown:
        console.print(f"No operator {', '.join(unknown)} in torch's database.")
        return 2
    dtypes = asked.dtypes or database.FORWARD_DTYPES
    jobs = [job for name in chosen or known for job in database.jobs(name, device, dtypes, not asked.forward_only)]
    request = Request(tuple(jobs), device, asked.samples, asked.seed, asked.processes)

    def on_progress(progress: Progress) -> None:
        done = sum(len(numbers) for numbers in progress.reported.values())
        if done % 500 == 0:
            write_json(asked.out, document(request, progress))
            print(f"{done} samples, {counted(len(progress.problems), 'problem')}", file=sys.stderr, flush=True)

    found = document(request, sweep(request, on_progress))
    write_json(asked.out, found)
    _print(found, console)
    return 1 if found["problems"] else 0


def dtypes_of(text: str) -> list[torch.dtype]:
    """`float32,bool` as dtypes."""
    unknown = [name for name in text.split(",") if not isinstance(getattr(torch, name, None), torch.dtype)]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: torch has no such dtype")
    return [getattr(torch, name) for name in text.split(",")]


def _print(found: dict[str, Any], console: Console) -> None:
    drawn = Table("direction, dtype", "samples", "right", "wrong", "failed", "share", "by float64", "refused by eager")
    for name, share in found["shares"].items():
        part = "-" if share["share_right"] is None else f"{100 * share['share_right']:.2f} %"
        figures = [str(share[key]) for key in ("samples", "right", "wrong", "failed")]
        drawn.add_row(name, *figures, part, str(share["by_float64"]), str(share["refused"]))
    console.print(drawn)
    for problem in found["problems"][:PRINTED]:
        place = f"{problem['operator']} {problem['direction']} {problem['dtype']} sample {problem['number']}"
        console.print(f"{problem['status']}: {place} ({problem['inputs']}): {problem['sentence']}", markup=False)
    packets = found["packets"]
    console.print(
        f"Of the {packets['of_inductor']} ATen operators that TorchInductor lowers itself, {packets['lowered']} are "
        f"lowered ({100 * packets['share']:.1f} %), {len(packets['falls_back'])} fall back, and no sample reached "
        f"{len(packets['not_reached'])}."
    )
    for name, reason in packets["falls_back"].items():
        console.print(f"falls back: {name}: {reason}", markup=False)
    console.print(f"not reached: {', '.join(packets['not_reached']) or 'none'}", markup=False)
