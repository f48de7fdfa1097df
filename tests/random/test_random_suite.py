"""`fusionscope bench --suite random`: what it counts, and that a program which ends its process is found."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench import cli, random_programs
from bench.random_programs import Request, check_apart


def test_the_command_writes_what_was_run(tmp_path: Path) -> None:
    out = tmp_path / "random.json"
    arguments = ["--suite", "random", "--device", "cpu", "--programs", "3", "--seed", "40", "--processes", "1"]
    assert cli.main([*arguments, "--out", str(out)]) == 0
    document = json.loads(out.read_text())
    assert document["counts"]["programs"] == 3
    assert document["counts"]["through Dynamo"] == 1
    assert document["counts"]["kernels"] > 0
    assert (document["wrong"], document["failed"], document["crashed"], document["failures"]) == (0, 0, 0, [])


#: Stands in for Python: ends as a segmentation fault does where seed 5 is in the batch, else finds all right.
CRASHES_AT_FIVE = """#!/bin/sh
if [ "$3" -le 5 ] && [ "$(($3 + $4))" -gt 5 ]; then exit 139; fi
echo "{\\"counts\\": {\\"programs\\": $4}, \\"failures\\": [], \\"seconds\\": 1.0}"
"""


def test_a_program_that_ends_its_process_is_found_and_the_others_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = tmp_path / "python"
    stand_in.write_text(CRASHES_AT_FIVE)
    stand_in.chmod(0o755)
    monkeypatch.setattr(random_programs.sys, "executable", str(stand_in))
    assert sys.executable == str(stand_in)
    outcome = check_apart(range(0, 12), Request(12))
    assert outcome.counts["programs"] == 12
    (failure,) = outcome.failures
    assert (failure.seed, failure.kind) == (5, "crashed")
    assert "139" in failure.problems[0] and "def program" in failure.script
