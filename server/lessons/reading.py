"""From a lesson's Markdown to a `Lesson`: `docs/lessons/README.md` says what its blocks are.

A file is plain Markdown that reads well as it is. A heading of the second level begins a step. Four kinds of fenced
blocks carry what the page does: `python snippet`, `ask`, `view` and `check`. What stands before a step's `ask` is read
first; what stands behind it is told once an answer was given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from markdown_it import MarkdownIt
from markdown_it.token import Token

from server.lessons.models import Choice, Claim, Lesson, Link, Question, QuestionKind, Step
from server.lessons.recorded import recorded_of

#: Where the lessons are: in a wheel beside this package, in a checkout among the documents.
FOLDERS = (Path(__file__).parent / "pages", Path(__file__).parents[2] / "docs" / "lessons")
LAST = "Read next"
_NAME = re.compile(r"\d\d_([a-z0-9_]+)\.md")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_MINUTES = re.compile(r"\*(\d+) minutes\*")


class BadLesson(ValueError):
    """A lesson that cannot be read: `where` is the file and line, the text what to change."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path.name}, line {line}: {message}")


@dataclass
class _Draft:
    """A step while it is read."""

    title: str
    line: int
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    view: str = ""
    reveal_view: str = ""
    question: Question | None = None
    claims: list[Claim] = field(default_factory=list)


@lru_cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons, in the order of their files' names. Raises `BadLesson`."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    if folder is None:
        return ()
    return tuple(read_lesson(path) for path in sorted(folder.glob("[0-9][0-9]_*.md")))


def read_lesson(path: Path) -> Lesson:
    """The lesson in one file. Raises `BadLesson`."""
    return _Reading(path, path.read_text(encoding="utf-8")).lesson()


