"""Which room may import which, and that CI runs what a developer runs."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("compiler", "server", "bench", "tools")
SOURCES = sorted(path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / room).rglob("*.py"))

#: What stands beside us may be called where it is compared.
MAY_KNOW_INDUCTOR = ("compiler/peer/", "bench/")
DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def modules_named_in(source: str) -> set[str]:
    """Every module that a source imports, reaches through an attribute, or names in a string to import it later."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED_NAME.fullmatch(node.value):
            found.add(node.value)
    return found


def modules_imported_in(source: str) -> set[str]:
    nodes = ast.walk(ast.parse(source))
    imports: list[ast.stmt] = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return modules_named_in(ast.unparse(ast.Module(imports, type_ignores=[])))


def is_within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def test_only_the_peer_and_the_benchmark_know_inductor() -> None:
    sources = [source for source in SOURCES if not source.startswith(MAY_KNOW_INDUCTOR)]
    named = {source: modules_named_in((ROOT / source).read_text(encoding="utf-8")) for source in sources}
    assert not [(source, name) for source in sources for name in named[source] if is_within(name, "torch._inductor")]


def test_the_compiler_knows_nothing_of_the_service() -> None:
    sources = [source for source in SOURCES if source.startswith("compiler/")]
    imported = {source: modules_imported_in((ROOT / source).read_text(encoding="utf-8")) for source in sources}
    assert not [(source, name) for source in sources for name in imported[source] if is_within(name, "server")]


@pytest.mark.parametrize(
    "source",
    [
        "import torch._inductor.config",
        "from torch import _inductor",
        "def later():\n    from torch._inductor.codegen import triton",
        "import torch\nwith torch._inductor.config.patch(): pass",
        "import importlib\nimportlib.import_module('torch._inductor')",
        "PRELOADED = ('torch', 'torch._inductor.compile_fx')",
    ],
)
def test_no_way_to_inductor_is_overlooked(source: str) -> None:
    assert any(is_within(name, "torch._inductor") for name in modules_named_in(source))


def test_continuous_integration_runs_what_a_developer_runs() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and line[0] != "#"]
    assert commands[-1] == "exec make test </dev/null"
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_make_test_runs_every_check_and_pytest_last() -> None:
    # This very test may run below make, which tells its children so.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--dry-run", "test"]
    plan = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    lines = plan.stdout.splitlines()
    for check in ("ruff check .", "ruff format --check .", "mypy", "page.py check", "page.py test", "chromium.py"):
        assert sum(line.endswith(check) for line in lines) == 1, check
    assert "-m pytest -n 3" in lines[-1]


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []
