"""One frozen `Options`: everything an exploration can be asked to do differently.

Every stage receives it whole and reads what concerns it; nothing else configures the compiler. Its JSON form,
together with the snippet and the versions, is what an exploration's id is a hash of.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Mode = Literal["default", "reduce-overhead", "max-autotune"]
StageName = Literal["capture", "lower", "schedule", "codegen", "run", "measure", "compare"]


class InputSpec(BaseModel):
    """One tensor input of a lone function: `shape` in elements, `dtype` by torch's name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    shape: tuple[int, ...] = Field(description="Sizes, outermost first; () is a scalar tensor.")
    dtype: str = Field(default="float32", description="torch dtype name, such as float32, bfloat16, int64, bool.")
    low: int = Field(default=0, description="Smallest value of an integer input.")
    high: int = Field(default=10, description="One past the largest value of an integer input.")


class Timing(BaseModel):
    """How times are taken."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    cold_l2: bool = Field(default=True, description="Clear the L2 cache before each sample on a GPU.")
    min_runs: int = Field(default=20, ge=3, le=1000, description="Interleaved samples per contestant.")
    max_seconds: float = Field(default=2.0, gt=0, le=60, description="Stop sampling after this many seconds.")


#: Kinds of fusion that the knob `disable` may name.
FUSION_KINDS = ("vertical", "inline", "horizontal", "across", "batch", "recompute")


class Options(BaseModel):
    """What one exploration is asked to do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    entry: str | None = Field(default=None, description="Name of the function or module to explore.")
    inputs: tuple[InputSpec, ...] | None = Field(default=None, description="Inputs of a lone function, in order.")
    device: str | None = Field(default=None, description='"cpu" or "cuda"; by default the GPU where there is one.')
    target: str = Field(
        default="sm_90",
        pattern=r"^sm_\d{2,3}$",
        description="GPU that Triton kernels are generated for where no GPU is at hand, such as sm_80, sm_90.",
    )
    peer: bool = Field(default=False, description="Also compile and time with TorchInductor.")
    training: bool | None = Field(default=None, description="Capture the backward graph; by default if one is needed.")
    dynamic: bool | None = None
    mode: Mode = "default"
    knobs: dict[str, Any] = Field(default_factory=dict, description="Scheduler knobs; see docs/knobs.md.")
    produce: tuple[StageName, ...] | None = Field(default=None, description="Stages wanted; by default all.")
    timing: Timing = Timing()
    seed: int = Field(default=0, description="Seed set before the snippet runs.")

    @field_validator("knobs")
    @classmethod
    def _known_knobs(cls, knobs: dict[str, Any]) -> dict[str, Any]:
        """A misspelt knob would otherwise change nothing and say nothing."""
        unknown = sorted(set(knobs) - {"most_nodes", "disable"})
        if unknown:
            raise ValueError(f"there is no knob {unknown[0]!r}; the knobs are most_nodes and disable")
        most_nodes = knobs.get("most_nodes", 1)
        if not isinstance(most_nodes, int) or isinstance(most_nodes, bool) or most_nodes < 1:
            raise ValueError(f"most_nodes must be a whole number of at least 1, not {most_nodes!r}")
        kinds = knobs.get("disable", ())
        if not isinstance(kinds, list | tuple) or any(kind not in FUSION_KINDS for kind in kinds):
            raise ValueError(f"disable must be a list of {', '.join(FUSION_KINDS)}, not {kinds!r}")
        return knobs
