"""`fusionscope bench --suite products`: matrix products with what follows them, by the library and by our kernel; and
products of one operand, which may be one kernel.

For each case the same function: by PyTorch's eager mode; by us with the library's product and a kernel for the rest
("library"), in one kernel ("fused"), and as the device model chooses ("ours"); and by TorchInductor. Then our kernel
alone with each tile that it might have had, so that the shares of the peak rate in
`schedule/products/best_tile.py` and its choice of tiles can be held against what was measured.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console

from bench.contest import sentence_of
from bench.environment import copy_bandwidth, describe, write_json
from compiler.backend import fusionscope
from compiler.codegen.triton.product import render_tiles
from compiler.compile import Built, observed_compilations
from compiler.devices import device_for
from compiler.ir.size import known
from compiler.options import Timing
from compiler.runtime.timing.measure import take_samples
from compiler.runtime.timing.stopwatch import Call, stopwatch
from compiler.schedule.cost.kernel import group_cost
from compiler.schedule.group import Group
from compiler.schedule.products.best_tile import tile_of, tiles_within
from compiler.schedule.products.loops import Product
from compiler.schedule.products.tiles import Tile

Tensor = torch.Tensor

METHOD = (
    "Device time between CUDA events, L2 cache overwritten before each sample, contestants interleaved: medians in "
    "microseconds. `tiles` are our kernel alone, by rows, columns, step along k, warps and stages. Errors are "
    "||out - ref|| / ||ref|| against float64."
)
#: Of errors against float64: a product of half types is rounded once, or twice where the library rounds it first.
MOST_ERROR = {torch.bfloat16: 2e-2, torch.float16: 3e-3, torch.float32: 1e-5}
CALLS_OFF = {"rules_off": ["epilogue", "library_epilogue", "prologue", "shared_operand"]}


def relu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.relu(F.linear(x, w, b))


def gelu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.linear(x, w, b))


def gelu_tanh(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.linear(x, w, b), approximate="tanh")


def residual(x: Tensor, w: Tensor, b: Tensor, r: Tensor) -> Tensor:
    return F.linear(x, w, b) + r


def scaled(x: Tensor, w: Tensor, s: Tensor) -> Tensor:
    """A pointwise producer of an operand."""
    return F.linear(x * s, w)


def gated(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """Two products of one operand, and what needs both: SwiGLU."""
    return F.silu(F.linear(x, w)) * F.linear(x, v)


def projections(x: Tensor, q: Tensor, qb: Tensor, k: Tensor, kb: Tensor, v: Tensor, vb: Tensor) -> list[Tensor]:
    """Three of one operand: queries, keys and values."""
    return [F.linear(x, q, qb), F.linear(x, k, kb), F.linear(x, v, vb)]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "residual": residual,
    "scaled": scaled,
    "gated": gated,
    "projections": projections,
}
#: Those that are measured with every shape and dtype.
OF_ONE_PRODUCT = tuple(name for name in FUNCTIONS if name not in ("gated", "projections"))
SHAPES = ((8192, 3072, 768), (512, 512, 512), (64, 4096, 4096), (8192, 1024, 1024))
#: Of the layers of language models, and of attention with 768 or 1,024 channels.
GATED_SHAPES = tuple((rows, 11008, 4096) for rows in (1, 32, 128, 512, 2048))
PROJECTED_SHAPES = tuple((rows, n, n) for n in (768, 1024) for rows in (197, 512, 1024, 6304))
MORE_SHAPES = ((2048, 2048, 2048), (1, 4096, 4096), (128, 768, 768))
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


@dataclass(frozen=True)
class Case:
    function: str
    shape: tuple[int, int, int]
    dtype: str

    @property
    def name(self) -> str:
        return f"{self.function}_{'x'.join(map(str, self.shape))}_{self.dtype}"

    def inputs(self, device: torch.device) -> list[Tensor]:
        m, n, k = self.shape
        sizes: dict[str, list[tuple[int, ...]]] = {
            "residual": [(n,), (m, n)],
            "scaled": [(k,)],
            "gated": [(n, k)],
            "projections": [(n,), (n, k), (n,), (n, k), (n,)],
        }
        shapes = [(n, k), *sizes.get(self.function, [(n,)])]
        made = [torch.randn(shape, device=device, dtype=DTYPES[self.dtype]) for shape in shapes]
        scaled = [tensor / math.sqrt(k) if tensor.shape == (n, k) else tensor for tensor in made]
        return [torch.randn((m, k), device=device, dtype=DTYPES[self.dtype]), *scaled]


def _cases() -> dict[str, Case]:
    """Every function in bfloat16, and one in float32; of more shapes that one alone."""
    cases = [Case(name, shape, "bf16") for shape in SHAPES for name in OF_ONE_PRODUCT]
    cases += [Case("relu", shape, "fp32") for shape in SHAPES]
    cases += [Case("relu", shape, dtype) for shape in MORE_SHAPES for dtype in DTYPES]
    cases += [Case("gated", shape, "bf16") for shape in GATED_SHAPES]
    cases += [Case("projections", shape, "bf16") for shape in PROJECTED_SHAPES]
    return {case.name: case for case in cases}


CASES = _cases()
#: Every tile is timed with these functions alone: with another one it would rank alike.
OF_TILES = ("relu", "gated", "projections")
#: A tile that is expected to take so much longer than the best is left out.
MOST_SLOWER = 2.5


def run(asked: argparse.Namespace, chosen: Sequence[str], device_name: str, console: Console) -> int:
    """0 if every case ran and was right, 1 if one was not, 2 for a mistake in the request."""
    missing = [name for name in chosen if name not in CASES]
    device = torch.device(device_name)
    if missing or device.type != "cuda":
        console.print(f"No case {', '.join(missing)}." if missing else "Kernels of products are for GPUs.")
        return 2
    watch = stopwatch(device)
    environment = describe(device, copy_bandwidth(device, watch), asked.seed)
    document: dict[str, Any] = {"suite": "products", "method": METHOD, "environment": environment, "cases": {}}
    for name in chosen or CASES:
        torch.manual_seed(asked.seed)
        result: dict[str, Any] = {"us": {}, "error": {}, "errors": {}, "wrong": [], "tiles": {}, "predicted": {}}
        try:
            _measure(CASES[name], device, Timing(min_runs=asked.repeat, max_seconds=asked.max_seconds), result)
        except Exception as problem:  # the next case may do
            result["errors"]["case"] = sentence_of(problem)
        document["cases"][name] = result
        write_json(asked.out, document)
        console.print(_line(name, result), markup=False, highlight=False)
    return 0 if all(not result["wrong"] and not result["errors"] for result in document["cases"].values()) else 1


def _measure(case: Case, device: torch.device, timing: Timing, result: dict[str, Any]) -> None:
    function, inputs = FUNCTIONS[case.function], case.inputs(device)
    reference = _flat(function(*(tensor.double() for tensor in inputs)))
    calls: dict[str, Call] = {}

    def add(name: str, compiled: Callable[..., Any]) -> None:
        try:
            error = float((_flat(compiled(*inputs)).double() - reference).norm() / reference.norm())
        except Exception as problem:  # the others may do
            result["errors"][name] = sentence_of(problem)
            return
        result["error"][name] = error
        if not error <= MOST_ERROR[DTYPES[case.dtype]]:
            result["wrong"].append(name)
        calls[name] = lambda: compiled(*inputs)

    add("eager", function)
    library = _compiled(function, inputs, CALLS_OFF)
    add("library", library[0])
    ours = _compiled(function, inputs, {})
    add("ours", ours[0])
    fused = _compiled(function, inputs, {"force": _pairs(library[1]), "rules_off": ["library_epilogue"]})
    add("fused", fused[0])
    torch._dynamo.reset()
    add("inductor", torch.compile(function, dynamic=False))
    samples = take_samples(calls, stopwatch(device), device, timing)
    result["us"] = {name: 1e3 * taken.median_ms for name, taken in samples.items()}
    result["way"] = _way_of(ours[1])
    _predict(fused[1], device, result)
    if case.function in OF_TILES:
        _measure_tiles(fused[1], device, timing, result)


def _compiled(
    function: Callable[..., Any], inputs: Sequence[Tensor], options: dict[str, Any]
) -> tuple[Callable[..., Any], Built]:
    """The function compiled by us, and what was made of its one graph."""
    torch._dynamo.reset()
    made: list[Built] = []
    compiled = torch.compile(function, backend=fusionscope, options=options, dynamic=False)
    with torch.no_grad(), observed_compilations(made.append):
        compiled(*inputs)
    (compilation,) = made
    # Dynamo sorts inputs by first use, and names them as the function does.
    given = dict(zip(signature(function).parameters, inputs, strict=True))
    values = [given[name or ""] for name in compilation.schedule.graph.inputs]
    call = compilation.executable.call
    # Without Dynamo's guards: what is compared is the device's time.
    return (lambda *_: call(list(values))), compilation


def _pairs(compilation: Built) -> list[list[str]]:
    """The first product and each other one, and each node of loops beside it."""
    calls = sorted(unit.name for unit in compilation.schedule.units if not isinstance(unit, Group))
    others = [*calls[1:], *(member.name for group in compilation.groups for member in group.members)]
    return [[calls[0], other] for other in others]


def _way_of(compilation: Built) -> str:
    """Which of the ways the device model chose."""
    units = compilation.schedule.units
    if any(isinstance(unit, Product) for unit in units):
        return "fused"
    return "library epilogue" if any(not isinstance(unit, Group) and unit.covers for unit in units) else "library"


def _product_of(compilation: Built) -> Product:
    return next(group for group in compilation.groups if isinstance(group, Product))


def _predict(compilation: Built, device: torch.device, result: dict[str, Any]) -> None:
    """What the model of the device said."""
    product, model = _product_of(compilation), device_for(device)
    result["tile"] = _text(tile_of(product, model))
    result["predicted"]["fused"] = group_cost(product, compilation.schedule.graph.buffers, model).microseconds
    for decision in compilation.schedule.decisions:
        library = decision.verdict.numbers.get("library_us")
        result["predicted"] |= {} if library is None else {"library's product": library}


def _measure_tiles(compilation: Built, device: torch.device, timing: Timing, result: dict[str, Any]) -> None:
    from compiler.runtime.triton.launch import TritonLauncher

    product, model = _product_of(compilation), device_for(device)
    layouts = compilation.schedule.graph.buffers
    storage = {name: layout.dtype for name, layout in layouts.items()}
    calls: dict[str, Call] = {}
    for tile in tiles_within(product, MOST_SLOWER, model):
        kernel = render_tiles(product, storage, tile, model.multiprocessors)
        tensors = [
            torch.randn(known(layouts[name].storage_numel), device=device, dtype=storage[name])
            for name in kernel.parameters
        ]
        try:
            launch = TritonLauncher(kernel)
            launch(*tensors)
            torch.cuda.synchronize(device)
        except Exception as problem:  # a tile that does not fit is a result
            result["tiles"][_text(tile)] = sentence_of(problem)
            continue
        calls[_text(tile)] = _launching(launch, tensors)
        result.setdefault("spills", {})[_text(tile)] = launch.spills
    samples = take_samples(calls, stopwatch(device), device, timing)
    result["tiles"] |= {name: 1e3 * taken.median_ms for name, taken in samples.items()}


def _launching(launch: Callable[..., None], tensors: Sequence[Tensor]) -> Call:
    return lambda: launch(*tensors)


def _flat(results: Any) -> Tensor:
    """One tensor, or several one after another."""
    return torch.cat([tensor.flatten() for tensor in results]) if isinstance(results, list) else results.flatten()


def _text(tile: Tile) -> str:
    return f"{tile.m}x{tile.n}x{tile.k}/{tile.warps}w{tile.stages}s"


def _line(name: str, result: dict[str, Any]) -> str:
    times = "  ".join(f"{who} {time:.1f}" for who, time in result["us"].items())
    tiles = {tile: time for tile, time in result["tiles"].items() if isinstance(time, float)}
    best = min(tiles, key=lambda tile: tiles[tile], default="none")
    chosen = f"best tile {best} {tiles.get(best, math.nan):.1f}, chosen {result.get('tile')}"
    predicted = "  ".join(f"{what} {time:.1f}" for what, time in result["predicted"].items())
    problems = [*result["errors"].items(), *((who, "wrong") for who in result["wrong"])]
    return f"{name}: {times} us | {chosen} | ours is {result.get('way')}; predicted {predicted} {problems or ''}"
