"""Medians and percentiles of samples, and the file that a run is kept in."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that `share` of all do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def in_milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """The smallest, p50, p99 and the largest, and how many samples there are."""
    told = {
        "least_ms": min(seconds),
        "p50_ms": percentile(seconds, 0.5),
        "p99_ms": percentile(seconds, 0.99),
        "largest_ms": max(seconds),
    }
    return {name: round(1e3 * value, 2) for name, value in told.items()} | {"samples": len(seconds)}


def write(out: Path | None, results: dict[str, Any]) -> None:
    """Prints the results, and keeps them beside what they depend on. A file that exists keeps its other cases."""
    print(json.dumps(results, indent=2))
    if out is None:
        return
    kept = json.loads(out.read_text())["cases"] if out.is_file() else {}
    told = {"environment": _environment(), "cases": kept | results}
    out.write_text(json.dumps(told, indent=2) + "\n")


def _environment() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip() or None,
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": round(os.getloadavg()[0], 1),
    }
