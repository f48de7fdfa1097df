"""How far predictions are from measurements, from the records of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.predictions.classes import CLASSES
from compiler.runtime.timing.noise import percentile

Record = Mapping[str, Any]

#: Below this share of the faster way's time the two ways of a choice count as equal.
DECISIVE = 0.1


def relative_error(record: Record) -> float | None:
    """|predicted / measured - 1|, None where nothing was measured."""
    measured = record["measured_us"]
    return abs(record["predicted_us"] / measured - 1) if measured else None


def error_rows(kernels: Sequence[Record]) -> list[dict[str, Any]]:
    """Median and 90th percentile of the error by class, over all that the schedules run, and over the other side of
    choices; a row without kernels is left out."""
    scheduled = [kernel for kernel in kernels if kernel["role"] == "scheduled"]
    others = [kernel for kernel in kernels if kernel["role"] != "scheduled"]
    groups = {name: [k for k in scheduled if k["class"] == name] for name in CLASSES}
    groups |= {"all that run": scheduled, "alternatives": others}
    return [row for name, group in groups.items() if (row := _row(name, group)) is not None]


def _row(name: str, kernels: Iterable[Record]) -> dict[str, Any] | None:
    measured = [kernel for kernel in kernels if relative_error(kernel) is not None]
    errors = [error for kernel in measured if (error := relative_error(kernel)) is not None]
    if not errors:
        return None
    ratios = [kernel["predicted_us"] / kernel["measured_us"] for kernel in measured]
    return {
        "class": name,
        "kernels": len(errors),
        "median_error": percentile(errors, 50),
        "p90_error": percentile(errors, 90),
        "geometric_mean_ratio": math.exp(sum(map(math.log, ratios)) / len(ratios)),
    }


def is_decisive(choice: Record) -> bool:
    """Whether the two ways were measured, and more than 10 % apart."""
    apart, together = choice["measured_apart_us"], choice["measured_together_us"]
    return bool(apart and together) and abs(apart - together) > DECISIVE * min(apart, together)


def agrees(choice: Record) -> bool:
    """Whether the way that the scheduler chose is the one that was measured to be faster."""
    return bool(choice["is_taken"] == (choice["measured_together_us"] < choice["measured_apart_us"]))


def agreement(choices: Sequence[Record]) -> dict[str, Any]:
    """How many choices were measured, in how many the ways differ by more than 10 %, and in how many of these the
    scheduler took the faster one; all, and by kind."""
    kinds = {kind: [c for c in choices if c["kind"] == kind] for kind in sorted({c["kind"] for c in choices})}
    return {name: _agreement(group) for name, group in {**kinds, "all": list(choices)}.items()}


def _agreement(choices: Sequence[Record]) -> dict[str, Any]:
    decisive = [choice for choice in choices if is_decisive(choice)]
    right = [choice for choice in decisive if agrees(choice)]
    return {
        "choices": len(choices),
        "measured": sum(bool(c["measured_apart_us"] and c["measured_together_us"]) for c in choices),
        "taken": sum(bool(c["is_taken"]) for c in choices),
        "decisive": len(decisive),
        "agree": len(right),
        "share": len(right) / len(decisive) if decisive else None,
    }


def summarise(kernels: Sequence[Record], choices: Sequence[Record]) -> dict[str, Any]:
    return {"errors": error_rows(kernels), "agreement": agreement(choices)}


def tables(document: Mapping[str, Any]) -> str:
    """The summary as Markdown."""
    where = document["environment"]
    lines = [
        f"# Predictions: {where['device']}",
        "",
        f"Measured on {where['date']} with torch {where['torch']}, triton {where['triton']}, commit {where['commit']}. "
        f"{document['method']}",
        "",
        "| class | kernels | median error | 90th percentile | mean of predicted / measured |",
        "|---|---|---|---|---|",
    ]
    for row in document["summary"]["errors"]:
        errors = f"{_percent(row['median_error'])} | {_percent(row['p90_error'])}"
        lines.append(f"| {row['class']} | {row['kernels']} | {errors} | {row['geometric_mean_ratio']:.2f} |")
    lines += [
        "",
        "| kind of fusion | choices | measured | taken | more than 10 % apart | of these as chosen | share |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, row in document["summary"]["agreement"].items():
        cells = [kind, *(str(row[key]) for key in ("choices", "measured", "taken", "decisive", "agree"))]
        lines.append(f"| {' | '.join(cells)} | {_percent(row['share'])} |")
    return "\n".join([*lines, ""])


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
