"""Set-up says in one sentence what is missing, and does nothing twice."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.capture.torch_names import RELEASES
from tools import chromium, page

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def run_installer(path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """tools/install.sh with only the programs in `path`, for an environment that is not to be made."""
    for name in ("dirname", "cat", "cksum", "head", "rm"):
        program = shutil.which(name)
        assert program is not None
        (path / name).symlink_to(program)
    command = ["/bin/sh", str(ROOT / "tools" / "install.sh"), str(path / "venv"), *arguments]
    return subprocess.run(command, env={"PATH": str(path), **variables}, capture_output=True, text=True)


def make_python(path: Path, is_new: bool) -> None:
    path.write_text(f"#!/bin/sh\nexit {0 if is_new else 1}\n")
    path.chmod(0o755)


def assert_says_one_sentence(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


def test_without_python_it_says_which_one_to_install(tmp_path: Path) -> None:
    assert_says_one_sentence(run_installer(tmp_path), "Python 3.11 or newer is missing")


def test_an_old_python_that_was_asked_for_is_refused(tmp_path: Path) -> None:
    make_python(tmp_path / "python3.9", is_new=False)
    assert_says_one_sentence(run_installer(tmp_path, "python3.9"), "python3.9 is missing or older than Python 3.11")


def test_without_a_compiler_it_says_which_one_to_install(tmp_path: Path) -> None:
    make_python(tmp_path / "python3", is_new=False)
    make_python(tmp_path / "python3.12", is_new=True)
    assert_says_one_sentence(run_installer(tmp_path), "C++ compiler is missing", "apt-get install g++")


def test_a_python_without_venv_says_what_to_install(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\n[ "$1" = -c ]\n')
    python.chmod(0o755)
    make_python(tmp_path / "g++", is_new=True)
    assert_says_one_sentence(run_installer(tmp_path), "virtual environment", "python3-venv")


def locked(locks: tuple[str, ...] = LOCKS) -> dict[str, str]:
    lines = [line for lock in locks for line in (ROOT / lock).read_text().splitlines()]
    pins = [line.split("==") for line in lines if line and not line.startswith(("#", "-r"))]
    return {plain(name): version for name, version in pins}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(wanted: list[str], python: str) -> set[str]:
    """`wanted` with all that they need in turn on that version of Python."""
    found: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    ahead = [Requirement(text) for text in wanted]
    while ahead:
        requirement = ahead.pop()
        key = (plain(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        found.add(key[0])
        if key[0] not in locked():
            continue
        for text in distribution(requirement.name).requires or []:
            further = Requirement(text)
            versions = {"python_version": python, "python_full_version": f"{python}.0"}
            settings = [versions | {"extra": extra} for extra in ("", *requirement.extras)]
            if further.marker is None or any(further.marker.evaluate(setting) for setting in settings):
                ahead.append(further)
    return found


@pytest.mark.parametrize("python", PYTHONS)
def test_the_locks_name_all_that_the_project_needs(python: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = project["project"]["dependencies"] + extras["dev"] + extras["bench"]
    # A torch for CUDA needs NVIDIA's packages besides, which it pins itself.
    missing = {name for name in needed(wanted, python) if not name.startswith(("nvidia-", "cuda-"))} - locked().keys()
    assert missing == set()


@pytest.mark.parametrize("python", PYTHONS)
def test_what_the_service_needs_stands_in_the_lock_of_the_images(python: str) -> None:
    """Without the tools for work on it, which requirements-dev.lock has."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    missing = {name for name in needed(wanted, python) if not name.startswith(("nvidia-", "cuda-"))}
    assert missing - locked(LOCKS[:1]).keys() == set()


def test_what_is_installed_is_what_the_locks_name() -> None:
    """But for torch and its Triton where they are of another release that Fusionscope works with, to try that one."""
    expected = locked()
    installed = {name: distribution(name).version.partition("+")[0] for name in expected}
    release, triton = (".".join(installed[name].split(".")[:2]) for name in ("torch", "triton"))
    if not expected["torch"].startswith(f"{release}.") and RELEASES.get(release) == triton:
        expected |= {name: installed[name] for name in ("torch", "triton")}
    assert installed == expected


@pytest.mark.parametrize(("name", "tried"), [("torch", set(RELEASES)), ("triton", set(RELEASES.values()))])
def test_pip_takes_only_releases_that_were_tried(name: str, tried: set[str]) -> None:
    wanted = map(Requirement, tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    bounds = next(requirement.specifier for requirement in wanted if requirement.name == name)
    releases = [f"{major}.{minor}" for major in range(6) for minor in range(50)]
    assert {release for release in releases if bounds.contains(f"{release}.1")} == tried


def test_what_is_locked_runs_on_the_oldest_python() -> None:
    """Also where this Python is a later one: pip would refuse the whole lock on the oldest."""
    oldest = "3.11.0"
    stated = {name: (distribution(name).metadata.get_all("Requires-Python") or [""])[0] for name in locked()}
    assert {name: text for name, text in stated.items() if not SpecifierSet(text).contains(oldest)} == {}


def test_no_lock_names_a_registry() -> None:
    for lock in (*LOCKS, "web/package-lock.json", "tools/browser/package-lock.json"):
        text = (ROOT / lock).read_text()
        assert "--index-url" not in text and "--find-links" not in text
        assert '"resolved"' not in text


def test_a_built_page_is_built_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[str, ...]] = []
    web, static = tmp_path / "web", tmp_path / "static"

    def npm(*arguments: str, folder: Path = web) -> None:
        runs.append(arguments)
        (folder / "node_modules").mkdir(exist_ok=True)
        static.mkdir(exist_ok=True)
        (static / "index.html").touch()

    (web / "src").mkdir(parents=True)
    (web / "package-lock.json").write_text("{}")
    (web / "src" / "main.ts").write_text("1")
    for name, value in {"ROOT": tmp_path, "WEB": web, "STATIC": static, "npm": npm}.items():
        monkeypatch.setattr(page, name, value)
    monkeypatch.setattr(page.install_packages, "__defaults__", (web,))
    page.build()
    assert runs == [("ci", "--ignore-scripts"), ("run", "build")]
    page.build()
    os.utime(web / "src" / "main.ts", (0, 0))
    page.build()
    assert len(runs) == 2
    (web / "src" / "main.ts").write_text("2")
    page.build()
    assert runs[2:] == [("run", "build")]


def test_a_browser_that_the_environment_names_wrongly_is_said_and_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONSCOPE_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(page.SetupProblem, match="FUSIONSCOPE_CHROMIUM names /nowhere/chromium"):
        chromium.find_chromium()


def test_a_browser_that_does_not_start_is_said_and_not_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_python(tmp_path / "chromium", is_new=False)
    monkeypatch.setenv("FUSIONSCOPE_CHROMIUM", str(tmp_path / "chromium"))
    with pytest.raises(page.SetupProblem, match="does not start"):
        chromium.find_chromium()
