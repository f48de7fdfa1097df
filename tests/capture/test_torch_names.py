"""Whatever is used of torch beyond its documented interface is in the table, and the torch that is installed has it."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import triton

from tests.capture.torch_names import INTERNALS, RELEASES, TABLE, Taken

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("compiler", "server", "bench")
SOURCES = sorted(path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / room).rglob("*.py"))
RELEASE = re.match(r"\d+\.\d+", torch.__version__).group()  # type: ignore[union-attr]
EXPECTED = [
    (row, name)
    for row in TABLE
    if RELEASE in row.found_in or RELEASE not in RELEASES
    for name in row.names
    if torch.version.cuda or not row.is_of_cuda
]


_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_PUBLIC_OF_TRITON = re.compile(r"triton(\.(language(\.\w+)*|jit|compile|cdiv|next_power_of_2|__\w+__))?")


def names_in(source: str) -> set[str]:
    """Every dotted name of a source: imported, reached through an attribute of what was imported, or in a string."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    named: dict[str, str] = {}
    for node in imports:
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        named.update({alias.asname or alias.name: prefix + alias.name for alias in node.names})
    found = set(named.values())
    for part in ast.walk(tree):
        if isinstance(part, ast.Attribute) and _DOTTED.fullmatch(text := ast.unparse(part)):
            first, _, rest = text.partition(".")
            found.add(f"{named.get(first, first)}.{rest}")
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and _DOTTED.fullmatch(part.value):
            found.add(part.value)
    return found


def is_undocumented(name: str) -> bool:
    """Whether it is torch's and has a part that begins with one underscore, or is an inner part of Triton's.

    Operators are what they are called: their underscore says that no function of torch's calls them."""
    if name.startswith(("torch.ops.", "torch._foreach_")):
        return False
    if name.startswith("triton."):
        return _PUBLIC_OF_TRITON.fullmatch(name) is None
    return name.startswith("torch.") and any(re.match("_(?!_)", part) for part in name.split("."))


def may_use(source: str, name: str) -> bool:
    """Whether a row gives `source` the name itself, what it lies in, or what it has."""
    return any(
        source.startswith(row.sources)
        and any(_is_within(name, known) or _is_within(known, name) for known in row.names)
        for row in TABLE
    )


def _is_within(name: str, other: str) -> bool:
    return name == other or name.startswith(f"{other}.")


def problem_with(name: str, row: Taken, torch_version: str) -> str | None:
    """A sentence if the installed torch or Triton lacks a name that it must have; None if all is well."""
    try:
        _find(name)
    except (ImportError, AttributeError):
        sources, releases = " and ".join(row.sources), ", ".join(row.found_in)
        return (
            f"torch {torch_version} has no {name}, which {sources} needs to {row.need}. "
            f"It was found in torch {releases}: look for what took its place, and change the table in "
            "tests/capture/torch_names.py."
        )
    return None


def _find(name: str) -> Any:
    """The module, function, class or field of that name."""
    parts = name.split(".")
    found, rest = importlib.import_module(parts[0]), parts[1:]
    for place, part in enumerate(rest):
        if isinstance(found, type) and dataclasses.is_dataclass(found) and part in found.__dataclass_fields__:
            return found.__dataclass_fields__[part]
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[: place + 2]))
        found = getattr(found, part)
    return found


def test_torch_has_every_name_of_the_table() -> None:
    problems = [problem for row, name in EXPECTED if (problem := problem_with(name, row, torch.__version__))]
    assert not problems, "\n".join(problems)


def test_a_name_that_torch_lacks_is_told_in_a_sentence() -> None:
    row = Taken(("compiler/a.py",), "show bytecode", ("torch._dynamo.no_such_hook",))
    assert problem_with(row.names[0], row, "2.99.0") == (
        "torch 2.99.0 has no torch._dynamo.no_such_hook, which compiler/a.py needs to show bytecode. It was found in "
        "torch 2.11, 2.12, 2.13: look for what took its place, and change the table in tests/capture/torch_names.py."
    )
    assert problem_with("torch._no_such_module.f", row, "2.99.0") is not None
    assert problem_with("torch._guards.Guard.no_such_field", row, "2.99.0") is not None


def test_the_installed_release_is_one_of_those_in_the_table() -> None:
    assert RELEASE in RELEASES, f"torch {RELEASE} was not tried: run all tests with it, then add it to the table."
    assert triton.__version__.startswith(f"{RELEASES[RELEASE]}."), f"torch {RELEASE} comes with another Triton."


def test_a_source_uses_no_undocumented_name_but_those_of_its_rows() -> None:
    unknown = []
    for source in SOURCES:
        names = filter(is_undocumented, names_in((ROOT / source).read_text(encoding="utf-8")))
        unknown += [f"{source} uses {name}" for name in sorted(names) if not may_use(source, name)]
    assert not unknown, "\n".join([*unknown, f"They belong in {INTERNALS[0]}, with a row in the table."])


def test_no_row_is_left_over() -> None:
    texts = {source: (ROOT / source).read_text(encoding="utf-8") for source in SOURCES}
    for row in TABLE:
        own = [text for source, text in texts.items() if source.startswith(row.sources)]
        for name in row.names:
            last = name.rpartition(".")[2]
            assert any(re.search(rf"\b{last}\b", text) for text in own), f"{name} is not used by {row.sources}"


@pytest.mark.parametrize(
    "source",
    [
        "import torch._dynamo.eval_frame",
        "from torch import _dynamo\n_dynamo.eval_frame.innermost_fn(f)",
        "from torch._dynamo import eval_frame as frames\nframes.innermost_fn(f)",
        "import torch._dynamo as dynamo\ndynamo.eval_frame.innermost_fn(f)",
        "import torch\ntorch._dynamo.eval_frame.innermost_fn(f)",
        "LOADED = ('torch', 'torch._dynamo.eval_frame')",
    ],
)
def test_no_way_to_an_undocumented_name_is_overlooked(source: str) -> None:
    unknown = [n for n in names_in(source) if is_undocumented(n) and not may_use("compiler/pipeline.py", n)]
    assert unknown and all(name.startswith("torch._dynamo.eval_frame") for name in unknown)


def test_what_is_documented_needs_no_row() -> None:
    assert not any(map(is_undocumented, ["torch.compile", "torch.__version__", "triton.language.math.exp", "a._b"]))
    assert is_undocumented("triton.compiler.ASTSource") and is_undocumented("torch._dynamo.config")
