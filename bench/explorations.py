"""Explore every program of some suites as the page would, and tell which does not end well.

    python -m bench.explorations --device cuda --at-once 15 --out explorations.json
    python -m bench.explorations --device cpu --suites patterns --cases softmax_by_hand,layernorm

A benchmark compiles a program and calls it. An exploration also describes each decision, tries what would have to
change for a refused pair, compares with float64, and fills a whole report: what fails there is seen by nobody else.
Nothing is timed. The exit status is 1 where a program has another status than `ok`, or nothing was captured of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

_PATTERN = """import torch
from bench.{suite} import {table}
case = {table}["{name}"]
case.call(torch.compile(case.function))(*case.inputs("{size}", torch.device("{device}"), 0))
"""
_MODEL = """import torch
from bench.models import MODELS
from bench.models.model import loss_of
device = torch.device("{device}")
model = MODELS["{name}"]
example = model.example("small", device, 0)
with torch.set_grad_enabled(model.is_trained):
    outputs = torch.compile(example.module)(**example.inputs(2, torch.Generator(device).manual_seed(0)))
if model.is_trained:
    loss_of(outputs).backward()
"""


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    if asked.share is not None:
        print(json.dumps(_explored(asked)))
        return 0
    command = [sys.executable, "-m", "bench.explorations", *(sys.argv[1:] if arguments is None else arguments)]
    found: list[dict[str, Any]] = []
    with ThreadPoolExecutor(asked.at_once) as pool:
        for share, done in enumerate(pool.map(partial(_process, command), range(asked.at_once))):
            lines = done.stdout.splitlines()
            if done.returncode or not lines:
                found.append({"program": f"share {share}", "status": f"ended with {done.returncode}"})
            else:
                found += json.loads(lines[-1])
    bad = [one for one in found if one["status"] != "ok" or not one["graphs"]]
    told = {"counts": dict(Counter(one["status"] for one in found)), "programs": found}
    if asked.out:
        Path(asked.out).write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps({"counts": told["counts"], "not well": bad}, indent=1))
    return int(bool(bad))


def _process(command: Sequence[str], share: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, "--share", str(share)], stdout=subprocess.PIPE, text=True)


def _sources(asked: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Each program's name and text. Patterns and the programs of many kinds have a GPU's sizes on one."""
    from bench.models import MODELS
    from bench.patterns import PATTERNS
    from bench.wide import WIDE

    size = "full" if asked.device == "cuda" else "small"
    suites: dict[str, tuple[Iterable[str], str]] = {
        "models": (MODELS, _MODEL.replace("{size}", "small")),
        "patterns": (PATTERNS, _PATTERN.replace("{suite}", "patterns").replace("{table}", "PATTERNS")),
        "wide": (WIDE, _PATTERN.replace("{suite}", "wide").replace("{table}", "WIDE")),
    }
    wanted = asked.cases.split(",") if asked.cases else None
    for suite in asked.suites.split(","):
        table, text = suites[suite]
        for name in table:
            if wanted is None or name in wanted:
                yield f"{suite} {name}", text.format(name=name, size=size, device=asked.device)


def _explored(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """What became of the programs of one share."""
    import torch

    from compiler.options import Options, Timing
    from compiler.pipeline import explore

    found: list[dict[str, Any]] = []
    for number, (name, source) in enumerate(_sources(asked)):
        if number % asked.at_once != asked.share:
            continue
        began = perf_counter()
        report = explore(source, Options(device=asked.device, timing=Timing(enabled=False)))
        found.append({
            "program": name,
            "status": report.status,
            "graphs": len(report.graphs),
            "kernels": sum(len(graph.kernels) for graph in report.graphs),
            "said": [report.error.message] if report.error else [note.message for note in report.notes],
            "wrong": [one.message for one in report.wrong_results],
            "seconds": round(perf_counter() - began, 1),
        })  # fmt: skip
        del report
        if asked.device == "cuda":
            torch.cuda.empty_cache()
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.explorations", description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="Where the programs are explored.")
    parser.add_argument("--suites", default="models,patterns,wide", help="Of models, patterns and wide.")
    parser.add_argument("--cases", metavar="NAMES", help="Programs with commas between; all otherwise.")
    parser.add_argument("--at-once", type=int, default=1, help="How many processes explore.")
    parser.add_argument("--out", help="A file for the JSON.")
    parser.add_argument("--share", type=int, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
