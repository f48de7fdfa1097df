"""Which room may import which."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(p for room in ("compiler", "server", "bench", "tools") for p in (ROOT / room).rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            # importlib.import_module("torch._inductor...") and the like
            found |= {node.args[0].value} if isinstance(node.args[0].value, str) else set()
    return found


#: What stands beside us may be called where it is compared.
MAY_KNOW_INDUCTOR = ("compiler/peer/", "bench/")
OTHERS = [path for path in SOURCES if not path.relative_to(ROOT).as_posix().startswith(MAY_KNOW_INDUCTOR)]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_peer_and_the_benchmark_know_inductor(path: Path) -> None:
    assert not {name for name in imports_of(path) if name.startswith("torch._inductor")}


@pytest.mark.parametrize("path", [p for p in SOURCES if "compiler" in p.parts], ids=lambda path: path.name)
def test_the_compiler_knows_nothing_of_the_service(path: Path) -> None:
    assert not {name for name in imports_of(path) if name == "server" or name.startswith("server.")}


def test_continuous_integration_runs_what_a_developer_runs() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_lock_pins_every_package() -> None:
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if line and line[0] != "#"]
    assert lines and all("==" in line for line in lines)
