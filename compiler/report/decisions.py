"""What was decided and why: fusions round by round, layouts, foldings, padding, and what if otherwise."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from compiler.report.model import ReportModel, SizeText, example


class Score(ReportModel):
    """What the cost model expects of a fusion. Both times are predictions, in microseconds. They have the
    gaps before and after a kernel, and what timing it adds. `predicted_us` of a kernel leaves both out.

    Of a refusal for which no kernel of both could be made, `bytes_saved` is the most that one could save, and there is
    no `fused_us`; where a library call takes part, there is no prediction of either time."""

    category: str = Field(description="The rule that the fusion would be made by, such as vertical.")
    bytes_saved: int = Field(description="Bytes that the fusion does not have to read and write.")
    distance: int = Field(description="How far apart the two are in the order of the loop nodes.")
    fused_us: float | None = Field(default=None, description="Predicted microseconds of one kernel that holds both.")
    unfused_us: float | None = Field(
        default=None, description="Predicted microseconds of the two kernels, one after another."
    )


class IndexTerm(ReportModel):
    """One term of an index expression with its sign: `512 * x0`, ` + x1`. `differs` marks what the other side of the
    decision does not have."""

    text: str = Field(description="The term with its sign.")
    differs: bool = Field(default=False, description="Whether the other side does not have the term.")


class Side(ReportModel):
    """One side of a decision as it was when it was asked about: a group of nodes, or a library call."""

    unit: int = Field(description="Number of the unit. See `rounds`.")
    space: str = Field(default="", description="Its loops. Those of a reduction follow the bar.")
    iterations: SizeText | None = Field(
        default=None, description="Iterations of all its loops together: a number, or a formula of open sizes."
    )
    does: Literal["writes", "reads", "touches"] = Field(
        default="touches", description="What the side does with the shared buffer."
    )
    index: list[IndexTerm] = Field(default=[], description="Element of the shared buffer, as a formula.")


class Decision(ReportModel):
    """One pair that the scheduler looked at: what it decided, and why, with numbers."""

    model_config = example(
        a="sin", b="sum_1", round=1, kind="vertical", verdict="fused", reason="fused.vertical",
        message="sum_1 reads what sin writes, element by element: one kernel keeps it in registers.", lines=[4],
    )  # fmt: skip

    a: str = Field(description="The first of the two, as a loop node.")
    b: str = Field(description="The second of the two, as a loop node.")
    round: int = Field(description="The round of the scheduler in which they were looked at.")
    kind: Literal["vertical", "horizontal"] = Field(
        description="Vertical if one reads what the other writes. Otherwise horizontal."
    )
    verdict: Literal["fused", "refused"] = Field(description="Whether the two became one kernel.")
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str = Field(description="The reason in a sentence, with its numbers.")
    numbers: dict[str, Any] = Field(default={}, description="The numbers that the reason speaks of, by name.")
    score: Score | None = Field(default=None, description="What the cost model expects of the fusion.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that the two came from.")
    shared: str | None = Field(default=None, description="The buffer that the verdict is about.")
    shared_bytes: int | None = Field(default=None, description="Bytes of that buffer.")
    sides: list[Side] = Field(default=[], description="The side of `a`, then the side of `b`.")
    same_loops: bool = Field(default=False, description="Whether both index expressions use the same loops.")
    change: str = Field(default="", description="The loops that a fusion gave up, as formulas of the others.")
    makes: int | None = Field(default=None, description="The number of the unit that the fusion of two units made.")
    would_fuse_if: str = Field(default="", description="A change under which the rules fuse the two. It was tried.")


class Refusal(ReportModel):
    """Two kernels that share data and stayed apart. Each of their nodes was refused with one of the other's."""

    kernels: tuple[int, int] = Field(description="Positions of the two in `kernels`, in the order of their launches.")
    decisions: list[int] = Field(
        description="Positions in `decisions`, one for each pair of nodes. The first decided: it is about the largest "
        "groups of the two. The others are about fewer of their nodes."
    )
    bytes: int = Field(description="Bytes that the first of them could save, at most.")


class Round(ReportModel):
    """One round of the scheduler: what it asked, and the fusion that it took as the best; at the end of all, those of
    small kernels that share launches.

    Units are numbered: the nodes of `loops` that are not dead, in order from 0, then whatever a fusion makes, in order.
    Parts of a concatenation that are one kernel without a fusion are joined in the round that first looks at them.
    So the fusions are all it takes to tell the groups after any round (`compiler.rounds.units_after` does)."""

    number: int = Field(description="Number of the round, counted from 1.")
    fused: list[tuple[int, int, int]] = Field(
        default=[], description="The two units that were fused, and the number of the unit that they became."
    )
    refused: int = Field(default=0, description="How many pairs the round refused.")
    units: int = Field(default=0, description="How many units there are after the round.")


