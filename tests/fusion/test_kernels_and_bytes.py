"""Kernels, library calls and bytes of every program of the suite `fusion`, exact, and never more than TorchInductor's.

The peer's figures are those that `python -m bench --suite fusion` recorded. When ours change for a good reason, run it
again with `--out docs/performance/archive/fusion.json`, and put the new figures into `expected.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.fusion.count import Count, counted, schedules_of
from bench.fusion.suite import launches
from bench.fusion.table import PROGRAMS
from bench.predictions.tiles import kinds_of
from tests.fusion.expected import EXPECTED, IN_ANOTHER_RELEASE

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "performance" / "archive" / "fusion.json").read_text()
)["cases"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_library_calls_and_bytes(name: str) -> None:
    release = ".".join(torch.__version__.split(".")[:2])
    compilations = schedules_of(PROGRAMS[name])
    counts = [counted(compilation) for compilation in compilations]
    assert sum(counts, Count(0, 0, 0)) == Count(*IN_ANOTHER_RELEASE.get((release, name), EXPECTED[name]))
    assert all(is_made_as_priced for compilation in compilations for _, is_made_as_priced in kinds_of(compilation))


def test_the_recorded_figures_are_those_of_this_compiler() -> None:
    recorded = {name: Count(**case["ours"]) for name, case in RECORDED.items()}
    assert recorded == {name: Count(*figures) for name, figures in EXPECTED.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_more_launches_and_bytes_than_the_peer(name: str) -> None:
    ours, peer = Count(*EXPECTED[name]), RECORDED[name]["inductor"]
    assert ours.launches <= launches(peer)
    assert ours.bytes <= peer["bytes"]


def test_fewer_launches_than_the_peer_in_many_programs() -> None:
    fewer = [n for n in PROGRAMS if Count(*EXPECTED[n]).launches < launches(RECORDED[n]["inductor"])]
    assert len(fewer) >= 10
