"""Every kernel of some snippets, alone: its reproducer is written, run in a process of its own, and told as JSON.

    python -m bench.reproducers tests/snippets/*.py
    python -m bench.reproducers --device cuda --out reproducers.json server/examples/*.py
    python -m bench.reproducers --language triton --keep FOLDER snippet.py     # the Triton twin, in its interpreter
    python -m bench.reproducers --patterns all                                 # the pattern suite, at its CPU sizes
    python -m bench.reproducers --patterns softmax_by_hand --size tiny
    python -m bench.reproducers --device cuda --models ten --at-once 12 --seconds 200

Files with the same text but for the numbers of their names are one: equal layers have equal kernels. `agrees` is true
where the report calls the compiled results right and the file of the kernel does too. The exit status is 1 where one of
them fails or gives a wrong result.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.report import Report
from compiler.reproducer import NoReproducerError, reproducer

#: Those whose times are raced, and one more.
TEN = ("vit", "beit", "convnext", "resnet", "mobilenet_v2", "segformer", "detr", "bert", "llama_block", "gpt2")
_NUMBER_OF_NAME = re.compile(r"_\d+(?=_|\b)")
#: Seconds that one file may take; Triton's interpreter is slow.
PATIENCE_S = 300.0
#: The last line of a file's output, and the status that it means; any other one is "failed".
_ENDINGS = {"RIGHT": "right", "WRONG": "wrong", "NOT COMPARED": "not compared", "NEEDS A GPU": "needs a GPU"}


@dataclass(frozen=True)
class Program:
    """A snippet of a file, or a pattern as one."""

    name: str
    source: str
    is_file: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    ends = perf_counter() + asked.seconds
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(asked.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results: list[dict[str, Any]] = []
        device, known = asked.device or "cpu", set[str]()
        programs = [
            *_snippets(asked.files),
            *patterns(asked.patterns, asked.size, device),
            *models(asked.models, asked.size, device),
        ]
        with ThreadPoolExecutor(asked.at_once) as pool:
            for program in programs:
                found = all_of(program, folder, asked.device, asked.language, known)
                results += pool.map(partial(_ended, ends=ends), found)
                if asked.out:  # what was found stays, should this be stopped
                    Path(asked.out).write_text(_as_json(results) + "\n")
    print(_as_json(results))
    return int(any(one["status"] in ("wrong", "failed") for one in results))


def _snippets(files: Sequence[str]) -> list[Program]:
    return [Program(Path(file).name, Path(file).read_text(), is_file=True) for file in files]


def patterns(names: str | None, size: str, device: str = "cpu") -> list[Program]:
    """Patterns with commas between, or all, as snippets."""
    from bench.patterns import PATTERNS, SMOKE

    known = SMOKE if size == "tiny" else PATTERNS  # the others have no such inputs
    wanted = [] if names is None else list(known) if names == "all" else names.split(",")
    return [Program(name, _PATTERN.format(name=name, size=size, device=device)) for name in wanted]


#: A pattern of the suite as a snippet: its function, and the inputs that the suite gives it.
_PATTERN = """import torch
from bench.patterns import PATTERNS
case = PATTERNS["{name}"]
case.call(torch.compile(case.function))(*case.inputs("{size}", torch.device("{device}"), 0))
"""


def models(names: str | None, size: str, device: str) -> list[Program]:
    """Models of the suite with commas between, or the ten, as snippets."""
    wanted = [] if names is None else list(TEN) if names == "ten" else names.split(",")
    return [Program(name, _MODEL.format(name=name, size=size, device=device)) for name in wanted]


#: A model of the suite as a snippet: a forward pass of two examples.
_MODEL = """import torch
from bench.models import MODELS
device = torch.device("{device}")
example = MODELS["{name}"].example("{size}", device, 0)
with torch.no_grad():
    torch.compile(example.module)(**example.inputs(2, torch.Generator(device).manual_seed(0)))