class LayoutConversion(ReportModel):
    """A copy into other strides at the edge of a region: `buffer` is made of `source` for `reader`. `bytes` are read
    and written by a kernel of its own; what is fused into the loop that makes `source` moves fewer."""

    buffer: str = Field(description="The copy.")
    source: str = Field(description="The tensor that is copied.")
    what: Literal["image", "gradient", "filter", "argument", "output"] = Field(
        description="What the copy is for its reader."
    )
    reader: str = Field(description="The node that needs it in these strides.")
    bytes: int = Field(description="Bytes that are read and written by a kernel of its own.")


class LayoutDecision(ReportModel):
    """How tensors lie around convolutions that hang together: channels-last, or as eager has them, and why. Or one that
    is a product of patches, or a loop."""

    verdict: Literal["channels_last", "kept", "loop", "product"] = Field(
        description="How the convolutions are computed."
    )
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str = Field(description="The reason in a sentence.")
    convolutions: list[str] = Field(default=[], description="The convolutions, as nodes of `aten`.")
    numbers: dict[str, Any] = Field(default={}, description="The numbers that the reason speaks of, by name.")
    predicted_kept_us: float | None = Field(
        default=None, description="Predicted time of the library calls with tensors as in eager."
    )
    predicted_moved_us: float | None = Field(
        default=None,
        description="Predicted time channels-last, with conversions, or of the product or loop.",
    )
    buffers: list[str] = Field(default=[], description="Buffers that are channels-last, or would be if it paid.")
    conversions: list[LayoutConversion] = Field(default=[], description="Copies at the edges of the region.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that it is about.")


class FoldingDecision(ReportModel):
    """Whether a convolution takes the products and sums of each channel, and the ReLU, that follow it."""

    verdict: Literal["folded", "kept"] = Field(description="Whether it was folded.")
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str = Field(description="The reason in a sentence.")
    nodes: list[str] = Field(default=[], description="The nodes of `aten`. The convolution is first, the ReLU last.")
    predicted_saved_us: float = Field(description="Predicted time of the pass that is saved.")
    predicted_filter_us: float = Field(description="Predicted microseconds to compute the filter in each call.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that it is about.")


class PaddingCopy(ReportModel):
    """A matrix that has to be copied for a padded product: `left`, `right` or `bias`, to have a border of zeros, or the
    `result`, to have eager's strides. `bytes` are read and written."""

    node: str = Field(description="The node of `aten` that is copied.")
    what: Literal["left", "right", "bias", "result"] = Field(description="What it is in the product.")
    bytes: int = Field(description="Bytes that are read and written.")


class PaddingDecision(ReportModel):
    """Whether a matrix product is computed at sizes that eight divides, and why: a border of zeros is added to what it
    takes, and nobody reads what comes of that. Or several calls compute it ("apart"), each of rows that lie so far
    apart that they start in the same place of a vector of sixteen bytes."""

    verdict: Literal["padded", "apart", "kept"] = Field(description="How the product is computed.")
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str = Field(description="The reason in a sentence.")
    product: str = Field(description="The matrix product, as a node of `aten`.")
    sizes: list[SizeText] = Field(description="Rows, inner size and columns of the product as it is written.")
    padded: list[SizeText] = Field(description="Rows, inner size and columns of the padded product.")
    predicted_kept_us: float | None = Field(default=None, description="Predicted time at the sizes as written.")
    predicted_padded_us: float | None = Field(default=None, description="Predicted time of the padded call or calls.")
    predicted_copies_us: float | None = Field(default=None, description="Predicted time of the copies for it.")
    predicted_saved_us: float | None = Field(default=None, description="Predicted time that padding saves.")
    copies: list[PaddingCopy] = Field(default=[], description="The matrices that have to be copied for it.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that it is about.")


class WhatIf(ReportModel):
    """One thing that an option asked to be otherwise, and what came of it.

    A fusion that was forced is "done", or "refused" with the reason of the scheduler or of what comes before it; one
    that was forbidden is "done", or had "no effect" as the two would not have been fused anyway, for that reason."""

    option: Literal["force", "forbid", "rules_off", "largest_group", "device_model"] = Field(
        description="The option that asked."
    )
    asked: list[str] = Field(description="What was asked for: two nodes, a rule, a number or a device.")
    outcome: Literal["done", "refused", "no effect", "unknown name"] = Field(description="What became of it.")
    graph: str | None = Field(default=None, description="The graph that has the two nodes.")
    reason: str | None = Field(default=None, description="Id of the reason, as in GET /api/v1/reasons.")
    message: str = Field(description="The outcome in a sentence.")
