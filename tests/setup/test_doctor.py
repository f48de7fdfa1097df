"""The doctor names every part that a machine needs, and says what to do about what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from server import doctor
from server.sandbox import NoSandbox
from server.worker import config

PARTS = [
    *("Python", "C++ compiler", "torch", "triton", "GPU", "GPU driver"),
    *("Sandbox", "Page", "Node", "Browser for tests"),
]


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it, and no variable that names a program."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CXX", "FUSIONSCOPE_CHROMIUM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    return tmp_path


def make_program(path: Path, says: str, code: int = 0) -> None:
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
    path.chmod(0o755)


def test_every_part_is_named_once_in_order() -> None:
    assert [finding.name for finding in doctor.examine()] == PARTS


def test_every_part_that_is_not_there_has_a_remedy(empty_path: Path) -> None:
    for finding in doctor.examine():
        assert finding.mark == "ok" or finding.remedy.endswith("."), finding


def test_without_a_compiler_the_doctor_fails_and_says_what_to_install(
    empty_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor.run_doctor() == 1
    said = capsys.readouterr().out
    assert "Missing: C++ compiler." in said and "g++" in said


def test_without_gpu_node_and_browser_the_doctor_is_content(
    empty_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_program(empty_path / "g++", "g++ 12.2.0")
    assert doctor.run_doctor() == 0
    assert "Fusionscope works on this machine." in capsys.readouterr().out


def test_where_nothing_confines_snippets_the_doctor_fails_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(config, "choose_tier", _refuse)
    assert doctor.run_doctor() == 1
    said = capsys.readouterr().out
    assert "Missing: Sandbox." in said and "Landlock" in said
    monkeypatch.setenv("FUSIONSCOPE_TRUST_SNIPPETS", "yes-i-trust-every-snippet")
    assert doctor.sandbox().found == "none: every snippet is trusted"


def _refuse(*_: object) -> NoReturn:
    raise NoSandbox("Tier B does not work here: Landlock is off.")


def test_a_browser_that_does_not_start_is_told_apart_from_none(empty_path: Path) -> None:
    make_program(empty_path / "chromium", "cannot open shared object", code=127)
    found = doctor.browser()
    assert "broken" in found.found and "does not start" in found.remedy


def test_a_node_without_npm_or_too_old_does_not_count(empty_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    make_program(empty_path / "node", "v18.19.0")
    make_program(empty_path / "npm", "9.2.0")
    assert doctor.node().mark == "absent"
    make_program(empty_path / "node", "v24.19.0")
    assert doctor.node().mark == "ok"
    (empty_path / "npm").unlink()
    assert doctor.node().mark == "absent"


def test_triton_of_another_torch_is_missing_with_the_version_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "package_version", {"torch": "2.13.0+cpu", "triton": "3.9.0"}.get)
    found = doctor.triton()
    assert found.mark == "missing" and "triton==3.7.1" in found.remedy


def test_an_older_pair_that_belongs_together_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "package_version", {"torch": "2.11.0", "triton": "3.6.0"}.get)
    assert (doctor.torch().mark, doctor.triton().mark) == ("ok", "ok")


def test_an_instruction_set_that_the_machine_lacks_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONSCOPE_INSTRUCTION_SET", "x87")
    found = doctor.cpp_compiler()
    assert found.mark != "ok" and "native" in found.remedy
