"""The lessons that come with the product: each is run, and what its text states is held against its reports."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

import pytest

from compiler.options import Options
from compiler.pipeline import explore
from compiler.report import Report
from server.glossary import glossary
from server.lessons.models import Claim, Lesson, Step
from server.lessons.reading import BadLesson, lessons, read_lesson
from server.lessons.recorded import recorded_of
from server.reasons import reasons
from server.report_paths import PathProblem, value_at
from tests.server.lessons.claims import faults_of, states

ROOT = Path(__file__).parents[3]
NAMED = {lesson.name: lesson for lesson in lessons()}


@lru_cache
def _explored(source: str, options: str) -> Report:
    asked = Options.model_validate_json(options)
    return explore(source, asked)


def report_of(step: Step) -> Report:
    """What the program of a step comes to, up to its kernels: nothing that a lesson states needs them to run."""
    stages = ("capture", "lower", "schedule", "codegen")
    options = Options(**{"device": "cpu", "produce": stages, **step.options})
    return _explored(step.source, options.model_dump_json())


def test_the_lessons_are_there_and_each_asks_and_leads_on() -> None:
    assert len(NAMED) == 13
    pages: dict[str, Collection[str]] = {"lesson": NAMED, "reason": reasons()}
    for lesson in NAMED.values():
        assert lesson.minutes == 5
        assert 2 <= len(lesson.steps) <= 5
        assert any(step.question for step in lesson.steps)
        assert lesson.read_next
        for link in lesson.read_next:
            known = pages.get(link.kind)
            assert link.name in known if known is not None else (ROOT / link.name).is_file(), link


@pytest.mark.parametrize("lesson", NAMED.values(), ids=NAMED)
def test_a_lesson_states_what_its_programs_come_to(lesson: Lesson) -> None:
    for step in lesson.steps:
        report = report_of(step)
        assert report.status == "ok", report.error
        assert faults_of(step, report) == [], step.title


def test_bytes_are_in_the_units_of_the_page() -> None:
    """Figures of the page are decimal, so whoever reads an answer there is right."""
    texts = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "docs" / "lessons").glob("[0-9]*.md")}
    assert len(texts) == len(NAMED)
    assert not {name: found for name, text in texts.items() if (found := re.findall(r"\b[KMG]iB\b", text))}


@pytest.mark.parametrize("lesson", NAMED.values(), ids=NAMED)
def test_every_question_has_an_answer_of_its_kind(lesson: Lesson) -> None:
    for step in lesson.steps:
        if step.question is None:
            continue
        report = report_of(step)
        value = value_at(report, step.question.answer)
        if step.question.kind == "number":
            assert isinstance(value, int | float)
        elif step.question.kind == "choice":
            assert value in {choice.value for choice in step.question.choices}
        elif step.question.kind == "line":
            lines = value if isinstance(value, list) else [value]
            assert lines and all(isinstance(line, int) and 1 <= line <= step.source.count("\n") for line in lines)
        else:
            names = value if isinstance(value, list) else [value]
            nodes = {node.name for graph in report.graphs for node in graph.aten}
            assert names and set(names) <= nodes


@pytest.mark.parametrize("lesson", NAMED.values(), ids=NAMED)
def test_what_a_lesson_shows_is_there(lesson: Lesson) -> None:
    for step in lesson.steps:
        report = report_of(step)
        for view in (step.view, step.reveal_view):
            for kind, graph, name in re.findall(r"at=(\w+):(?:(\w+)/)?([\w.]+)", view):
                places = {one.name: one for one in report.graphs}
                if kind == "line":
                    assert int(name) <= step.source.count("\n")
                elif kind == "kernel":
                    assert int(name) < len(places[graph].kernels)
                else:
                    assert name in {loop.name for loop in places[graph].loops}


LESSON = """# A title

The idea.

*5 minutes*

```python snippet
x = 1024
```

## First

There are 4 kernels and 1024 rows.

```ask
How many?
answer: summary.kernels
```

So it is.

