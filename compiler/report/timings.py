"""What was measured: eager, ours and the peer, each with every sample. A wrong result has no speed: who gave one is no
contestant, and what is wrong is told instead."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.kernels import Kernel
from compiler.report.model import ReportModel


class Contestant(ReportModel):
    """Wall time of one way to run the same calls, in milliseconds; every sample is kept."""

    name: Literal["eager", "compiled", "peer"]
    samples_ms: list[float]
    median_ms: float
    low_ms: float = Field(description="25th percentile.")
    high_ms: float = Field(description="75th percentile.")
    compile_s: float | None = None


class WrongResult(ReportModel):
    """An output that rounding does not explain. Of its contestant there is no time, and of the kernels of its graph
    there is none.

    `error` and `eager_error` are relative, against float64, and `tolerance` is the largest that was allowed; null where
    the output cannot be compared: it has another shape or dtype than eager's, or NaN where eager has none."""

    contestant: Literal["compiled", "peer"]
    graph: str | None = Field(default=None, description="The graph that gives it; null for a result of a whole call.")
    entry: str | None = Field(default=None, description="The function that was called.")
    output: str = Field(description="Its name: of a graph's output the ATen node, of a call's \"the gradient of x\".")
    error: float | None = None
    eager_error: float | None = None
    tolerance: float | None = None
    message: str = Field(description="Which output is wrong and by how much, in a sentence.")


class TimingResult(ReportModel):
    """`contestants` are those whose results are right, or could not be checked."""

    method: str
    device: str
    cold_l2: bool
    contestants: list[Contestant] = []


class Peer(ReportModel):
    """What TorchInductor made of the same graphs."""

    name: str = "TorchInductor"
    kernels: list[Kernel] = []
    message: str | None = None
