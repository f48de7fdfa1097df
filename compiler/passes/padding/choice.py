"""What was decided of a matrix product that tensor cores cannot take eight elements at a time, as a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from compiler import report
from compiler.fx.fake_values import shown_size
from compiler.schedule.records.reasons import message_of

#: The reason of a product that is padded.
PADDED = "padding.padded"
#: The reason of one that is computed by rows that lie apart.
APART = "padding.apart"
#: Where the node of a product keeps its record until its graph is compiled.
CHOICE = "padding"

#: What may have to be copied: an operand, what is added to the product, or the product itself.
Part = Literal["left", "right", "bias", "result"]


@dataclass(frozen=True)
class Copied:
    """A matrix that padding copies, with the bytes read and written. Its node is known when the graph is compiled."""

    what: Part
    bytes: int
    node: str = ""


@dataclass(frozen=True)
class PaddingChoice:
    """One product of rows x inner by inner x columns, and why it is computed at the sizes that it is.

    The times are predictions in microseconds: of the call as it is, of the padded one (or of those of rows that lie
    apart), and of all that is copied for it. They are None where nothing was weighed, as sizes are open."""

    reason: str
    sizes: tuple[Any, ...]
    padded: tuple[Any, ...]
    kept_us: float | None = None
    padded_us: float | None = None
    copies: tuple[Copied, ...] = ()
    copies_us: float | None = None
    #: Name of the ATen node and the user's lines, known when the graph is compiled.
    product: str = ""
    lines: tuple[int, ...] = ()

    @property
    def saved_us(self) -> float | None:
        """What padding saves, or would, less what it copies."""
        if self.kept_us is None or self.padded_us is None or self.copies_us is None:
            return None
        return self.kept_us - self.padded_us - self.copies_us

    @property
    def is_padded(self) -> bool:
        return self.reason == PADDED

    @property
    def is_apart(self) -> bool:
        """Whether several calls compute it, each of rows so far apart that they start in the same place of a vector."""
        return self.reason == APART


def describe_padding(choice: PaddingChoice) -> report.PaddingDecision:
    sizes, padded = ([shown_size(size) for size in sizes] for sizes in (choice.sizes, choice.padded))
    times = (choice.kept_us, choice.padded_us, choice.copies_us)
    kept_us, padded_us, copies_us = (None if time is None else round(time, 3) for time in times)
    told: dict[str, Any] = {"sizes": " x ".join(map(str, sizes)), "padded": " x ".join(map(str, padded))}
    told |= {"knob": "padding", "kept_us": kept_us, "padded_us": padded_us, "copies_us": copies_us}
    return report.PaddingDecision(
        verdict="padded" if choice.is_padded else "apart" if choice.is_apart else "kept",
        reason=choice.reason,
        message=message_of(choice.reason, told),
        product=choice.product,
        sizes=sizes,
        padded=padded,
        predicted_kept_us=kept_us,
        predicted_padded_us=padded_us,
        predicted_copies_us=copies_us,
        predicted_saved_us=None if choice.saved_us is None else round(choice.saved_us, 3),
        copies=[report.PaddingCopy(node=one.node, what=one.what, bytes=one.bytes) for one in choice.copies],
        lines=list(choice.lines),
    )
