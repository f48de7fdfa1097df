"""The suite `scheduling`: seconds to lower and schedule graphs of 500 to 5,000 loop nodes, one process a case."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from bench import table
from bench.environment import ROOT, describe, write_json
from bench.scheduling.programs import KINDS, blocks_for

#: Loop nodes that a graph has at least.
SIZES = (500, 1000, 2000, 5000)
#: Seconds after which a case is ended.
PATIENCE_S = 900.0

METHOD = (
    "Each graph is traced with fake tensors, lowered and scheduled for an H200 in a process of its own, whose caches "
    "are empty. Seconds are processor time of that process, one thread, since others may keep the machine busy; even "
    "so they grow where two threads share a core. A training step is forward and backward in one graph. Nodes are "
    "counted before fusion, library calls among them."
)

#: Heading, key of the result, decimals.
COLUMNS = (
    ("nodes", "nodes", 0),
    ("lower s", "lower_s", 2),
    ("schedule s", "schedule_s", 2),
    ("memory s", "memory_s", 2),
    ("all s", "total_s", 2),
    ("ms a node", "ms_per_node", 3),
    ("kernels", "kernels", 0),
    ("library calls", "library_calls", 0),
    ("decisions", "decisions", 0),
)


def run(asked: argparse.Namespace, chosen: Sequence[str], console: Console) -> int:
    """The command: 0 if every case was scheduled, 1 if one failed, 2 for a kind that is not known."""
    unknown = [name for name in chosen if name not in KINDS]
    if unknown:
        console.print(f"No kind {', '.join(unknown)}; the kinds are {', '.join(KINDS)}.")
        return 2
    environment = describe(torch.device("cpu"), None, asked.seed)
    document: dict[str, Any] = {"suite": "scheduling", "method": METHOD, "environment": environment, "cases": {}}

    def on_result(name: str, result: dict[str, Any]) -> None:
        document["cases"][name] = result
        write_json(asked.out, document)
        print(name, result, file=sys.stderr, flush=True)

    run_cases(tuple(chosen) or tuple(KINDS), asked.nodes or SIZES, on_result)
    drawn = Table("case", *(heading for heading, _, _ in COLUMNS), "verdict")
    for name, result in document["cases"].items():
        drawn.add_row(name, *table.cells(result, COLUMNS), table.verdict(result))
    console.print(drawn)
    if asked.out is not None:
        asked.out.with_suffix(".md").write_text(table.markdown(document, COLUMNS))
    return 0 if all("errors" not in result for result in document["cases"].values()) else 1


def run_cases(kinds: Sequence[str], sizes: Sequence[int], on_result: Callable[[str, dict[str, Any]], None]) -> None:
    """Every kind at every size; a case that fails is a result, with its error."""
    for kind in kinds:
        for nodes in sizes:
            on_result(f"{kind}_{nodes}", run_case(kind, blocks_for(kind, nodes)))


def run_case(kind: str, blocks: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.scheduling.worker", kind, str(blocks)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"errors": {"scheduling": f"no end after {PATIENCE_S:.0f} seconds"}}
    if ended.returncode != 0:
        return {"errors": {"scheduling": ended.stderr.strip().splitlines()[-1:] or "the process ended"}}
    result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return result
