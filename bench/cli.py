"""The command line of the benchmark: `fusionscope bench`, or `python -m bench`.

    fusionscope bench --suite patterns --device cuda --out results.json
    fusionscope bench --cases softmax_by_hand,layernorm
    fusionscope bench --suite snippets
    fusionscope bench --suite models --cases gpt2_training,vit --device cpu
    fusionscope bench --suite models --cases raced --batch 1,32 --dtype bfloat16 --processes 6 --out models.json
    fusionscope bench --suite wide --contestants eager,ours,inductor_default --processes 12 --out wide.json
    fusionscope bench --suite convolutions --contestants eager,ours,ours_rounded,inductor_default --processes 4
    fusionscope bench --suite train --cases gpt2 --contestants eager,ours,inductor_default --out train.json
    fusionscope bench --suite opinfo --samples 2 --dtypes float32,int64
    fusionscope bench --suite predictions --device cuda --repeat 20 --out predictions.json
    fusionscope bench --suite random --programs 1000 --seed 0 --processes 2
    fusionscope bench --suite fusion --out docs/performance/archive/fusion.json
    fusionscope bench --suite layouts --device cuda --out docs/performance/archive/layouts_h200.json
    fusionscope bench --suite products --device cuda --out products.json
    fusionscope bench --suite scheduling --cases optimiser --nodes 500,1000

The JSON file is written anew after every case, and a Markdown table beside it at the end.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from bench import products, random_programs, ratios, snippets, table
from bench.contest import CONTESTANTS, KNOWN
from bench.convolutions import CONVOLUTIONS
from bench.environment import CLOCK, copy_bandwidth, describe, write_json
from bench.fusion import suite as fusion
from bench.layouts import suite as layouts
from bench.models import MODELS, RACED
from bench.models.model import missing_library
from bench.opinfo import cli as opinfo
from bench.patterns import PATTERNS, SMOKE
from bench.predictions import cli as predictions
from bench.process import BATCH_MARK
from bench.scheduling import suite as scheduling
from bench.suite import CASES_OF_ONE_PROCESS, Progress, Request, run_suite
from bench.train import OWN, TRAINING
from bench.wide import WIDE
from compiler.runtime.timing.stopwatch import stopwatch

METHOD = (
    "Medians in milliseconds, contestants interleaved: {clock}. The floor is inputs read once plus outputs written "
    "once at the copy bandwidth of this run{floor_note}. "
)
COMPILE_METHOD = (
    "Compile seconds are those of the first call with empty caches, in a process that had compiled something else "
    "before. "
)
ERROR_METHOD = (
    "Errors are against float64; dropout is checked by statistics: each element is 0 or x / (1 - p), and the share of "
    "elements kept is 1 - p within five standard deviations."
)
MODEL_METHOD = (
    "Models of the package transformers with random weights, in {dtype}. An error is the largest difference from the "
    "same model in float64, as a share of the largest magnitude, and is that of the worst output, gradient or buffer. "
    "A model is right where each of them is within three times eager's own error plus one epsilon of its dtype, or 48 "
    "for a gradient, by largest difference and by norm. Compile seconds are those of the first step, with empty "
    "caches. Times are medians in milliseconds of one step, contestants interleaved: {clock}. A step of training is "
    "forward, loss and backward, without an optimiser."
)
TRAIN_METHOD = (
    "Whole steps of training under bfloat16 autocast: forward, loss, backward, and AdamW's step in `..._adamw`. TF32 "
    "is allowed. The reference is the same step in float64. An error is the largest difference from it, as a share of "
    "the largest magnitude, and is that of the worst loss, gradient, buffer or move of a parameter; right is what is "
    "within three times eager's own error plus 48 epsilons of its dtype, by largest difference and by norm. Compile "
    "seconds are those of the first step, with empty caches. Times are medians in milliseconds of one step, "
    "contestants interleaved: {clock}."
)
METHODS = {
    "patterns": METHOD + COMPILE_METHOD + ERROR_METHOD,
    "wide": METHOD + ERROR_METHOD,
    "convolutions": METHOD + ERROR_METHOD,
    "models": MODEL_METHOD,
    "train": TRAIN_METHOD,
}
#: Suites whose cases are models, each in a process of its own.
WITH_MODELS = ("models", "train")
#: Names that stand for several cases, by suite.
SEVERAL: Mapping[str, Mapping[str, tuple[str, ...]]] = {"models": {"raced": RACED}}
SUITES = (
    "patterns", "snippets", "smoke", "models", "opinfo", "random", "fusion", "predictions", "products", "scheduling",
    "layouts", "train", "wide", "convolutions",
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run a suite; 0 if every case that ran was right, 1 if one was wrong or failed, 2 for a mistake in the request."""
    asked = _parser().parse_args(argv)
    console = Console() if sys.stdout.isatty() else Console(width=180)
    device = asked.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if re.fullmatch(r"cpu|cuda(:\d+)?", device) is None:
        console.print(f"There is no device {device!r}; there are cpu, cuda and cuda:N.", markup=False)
        return 2
    if device.startswith("cuda") and not torch.cuda.is_available():
        console.print("There is no usable GPU here; use --device cpu.")
        return 2
    chosen = chosen_cases(asked.suite, asked.cases or "")
    asked.processes = asked.processes or (2 if asked.suite in ("opinfo", "random", "wide", "convolutions") else 1)
    if asked.suite == "random":
        return random_programs.run(asked, device, console)
    if asked.suite == "fusion":
        return fusion.run(asked, chosen, console)
    if asked.suite == "products":
        return products.run(asked, chosen, device, console)
    if asked.suite == "scheduling":
        return scheduling.run(asked, chosen, console)
    if asked.suite == "snippets":
        return _run_snippets(asked, chosen, device, console)
    if asked.suite == "opinfo":
        return opinfo.run(asked, chosen, device, console)
    if asked.suite == "layouts":
        return layouts.run(asked, chosen, device, console)
    if asked.suite == "predictions":
        return predictions.run(asked, chosen, device, console)
    is_all_own = asked.suite == "train" and all(name in OWN for name in chosen or TRAINING)
    missing = missing_library() if asked.suite in WITH_MODELS and not is_all_own else None
    if missing is not None:
        console.print(missing, markup=False)
        return 2
    suites: dict[str, Mapping[str, object]] = {
        "smoke": SMOKE,
        "models": MODELS,
        "patterns": PATTERNS,
        "wide": WIDE,
        "convolutions": CONVOLUTIONS,
        "train": TRAINING,
    }
    known = suites[asked.suite]
    unknown = [name for name in chosen if name not in known]
    if unknown:
        console.print(f"No case {', '.join(unknown)}; the cases are {', '.join(known)}.")
        return 2
    batches = asked.batch or ((2,) if device == "cpu" else (None,) if asked.suite == "train" else (1,))
    names = chosen or tuple(known)
    request = Request(
        cases=tuple(f"{name}{BATCH_MARK}{batch}" for name in names for batch in batches) if len(batches) > 1 else names,
        device=device,
        size="tiny" if asked.suite == "smoke" else asked.size or ("full" if device.startswith("cuda") else "small"),
        contestants=tuple(asked.contestants.split(",")),
        seed=asked.seed,
        repeat=asked.repeat,
        max_seconds=asked.max_seconds,
        suite="patterns" if asked.suite == "smoke" else asked.suite,
        batch=batches[0],
        is_timed=asked.timing,
        dtype=asked.dtype,
        processes=asked.processes,
    )
    return _run_cases(asked, request, console)


