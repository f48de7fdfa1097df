"""The snippet suite: every file of a folder through the whole pipeline, with TorchInductor beside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from compiler.options import Options, Timing

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "snippets"

#: Heading, key, decimals of the table that is printed.
COLUMNS = (
    ("floor ms", "floor", 4),
    ("eager ms", "eager", 4),
    ("ours ms", "ours", 4),
    ("Inductor ms", "inductor_default", 4),
    ("eager kernels", "eager_kernels", 0),
    ("kernels", "kernels", 0),
    ("Inductor kernels", "inductor_kernels", 0),
    ("Inductor compile s", "inductor_compile_s", 2),
    ("error", "max_error", 9),
)

METHOD = (
    "Each snippet is explored as the service would: one call of every function that it compiles, with the inputs that "
    "it is called with, contestants interleaved, medians in milliseconds. Kernels are those of all graphs, which after "
    "a recompilation serve different calls; TorchInductor's are left out then. The floor is the bytes that all graphs "
    "must move at the copy bandwidth of this run. Errors are against float64."
)


def run_snippets(
    folder: Path,
    chosen: tuple[str, ...],
    device: str,
    repeat: int,
    seed: int,
    bandwidth: float,
    on_result: Callable[[dict[str, Any]], None],
) -> dict[str, dict[str, Any]]:
    """Explore every `*.py` of the folder in the order of their names; `on_result` gets all results after each.
    `bandwidth` is the device's, in bytes per second, for the floor.

    A snippet that fails is a result: its error stands under `errors`."""
    options = Options(device=device, peer=True, seed=seed, timing=Timing(min_runs=repeat))
    results: dict[str, dict[str, Any]] = {}
    for file in sorted(folder.glob("*.py")):
        if not chosen or file.stem in chosen:
            results[file.stem] = run_snippet(file, options, bandwidth)
            on_result(results)
    return results


def run_snippet(file: Path, options: Options, bandwidth: float) -> dict[str, Any]:
    """The summary of one exploration. Times are milliseconds."""
    from bench.contest import sentence_of
    from compiler.pipeline import explore

    try:
        report = explore(file.read_text(), options)
    except Exception as error:  # the pipeline promises not to raise; a suite goes on regardless
        return {"status": "crashed", "errors": {"ours": sentence_of(error)}}
    told = report.summary
    raced = {one.name: one for one in report.timing.contestants} if report.timing else {}
    return {
        "status": report.status,
        "floor": told.floor_bytes / bandwidth * 1e3 if told.floor_bytes is not None else None,
        "eager": told.eager_ms,
        "ours": told.compiled_ms,
        "inductor_default": told.peer_ms,
        "eager_kernels": told.eager_kernels,
        "kernels": told.kernels,
        "inductor_kernels": told.peer_kernels,
        "graph_breaks": told.graph_breaks,
        "recompiles": told.recompiles,
        "eager_error": told.eager_error,
        "max_error": told.compiled_error,
        "inductor_compile_s": raced["peer"].compile_s if "peer" in raced else None,
        "eager_to_ours": told.speedup,
        "stages_ms": {stage.name: stage.ms for stage in report.stages},
        "errors": {report.error.stage or "snippet": report.error.message} if report.error else {},
    }