```check
4 kernels = summary.kernels
1024 rows in the program
```
"""


def _read(folder: Path, text: str) -> Lesson:
    path = folder / "01_one.md"
    path.write_text(text)
    return read_lesson(path)


def test_a_number_that_is_bound_to_nothing_is_found(tmp_path: Path) -> None:
    report = Report(source="x")
    report.summary.kernels = 4
    (step,) = _read(tmp_path, LESSON).steps
    assert faults_of(step, report) == []
    (loose,) = _read(tmp_path, LESSON.replace("So it is", "So it is, in seven steps")).steps
    assert "seven is bound to no check" in faults_of(loose, report)[0]
    report.summary.kernels = 5
    assert "summary.kernels is 5" in faults_of(step, report)[0]
    unsaid = step.model_copy(update={"claims": [*step.claims, Claim(text="9 rows", kind="program")]})
    assert any("does not say '9 rows'" in fault for fault in faults_of(unsaid, report))


def test_a_reason_that_the_report_does_not_give_is_found(tmp_path: Path) -> None:
    report = Report(source="x")
    report.summary.kernels = 4
    (step,) = _read(tmp_path, LESSON.replace("So it is", "So it is: `index.reversed`")).steps
    assert "index.reversed" in faults_of(step, report)[0]


@pytest.mark.parametrize(
    ("number", "value", "holds"),
    [
        ("4", 4, True),
        ("4.0", 4.04, True),
        ("4", 4.6, False),
        ("1,024", 1024.0, True),
        ("Two", 2, True),
        ("1", True, False),
    ],
)
def test_a_number_is_compared_to_the_digits_that_are_written(number: str, value: float, holds: bool) -> None:
    assert states(number, value) is holds


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("answer: summary.kernels", "unit: rows"), 15, "`answer: PATH`"),
        (("answer:", "kind: riddle\nanswer:"), 15, "'riddle' is no kind"),
        (("4 kernels = summary.kernels", "4 kernels"), 23, "is no claim"),
        (("```python snippet\nx = 1024\n```", ""), 9, "a step needs a program"),
        (("```python snippet", "```python snippet dynamic"), 7, "'dynamic' is no option"),
        (("So it is.\n", ""), 11, "tells the answer and its reason"),
        (("*5 minutes*\n", ""), 1, "how long it takes"),
    ],
)
def test_a_bad_lesson_is_told_with_file_and_line(
    tmp_path: Path, change: tuple[str, str], line: int, words: str
) -> None:
    with pytest.raises(BadLesson, match=re.escape(words)) as told:
        _read(tmp_path, LESSON.replace(*change))
    assert str(told.value).startswith(f"01_one.md, line {line}:")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("summary.kernel", "A Summary has no field 'kernel'; it has eager_kernels"),
        ("graphs[3].kernels", "graphs has 0 items, so there is no [3]"),
        ("summary", "leads to a part of the report"),
        ("graphs.kernels", "write `| each kernels`"),
        ("graphs | shuffle", "There is no filter 'shuffle'"),
        ("graphs | where kernels", "is no condition"),
        ("source | count", "`count` is for lists"),
        ("source.__class__", "has no fields"),
        ("graphs | " + "count | " * 20 + "count", "at most"),
        ("summary.graph_breaks | over summary.recompiles", "nothing can be divided"),
    ],
)
def test_a_path_that_leads_nowhere_says_why(path: str, words: str) -> None:
    with pytest.raises(PathProblem, match=re.escape(words)):
        value_at(Report(source="x"), path)


def test_recorded_figures_are_those_of_the_program_as_it_is(tmp_path: Path) -> None:
    from server.lessons.recorded import RecordedFile, program_hash

    (step,) = _read(tmp_path, LESSON).steps
    assert recorded_of(tmp_path, "one", [step]) == []
    known = program_hash(step.source, step.options)
    file = RecordedFile.model_validate(
        {"device": "a GPU", "torch": "2", "triton": None, "programs": {known: {"compiled_ms": 0.5}}}
    )
    (tmp_path / "recorded").mkdir()
    (tmp_path / "recorded" / "one.gpu.json").write_text(file.model_dump_json())
    (found,) = recorded_of(tmp_path, "one", [step])
    assert found.steps[0] is not None and found.steps[0].compiled_ms == 0.5
    assert recorded_of(tmp_path, "one", [step.model_copy(update={"source": "another"})]) == []


def test_the_glossary_has_every_row_of_its_table() -> None:
    rows = [line for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| ")]
    assert len(glossary()) == len(rows) - 1
    assert all(term.words and term.meaning and "|" not in term.meaning for term in glossary())
