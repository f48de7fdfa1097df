"""`fusionscope doctor --measure` on the CPU at hand: its record is positive, is kept, and is what the compiler uses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from compiler.devices import MEASURED_FIELDS, RECORD_VARIABLE, cpu_device, device_for
from server.cli import app
from server.doctor import run_measurement

CPU = torch.device("cpu")


def test_what_was_measured_is_kept_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    out = tmp_path / "device.json"
    assert run_measurement(out, large=1 << 16) == 0
    kept = json.loads(out.read_text())
    assert set(kept) == {"name", *MEASURED_FIELDS}
    assert kept["bandwidth"] > 1e6
    assert kept["launch_us"] > 0
    assert kept["latency_us"] >= 0 and kept["alone_us"] >= 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in MEASURED_FIELDS)
    assert device_for(CPU) == cpu_device()
    monkeypatch.setenv(RECORD_VARIABLE, str(out))
    used = device_for(CPU)
    assert used.is_measured
    assert {name: getattr(used, name) for name in MEASURED_FIELDS} == {name: kept[name] for name in MEASURED_FIELDS}
    assert device_for("sm_90").bandwidth == device_for("H200").bandwidth


def test_a_record_of_another_device_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"name": "NVIDIA H200", **dict.fromkeys(MEASURED_FIELDS, 1.0)}))
    monkeypatch.setenv(RECORD_VARIABLE, str(other))
    assert device_for(CPU) == cpu_device()


@pytest.mark.parametrize("content", [None, "x = 1", "{}", "[]", '{"name": "cpu", "bandwidth": "fast"}'])
def test_a_file_that_is_no_record_is_told_in_a_sentence(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "device.json"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv(RECORD_VARIABLE, str(file))
    ended = CliRunner().invoke(app, ["explore", "-"], input="x = 1")
    assert ended.exit_code == 2
    assert ended.stderr.startswith(f"{RECORD_VARIABLE} names {str(file)!r}, which is no record of a device")


def test_a_record_that_cannot_be_kept_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.calibration.measure_device", lambda *_: cpu_device())
    for arguments, said in (
        (
            ("--measure", "--out", "/dev/null/device.json"),
            "--out: /dev/null/device.json cannot be written: Not a directory",
        ),
        (("--out", "device.json"), "--out: only what --measure finds is kept, so give both"),
    ):
        ended = CliRunner().invoke(app, ["doctor", *arguments])
        assert (ended.exit_code, ended.stderr.strip()) == (2, said)
