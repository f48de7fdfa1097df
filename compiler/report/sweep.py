"""One snippet at several sizes: its figures at each, and what flips between them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel
from compiler.report.timings import WrongResult


class NamedSize(ReportModel):
    """A size of the snippet that a sweep can name, with its value as written."""

    name: str = Field(description="The size as a sweep names it.")
    value: int = Field(description="Its value as written.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that contain it.")


class Flip(ReportModel):
    """Something that the compiler does otherwise than at the size before."""

    kind: Literal["verdict", "kernels", "choice"] = Field(
        description="What flips: a verdict, a count of kernels, or a choice."
    )
    graph: str | None = Field(default=None, description="The graph that it is in. Empty for a count of all graphs.")
    about: str = Field(description='The pair as "a + b", the kernel whose plan it is, or "launches" or "kernels".')
    before: str = Field(description="The answer at the size before.")
    after: str = Field(description="The answer at this size.")


class SweptSize(ReportModel):
    """What the snippet becomes at one size. A figure is null if it is not known."""

    value: int = Field(description="The value of the size.")
    error: str | None = Field(default=None, description="What went wrong at this size, in a sentence.")
    wrong_results: list[WrongResult] = Field(
        default=[],
        description="Outputs that rounding does not explain. The compiled call then has no time.",
    )
    launches: int | None = Field(default=None, description="Generated kernels and library calls.")
    kernels: int | None = Field(default=None, description="Generated kernels.")
    bytes: int | None = Field(default=None, description="Bytes that all kernels and library calls move.")
    floor_bytes: int | None = Field(default=None, description="Bytes that any compiler must move.")
    predicted_us: float | None = Field(default=None, description="Predicted time of the generated kernels.")
    measured_us: float | None = Field(default=None, description="The sum of the generated kernels, each alone.")
    eager_ms: float | None = Field(default=None, description="Milliseconds of an eager call: the median.")
    compiled_ms: float | None = Field(default=None, description="Milliseconds of a compiled call: the median.")
    plans: dict[str, str] = Field(
        default={},
        description='How each Triton kernel runs its loops: "pointwise", "persistent", "looped", "split", "team" or '
        '"look_back".',
    )
    flips: list[Flip] = Field(default=[], description="What differs from the size before.")
    more_flips: int = Field(default=0, description="How many flips are not listed.")


class Outcome(ReportModel):
    """What became of a pair of nodes: the scheduler's last answer, and whether both are in one kernel in the end, be it
    by the fusion of others."""

    verdict: Literal["fused", "refused", "never considered"] = Field(description="The scheduler's last answer.")
    reason: str | None = Field(
        default=None, description="Id of the reason, as in GET /api/v1/reasons. Null if the scheduler never asked."
    )
    together: bool = Field(description="Whether both are in one kernel in the end.")


class SweptPair(ReportModel):
    """A pair of nodes, matched by name, with its outcome at each size in order. It is null if there is no such pair."""

    graph: str = Field(description="The graph that the pair is in.")
    a: str = Field(description="The first of the two, as a loop node.")
    b: str = Field(description="The second of the two, as a loop node.")
    outcomes: list[Outcome | None] = Field(
        description="What became of the pair at each size, in order. Null if that size has no such pair."
    )
    flips: bool = Field(description="Whether the outcomes differ.")


class SweepResult(ReportModel):
    """One snippet at several sizes, in ascending order; each size is compared with the one before it that has kernels.

    `verdict` says in a sentence where something flips; `message` what the reader must know besides."""

    name: str = Field(description="The size that was swept.")
    sizes: list[SweptSize] = Field(default=[], description="What the snippet becomes at each size, in ascending order.")
    pairs: list[SweptPair] = Field(default=[], description="The pairs. Those that flip come first. See `more_pairs`.")
    more_pairs: int = Field(default=0, description="How many pairs are not listed.")
    verdict: str = Field(default="", description="Where something flips, in a sentence.")
    message: str | None = Field(default=None, description="What the reader must know besides.")
