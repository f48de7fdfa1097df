"""What the documents say to read, to run and to look up is there."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import typer
from pydantic import BaseModel

from bench import cli as bench
from compiler import report
from compiler.options import LARGEST_GROUP, RULES
from server.cli import app
from server.metrics import Metrics
from server.settings import Settings
from tools.replay import __main__ as replay

ROOT = Path(__file__).resolve().parents[2]
#: Folders that hold packages of others.
FOREIGN = ("node_modules", ".venv")
DOCUMENTS = [path for path in ROOT.rglob("*.md") if not any(part in FOREIGN for part in path.parts)]
#: Without reports of runs, which name files and commands of the commit that they are of.
TIMELESS = [path for path in DOCUMENTS if "archive" not in path.parts]
#: What `make page` and `make docs` make.
BUILT = ("server/static", "server/documentation")
ROOMS = "compiler|server|web|tests|bench|docs|tools"


def test_links_lead_to_files() -> None:
    pattern = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
    links = [(path, link) for path in DOCUMENTS for link in pattern.findall(path.read_text())]
    assert len(links) > 20
    assert [(path, link) for path, link in links if "://" not in link and not (path.parent / link).exists()] == []


def test_the_first_document_has_every_room() -> None:
    rooms = [path.parent for path in (ROOT / "compiler").glob("*/__init__.py")]
    rooms += [ROOT / name for name in ("server", "web", "bench", "tools")]
    readme = (ROOT / "README.md").read_text()
    assert len(rooms) > 15
    assert [path for path in rooms if f"    {path.relative_to(ROOT).as_posix()}/ " not in readme] == []


def test_every_module_is_told_of_by_its_package() -> None:
    """Where to read on: the docstring of a package says what each of its modules is for. The guide to operators has the
    families of lowerings; what is one list of like things, such as the models of a report, needs no other."""
    others = ("compiler", "compiler/lowering", "compiler/functions", "compiler/report")
    packages = [path for room in ("compiler", "server") for path in (ROOT / room).rglob("__init__.py")]
    packages.append(ROOT / "bench" / "__init__.py")
    read = {path.parent: ast.get_docstring(ast.parse(path.read_text())) or "" for path in packages}
    untold = [
        path.relative_to(ROOT).as_posix()
        for folder, told in read.items()
        for path in folder.glob("*.py")
        if folder.relative_to(ROOT).as_posix() not in others
        and path.stem not in ("__init__", "__main__")
        and not re.search(rf"\b{path.stem}\b", told)
    ]
    assert len(read) > 20 and untold == []


def test_paths_are_those_of_files() -> None:
    pattern = re.compile(rf"(?<![\w/.-])((?:{ROOMS})/[\w./-]*\w)")
    named = [(path, name) for path in TIMELESS for name in pattern.findall(path.read_text())]
    assert len(named) > 50
    assert [(path, name) for path, name in named if not (ROOT / name).exists() and name not in BUILT] == []


def test_the_code_of_the_guide_is_code_of_the_sources() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "adding_an_operator.md").read_text(), re.DOTALL)
    sources = "\n".join(path.read_text() for room in ("compiler", "tests") for path in (ROOT / room).rglob("*.py"))
    lines = {" ".join(line.split()) for line in sources.splitlines()}
    assert len(blocks) == 3
    assert [line for block in blocks for line in block.splitlines() if " ".join(line.split()) not in lines] == []


def test_the_guide_knows_every_file_of_lowerings() -> None:
    guide = (ROOT / "docs" / "adding_an_operator.md").read_text()
    files = [path for path in (ROOT / "compiler" / "lowering").glob("*.py") if "\n@lowers(" in path.read_text()]
    assert len(files) > 15
    assert [path.name for path in files if f"`{path.name}`" not in guide] == []


def commands(program: str) -> Iterator[list[str]]:
    """The words behind `program` in lines of code, and in code within sentences."""
    for document in TIMELESS:
        text = document.read_text()
        lines = re.findall(r"^    (.*)$", text, re.MULTILINE) + re.findall(r"`([^`\n]+)`", text)
        for line in lines:
            if re.search(rf"(^|/|python -m ){re.escape(program)}( |$)", line):
                yield shlex.split(line.split(program, 1)[1], comments=True)


def test_commands_know_their_options() -> None:
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found = [words for words in commands("fusionscope") if words and not words[0].startswith("--")]
    assert len(found) > 20
    for name, *arguments in found:
        options = {option for parameter in known[name].params for option in parameter.opts}
        if name == "bench":
            assert bench._parser().parse_args(arguments).suite
        else:
            assert {word for word in arguments if word.startswith("--")} <= options, (name, arguments)


def test_the_command_of_the_published_models_runs_those_models() -> None:
    figures = ROOT / "docs" / "performance" / "archive"
    (command,) = re.findall(r"\(models_h200\.md\).*`fusionscope bench ([^`]+)`", (figures / "README.md").read_text())
    asked = bench._parser().parse_args(shlex.split(command))
    published = {case.partition(":")[0] for case in json.loads((figures / "models_h200.json").read_text())["cases"]}
    assert set(bench.chosen_cases(asked.suite, asked.cases or "")) == published


def test_the_page_of_figures_has_those_of_the_runs() -> None:
    figures = ROOT / "docs" / "performance"
    page = (figures / "README.md").read_text()
    for run in ("patterns_h200", "models_h200", "train_h200", "patterns_cpu"):
        found = (figures / "archive" / f"{run}.md").read_text()
        means = re.findall(r"^- Our time over (?:Inductor's|the best).*?: ([\d.]+) ", found, re.MULTILINE)
        assert f"| {means[0]} | {means[1]} |" in page, run


def test_every_environment_variable_of_ours_is_told_of() -> None:
    settings = {f"FUSIONSCOPE_{name.upper()}" for name in Settings.model_fields}
    sources = "\n".join(
        path.read_text() for room in ("compiler", "server", "bench", "tools") for path in (ROOT / room).rglob("*.py")
    )
    read = set(re.findall(r"\"(FUSIONSCOPE_[A-Z_]+)\"", sources)) - {"FUSIONSCOPE_"}
    told = {name for path in TIMELESS for name in re.findall(r"FUSIONSCOPE_[A-Z_]+", path.read_text())}
    assert len(read) >= 5 and read | settings <= told, (read | settings) - told


def test_every_metric_is_told_of() -> None:
    """By its whole name, as /metrics has it, or by its last words after the name of another one."""
    told = (ROOT / "docs" / "access.md").read_text()
    families = Metrics().registry.collect()
    names = [family.name + ("_total" if family.type == "counter" else "") for family in families]
    ends = {name: [name, *(name[found.start() :] for found in re.finditer("_", name))] for name in names}
    assert len(names) > 15
    assert [name for name in names if not any(f"`{end}`" in told for end in ends[name])] == []


def test_knobs_have_the_defaults_and_the_rules_that_are_told() -> None:
    told = (ROOT / "docs" / "knobs.md").read_text()
    assert f"| `most_nodes` | {LARGEST_GROUP} |" in told
    assert f"The limit is {LARGEST_GROUP} nodes" in (ROOT / "docs" / "reasons" / "policy.group_size.md").read_text()
    assert [rule for rule in RULES if f'`"{rule}"`' not in told] == []


def test_what_the_guides_say_to_press_is_on_the_page() -> None:
    guides = [*(ROOT / "docs" / "guides").glob("*.md"), ROOT / "docs" / "first_steps.md"]
    labels = {label for path in guides for label in re.findall(r"\*\*([^*]+)\*\*", path.read_text())}
    page = "".join(path.read_text() for path in (ROOT / "web" / "src").rglob("*.tsx"))
    assert len(labels) > 4 and [label for label in labels if label not in page] == []


def test_fields_of_a_report_are_there() -> None:
    models: dict[str, type[BaseModel]] = {"graphs": report.Graph, "kernels": report.Kernel, "peer": report.Peer}
    pattern = re.compile(r"`(?:report\.)?(graphs|kernels|peer)(?:\[\d*\])?\.([a-z_]+)")
    named = [(path, *found) for path in TIMELESS for found in pattern.findall(path.read_text())]
    assert len(named) > 20
    assert [(path, owner, name) for path, owner, name in named if name not in models[owner].model_fields] == []


def test_replays_are_understood() -> None:
    found = [replay._parser().parse_args(words) for words in commands("tools.replay")]
    assert len(found) >= 5


def test_nobody_is_told_to_install_the_package_from_an_index() -> None:
    """It is on none: whoever took its name there would be run."""
    sources = [path for room in ("bench", "client", "compiler", "server") for path in (ROOT / room).rglob("*.py")]
    texts = {path: path.read_text() for path in (*TIMELESS, *sources) if not set(path.parts) & set(FOREIGN)}
    assert [path for path, text in texts.items() if re.search(r"pip install [^\n]*?['\" ]fusionscope", text)] == []


def test_targets_scripts_and_modules_are_there() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {word for words in commands("make") for word in words if "=" not in word} <= targets
    scripts = json.loads((ROOT / "web" / "package.json").read_text())["scripts"]
    assert {words[0] for words in commands("npm run")} <= set(scripts)
    modules = {name for path in TIMELESS for name in re.findall(r"python -m ([\w.]+)", path.read_text())}
    assert modules and [name for name in modules if importlib.util.find_spec(name) is None] == []
