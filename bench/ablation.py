"""Which rules of the scheduler and of code generation pay: `python -m bench.ablation SECONDS PROCESSES OUT [NAME ...]`.

Each rule of `ablation_rules.txt` is a function that is made to give what it gives where there is nothing for it to do.
For every graph of the patterns and the wide suite, each rule that did something is turned off by itself. Where that
changes a kernel and there is a GPU, the graph is timed with and without the rule in turns, with an overwritten L2
cache. OUT gets a line of JSON for each rule and graph; the geometric mean of the times without over with is printed for
each rule. Below 1 the rule costs time; near 1 it may go.

Without a GPU the table tells in how many graphs each rule changes a kernel for an H200.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import inspect
import json
import multiprocessing
import pkgutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any, NamedTuple

import torch

from bench.patterns import CASES, Case
from bench.wide.declare import PROGRAMS

RULES = Path(__file__).with_name("ablation_rules.txt")
ROUNDS, WARMUP_ROUNDS = 15, 3
#: Cycles that the GPU waits, so that the host is ahead of it when a call begins.
HEAD_START = 60_000


class Rule(NamedTuple):
    name: str
    where: str
    neutral: str


class Row(NamedTuple):
    """One graph without one rule: kernels with and without it, and median microseconds where they were timed."""

    program: str
    graph: int
    rule: str
    kernels: int
    kernels_without: int
    us: float | None = None
    us_without: float | None = None
    error: str = ""


def rules() -> list[Rule]:
    lines = (line.split() for line in RULES.read_text().splitlines() if not line.startswith("#"))
    return [Rule(*line) for line in lines]


def _neutral(kind: str, arguments: Sequence[Any]) -> Any:
    if kind == "nothing_kept":
        from compiler.codegen.triton.reductions.kept import Kept

        return Kept(frozenset(), {}, {}, frozenset())
    constants: dict[str, Any] = {
        "none": None,
        "false": False,
        "zero": 0,
        "empty": (),
        "list": [],
        "dict": {},
        "set": frozenset(),
    }
    if kind in constants:
        return constants[kind]
    chosen: dict[str, Callable[[], Any]] = {
        "first": lambda: arguments[0],
        "second": lambda: arguments[1],
        "copy": lambda: list(arguments[0]),
        "both": lambda: tuple(arguments[:2]),
    }
    return chosen[kind]()


class Switch:
    """Every reference to a rule's function goes through here: `off` names the rule that is off, and `fired` those that
    gave something else than they would have. Rules whose function is not there any more are left out, and told."""

    def __init__(self, known: Sequence[Rule] | None = None) -> None:
        self.off: str | None = None
        self.fired: set[str] = set()
        self._caches: list[Any] = []
        with suppress(ImportError):
            for module in pkgutil.walk_packages(importlib.import_module("compiler").__path__, "compiler."):
                importlib.import_module(module.name)
        modules = [module for name, module in sys.modules.items() if name.startswith("compiler")]
        values = [value for module in modules for value in vars(module).values()]
        self._caches = [value for value in values if hasattr(value, "cache_clear")]
        for rule in rules() if known is None else known:
            self._install(rule, modules)

    def _install(self, rule: Rule, modules: Iterable[Any]) -> None:
        module, _, path = rule.where.partition(":")
        try:
            owner: Any = importlib.import_module(module)
            *outer, name = path.split(".")
            for part in outer:
                owner = getattr(owner, part)
            original = getattr(owner, name)
        except (ImportError, AttributeError):
            print(f"{rule.name}: there is no {rule.where}", file=sys.stderr)
            return
        wrapped = self._wrapped(rule, original)
        setattr(owner, name, wrapped)
        for other in modules:
            for key, value in list(vars(other).items()):
                if value is original:
                    setattr(other, key, wrapped)

    def _wrapped(self, rule: Rule, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if self.off == rule.name:
                return _neutral(rule.neutral, arguments)
            result = original(*arguments, **more)
            result = list(result) if inspect.isgenerator(result) else result
            if self.off is None and rule.name not in self.fired:
                other = _neutral(rule.neutral, arguments)
                is_nothing = isinstance(result, list | tuple) and not result and not other
                if not (is_nothing or other is result or other == result):
                    self.fired.add(rule.name)
            return result

        return call

    @contextmanager
    def without(self, rule: str | None) -> Iterator[None]:
        """Within, that rule is off, and nothing is remembered of what was compiled with it."""
        from compiler.schedule import once

        for cached in self._caches:
            cached.cache_clear()
        once._known.clear()
        self.off = rule
        try:
            yield
        finally:
            self.off = None


def programs() -> dict[str, Case]:
    wide = importlib.import_module("bench.wide")
    for module in pkgutil.iter_modules(wide.__path__):
        importlib.import_module(f"bench.wide.{module.name}")
    return {case.name: case for case in CASES} | PROGRAMS


@dataclass
class Graph:
    """An ATen graph with the inputs of a call."""

    aten: torch.fx.GraphModule
    inputs: list[Any] | None = None

    def __call__(self, inputs: list[Any]) -> Any:
        self.inputs = [value.detach() if isinstance(value, torch.Tensor) else value for value in inputs]
        with torch.no_grad():
            return self.aten(*inputs)


def graphs_of(case: Case, device: torch.device) -> list[Graph]:
    from compiler.capture.autograd.aot import compile_through_aot

    found: list[Graph] = []

    def backend(graph: torch.fx.GraphModule, example: Sequence[Any]) -> Any:
        def part(aten: torch.fx.GraphModule, _: str) -> Any:
            found.append(Graph(aten))

            def run(inputs: list[Any], graph: Graph = found[-1]) -> Any:
                return graph(inputs)

            run._boxed_call = True  # type: ignore[attr-defined]
            return run

        return compile_through_aot(graph, example, part)

    torch._dynamo.reset()
    inputs = case.inputs("full" if device.type == "cuda" else "small", device, 0)
    case.call(torch.compile(case.function, backend=backend))(*inputs)
    return [graph for graph in found if graph.inputs is not None]


def _compiled(graph: Graph, device: torch.device, builds: bool = False) -> Any:
    from compiler.compile import Target, build, compiled_beside, generate, lower, plan
    from compiler.devices import device_for
    from compiler.options import Options

    model = device_for(device if device.type == "cuda" else "sm_90")
    planned = plan(lower(graph.aten, Target(device, model, Options())))
    if not builds:
        return generate(planned, wants_triton=True)
    with compiled_beside(planned) as launchers:
        return build(generate(planned, wants_triton=True, launchers=launchers), launchers=launchers)


def _text(compilation: Any) -> tuple[str, int]:
    """What tells one compilation from another, and how many kernels it has."""
    from compiler.codegen.wrapper import render_wrapper

    parts = [render_wrapper(compilation.schedule, compilation.memory, compilation.primary, compilation.runs_on)]
    parts += [f"{kernel.source} {sorted(map(str, kernel.config.items()))}" for kernel in compilation.triton.values()]
    return hashlib.sha1("\n".join(parts).encode()).hexdigest(), len(compilation.groups)


def rows_of(name: str, number: int, graph: Graph, device: torch.device, switch: Switch, lock: Any) -> list[Row]:
    switch.fired = set()
    with switch.without(None):
        base, kernels = _text(_compiled(graph, device))
    found: dict[str, list[tuple[str, int]]] = {}
    rows = []
    for rule in sorted(switch.fired):
        with switch.without(rule):
            try:
                text, count = _text(_compiled(graph, device))
            except Exception as error:  # noqa: BLE001 - a rule that something relies on
                rows.append(Row(name, number, rule, kernels, 0, error=f"{type(error).__name__}: {error}"[:120]))
                continue
        if text != base:
            found.setdefault(text, []).append((rule, count))
    if device.type != "cuda":
        return rows + [Row(name, number, rule, kernels, count) for same in found.values() for rule, count in same]
    calls = []
    for off in (None, *(same[0][0] for same in found.values())):
        with switch.without(off):
            calls.append(_compiled(graph, device, builds=True).executable.quickest)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        whole, *others = _times(calls, graph.inputs or [], device)
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)
    for us, same in zip(others, found.values(), strict=True):
        rows += [Row(name, number, rule, kernels, count, whole, us) for rule, count in same]
    return rows


def _times(calls: Sequence[Callable[[list[Any]], Any]], inputs: list[Any], device: torch.device) -> list[float]:
    """Median microseconds of each, in turns, with an overwritten L2 cache."""
    cache = torch.empty(1 << 26, dtype=torch.int32, device=device)
    times: list[list[float]] = [[] for _ in calls]
    for number in range(WARMUP_ROUNDS + ROUNDS):
        for taken, call in zip(times, calls, strict=True):
            begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            cache.zero_()
            torch.cuda._sleep(HEAD_START)
            begun.record()
            call(list(inputs))
            ended.record()
            torch.cuda.synchronize()
            if number >= WARMUP_ROUNDS:
                taken.append(1000 * begun.elapsed_time(ended))
    return [round(statistics.median(taken), 2) for taken in times]


def _work(names: Any, out: Any, lock: str, deadline: float, switched: Callable[[], Switch]) -> None:
    torch.set_num_threads(1)
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    cases, switch = programs(), switched()
    with Path(lock).open("w") as file:
        while time.time() < deadline:
            try:
                name = names.get(timeout=1)
            except Empty:
                break
            rows: list[Row] = []
            try:
                for number, graph in enumerate(graphs_of(cases[name], device)):
                    rows += rows_of(name, number, graph, device, switch, file)
            except Exception as error:  # noqa: BLE001 - told, and the next one measured
                rows.append(Row(name, -1, "", 0, 0, error=f"{type(error).__name__}: {error}"[:200]))
            out.put(rows)
    out.put(None)


def table(rows: Sequence[Row]) -> str:
    by_rule: dict[str, list[Row]] = {}
    for row in rows:
        by_rule.setdefault(row.rule, []).append(row)
    lines = ["| rule | graphs | failed | time without / with | the most | of |", "|---|---|---|---|---|---|"]
    for rule, found in sorted(by_rule.items()):
        ratios = sorted((r.us_without / r.us, r.program) for r in found if r.us and r.us_without)
        failed = sum(bool(row.error) for row in found)
        mean = f"{statistics.geometric_mean(ratio for ratio, _ in ratios):.3f}" if ratios else ""
        most, where = (f"{ratios[-1][0]:.2f}", ratios[-1][1]) if ratios else ("", "")
        lines.append(f"| {rule or 'no rule'} | {len(found) - failed} | {failed} | {mean} | {most} | {where} |")
    return "\n".join(lines)


def measure(
    seconds: float, processes: int, out: Path, only: Sequence[str] = (), switched: Callable[[], Switch] = Switch
) -> list[Row]:
    """The rows of all programs that were begun within `seconds`, also written to `out` as they come. Each process has
    the switch that `switched` makes."""
    context = multiprocessing.get_context("spawn")
    names, results = context.Queue(), context.Queue()
    for name in sorted(only or programs(), key=lambda name: hashlib.sha1(name.encode()).hexdigest()):
        names.put(name)
    deadline, rows, ended = time.time() + seconds, list[Row](), 0
    with tempfile.NamedTemporaryFile() as lock, out.open("w") as file:
        workers = [
            context.Process(target=_work, args=(names, results, lock.name, deadline, switched), daemon=True)
            for _ in range(processes)
        ]
        for worker in workers:
            worker.start()
        while ended < processes and time.time() < deadline + 60:
            with suppress(Empty):
                found: list[Row] | None = results.get(timeout=5)
                ended += found is None
                rows += found or []
                file.writelines(json.dumps(row) + "\n" for row in found or [])
                file.flush()
    return rows


if __name__ == "__main__":
    print(table(measure(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])))