class _Reading:
    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = text.splitlines()
        tokens = MarkdownIt().parse(text)
        self.tokens = [token for token in tokens if token.level == 0 and token.map]
        self.headings = {
            self.place(token): inline.content for token, inline in pairwise(tokens) if token.type == "heading_open"
        }
        self.source = ""
        self.options: dict[str, Any] = {}

    def lesson(self) -> Lesson:
        named = _NAME.fullmatch(self.path.name)
        if named is None:
            raise self.wrong(0, "a lesson's file is named like 01_round_trips.md: its place, and small letters.")
        (_, _, head), *parts = self.sections()
        title, idea, minutes = self.head(head)
        steps, read_next = [], []
        for heading, place, tokens in parts:
            if heading == LAST:
                read_next += [
                    self.link(self.place(token), *found)
                    for token in tokens
                    for found in _LINK.findall(self.text(token))
                ]
            else:
                steps.append(self.step(heading, place, tokens))
        self.demand(any(step.question for step in steps), 0, "it asks nothing: one step at least needs an `ask` block.")
        name, folder = named[1], self.path.parent
        return Lesson(
            name=name,
            title=title,
            idea=idea,
            minutes=minutes,
            steps=steps,
            read_next=read_next,
            recorded=recorded_of(folder, name, steps),
        )

    def sections(self) -> list[tuple[str, int, list[Token]]]:
        """Each heading of the second level, its place, and what stands below it; first what stands above them all."""
        found: list[tuple[str, int, list[Token]]] = [("", 0, [])]
        for token in self.tokens:
            if token.type == "heading_open" and token.tag == "h2":
                found.append((self.headings[self.place(token)], self.place(token), []))
            else:
                found[-1][2].append(token)
        return found

    def head(self, tokens: list[Token]) -> tuple[str, str, int]:
        """The title, the idea and the minutes; what stands before the first step may be a program too."""
        title, idea, minutes = "", [], 0
        for token in tokens:
            if token.type == "heading_open" and token.tag == "h1":
                title = self.headings[self.place(token)]
            elif token.type == "fence":
                self.block_before_steps(token)
            elif (found := _MINUTES.fullmatch(self.text(token).strip())) is not None:
                minutes = int(found[1])
            else:
                idea.append(self.text(token))
        self.demand(bool(title), 0, "it needs a title: a first line such as `# Round trips to memory`.")
        self.demand(bool(idea), 0, "it needs its idea in a paragraph below the title.")
        self.demand(minutes > 0, 0, "it says how long it takes in a line of its own: `*5 minutes*`.")
        return title, "\n\n".join(idea).strip(), minutes

    def wrong(self, place: int, message: str) -> BadLesson:
        return BadLesson(self.path, place + 1, message)

    def demand(self, holds: bool, place: int, message: str) -> None:
        if not holds:
            raise self.wrong(place, message)

    def place(self, token: Token) -> int:
        """Its first line, counted from 0."""
        assert token.map is not None
        return token.map[0]

    def text(self, token: Token) -> str:
        assert token.map is not None
        return "\n".join(self.lines[token.map[0] : token.map[1]]).strip()

    def block_before_steps(self, token: Token) -> None:
        self.demand(
            token.info.startswith("python snippet"),
            self.place(token),
            "before the first `##` heading only a `python snippet` block may stand.",
        )
        self.snippet(token)

    def snippet(self, token: Token) -> None:
        """A program, and after the words `python snippet` its options: `dynamic=true`."""
        self.source, self.options = token.content, {}
        for text in token.info.split()[2:]:
            name, sign, value = text.partition("=")
            try:
                self.options[name] = json.loads(value)
            except ValueError:
                sign = ""
            self.demand(bool(sign), self.place(token), f"{text!r} is no option: write name=value, the value as JSON.")

    def into(self, draft: _Draft, token: Token) -> None:
        """One piece of a step: a block that the page acts on, or text."""
        place = self.place(token)
        kind = token.info.strip() if token.type == "fence" else ""
        if kind.startswith("python snippet"):
            self.demand(draft.question is None, place, "the program of a step stands before its question.")
            self.snippet(token)
        elif kind == "ask":
            self.demand(draft.question is None, place, "a step has one question; begin another step with `##`.")
            draft.question = self.question(token)
        elif kind == "view":
            query = token.content.strip()
            self.demand(
                bool(re.fullmatch(r"[\w-]+=[^\s&]+(&[\w-]+=[^\s&]+)*", query)),
                place,
                "a view is a query such as at=line:5&show=traffic, in one line.",
            )
            if draft.question is None:
                draft.view = query
            else:
                draft.reveal_view = query
        elif kind == "check":
            draft.claims += [self.claim(place + 1 + number, line) for number, line in _filled(token.content)]
        elif kind in ("snippet", "question", "checks", "views"):
            raise self.wrong(place, f"there is no block {kind!r}; there are `python snippet`, `ask`, `view`, `check`.")
        else:
            (draft.before if draft.question is None else draft.after).append(self.text(token))

    def question(self, token: Token) -> Question:
        place = self.place(token)
        text: list[str] = []
        fields: dict[str, str] = {}
        choices: list[Choice] = []
        for number, line in _filled(token.content):
            name, colon, value = line.partition(": ")
            if colon and name == "choice":
                choice, _, label = value.partition(" = ")
                choices.append(Choice(value=choice.strip(), label=(label or choice).strip()))
            elif colon and name in ("kind", "unit", "answer"):
                fields[name] = value.strip()
            else:
                self.demand(not fields, place + 1 + number, "the question stands above its kind and its answer.")
                text.append(line)
        kind = fields.get("kind", "number")
        self.demand(bool(text), place, "an `ask` block begins with the question.")
        self.demand("answer" in fields, place, "an `ask` block needs `answer: PATH`, a path into the report.")
        self.demand(
            kind in get_args(QuestionKind), place, f"{kind!r} is no kind; it is {', '.join(get_args(QuestionKind))}."
        )
        self.demand(
            (kind == "choice") is bool(choices),
            place,
            "lines `choice: VALUE = WORDS` belong to the kind choice, and it needs them.",
        )
        return Question.model_validate(
            {
                "text": " ".join(text),
                "kind": kind,
                "choices": choices,
                **{k: v for k, v in fields.items() if k != "kind"},
            }
        )

    def claim(self, place: int, line: str) -> Claim:
        """`TEXT = PATH`, `TEXT in the program`, or `TEXT about WHAT`."""
        if line.endswith(" in the program"):
            return Claim(text=line.removesuffix(" in the program"), kind="program")
        text, sign, path = line.partition(" = ")
        if sign:
            return Claim(text=text.strip(), kind="report", path=path.strip())
        text, sign, about = line.partition(" about ")
        self.demand(bool(sign), place, f"{line!r} is no claim: TEXT = PATH, TEXT in the program, or TEXT about WHAT.")
        return Claim(text=text.strip(), kind="other", about=about.strip())

    def step(self, heading: str, place: int, tokens: list[Token]) -> Step:
        draft = _Draft(heading, place)
        for token in tokens:
            self.into(draft, token)
        self.demand(bool(self.source), draft.line, "a step needs a program: a `python snippet` block above it.")
        self.demand(bool(draft.before), draft.line, "a step begins with text.")
        if draft.question is not None:
            self.demand(bool(draft.after), draft.line, "behind its question a step tells the answer and its reason.")
        return Step(
            title=draft.title,
            text="\n\n".join(draft.before),
            source=self.source,
            options=self.options,
            view=draft.view,
            question=draft.question,
            reveal="\n\n".join(draft.after),
            reveal_view=draft.reveal_view,
            claims=draft.claims,
        )

    def link(self, place: int, title: str, address: str) -> Link:
        if (found := _NAME.fullmatch(address)) is not None:
            self.demand((self.path.parent / address).is_file(), place, f"there is no lesson {address}.")
            return Link(title=title, kind="lesson", name=found[1])
        if address.startswith("../reasons/"):
            return Link(title=title, kind="reason", name=address.removeprefix("../reasons/").removesuffix(".md"))
        self.demand(address.startswith("../"), place, f"{address} leads out of the documents.")
        return Link(title=title, kind="document", name=f"docs/{address.removeprefix('../')}")


def _filled(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their place."""
    return ((number, line.strip()) for number, line in enumerate(text.splitlines()) if line.strip())
