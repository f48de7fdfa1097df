"""The snippet suite: every file of a folder through the whole pipeline, with TorchInductor beside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bench.contest import compile_with, fresh_caches, seconds_of, sentence_of, start_compilers
from compiler.capture.capture import capture
from compiler.capture.captured import EntryCall
from compiler.capture.program.output import silenced
from compiler.options import Options, Timing
from compiler.pipeline import explore

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
    ("ours compile s", "ours_compile_s", 2),
    ("Inductor compile s", "inductor_compile_s", 2),
    ("error", "max_error", 9),
)

METHOD = (
    "Each snippet is explored as the service would: one call of every function that it compiles, with the inputs that "
    "it is called with, contestants interleaved, medians in milliseconds. Kernels are those of all graphs, which after "
    "a recompilation serve different calls; TorchInductor's are left out then. The floor is the bytes that all graphs "
    "must move at the copy bandwidth of this run. Errors are against float64. Compile seconds are those of the first "
    "of these calls, backward passes included where the snippet makes some, with empty caches, before the snippet is "
    "explored and in a process that had compiled something else before; graphs of later recompilations are not in them."
)

#: Whose compile seconds are told, by the key of the result.
COMPILERS = {"ours_compile_s": "ours", "inductor_compile_s": "inductor_default"}


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
    start_compilers(torch.device(device), tuple(COMPILERS.values()), lambda _: None)
    for file in sorted(folder.glob("*.py")):
        if not chosen or file.stem in chosen:
            results[file.stem] = run_snippet(file, options, bandwidth)
            on_result(results)
    return results


def run_snippet(file: Path, options: Options, bandwidth: float) -> dict[str, Any]:
    """What compiling took, and the summary of one exploration. Times are milliseconds, those of compiling seconds."""
    source = file.read_text()
    try:
        compiling, failures = compile_seconds(source, options)
        report = explore(source, options)
    except Exception as error:  # the pipeline promises not to raise; a suite goes on regardless
        return {"status": "crashed", "errors": {"ours": sentence_of(error)}}
    told = report.summary
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
        **compiling,
        "eager_to_ours": told.speedup,
        "stages_ms": {stage.name: stage.ms for stage in report.stages},
        "errors": failures | ({report.error.stage or "snippet": report.error.message} if report.error else {}),
    }


def compile_seconds(source: str, options: Options) -> tuple[dict[str, float | None], dict[str, str]]:
    """Seconds of the first calls with each compiler, None for one that failed or for a snippet that compiles nothing;
    and the failures as sentences.

    An exploration's own stages would tell less: on a GPU a Triton kernel is compiled when it is first launched."""
    device = torch.device(options.device or "cpu")
    seconds: dict[str, float | None] = dict.fromkeys(COMPILERS)
    failures: dict[str, str] = {}
    captured = capture(source, options, device)
    has_backward = any(graph.phase == "backward" for graph in captured.graphs)
    if captured.error is not None or not captured.entries:
        return seconds, failures  # which the exploration will tell
    for key, name in COMPILERS.items():
        torch._dynamo.reset()
        try:
            with silenced(), fresh_caches():
                seconds[key] = sum(_first_call(name, entry, has_backward, device) for entry in captured.entries)
        except Exception as error:  # a compiler's failure is a result
            failures[f"compiling with {name}"] = sentence_of(error)
    torch._dynamo.reset()
    return seconds, failures


def _first_call(name: str, entry: EntryCall, has_backward: bool, device: torch.device) -> float:
    function = compile_with(name, entry.eager)
    args, kwargs = entry.copy_arguments()

    def call() -> None:
        result = function(*args, **kwargs)
        if has_backward:
            _backward(result)

    return seconds_of(call, device)


def _backward(result: Any) -> None:
    """Run the backward pass of every tensor in the result that has one, which compiles its graph."""
    tensors = [value for value in torch.utils._pytree.tree_leaves(result) if isinstance(value, torch.Tensor)]
    wanted = [tensor for tensor in tensors if tensor.requires_grad and tensor.grad_fn is not None]
    if wanted:
        torch.autograd.backward(wanted, [torch.ones_like(tensor) for tensor in wanted])
