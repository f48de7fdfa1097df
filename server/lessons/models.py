"""What a lesson consists of, as the API gives it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

QuestionKind = Literal["number", "choice", "line", "node"]

_QUESTION: JsonDict = {
    "text": "How many kernels does the compiled function launch?",
    "kind": "number",
    "unit": "kernels",
    "choices": [],
    "answer": "graphs[0].kernels | count",
}
_STEP: JsonDict = {
    "title": "Guess first",
    "text": "Four operators, one after another.",
    "source": "import torch\n",
    "options": {},
    "view": "at=line:5",
    "question": _QUESTION,
    "reveal": "All of them fit into 1 kernel.",
    "reveal_view": "at=kernel:graph_0/0",
    "claims": [{"text": "1 kernel", "kind": "report", "path": "summary.kernels", "about": ""}],
}
_ABOUT: JsonDict = {
    "name": "round_trips",
    "title": "Round trips to memory",
    "idea": "Each kernel reads its inputs from memory and writes its result back.",
    "minutes": 5,
}
_RECORDED: JsonDict = {
    "device": "NVIDIA H200",
    "torch": "2.13.0",
    "triton": "3.7.1",
    "steps": [{"eager_ms": 0.05, "compiled_ms": 0.02, "eager_kernels": 4, "kernels": 1}],
}


class Choice(BaseModel):
    """One of several answers that are offered."""

    model_config = ConfigDict(frozen=True)

    value: str = Field(description="What the path of the answer leads to, if this is right.", examples=["refused"])
    label: str = Field(description="The answer in words.", examples=["No, they stay apart"])


class Question(BaseModel):
    """What the reader is to predict. The answer is a path into the report: it is computed, never written down."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"example": _QUESTION})

    text: str = Field(description="The question: Markdown.", examples=["How many kernels?"])
    kind: QuestionKind = Field(
        description="What answers it: a number, one of `choices`, a line of the snippet, or a node of the map.",
        examples=["number"],
    )
    unit: str = Field(default="", description="What the number counts or is given in.", examples=["kernels"])
    choices: list[Choice] = Field(default=[], description="The answers that are offered, where `kind` is choice.")
    answer: str = Field(
        description="Where the answer stands in the report; for a line or a node it may lead to several, each right.",
        examples=["graphs[0].kernels | count"],
    )


class Claim(BaseModel):
    """A number that the text states, and where it comes from."""

    model_config = ConfigDict(frozen=True)

    text: str = Field(description="The words of the text, with one number in them.", examples=["1 kernel"])
    kind: Literal["report", "program", "other"] = Field(
        description="Whether it is a value of the report, stands in the program, or is about something else."
    )
    path: str = Field(default="", description="Of a value of the report: where.", examples=["summary.kernels"])
    about: str = Field(default="", description="What it is about, where that is something else.", examples=["history"])


class Step(BaseModel):
    """One step of a lesson: what is read, what is asked, and what is told once an answer was given."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"example": _STEP})

    title: str = Field(description="What it is about, in a few words.", examples=["Guess first"])
    text: str = Field(description="What is read before the question: Markdown.")
    source: str = Field(description="The program of this step: its own, or that of the step before.")
    options: dict[str, Any] = Field(default={}, description="What the program is explored with, beside the defaults.")
    view: str = Field(default="", description="What to look at: a query of the page's address.")
    question: Question | None = Field(default=None, description="What is to be predicted; null where nothing is.")
    reveal: str = Field(default="", description="What is read once an answer was given: Markdown.")
    reveal_view: str = Field(default="", description="What to look at then: a query of the page's address.")
    claims: list[Claim] = Field(default=[], description="The numbers of its text, and where each comes from.")


class Figures(BaseModel):
    """What one program of a lesson came to on a GPU, measured."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    eager_kernels: int | None = Field(default=None, description="Launches of eager PyTorch.")
    kernels: int | None = Field(default=None, description="Launches of ours.")
    eager_ms: float | None = Field(default=None, description="Milliseconds of eager, the median.")
    compiled_ms: float | None = Field(default=None, description="Milliseconds of compiled, the median.")


class Recorded(BaseModel):
    """Figures of a lesson's programs that were measured on a GPU and kept beside the lesson."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"example": _RECORDED})

    device: str = Field(description="The GPU's name.", examples=["NVIDIA H200"])
    torch: str = Field(description="Version of PyTorch.", examples=["2.13.0"])
    triton: str | None = Field(description="Version of Triton.", examples=["3.7.1"])
    steps: list[Figures | None] = Field(
        description="For each step the figures of its program; null where there are none of it as it is now."
    )


class Link(BaseModel):
    """Something to read next."""

    model_config = ConfigDict(frozen=True)

    title: str = Field(description="What it is called.", examples=["The memory hierarchy"])
    kind: Literal["lesson", "reason", "document"] = Field(description="What it leads to.")
    name: str = Field(
        description="The lesson's name, the reason's id, or the document's path.", examples=["memory_hierarchy"]
    )


class _About(BaseModel):
    name: str = Field(description="Unique among the lessons; stands in the page's address.", examples=["round_trips"])
    title: str = Field(description="Its title.", examples=["Round trips to memory"])
    idea: str = Field(description="The one idea that it is about, in a sentence or two: Markdown.")
    minutes: int = Field(description="How long it takes.", examples=[5])


class LessonHead(_About):
    """A lesson in a list."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"example": {**_ABOUT, "steps": 3}},
    )

    steps: int = Field(description="How many steps it has.", examples=[3])


class Lesson(_About):
    """One lesson, whole."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "example": {
                **_ABOUT,
                "steps": [_STEP],
                "read_next": [{"title": "The memory hierarchy", "kind": "lesson", "name": "memory_hierarchy"}],
                "recorded": [],
            }
        },
    )

    steps: list[Step] = Field(description="Its steps, in order.")
    read_next: list[Link] = Field(default=[], description="What to read next.")
    recorded: list[Recorded] = Field(default=[], description="Figures of GPUs; empty where none were recorded.")

    def head(self) -> LessonHead:
        """The lesson as a list has it."""
        return LessonHead(name=self.name, title=self.title, idea=self.idea, minutes=self.minutes, steps=len(self.steps))
