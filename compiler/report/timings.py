"""What was measured: eager, ours and the peer, each with every sample."""

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


class TimingResult(ReportModel):
    method: str
    device: str
    cold_l2: bool
    contestants: list[Contestant] = []


class Peer(ReportModel):
    """What TorchInductor made of the same graphs."""

    name: str = "TorchInductor"
    kernels: list[Kernel] = []
    message: str | None = None
