"""The command of the suite `layouts`.

    python -m bench --suite layouts --device cuda --out layouts.json
    python -m bench --suite layouts --cases convolutions            the single convolutions alone
    python -m bench --suite layouts --cases resnet --dtypes float32 --batch 32

Everything is written after each step, so that an interrupted run keeps what it has.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from rich.console import Console

from bench.environment import copy_bandwidth, describe, write_json
from bench.layouts.convolutions import DTYPES, ROWS, measure_gradients, measure_row, rows_for_table
from bench.models.model import missing_library
from bench.suite import Progress, Request, run_suite
from bench.table import cells, verdict, versions
from compiler.devices import device_for
from compiler.options import Timing
from compiler.runtime.timing.stopwatch import stopwatch

NETS = ("resnet", "mobilenet_v2", "convnext")
BATCHES = (1, 32)
CONVOLUTIONS = "convolutions"
CONTESTANTS = ("eager", "ours", "ours_without_folding", "ours_in_eager_layout", "inductor_default")

METHOD = (
    "Medians, contestants interleaved; on a GPU device time between CUDA events, L2 cache overwritten before each "
    "sample. Single convolutions have image and filter in the layout at hand; ratios are channels-last to contiguous. "
    "Nets are those of the suite `models`, weights and inputs in the dtype named, forward in evaluation mode; `ours "
    "without folding` is the same compiler with the knob `disable: [folding]`, `ours in eager's layout` without both."
)
ROW_COLUMNS = ("contiguous us", "channels-last us", "ratio", "predicted ratio")
NET_COLUMNS = (
    ("eager ms", "eager", 3),
    ("ours ms", "ours", 3),
    ("ours without folding ms", "ours_without_folding", 3),
    ("ours in eager's layout ms", "ours_in_eager_layout", 3),
    ("Inductor ms", "inductor_default", 3),
    ("ours / Inductor", "ours_to_inductor", 3),
    ("error of ours", "ours_error", -1),
    ("kernels", "kernels", 0),
)


def run(asked: argparse.Namespace, chosen: Sequence[str], device: str, console: Console) -> int:
    """0 if every result was right, 1 if one was wrong or failed, 2 for a mistake in the request."""
    unknown = [name for name in chosen if name not in (CONVOLUTIONS, *NETS)]
    if unknown:
        console.print(f"No case {', '.join(unknown)}; the cases are {', '.join((CONVOLUTIONS, *NETS))}.")
        return 2
    names = chosen or (CONVOLUTIONS, *NETS)
    missing = missing_library() if set(names) - {CONVOLUTIONS} else None
    if missing is not None:
        console.print(missing, markup=False)
        return 2
    here = torch.device(device)
    bandwidth = copy_bandwidth(here, stopwatch(here))
    document: dict[str, Any] = {
        "suite": "layouts", "method": METHOD, "environment": describe(here, bandwidth, asked.seed),
        "convolutions": {}, "table": [], "gradients": {}, "table_of_gradients": [], "cases": {},
    }  # fmt: skip
    batches = (asked.batch,) if asked.batch else BATCHES if here.type == "cuda" else (1,)
    dtypes = [dtype for dtype in DTYPES if not asked.dtypes or dtype in asked.dtypes]
    if CONVOLUTIONS in names:
        _measure_convolutions(document, here, batches, dtypes, asked)
    for net in names:
        for batch in batches:
            for dtype in dtypes if net != CONVOLUTIONS else ():
                _run_net(document, net, batch, dtype, device, asked)
    lines = markdown(document)
    console.print("\n".join(lines), markup=False)
    if asked.out is not None:
        asked.out.with_suffix(".md").write_text("\n".join(lines) + "\n")
    return 0 if all(verdict(result) == "ok" for result in document["cases"].values()) else 1


def _measure_convolutions(
    document: dict[str, Any],
    device: torch.device,
    batches: Sequence[int],
    dtypes: Sequence[torch.dtype],
    asked: argparse.Namespace,
) -> None:
    watch, model = stopwatch(device), device_for(device)
    timing = Timing(min_runs=asked.repeat, max_seconds=min(asked.max_seconds, 0.5))
    for batch in batches:
        for dtype in dtypes:
            for name, row in ROWS.items():
                key = f"{name}, batch {batch}, {_short(dtype)}"
                document["convolutions"][key] = measure_row(row, batch, dtype, device, model, watch, timing)
                document["gradients"][key] = measure_gradients(row, batch, dtype, device, model, watch, timing)
            document["table"] = rows_for_table(document["convolutions"].values())
            document["table_of_gradients"] = rows_for_table(document["gradients"].values())
            write_json(asked.out, document)
            print(f"convolutions, batch {batch}, {_short(dtype)}", file=sys.stderr, flush=True)


def _run_net(
    document: dict[str, Any], net: str, batch: int, dtype: torch.dtype, device: str, asked: argparse.Namespace
) -> None:
    request = Request(
        cases=(net,),
        device=device,
        size=asked.size or ("full" if device.startswith("cuda") else "small"),
        contestants=CONTESTANTS,
        seed=asked.seed,
        repeat=asked.repeat,
        max_seconds=asked.max_seconds,
        suite="models",
        batch=batch,
        is_timed=asked.timing,
        dtype=_short(dtype),
    )

    def on_result(progress: Progress) -> None:
        document["cases"][f"{net}, batch {batch}, {_short(dtype)}"] = progress.results[net]
        write_json(asked.out, document)

    run_suite(request, on_result)
    print(f"{net}, batch {batch}, {_short(dtype)}", file=sys.stderr, flush=True)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def markdown(document: Mapping[str, Any]) -> list[str]:
    """Both tables, and the rows that the price table would have after this run."""
    environment = document["environment"]
    said = f"Measured on {environment.get('date')} with {versions(environment)}. {document['method']}"
    lines = [f"# Layouts: {environment.get('device', 'unknown device')}", "", said, ""]
    if document["convolutions"]:
        lines += _table(("convolution", *ROW_COLUMNS), map(_row_cells, document["convolutions"].items()))
        lines += ["What these reach, as the prices' table `REACHED` has it:", "", *_indented(document["table"]), ""]
        lines += _table(("gradients of", *ROW_COLUMNS), map(_row_cells, document["gradients"].items()))
        lines += ["As the table `GRADIENTS` has it:", "", *_indented(document["table_of_gradients"]), ""]
    if document["cases"]:
        rows = [[name, *cells(r, NET_COLUMNS), verdict(r).splitlines()[0]] for name, r in document["cases"].items()]
        lines += _table(("net", *(heading for heading, _, _ in NET_COLUMNS), "verdict"), rows)
    return lines


def _row_cells(item: tuple[str, Mapping[str, Any]]) -> list[str]:
    name, row = item
    measured, predicted = row["measured_us"], row["predicted_ratio"]
    figures = [f"{measured['contiguous']:.1f}", f"{measured['channels_last']:.1f}", f"{row['ratio']:.2f}"]
    return [name, *figures, "-" if predicted is None else f"{predicted:.2f}"]


def _table(headings: Sequence[str], rows: Any) -> list[str]:
    drawn = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    return [*drawn, *(f"| {' | '.join(row)} |" for row in rows), ""]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
