"""Imports in the compiler lead downwards: each room knows those below it alone, and no files import each other in turn.

Imports within functions and for types alone count too: what is hidden so is a circle all the same.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: From the ground up: folders of the compiler, and its single files, those of a line in any order.
ROOMS = (
    # what everybody knows: words, options, devices, the report
    "wording",
    "accelerators report options devices",
    "annotations budget compile_phases decisions defects environment garbage lease observers pages snippet_changes",
    "whole_numbers",
    "fx",
    # from graphs to kernels
    "ir",
    "functions",
    "lowering",
    "schedule",
    "codegen",
    "passes",
    # from the snippet to graphs, through what is above
    "capture",
    # kernels that run, are checked and timed
    "runtime",
    "replay",
    "compile",
    "backend",
    # what is asked of a report, and beside it
    "matched_kernels rounds",
    "refusals why",
    "expectations",
    "comparison what_if",
    "reproducer peer sweep",
    "machine_code",
    "calibration present summary failures",
    # the pipeline
    "stages",
    "pipeline",
    "explaining",
)
HEIGHT = {room: height for height, rooms in enumerate(ROOMS) for room in rooms.split()}


@cache
def imports() -> dict[str, set[str]]:
    """The modules of the compiler, each with those that it imports."""
    sources = {}
    for path in sorted((ROOT / "compiler").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        sources[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found = {}
    for name, path in sources.items():
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                within = {f"{node.module}.{alias.name}" for alias in node.names}
                named |= {inner if inner in sources else node.module for inner in within}
        found[name] = (named & sources.keys()) - {name}
    return found


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def test_every_room_has_its_height() -> None:
    rooms = {room_of(module) for module in imports()} - {"compiler"}
    assert rooms == HEIGHT.keys() and len(imports()) > 400


def test_no_import_leads_upwards() -> None:
    assert [
        f"{module} imports {imported}"
        for module, others in imports().items()
        for imported in others - {"compiler"}
        if (above := room_of(module)) != (below := room_of(imported)) and HEIGHT[below] >= HEIGHT[above]
    ] == []


def test_no_files_import_each_other_in_turn() -> None:
    TopologicalSorter(imports()).prepare()  # raises CycleError, which names the circle


def test_what_is_noted_at_graphs_is_named_in_one_file() -> None:
    """A key of FX's `meta` that is written out is one of torch's own; `compiler/fx/notes.py` has the compiler's."""
    of_torch = (
        "val example_value stack_trace custom seq_nr partitioner_tag original_aten nn_module_stack fwd_nn_module_stack "
        "desc recompute grapharg"
    )
    key = re.compile(r"\.meta(?:\.get\(|\.setdefault\(|\.pop\(|\[)\"(\w+)\"")
    found = {name for path in (ROOT / "compiler").rglob("*.py") for name in key.findall(path.read_text("utf-8"))}
    assert "val" in found and found <= {*of_torch.split()}
