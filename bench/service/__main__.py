"""`python -m bench.service CASE`: one case of the service, its figures printed, and kept with --out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.service import answers, attacks, crowd, kills
from bench.service.figures import ROOT, write

CASES: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "first_line": lambda asked: answers.first_line(asked.samples),
    "snippet": lambda asked: answers.snippet(asked.snippet, asked.samples, at_once=4),
    "stored": lambda asked: answers.stored(asked.requests, connections=16),
    "starts": lambda asked: answers.starts(asked.samples),
    "attacks": lambda asked: attacks.attacks(),
    "crowd": lambda asked: crowd.crowd(asked.clients, asked.seconds, asked.seed),
    "kills": lambda asked: kills.kills(asked.kills, asked.seed),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.service", description="Measure and try the service.")
    parser.add_argument("cases", nargs="+", choices=CASES)
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to keep the figures, beside other cases")
    parser.add_argument("--samples", type=int, default=20, help="requests, snippets or starts (20)")
    parser.add_argument("--snippet", type=Path, default=ROOT / "tests" / "snippets" / "01_activation.py")
    parser.add_argument("--requests", type=int, default=20_000, help="reads of what is stored (20,000)")
    parser.add_argument("--clients", type=int, default=200, help="clients of the crowd (200)")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long the crowd asks (600)")
    parser.add_argument("--kills", type=int, default=300, help="processes to kill (300)")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn by chance follows from it (0)")
    asked = parser.parse_args()
    for case in asked.cases:
        write(asked.out, CASES[case](asked))


if __name__ == "__main__":
    main()
