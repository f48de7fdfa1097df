"""Process replay tells what a change does to kernels, counts, bytes and decisions, and when it does nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.replay import __main__ as command
from tools.replay.compare import compare
from tools.replay.show import show

ROOT = Path(__file__).resolve().parents[2]
NEEDS_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="compares revisions of a git repository")

#: What `tools/replay/regenerate.py` needs of a tree to compile the goldens.
NEEDED = ("compiler", "docs/reasons", "docs/rewrites.md", "tests/__init__.py", "tests/compile_program.py",
          "tests/codegen/triton/spec.py",
          "tests/goldens/test_goldens.py", "tests/schedule/test_kernels_and_bytes.py")  # fmt: skip

#: A change of the scheduler: from now on it fuses nothing.
FUSES_NOTHING = """
from compiler.options import Options

_schedule_as_before = schedule


def schedule(*arguments):
    without = [a.model_copy(update={"knobs": {"most_nodes": 1}}) if isinstance(a, Options) else a for a in arguments]
    return _schedule_as_before(*without)
"""


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit: our compiler and its goldens, without the tool itself."""
    for name in NEEDED:
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "before")
    return tmp_path


def replay(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    command = [sys.executable, "-m", "tools.replay", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@NEEDS_GIT
def test_a_change_of_the_scheduler_shows_in_the_programs_that_it_changes_and_in_no_other(repository: Path) -> None:
    with (repository / "compiler" / "schedule" / "scheduler.py").open("a") as scheduler:
        scheduler.write(FUSES_NOTHING)
    done = replay(repository, "--only", "softmax_by_hand", "--only", "scan_of_a_softmax", "--only", "transposed_read")
    assert done.returncode == 1, done.stderr
    changed, _, rest = done.stdout.partition("== scan_of_a_softmax")
    assert "== softmax_by_hand" in changed and "== transposed_read" not in rest
    assert "kernels: 1 → 5" in changed and "bytes: 8,388,608 → " in changed
    assert "fused: fused." in changed and "→ refused: policy." in changed
    assert "+++ after: no such kernel" in changed and "-@triton.jit" in changed
    assert "3 programs: 1 unchanged, 2 changed (kernels' text of 2, counts or bytes of 2, decisions of 2)." in rest


@NEEDS_GIT
def test_a_revision_that_there_is_not_and_a_tree_that_does_not_compile_are_said(tmp_path: Path) -> None:
    without_a_compiler(tmp_path)
    unknown = replay(tmp_path, "no-such-revision")
    assert (unknown.returncode, unknown.stderr) == (2, f"There is no revision 'no-such-revision' in {tmp_path}.\n")
    # The compiler of this very test is at hand, and must not be taken for that of the tree.
    empty = replay(tmp_path)
    assert empty.returncode == 2
    assert empty.stderr.startswith("The goldens of ") and " cannot be compiled:\n" in empty.stderr


def without_a_compiler(folder: Path) -> None:
    """A repository with one commit that has nothing to do with us."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "README.md").write_text("Nothing to compile.\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "a file")


def program(**changes: Any) -> dict[str, Any]:
    """A program as `regenerate.py` writes it."""
    same: dict[str, Any] = {
        "source": "def double(x): return x + x\n",
        "figures": {"kernels": 1, "library_calls": 0, "bytes": 4096},
        "texts": {"wrapper": "call()", "fused_add, triton": "a = load(x)\nstore(y, a + a)"},
        "decisions": {"add + mul": "fused: fused.vertical"},
    }
    return same | changes


@pytest.mark.parametrize(
    ("kind", "name", "graphs"),
    [
        ("fusion", "softmax backward", 2),
        ("products", "convolution_in_a_block", 1),
        ("wide", "softmax_with_a_sink_trained", 2),
        ("models", "gpt2_training", 2),
    ],
)
def test_tables_suites_and_models_are_compiled_and_say_how_each_kernel_is_launched(
    kind: str, name: str, graphs: int, tmp_path: Path
) -> None:
    file = tmp_path / "replayed.json"
    command = [sys.executable, "-P", str(ROOT / "tools" / "replay" / "regenerate.py"), kind, str(file), name]
    subprocess.run(command, cwd=ROOT, env=dict(os.environ, PYTHONPATH=str(ROOT)), check=True)
    (found,) = json.loads(file.read_text()).values()
    assert "error" not in found
    assert found["figures"]["kernels"] and found["figures"]["bytes"]
    assert sum(text.endswith("wrapper") for text in found["texts"]) == graphs
    kernels = [text for text_name, text in found["texts"].items() if text_name.endswith("triton")]
    assert kernels and all(text.startswith("# grid ") and "warps" in text.splitlines()[0] for text in kernels)


@NEEDS_GIT
def test_where_nothing_differs_one_sentence_says_so_and_the_command_ends_with_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_a_compiler(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "regenerate", lambda tree, programs, only: {"one": program(), "two": program()})
    assert command.main([]) == 0
    assert capsys.readouterr().out.endswith("against the working tree\n\n2 programs, no difference.\n")
    assert command.main(["--only", "three"]) == 2
    assert capsys.readouterr().err == "There is no program three among the goldens.\n"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({}, {"texts": {"wrapper": "call()"}}, "+++ after: no such kernel"),
        ({}, {"figures": {"kernels": 1, "library_calls": 0, "bytes": 2048}}, "bytes: 4,096 → 2,048"),
        ({}, {"decisions": {"add + mul": "refused: profit.slower"}}, "fused: fused.vertical → refused: profit.slower"),
        ({}, {"decisions": {}}, "add + mul: fused: fused.vertical → not asked about"),
        ({}, {"source": "def double(x): return 2 * x\n"}, "the program itself was changed"),
        ({}, {"error": "ValueError: no"}, "after: ValueError: no"),
        ({"error": "ValueError: no"}, {}, "after: compiled"),
    ],
)
def test_each_kind_of_change_is_told(before: dict[str, Any], after: dict[str, Any], told: str) -> None:
    changes = compare({"double": program(**before)}, {"double": program(**after)})
    text = "\n".join(show(changes))
    assert told in text
    assert text.endswith("1 program: 0 unchanged, 1 changed " + text[text.rindex("(") :])


def test_programs_of_one_side_only_are_told() -> None:
    text = "\n".join(show(compare({"gone": program()}, {"new": program()})))
    assert "== new\n  a program that there was not before" in text
    assert "== gone\n  a program that there is no longer" in text


def test_a_diff_has_the_lines_that_changed_and_can_be_left_out() -> None:
    texts = {"wrapper": "call()", "fused_add, triton": "a = load(x)\nstore(y, 2 * a)"}
    changes = compare({"double": program()}, {"double": program(texts=texts)})
    assert "  -store(y, a + a)\n  +store(y, 2 * a)" in "\n".join(show(changes))
    brief = "\n".join(show(changes, with_texts=False))
    assert "store" not in brief and "1 text changed" in brief
