"""The suite `fusion`: ours and TorchInductor's kernels and bytes for every program of the table, in one run.

TorchInductor is asked in a process of its own. Where there is no GPU that process pretends to have an H200
(`pretended_gpu.py`), so that Triton kernels are counted on both sides; ours are made for the H200's model in any case.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from bench.environment import ROOT, describe, write_json
from bench.fusion.count import count_ours
from bench.fusion.table import PROGRAMS
from bench.process import run_worker

METHOD = (
    "Launches of generated kernels and library calls, and the bytes that they move, of forward and backward together, "
    "for tensors of the sizes in `bench/fusion/program.py`. Nothing is timed or computed. Ours are made for the model "
    "of the H200. TorchInductor is {peer}, in its default mode: launches are read from its wrapper, bytes are its "
    "scheduler's own count. Both count each element that a kernel touches once a kernel, however often it reads it, "
    "and no scratch memory."
)
REAL, PRETENDED = "asked for the GPU at hand", "asked for a pretended H200, up to its generated text"
COLUMNS = ("kernels", "library calls", "MB", "Inductor's kernels", "library calls", "MB", "launches", "bytes")
#: Seconds that the peer may take for one program.
PATIENCE_S = 300.0


def run(asked: argparse.Namespace, chosen: Sequence[str], console: Console) -> int:
    """Count, print and write; 0 where ours are nowhere more than the peer's, 1 where they are or something failed."""
    unknown = [name for name in chosen if name not in PROGRAMS]
    if unknown:
        console.print(f"No program {', '.join(unknown)}.")
        return 2
    names = list(chosen) or list(PROGRAMS)
    cases = {name: {"ours": _ours(name)} for name in names}
    for name, count in _peers(names).items():
        cases[name]["inductor"] = count
    compared_with_peer = totals(cases)
    is_real = torch.cuda.is_available()
    document = {
        "suite": "fusion",
        "method": METHOD.format(peer=REAL if is_real else PRETENDED),
        "environment": describe(torch.device("cuda" if is_real else "cpu"), None, 0),
        "cases": cases,
        "totals": compared_with_peer,
    }
    write_json(asked.out, document)
    drawn = Table("program", *COLUMNS)
    for name, case in cases.items():
        drawn.add_row(name, *_cells(case))
    console.print(drawn)
    console.print(sentence(compared_with_peer))
    if asked.out is not None:
        asked.out.with_suffix(".md").write_text(markdown(document))
    is_fine = all("error" not in count for case in cases.values() for count in case.values())
    return 0 if is_fine and not any(compared_with_peer["more"].values()) else 1


def _ours(name: str) -> dict[str, Any]:
    try:
        return count_ours(PROGRAMS[name]).as_dict()
    except Exception as error:  # a defect of ours is a finding too
        return {"error": f"{type(error).__name__}: {error}"}


def _peers(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    folder = None if torch.cuda.is_available() else str(ROOT / ".cache")

    def hear(message: dict[str, Any]) -> None:
        found[message.pop("program")] = message

    orders = {"programs": list(names), "folder": folder}
    ending = run_worker("bench.fusion.peer_worker", orders, hear, PATIENCE_S)
    for name in names:
        found.setdefault(name, {"error": ending})
    return found


def launches(count: Mapping[str, int]) -> int:
    return count["kernels"] + count["library_calls"]


def totals(cases: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How many programs have fewer, as many and more launches and bytes than TorchInductor gives them."""
    found = {word: {"launches": 0, "bytes": 0} for word in ("fewer", "same", "more")}
    for case in cases.values():
        ours, peer = case["ours"], case["inductor"]
        with contextlib.suppress(KeyError):
            found[compared(launches(ours), launches(peer))]["launches"] += 1
            found[compared(ours["bytes"], peer["bytes"])]["bytes"] += 1
    return found


def compared(ours: int, peer: int) -> str:
    return "fewer" if ours < peer else "same" if ours == peer else "more"


def sentence(found: Mapping[str, Mapping[str, int]]) -> str:
    parts = [
        f"{what}: fewer in {found['fewer'][what]}, the same in {found['same'][what]}, more in {found['more'][what]}"
        for what in ("launches", "bytes")
    ]
    return f"Programs against TorchInductor, {'; '.join(parts)}."


def _cells(case: Mapping[str, Any]) -> list[str]:
    ours, peer = case["ours"], case["inductor"]
    if "error" in ours or "error" in peer:
        return [str(ours.get("error", "-")), "", "", str(peer.get("error", "-")), "", "", "", ""]
    figures = [
        f"{count[key] / 1e6:.3f}" if key == "bytes" else str(count[key])
        for count in (ours, peer)
        for key in ("kernels", "library_calls", "bytes")
    ]
    return [*figures, compared(launches(ours), launches(peer)), compared(ours["bytes"], peer["bytes"])]


def markdown(document: Mapping[str, Any]) -> str:
    environment = document["environment"]
    lines = [
        "# Fusion: kernels and bytes",
        "",
        f"Counted on {environment.get('date')} with torch {environment.get('torch')}, triton "
        f"{environment.get('triton')}, commit {environment.get('commit') or 'unknown'}. {document['method']}",
        "",
        sentence(document["totals"]),
        "",
        "| program | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
        *(f"| {name} | " + " | ".join(_cells(case)) + " |" for name, case in document["cases"].items()),
        "",
    ]
    return "\n".join(lines)
