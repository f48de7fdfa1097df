"""What was decided and why: fusions round by round, layouts, foldings, padding, and what if otherwise."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from compiler.report.model import ReportModel, SizeText


class Score(ReportModel):
    """What the cost model expects of a fusion. Both times are predictions, in microseconds.

    Of a refusal for which no kernel of both could be made, `bytes_saved` is the most that one could save, and there is
    no `fused_us`; where a library call takes part, there is no prediction of either time."""

    category: str
    bytes_saved: int
    distance: int
    fused_us: float | None = None
    unfused_us: float | None = None


class IndexTerm(ReportModel):
    """One term of an index expression with its sign: `512 * x0`, ` + x1`. `differs` marks what the other side of the
    decision does not have."""

    text: str
    differs: bool = False


class Side(ReportModel):
    """One side of a decision as it was when it was asked about: a group of nodes, or a library call."""

    unit: int = Field(description="Number of the unit; see `rounds`.")
    space: str = Field(default="", description="Its loops, those of a reduction after the bar; empty: a library call.")
    iterations: SizeText | None = None
    does: Literal["writes", "reads", "touches"] = "touches"
    index: list[IndexTerm] = Field(default=[], description="The element of the shared buffer, by its loops.")


class Decision(ReportModel):
    """One pair that the scheduler looked at: what it decided, and why, with numbers."""

    a: str
    b: str
    round: int
    kind: Literal["vertical", "horizontal"]
    verdict: Literal["fused", "refused"]
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str
    numbers: dict[str, Any] = {}
    score: Score | None = None
    lines: list[int] = []
    shared: str | None = Field(default=None, description="The buffer that the verdict is about.")
    shared_bytes: int | None = None
    sides: list[Side] = Field(default=[], description="That of `a`, then that of `b`.")
    same_loops: bool = Field(default=False, description="Whether both index expressions are over the same loops.")
    change: str = Field(default="", description="Of a fusion: the loops that were given up, by those that were kept.")
    makes: int | None = Field(default=None, description="Of a fusion of two units: the number of what they became.")
    would_fuse_if: str = Field(default="", description="A change under which the rules do fuse the two: it was tried.")


class Round(ReportModel):
    """One round of the scheduler: what it asked, and the fusion that it took as the best; at the end of all, those of
    small kernels that share launches.

    Units are numbered: the nodes of `loops` that are not dead, in order from 0, then whatever a fusion makes, in order.
    So the fusions are all it takes to tell the groups after any round (`compiler.rounds.units_after` does)."""

    number: int
    fused: list[tuple[int, int, int]] = Field(
        default=[], description="The two units, and the number of what they became."
    )
    refused: int = 0
    units: int = Field(default=0, description="How many units there are after it.")


class LayoutConversion(ReportModel):
    """A copy into other strides at the edge of a region: `buffer` is made of `source` for `reader`. `bytes` are read
    and written by a kernel of its own; what is fused into the loop that makes `source` moves fewer."""

    buffer: str
    source: str
    what: Literal["image", "gradient", "filter", "argument", "output"]
    reader: str
    bytes: int


class LayoutDecision(ReportModel):
    """How tensors lie around convolutions that hang together: channels-last, or as eager has them, and why. Or one that
    is a product of patches, or a loop."""

    verdict: Literal["channels_last", "kept", "loop", "product"]
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str
    convolutions: list[str] = Field(default=[], description="Nodes of `aten`.")
    numbers: dict[str, Any] = {}
    predicted_kept_us: float | None = Field(
        default=None, description="Tensors as in eager: the library's calls, and the passes that folding would spare."
    )
    predicted_moved_us: float | None = Field(
        default=None,
        description="Channels-last: the library's calls, conversions, and filters that are folded; or the product.",
    )
    buffers: list[str] = Field(default=[], description="Those that are channels-last, or would be if it paid.")
    conversions: list[LayoutConversion] = []
    lines: list[int] = []


class FoldingDecision(ReportModel):
    """Whether a convolution takes the products and sums of each channel, and the ReLU, that follow it."""

    verdict: Literal["folded", "kept"]
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str
    nodes: list[str] = Field(default=[], description="Of `aten`: the convolution first, the ReLU last.")
    predicted_saved_us: float = Field(description="The pass over the result that is spared.")
    predicted_filter_us: float = Field(description="What it takes to compute the filter in each call.")
    lines: list[int] = []


class PaddingCopy(ReportModel):
    """A matrix that has to be copied for a padded product: `left`, `right` or `bias`, to have a border of zeros, or the
    `result`, to have eager's strides. `bytes` are read and written."""

    node: str
    what: Literal["left", "right", "bias", "result"]
    bytes: int


class PaddingDecision(ReportModel):
    """Whether a matrix product is computed at sizes that eight divides, and why: a border of zeros is added to what it
    takes, and nobody reads what comes of that. Or several calls compute it ("apart"), each of rows that lie so far
    apart that they start in the same place of a piece of sixteen bytes."""

    verdict: Literal["padded", "apart", "kept"]
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str
    product: str = Field(description="Node of `aten`.")
    sizes: list[SizeText] = Field(description="Rows, inner size and columns of the product as it is written.")
    padded: list[SizeText] = Field(description="Those that it has, or would have, padded.")
    predicted_kept_us: float | None = Field(default=None, description="The library's call at the sizes as written.")
    predicted_padded_us: float | None = Field(default=None, description="The padded call, or those of rows apart.")
    predicted_copies_us: float | None = Field(default=None, description="All that is copied for it.")
    predicted_saved_us: float | None = Field(default=None, description="The first less the other two.")
    copies: list[PaddingCopy] = []
    lines: list[int] = []


class WhatIf(ReportModel):
    """One thing that an option asked to be otherwise, and what came of it.

    A fusion that was forced is "done", or "refused" with the reason of the scheduler or of what comes before it; one
    that was forbidden is "done", or had "no effect" as the two would not have been fused anyway, for that reason."""

    option: Literal["force", "forbid", "rules_off", "largest_group", "device_model"]
    asked: list[str] = Field(description="The two nodes, the rule, the number or the device, as they were asked for.")
    outcome: Literal["done", "refused", "no effect", "unknown name"]
    graph: str | None = Field(default=None, description="The graph that has the two nodes.")
    reason: str | None = Field(default=None, description="Id of the reason, as in GET /api/v1/reasons.")
    message: str
