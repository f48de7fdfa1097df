"""One snippet at several sizes: its figures at each, and what flips between them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel
from compiler.report.timings import WrongResult


class NamedSize(ReportModel):
    """A size of the snippet that a sweep can name, with its value as written."""

    name: str
    value: int
    lines: list[int] = []


class Flip(ReportModel):
    """Something that the compiler does otherwise than at the size before."""

    kind: Literal["verdict", "kernels", "choice"]
    graph: str | None = Field(default=None, description="The graph that it is in; of a count: all of them.")
    about: str = Field(description='The pair, as "a + b"; the kernel whose plan it is; or "kernels".')
    before: str
    after: str


class SweptSize(ReportModel):
    """What the snippet becomes at one size. A figure is null where it is not known."""

    value: int
    error: str | None = Field(default=None, description="What went wrong at this size, in a sentence.")
    wrong_results: list[WrongResult] = Field(
        default=[],
        description="Outputs that rounding does not explain: there is no time of the compiled call then.",
    )
    launches: int | None = Field(default=None, description="Generated kernels and library calls.")
    kernels: int | None = Field(default=None, description="The generated ones among them.")
    bytes: int | None = None
    floor_bytes: int | None = None
    predicted_us: float | None = Field(default=None, description="The generated kernels, one after another.")
    measured_us: float | None = Field(default=None, description="The generated kernels together, each on its own.")
    eager_ms: float | None = None
    compiled_ms: float | None = None
    plans: dict[str, str] = Field(
        default={},
        description='How each Triton kernel runs its loops: "pointwise", "persistent", "looped", "split", "team" or '
        '"look_back".',
    )
    flips: list[Flip] = []
    more_flips: int = Field(default=0, description="How many flips are not listed.")


class Outcome(ReportModel):
    """What became of a pair of nodes: the scheduler's last answer, and whether both are in one kernel in the end, be it
    by the fusion of others."""

    verdict: Literal["fused", "refused", "never considered"]
    reason: str | None = None
    together: bool


class SweptPair(ReportModel):
    """A pair of nodes, matched by name, with its outcome at each size in order; null where there is no such pair."""

    graph: str
    a: str
    b: str
    outcomes: list[Outcome | None]
    flips: bool


class SweepResult(ReportModel):
    """One snippet at several sizes, in ascending order; each size is compared with the one before it that has kernels.

    `verdict` says in a sentence where something flips; `message` what the reader must know besides."""

    name: str
    sizes: list[SweptSize] = []
    pairs: list[SweptPair] = Field(default=[], description="Those that flip first; see `more_pairs`.")
    more_pairs: int = Field(default=0, description="How many pairs are not listed.")
    verdict: str = ""
    message: str | None = None
