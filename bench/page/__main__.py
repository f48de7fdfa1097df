"""`python -m bench.page CASE`: one case of the page, its figures printed, and kept with --out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.page import cases
from bench.service.figures import write

CASES: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "first_load": lambda asked: cases.first_load(asked.samples),
    "snippet": lambda asked: cases.snippet(asked.samples, asked.pause),
    "notebook": lambda asked: cases.notebook(asked.samples, asked.pause),
    "layers": lambda asked: cases.layers(asked.layers, asked.openings),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.page", description="Measure the page in a browser.")
    parser.add_argument("cases", nargs="+", choices=CASES)
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to keep the figures, beside other cases")
    parser.add_argument("--samples", type=int, default=9, help="loads or explorations (9)")
    parser.add_argument("--pause", type=float, default=6.0, help="seconds between explorations (6)")
    parser.add_argument("--layers", type=int, default=24, help="layers of the large program (24)")
    parser.add_argument("--openings", type=int, default=5, help="times it is opened; the least counts (5)")
    asked = parser.parse_args()
    for case in asked.cases:
        write(asked.out, CASES[case](asked))


if __name__ == "__main__":
    main()