def chosen_cases(suite: str, text: str) -> tuple[str, ...]:
    """The cases that a list with commas names, none for all; some suites have a name for several of theirs."""
    names = (name for name in text.split(",") if name)
    return tuple(case for name in names for case in SEVERAL.get(suite, {}).get(name, (name,)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fusionscope bench", description="Measure eager PyTorch, Fusionscope and TorchInductor in one run."
    )
    parser.add_argument(
        "--suite",
        choices=SUITES,
        default="patterns",
    )
    parser.add_argument("--device", help="cpu, cuda or cuda:N; by default the GPU where there is one")
    parser.add_argument(
        "--cases", metavar="A,B", help="only these cases; `raced` are the nine models whose times are published"
    )
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to write results, and a table beside it")
    parser.add_argument("--repeat", type=_at_least_three, default=30, help="samples of each contestant (30)")
    parser.add_argument("--max-seconds", type=float, default=3.0, help="longest sampling of one case (3)")
    parser.add_argument("--size", choices=["full", "small"], help="inputs for a large GPU or for a CPU; by the device")
    parser.add_argument("--contestants", type=_contestants, default=",".join(CONTESTANTS), metavar="A,B")
    parser.add_argument(
        "--batch", type=_sizes, metavar="A,B", help="of a model's inputs; 2 on a CPU, 1 on a GPU, its own in training"
    )
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32", help="of the models")
    parser.add_argument(
        "--timing", action=argparse.BooleanOptionalAction, default=True, help="time the models, or only check them"
    )
    parser.add_argument("--folder", type=Path, default=snippets.FOLDER, help="snippets to explore (tests/snippets)")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs, or of the first random program (0)")
    parser.add_argument("--programs", type=int, default=200, help="random programs to compile and judge (200)")
    parser.add_argument(
        "--open-sizes", action="store_true", help="compile random programs with dynamic=True and call them at two sizes"
    )
    parser.add_argument("--processes", type=int, help="at one time; of opinfo, random, wide and convolutions 2, else 1")
    parser.add_argument("--nodes", type=_sizes, metavar="A,B", help="of the suite scheduling")
    operators = parser.add_argument_group("the suite opinfo, whose cases are operators of torch's own database")
    operators.add_argument("--samples", type=int, metavar="N", help="the first N samples of each operator (all)")
    operators.add_argument(
        "--dtypes", type=opinfo.dtypes_of, metavar="A,B",
        help="of the forward samples (float32,bfloat16,int64,bool); of the suite layouts (bfloat16,float16,float32)",
    )  # fmt: skip
    operators.add_argument("--forward-only", action="store_true", help="no gradients")
    return parser


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _at_least_three(text: str) -> int:
    if int(text) < 3:
        raise argparse.ArgumentTypeError("at least 3 samples make a median")
    return int(text)


def _contestants(text: str) -> str:
    unknown = [name for name in text.split(",") if name not in KNOWN]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: the contestants are {', '.join(KNOWN)}")
    return text


def _run_cases(asked: argparse.Namespace, request: Request, console: Console) -> int:
    kind = torch.device(request.device).type
    note = "" if kind == "cuda" else "; what fits in the CPU's caches can be below it"
    columns: Sequence[tuple[str, str, int]] = table.MODEL_COLUMNS if request.suite in WITH_MODELS else table.COLUMNS
    method = METHODS[request.suite].format(clock=CLOCK[kind], floor_note=note, dtype=request.dtype)
    if request.processes > 1 and CASES_OF_ONE_PROCESS[request.suite] is not None:
        method += f" {request.processes} processes prepared at one time; each timed alone."
        method += " Compile seconds are long for that." if request.suite in WITH_MODELS else ""
    document: dict[str, Any] = {}

    def on_result(progress: Progress) -> None:
        document.update(
            suite=asked.suite,
            size=request.size,
            method=method,
            environment=progress.environment,
            cases={name: progress.results[name] for name in request.cases if name in progress.results},
            geometric_means=table.geometric_means(progress.results),
        )
        write_json(asked.out, document)
        done = f"{len(progress.results)} of {len(request.cases)}"
        print(f"{done} {next(reversed(progress.results), '')}", file=sys.stderr, flush=True)

    run_suite(request, on_result)
    columns = table.with_figures(columns, document["cases"])
    console.print(_rich_table(table.losses_first(document["cases"]), columns))
    for sentence in [*table.summary(document["geometric_means"]), *table.warnings(document["environment"])]:
        console.print(sentence)
    if asked.out is not None:
        asked.out.with_suffix(".md").write_text(table.markdown(document, columns))
    if asked.out is not None and request.is_timed:
        title = f"Ours / TorchInductor (circle: its best mode), {document['environment'].get('device')}"
        asked.out.with_suffix(".svg").write_text(ratios.draw(table.losses_first(document["cases"]), title))
    return 0 if all(table.verdict(result) == "ok" for result in document["cases"].values()) else 1


def _run_snippets(asked: argparse.Namespace, chosen: Sequence[str], device: str, console: Console) -> int:
    known = [file.stem for file in sorted(asked.folder.glob("*.py"))]
    unknown = [name for name in chosen if name not in known]
    if unknown or not known:
        told = f"No case {', '.join(unknown)}; the cases are {', '.join(known)}." if known else "It has no Python file."
        console.print(f"The folder {asked.folder}: {told}", markup=False)
        return 2
    here = torch.device(device)
    bandwidth = copy_bandwidth(here, stopwatch(here))
    document: dict[str, Any] = {
        "suite": "snippets",
        "method": snippets.METHOD,
        "environment": describe(here, bandwidth, asked.seed),
        "cases": {},
    }

    def on_result(results: dict[str, dict[str, Any]]) -> None:
        document["cases"] = results
        write_json(asked.out, document)

    snippets.run_snippets(asked.folder, tuple(chosen), device, asked.repeat, asked.seed, bandwidth, on_result)
    console.print(_rich_table(document["cases"], snippets.COLUMNS))
    if asked.out is not None:
        asked.out.with_suffix(".md").write_text(table.markdown(document, snippets.COLUMNS))
    return 0 if all(result["status"] not in ("crashed", "wrong_result") for result in document["cases"].values()) else 1


def _rich_table(results: Mapping[str, Mapping[str, Any]], columns: Sequence[tuple[str, str, int]]) -> Table:
    drawn = Table("case", *(heading for heading, _, _ in columns), "verdict")
    for name, result in results.items():
        drawn.add_row(name, *table.cells(result, columns), table.verdict(result))
    return drawn


if __name__ == "__main__":
    sys.exit(main())
