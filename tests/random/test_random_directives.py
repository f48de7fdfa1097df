"""Random programs with random pairs forced and forbidden: what is forbidden stays apart, a force that is refused is on
record, and results are eager's."""

from __future__ import annotations

import random
import zlib

import pytest

import compiler.compile
from bench.programs.check import check
from compiler.decisions import Refuse
from compiler.ir.nodes import LoopGraph
from compiler.options import Options
from compiler.schedule.directives import Directives, OtherNames
from compiler.schedule.scheduler import Schedule

#: Two of these programs once left a refusal without a record.
SEEDS = range(5006, 5022)


def random_directives(graph: LoopGraph, _options: Options, _other_names: OtherNames) -> Directives:
    """Up to 8 pairs of each kind; the same graph has the same ones in every run."""
    names = [node.name for node in graph.nodes]
    chance = random.Random(zlib.crc32(" ".join(names).encode()))
    pairs = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]
    chance.shuffle(pairs)
    forced, forbidden = chance.randint(0, 8), chance.randint(0, 8)
    return Directives(tuple(pairs[:forced]), tuple(pairs[forced : forced + forbidden]))


def broken_promises(schedule: Schedule, directives: Directives) -> list[str]:
    unit_of = {name: unit for unit in schedule.units for name in unit.names}
    refused = [(d.one.names, d.two.names) for d in schedule.decisions if isinstance(d.verdict, Refuse)]
    broken = [
        f"{a} and {b} are together" for a, b in directives.forbidden if a in unit_of and unit_of[a] == unit_of.get(b)
    ]
    for a, b in directives.forced:
        if a in unit_of and b in unit_of and unit_of[a] != unit_of[b]:
            is_told = any((a in one and b in two) or (b in one and a in two) for one, two in refused)
            broken += [] if is_told else [f"{a} and {b} are apart, and no refusal says why"]
    return broken


def test_directives_are_kept_or_refused_and_results_stay_right(monkeypatch: pytest.MonkeyPatch) -> None:
    broken: list[str] = []
    forced = 0
    schedule = compiler.compile.schedule

    def observed(
        graph: LoopGraph, device: object, options: Options, directives: Directives, *others: object
    ) -> Schedule:
        nonlocal forced
        made = schedule(graph, device, options, directives, *others)  # type: ignore[arg-type]
        broken.extend(broken_promises(made, directives))
        forced += len(directives.forced)
        return made

    monkeypatch.setattr(compiler.compile, "directives_of", random_directives)
    monkeypatch.setattr(compiler.compile, "schedule", observed)
    outcome = check(SEEDS)
    assert not outcome.failures, "\n".join(problem for failure in outcome.failures for problem in failure.problems)
    assert not broken
    assert forced > len(SEEDS)