"""


def _as_json(results: list[dict[str, Any]]) -> str:
    counted = Counter(one["status"] for one in results)
    return json.dumps({"counts": dict(counted), "kernels": results}, indent=2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.reproducers", description=__doc__)
    parser.add_argument("files", nargs="*", help="Snippets.")
    parser.add_argument("--patterns", metavar="NAMES", help="Patterns with commas between, or all.")
    parser.add_argument("--models", metavar="NAMES", help="Models of the suite with commas between, or ten of them.")
    parser.add_argument("--size", default="small", choices=("small", "tiny"), help="Which inputs patterns are given.")
    parser.add_argument("--at-once", type=int, default=1, help="How many files run at a time.")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="No file is run that begins after so long.")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="Where the snippets are explored.")
    parser.add_argument("--language", choices=("cpp", "triton"), help="Which of two renderings of a kernel is run.")
    parser.add_argument("--keep", help="A folder that the files stay in.")
    parser.add_argument("--out", help="A file for the JSON.")
    return parser


def run_all(program: Program, folder: Path, device: str | None, language: str | None) -> Iterator[dict[str, Any]]:
    """What came of each kernel of a program."""
    return map(_ended, all_of(program, folder, device, language, set()))


def all_of(
    program: Program, folder: Path, device: str | None, language: str | None, known: set[str]
) -> Iterator[tuple[dict[str, Any], Path | None]]:
    """What there is of each kernel of a program, with its file; "none" where none can be written. Files in `known`,
    which is added to, are left out."""
    report = explore(program.source, Options(device=device, timing=Timing(enabled=False)))
    report = Report.model_validate_json(report.model_dump_json())  # as whoever asks the service for the file has it
    if report.error is not None or not report.graphs:
        said = report.error.message.splitlines()[0] if report.error else "Nothing was captured."
        is_ours = report.status == "crashed" or (report.error is None and not program.is_file)
        yield {"snippet": program.name, "status": "failed" if is_ours else "no kernels", "said": [said]}, None
    for graph in report.graphs:
        for kernel in graph.kernels:
            if language == "triton" and kernel.kind == "extern":  # a library call has one way to be run
                continue
            name = kernel.name if kernel.kind != "extern" else kernel.nodes[-1]
            told = {"snippet": program.name, "graph": graph.name, "kernel": name}
            try:
                text = reproducer(report, name, graph.name, language)  # type: ignore[arg-type]
            except (NoReproducerError, KeyError) as reason:
                yield {**told, "status": "none", "said": [str(reason)]}, None
                continue
            numberless = _NUMBER_OF_NAME.sub("", text)
            if numberless in known:
                continue
            known.add(numberless)
            file = folder / f"{Path(program.name).stem}_{graph.name}_{name}.py"
            file.write_text(text)
            yield told | ({"is_ok": True} if report.status == "ok" else {}), file


def _ended(found: tuple[dict[str, Any], Path | None], ends: float = math.inf) -> dict[str, Any]:
    """With how its file ended. `agrees` is there where the report calls the compiled results right: whether the file
    does too."""
    told, file = found
    if file is None:
        return told
    is_ok = told.pop("is_ok", False)
    ended: dict[str, Any] = {"status": "not run", "said": ["There was no time left."]}
    if perf_counter() < ends:
        ended = run(file)
    if is_ok and ended["status"] in ("right", "wrong"):
        ended["agrees"] = ended["status"] == "right"
    return {**told, **ended}


def run(file: Path) -> dict[str, Any]:
    """Run one file without anything of ours on its path."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(file)], capture_output=True, text=True, cwd=file.parent, timeout=PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        return {"status": "failed", "said": [f"It took longer than {PATIENCE_S:.0f} s."]}
    said = done.stdout.splitlines()
    if said and said[-1] in _ENDINGS:
        return {"status": _ENDINGS[said[-1]], "said": said[:-1]}
    return {"status": "failed", "said": [*said, *done.stderr.splitlines()[-5:]]}


if __name__ == "__main__":
    raise SystemExit(main())
