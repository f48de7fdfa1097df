"""/api/v1/lessons and /api/v1/glossary, and the values of a report that questions and texts speak of."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi import Path as PathParameter
from pydantic import Field

from server import readings
from server.derived import derived
from server.glossary import Term, glossary
from server.lessons.models import Lesson, LessonHead
from server.lessons.reading import BadLesson, lessons
from server.problems import Problem, problem_answers
from server.readings import ReportValue
from server.report_paths import MOST_CHARACTERS
from server.routes.parameters import Id, Service, json_answer

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


@of_explorations.get("/{id}/values", response_model=list[ReportValue], responses=problem_answers(404, 409, 422))
async def values(id: Id, service: Service, path: Paths) -> Response:
    """The values of paths in a report, one for each path, in order."""
    return json_answer(await derived(readings.values, await service.unread(id), path))


async def _lessons() -> tuple[Lesson, ...]:
    try:
        return await asyncio.to_thread(lessons)
    except BadLesson as wrong:
        raise Problem(500, f"The lessons cannot be read: {wrong}") from None
