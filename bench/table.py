"""The results of a run as tables: one for a terminal, one for a document."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Results = Mapping[str, Mapping[str, Any]]

#: Heading, key of the result, decimals (-1: two digits with an exponent). Times are milliseconds.
COLUMNS = (
    ("floor", "floor", 4),
    ("eager", "eager", 4),
    ("ours", "ours", 4),
    ("Inductor", "inductor_default", 4),
    ("reduce-overhead", "inductor_reduce_overhead", 4),
    ("max-autotune", "inductor_max_autotune", 4),
    ("max-autotune replayed", "inductor_max_autotune_replayed", 4),
    ("ours / floor", "ours_to_floor", 2),
    ("ours / Inductor", "ours_to_inductor", 2),
    ("ours / its best", "ours_to_best", 2),
    ("ours compile s", "ours_compile_s", 2),
    ("Inductor compile s", "inductor_compile_s", 2),
)

#: Of a model. Errors are the largest difference from float64, as a share of the largest magnitude.
MODEL_COLUMNS = (
    ("error of eager", "eager_error", -1),
    ("error of ours", "ours_error", -1),
    ("graphs", "graphs", 0),
    ("breaks", "graph_breaks", 0),
    ("kernels", "kernels", 0),
    ("library calls", "library_calls", 0),
    ("fallbacks", "fallbacks", 0),
    ("ours compile s", "ours_compile_s", 1),
    ("Inductor compile s", "inductor_compile_s", 1),
    ("eager ms", "eager", 3),
    ("ours ms", "ours", 3),
    ("Inductor ms", "inductor_default", 3),
    ("reduce-overhead ms", "inductor_reduce_overhead", 3),
    ("max-autotune ms", "inductor_max_autotune", 3),
    ("max-autotune replayed ms", "inductor_max_autotune_replayed", 3),
    ("ours / Inductor", "ours_to_inductor", 2),
    ("ours / its best", "ours_to_best", 2),
)

#: Share of the cores that others may keep busy before CPU times are called unreliable.
BUSY = 0.5

#: Name of a mean, key of the ratio, and whether it is over the cases that memory limits only.
MEANS = (
    ("eager_to_ours", "eager_to_ours", False),
    ("ours_to_inductor", "ours_to_inductor", False),
    ("ours_to_best", "ours_to_best", False),
    ("ours_to_floor_memory_bound", "ours_to_floor", True),
    ("inductor_to_floor_memory_bound", "inductor_to_floor", True),
    ("ours_to_inductor_memory_bound", "ours_to_inductor", True),
)


def geometric_means(results: Results) -> dict[str, dict[str, float | int] | None]:
    """Each mean with the number of cases behind it; None where no case has the ratio. A result that is wrong is no
    time: the ratios of a case whose `ours` is not correct are left out."""
    means: dict[str, dict[str, float | int] | None] = {}
    for name, key, memory_only in MEANS:
        ratios = [
            result[key]
            for result in results.values()
            if result.get(key) and (not memory_only or result.get("limit") == "memory") and _counts(result, key)
        ]
        mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios)) if ratios else None
        means[name] = None if mean is None else {"mean": mean, "cases": len(ratios)}
    return means


def verdict(result: Mapping[str, Any]) -> str:
    """What a reader must know of a case in a few words: "ok", what is wrong, or what failed."""
    if result.get("errors"):
        return "; ".join(f"{name}: {error}" for name, error in result["errors"].items())
    wrong = [
        f"{name} is wrong (error {result['max_error'][name]:.1e})"
        for name, fine in result.get("correct", {}).items()
        if not fine
    ]
    return "; ".join(wrong) or "ok"


def markdown(document: Mapping[str, Any], columns: Sequence[tuple[str, str, int]] = COLUMNS) -> str:
    """A document of its own: what was measured, where, when and how, then the table and the means."""
    environment, results = document["environment"], document["cases"]
    lines = [
        f"# {document['suite'].capitalize()}: {environment.get('device', 'unknown device')}",
        "",
        f"Measured on {environment.get('date')} with {versions(environment)}. {document['method']}",
        "",
        *(f"**{sentence}**\n" for sentence in warnings(environment)),
        "| case | " + " | ".join(heading for heading, _, _ in columns) + " | verdict |",
        "|---" * (len(columns) + 2) + "|",
    ]
    for name, result in losses_first(results).items():
        said = verdict(result).replace("|", "/").splitlines()[0]
        lines.append(f"| {name} | " + " | ".join(cells(result, columns)) + f" | {said} |")
    lines += ["", *(f"- {sentence}" for sentence in summary(document.get("geometric_means", {}))), ""]
    return "\n".join(lines)


def warnings(environment: Mapping[str, Any]) -> list[str]:
    """What makes the times of a run doubtful, as sentences."""
    said = []
    load, cores = environment.get("load_average"), environment.get("cores")
    if environment.get("kind") == "cpu" and load and cores and load > BUSY * cores:
        said.append(
            f"The machine was busy when the run began (load average {load} on {cores} cores): "
            "wall times on the CPU are not reliable."
        )
    slowed = (environment.get("clocks") or {}).get("throttle")
    if slowed:
        said.append(f"The GPU was slowed by its driver when the run began ({', '.join(slowed)}).")
    return said


def versions(environment: Mapping[str, Any]) -> str:
    """The versions behind a run, in words."""
    parts = [f"torch {environment.get('torch')}", f"triton {environment.get('triton')}"]
    if environment.get("driver"):
        parts.append(f"driver {environment['driver']}")
    parts.append(f"commit {environment.get('commit') or 'unknown'}")
    if environment.get("copy_bandwidth_gb_per_s") is not None:
        parts.append(f"copy bandwidth {environment['copy_bandwidth_gb_per_s']} GB/s")
    return ", ".join(parts)


def summary(means: Mapping[str, Mapping[str, float] | None]) -> Iterable[str]:
    """The geometric means as sentences."""
    said = {
        "eager_to_ours": "Speed-up over eager",
        "ours_to_inductor": "Our time over Inductor's (below 1 is faster)",
        "ours_to_best": "Our time over the best of Inductor's modes that ran",
        "ours_to_floor_memory_bound": "Our time over the byte floor, cases limited by memory",
        "inductor_to_floor_memory_bound": "Inductor's time over the byte floor, cases limited by memory",
        "ours_to_inductor_memory_bound": "Our time over Inductor's, cases limited by memory",
    }
    for name, mean in means.items():
        if mean is not None:
            yield f"{said[name]}: {mean['mean']:.3f} (geometric mean of {mean['cases']:.0f} cases)"


def cells(result: Mapping[str, Any], columns: Sequence[tuple[str, str, int]] = COLUMNS) -> list[str]:
    """The figures of one case as text; a dash where there is none."""
    figures = [(result.get(key), f".{decimals}f" if decimals >= 0 else ".1e") for _, key, decimals in columns]
    return ["-" if figure is None else format(figure, form) for figure, form in figures]


def _counts(result: Mapping[str, Any], key: str) -> bool:
    """Whether the contestants in a ratio gave right results."""
    correct = result["correct"]
    return all(correct.get(full, True) for word, full in WORDS.items() if word in key)


def with_figures(columns: Sequence[tuple[str, str, int]], results: Results) -> list[tuple[str, str, int]]:
    """The columns that any case has a figure for."""
    return [column for column in columns if any(result.get(column[1]) is not None for result in results.values())]


#: A ratio above this is a loss: figures repeat within 2 %.
LOSS = 1.02


def losses_first(results: Results) -> dict[str, Mapping[str, Any]]:
    """The cases that we lose to the best of the peer's modes, the worst first; then the others as they were."""
    lost = [name for name, result in results.items() if (result.get("ours_to_best") or 0.0) > LOSS]
    lost.sort(key=lambda name: -results[name]["ours_to_best"])
    return {name: results[name] for name in [*lost, *(name for name in results if name not in lost)]}


WORDS = {"best": "inductor_default", "ours": "ours", "inductor": "inductor_default", "eager": "eager"}
