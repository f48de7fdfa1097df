"""/api/v1/lessons and /api/v1/glossary, and the values of a report that questions and texts speak of."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi import Path as PathParameter
from pydantic import BaseModel, ConfigDict, Field

from compiler.report import Report
from server.derived import derived
from server.glossary import Term, glossary
from server.lessons.models import Lesson, LessonHead
from server.lessons.reading import BadLesson, lessons
from server.problems import Problem, problem_answers
from server.report_paths import MOST_CHARACTERS, PathProblem, Scalar, value_at
from server.routes.parameters import Id, Service

router = APIRouter(prefix="/api/v1", tags=["catalogue"])
of_explorations = APIRouter(prefix="/api/v1/explorations", tags=["explorations"])
MOST_PATHS = 40

LessonName = Annotated[
    str,
    PathParameter(description="Name of a lesson.", max_length=100, pattern=r"^[a-z0-9_]+$", examples=["round_trips"]),
]
AskedPath = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
Paths = Annotated[
    list[AskedPath],
    Query(
        alias="path",
        description=f"Paths into the report, at most {MOST_PATHS}: see docs/lessons/README.md.",
        min_length=1,
        max_length=MOST_PATHS,
        examples=[["graphs[0].kernels | count"]],
    ),
]


class ReportValue(BaseModel):
    """The value of a path in a report."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"path": "graphs[0].kernels | count", "value": 1, "problem": None}}
    )

    path: str = Field(description="The requested path.")
    value: Scalar | list[Scalar] = Field(
        default=None, description="A number, a word, or a list of them; null if there is none."
    )
    problem: str | None = Field(
        default=None, description="A sentence that says why the path has no value in this report; null if it has one."
    )


@router.get("/lessons", responses=problem_answers(500))
async def list_lessons() -> list[LessonHead]:
    """The lessons that come with the product, from the first idea to the last."""
    return [lesson.head() for lesson in await _lessons()]


@router.get("/lessons/{name}", responses=problem_answers(404, 422, 500))
async def one_lesson(name: LessonName) -> Lesson:
    """One lesson, step by step: its programs, its questions, and the paths of the answers in the report."""
    for lesson in await _lessons():
        if lesson.name == name:
            return lesson
    raise Problem(404, f"There is no lesson {name!r}; GET /api/v1/lessons lists them all.")


@router.get("/glossary")
async def terms() -> list[Term]:
    """The words that the page uses, and what they mean."""
    return list(await asyncio.to_thread(glossary))


@of_explorations.get("/{id}/values", responses=problem_answers(404, 409, 422))
async def values(id: Id, service: Service, path: Paths) -> list[ReportValue]:
    """The values of paths in a report, one for each path, in order."""
    report = await service.report(id)
    return await derived(id, (), _values, report, path)


def _values(report: Report, paths: list[str]) -> list[ReportValue]:
    return [_value(report, path) for path in paths]


def _value(report: Report, path: str) -> ReportValue:
    try:
        return ReportValue(path=path, value=value_at(report, path))
    except PathProblem as problem:
        return ReportValue(path=path, problem=str(problem))


async def _lessons() -> tuple[Lesson, ...]:
    try:
        return await asyncio.to_thread(lessons)
    except BadLesson as wrong:
        raise Problem(500, f"The lessons cannot be read: {wrong}") from None
