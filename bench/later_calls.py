"""Whether a compiled function is right in later calls, whose tensors lie otherwise than those of the first.

    python -m bench.later_calls --ways padded,swapped --share 1/4
    python -m bench.later_calls --cases layernorm,rmsnorm
    python -m bench.later_calls --device cuda --ways streams,recorded

The programs are those of the patterns and of the wide suite that are not random. Each is compiled in its first call,
and called again in each of these ways, with other values each time:

    shifted    every tensor begins one element further in memory, so that its vectors are not aligned
    padded     rows are parts of longer rows
    swapped    the first and the last dimension lie the other way round
    expanded   all rows are one row; not of programs that write to their inputs
    sized      one size is left open: a few of its elements less, then 7, 2 and 1
    streams    two streams of a GPU in turn, without waiting for each other
    recorded   the caller records a call in a CUDA graph, and replays it with other values

Results are held against float64 and eager mode, as everywhere, and so is what the first call gave, at the end: no later
call may overwrite it. What eager mode refuses is passed over. One process goes through its share of the programs, on a
CPU unless told otherwise; the last two ways are those of a GPU alone.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.environment import describe, write_json
from bench.patterns import CASES, Case, Input
from bench.programs.compiled import compilations_unlimited
from bench.wide import WIDE
from compiler.backend import fusionscope
from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import to_double

Inputs = list[Any]


def _shifted(x: Tensor) -> Tensor:
    extent = 1 + sum((size - 1) * step for size, step in zip(x.shape, x.stride(), strict=True))
    return x.new_empty(extent + 1).as_strided(x.shape, x.stride(), 1).copy_(x)


def _padded(x: Tensor) -> Tensor:
    return x.new_empty(*x.shape[:-1], x.shape[-1] + 3)[..., 1:-2].copy_(x) if x.dim() else x


def _swapped(x: Tensor) -> Tensor:
    return x.transpose(0, -1).contiguous().transpose(0, -1) if x.dim() > 1 else x


def _expanded(x: Tensor) -> Tensor:
    return x[:1].expand(x.shape) if x.dim() > 1 else x


LYING: dict[str, Callable[[Tensor], Tensor]] = {
    "shifted": _shifted, "padded": _padded, "swapped": _swapped, "expanded": _expanded,
}  # fmt: skip
ON_A_GPU = ("streams", "recorded")
WAYS = (*LYING, "sized", *ON_A_GPU)
CALLS_ON_EACH_STREAM = 3


class Tried:
    """One program; `problems` are sentences, `calls` those that were compared."""

    def __init__(self, case: Case, device: torch.device) -> None:
        torch._dynamo.reset()
        self.case, self.device = case, device
        self.eager, self.ours = case.call(case.function), case.call(torch.compile(case.function, backend=fusionscope))
        self.problems: list[str] = []
        self.calls = self._seed = 0

    def run(self, ways: Sequence[str]) -> None:
        inputs = self._inputs()
        first = self.ours(*_copies(inputs))
        self._compare("first", inputs, first)
        for way in ways:
            try:
                self._try(way)
            except Exception:
                self.problems.append(f"{way}: {traceback.format_exc(limit=-2).strip()[-400:]}")
        self._compare("first, after all others", inputs, first)

    def _try(self, way: str) -> None:
        if way == "sized":
            self._with_open_size()
        elif way == "streams":
            self._on_two_streams()
        elif way == "recorded":
            self._recorded()
        elif way != "expanded" or not self._writes():
            given, tried = ([LYING[way](x) if x.numel() else x for x in self._inputs()] for _ in range(2))
            inputs = _copies(given)
            if self._runs(tried):
                self._compare(way, inputs, self.ours(*given))

    def _with_open_size(self) -> None:
        """The first size of the first input that has eight or more, wherever an input has the same."""
        shapes = [one.shape for one in self.case.full]
        size = next((size for shape in shapes for size in shape if size >= 8), None)
        if size is None:
            return
        open_call = self.case.call(torch.compile(self.case.function, backend=fusionscope))
        for other in (size - 3, 7, 2, 1):
            inputs = self._inputs(tuple(_resized(one, size, other) for one in self.case.full))
            if not self._runs(_copies(inputs)):
                continue
            given = _copies(inputs)
            for x, shape in zip(given, shapes, strict=True):
                for dim, known in enumerate(shape):
                    if known == size:
                        torch._dynamo.maybe_mark_dynamic(x, dim)
            self._compare(f"sized {other}", inputs, open_call(*given))

    def _on_two_streams(self) -> None:
        streams = [torch.cuda.Stream() for _ in range(2)]
        turns = [(stream, self._inputs()) for _ in range(CALLS_ON_EACH_STREAM) for stream in streams]
        given = [_copies(inputs) for _, inputs in turns]
        torch.cuda.synchronize()
        results = []
        for (stream, _), inputs in zip(turns, given, strict=True):
            with torch.cuda.stream(stream):
                results.append(self.ours(*inputs))
        torch.cuda.synchronize()
        for number, ((_, inputs), result) in enumerate(zip(turns, results, strict=True)):
            self._compare(f"streams, call {number}", inputs, result)

    def _recorded(self) -> None:
        if self._writes() or not _records(self.eager, self._inputs()):
            return
        held, inputs = self._inputs(), self._inputs()
        graph, result = _recording(self.ours, held)
        for kept, value in zip(held, inputs, strict=True):
            kept.copy_(value)
        graph.replay()
        torch.cuda.synchronize()
        self._compare("recorded", inputs, result)

    def _inputs(self, specifications: tuple[Input, ...] | None = None) -> Inputs:
        """Other values each time."""
        self._seed += 1
        case = self.case if specifications is None else replace(self.case, full=specifications)
        return list(case.inputs("full", self.device, self._seed))

    def _runs(self, inputs: Inputs) -> bool:
        """Whether eager mode takes them as they lie; it may write to them."""
        try:
            self.eager(*inputs)
        except Exception:
            return False
        return True

    def _writes(self) -> bool:
        inputs = self._inputs()
        given = _copies(inputs)
        self.eager(*given)
        return not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(inputs, given, strict=True))

    def _compare(self, way: str, inputs: Inputs, result: Any) -> None:
        exact, eager = self.eager(*to_double(inputs)), self.eager(*_copies(inputs))
        self.calls += 1
        if not is_correct(result, exact, eager):
            self.problems.append(f"{way}: a result is further from float64 than rounding explains")


def _copies(inputs: Inputs) -> Inputs:
    return [x.clone() for x in inputs]


def _recording(function: Callable[..., Any], inputs: Inputs) -> tuple[torch.cuda.CUDAGraph, Any]:
    """A CUDA graph of one call, and its results; two calls come before it on the same stream, as torch asks for."""
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        for _ in range(2):
            function(*_copies(inputs))
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=side):
        result = function(*inputs)
    return graph, result


def _records(function: Callable[..., Any], inputs: Inputs) -> bool:
    """Whether a CUDA graph can hold the function: one that asks for a value on the host cannot be recorded."""
    try:
        _recording(function, inputs)
    except RuntimeError:
        torch.cuda.synchronize()
        return False
    return True


def _resized(one: Input, size: int, other: int) -> Input:
    shape = tuple(other if known == size else known for known in one.shape)
    return replace(one, shape=shape, high=other if one.high == size else one.high)


def tried(cases: Sequence[Case], device: torch.device, ways: Sequence[str]) -> Iterator[Tried]:
    """Each program once it has been tried; one that the first call already fails has that as its problem."""
    for case in cases:
        one = Tried(case, device)
        try:
            # Each way of lying is another one to torch.
            with compilations_unlimited():
                one.run(ways)
        except Exception:
            one.problems.append(f"first: {traceback.format_exc(limit=-2).strip()[-400:]}")
        yield one


def chosen_cases(names: str, share: str) -> list[Case]:
    """The named programs, or all, of which `share` (the second of four is `1/4`) leaves a part. Raises ValueError that
    says what is wrong."""
    known = {case.name: case for case in (*CASES, *WIDE.values()) if not case.is_random}
    wanted = [name for name in names.split(",") if name] or list(known)
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"No program is called {unknown[0]}, or it is random.")
    first, _, step = share.partition("/")
    if not (first.isdigit() and step.isdigit() and int(first) < int(step)):
        raise ValueError(f"A share is a number below another one, such as 0/4, and not {share}.")
    return [known[name] for name in wanted[int(first) :: int(step)]]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.later_calls", description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--ways", default="", help=f"some of {', '.join(WAYS)}, joined by commas")
    parser.add_argument("--cases", default="", help="names of some, joined by commas")
    parser.add_argument("--share", default="0/1", help="a part of the programs, such as 3/14")
    parser.add_argument("--out", type=Path, help="the file for the findings, as JSON")
    asked = parser.parse_args(arguments)
    device = torch.device(asked.device)
    wanted = asked.ways.split(",") if asked.ways else WAYS
    ways = [way for way in WAYS if way in wanted and (asked.device == "cuda" or way not in ON_A_GPU)]
    unknown = [way for way in asked.ways.split(",") if way and way not in WAYS]
    if unknown:
        parser.error(f"There is no way {unknown[0]}, only {', '.join(WAYS)}.")
    try:
        cases = chosen_cases(asked.cases, asked.share)
    except ValueError as error:
        parser.error(str(error))
    counts: Counter[str] = Counter()
    problems: dict[str, list[str]] = {}
    for one in tried(cases, device, ways):
        counts.update(programs=1, right=int(not one.problems), calls=one.calls)
        if one.problems:
            problems[one.case.name] = one.problems
            print(one.case.name, *one.problems, sep="\n    ", flush=True)
    print(f"{counts['right']} of {counts['programs']} programs are right, {counts['calls']} calls compared")
    environment = describe(device, None, 0)
    write_json(asked.out, {"environment": environment, "ways": ways, "counts": dict(counts), "problems": problems})
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
