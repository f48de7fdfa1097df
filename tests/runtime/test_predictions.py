"""The predictions suite on real, small programs: its records are whole, its summary and its plot say what they hold."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from bench import cli
from bench.predictions.classes import CLASSES
from bench.predictions.micro import CHOICES, SINGLE
from bench.predictions.summary import agreement, error_rows


def test_a_run_records_predicted_and_measured_times_of_kernels_and_choices(tmp_path: Path) -> None:
    out = tmp_path / "predictions.json"
    programs = "micro/add_2^12,micro/normalised_2^10,patterns/toy_graph_break"
    arguments = ["--suite", "predictions", "--device", "cpu", "--cases", programs]
    code = cli.main([*arguments, "--repeat", "3", "--out", str(out)])
    document = json.loads(out.read_text())
    assert code == 0
    assert document["failures"] == {}
    assert {kernel["program"] for kernel in document["kernels"]} == set(programs.split(","))
    for kernel in document["kernels"]:
        assert kernel["error"] is None
        assert kernel["class"] in CLASSES
        assert kernel["predicted_us"] > 0 and kernel["measured_us"] > 0 and kernel["bytes"] > 0
        assert kernel["measured_low_us"] <= kernel["measured_us"] <= kernel["measured_high_us"]
        assert sum(kernel["parts"]["bytes"].values()) > 0
        assert kernel["samples"] == 3
    assert {kernel["role"] for kernel in document["kernels"]} == {"scheduled", "alternative"}
    names = {(kernel["program"], kernel["graph"], kernel["name"]) for kernel in document["kernels"]}
    assert document["choices"]
    for choice in document["choices"]:
        assert choice["is_taken"] == (choice["predicted_together_us"] < choice["predicted_apart_us"])
        assert choice["measured_apart_us"] > 0 and choice["measured_together_us"] > 0
        assert {(choice["program"], choice["graph"], name) for name in choice["apart"] + choice["together"]} <= names
    assert document["summary"]["agreement"]["all"]["choices"] == len(document["choices"])
    assert "| all that run |" in out.with_suffix(".md").read_text()
    circles = ElementTree.fromstring(out.with_suffix(".svg").read_text()).iter("{http://www.w3.org/2000/svg}circle")
    scheduled = [kernel for kernel in document["kernels"] if kernel["role"] == "scheduled"]
    classes = {kernel["class"] for kernel in scheduled}
    assert len(list(circles)) == len(scheduled) + len(classes)


def _kernel(name: str, predicted: float, measured: float | None, role: str = "scheduled") -> dict[str, Any]:
    return {"class": name, "predicted_us": predicted, "measured_us": measured, "role": role}


def test_errors_are_of_the_measured_kernels_of_each_class() -> None:
    kernels = [_kernel("scan", 9.0, 10.0), _kernel("scan", 13.0, 10.0), _kernel("tiny", 5.0, None)]
    kernels += [_kernel("scan", 40.0, 10.0, "alternative")]
    rows = {row["class"]: row for row in error_rows(kernels)}
    assert set(rows) == {"scan", "all that run", "alternatives"}
    assert rows["scan"]["kernels"] == 2
    assert rows["scan"]["median_error"] == pytest.approx(0.2)
    assert rows["alternatives"]["median_error"] == pytest.approx(3.0)


def test_only_choices_whose_ways_differ_by_more_than_a_tenth_can_agree() -> None:
    def choice(is_taken: bool, apart: float | None, together: float) -> dict[str, Any]:
        return {
            "kind": "vertical", "is_taken": is_taken, "measured_apart_us": apart, "measured_together_us": together,
        }  # fmt: skip

    counted = agreement([choice(True, 20, 10), choice(True, 10, 20), choice(False, 10, 10.5), choice(False, None, 1)])
    assert counted["all"] == counted["vertical"]
    assert counted["all"]["decisive"] == 2
    assert counted["all"]["agree"] == 1
    assert counted["all"]["measured"] == 3


def test_micro_cases_have_names_of_their_own_and_small_twins() -> None:
    cases = [*SINGLE, *CHOICES]
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        assert all(max(one.shape) <= 64 for one in case.small)
        assert [len(one.shape) for one in case.small] == [len(one.shape) for one in case.full]
