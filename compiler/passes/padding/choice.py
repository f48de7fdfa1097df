"""What was decided of a matrix product that tensor cores cannot take eight elements at a time, as a record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from compiler import report
from compiler.decisions import Decision
from compiler.fx.fake_values import shown_size

#: The name of this pass in the knob `disable`.
KNOB = "padding"

#: What may have to be copied: an operand, what is added to the product, or the product itself.
Part = Literal["left", "right", "bias", "result"]


@dataclass(frozen=True)
class Copied:
    """A matrix that padding copies, with the bytes read and written. Its node is known when the graph is compiled."""

    what: Part
    bytes: int
    node: str = ""


@dataclass(frozen=True)
class PaddingChoice(Decision):
    """One product of rows x inner by inner x columns, and why it is computed at the sizes that it is.

    The numbers `kept_us`, `padded_us` and `copies_us` are predictions: of the call as it is, of the padded one (or of
    those of rows that lie apart), and of all that is copied for it. There are none where nothing was weighed, as sizes
    are open. Node and lines are known when the graph is compiled."""

    sizes: tuple[Any, ...] = ()
    padded: tuple[Any, ...] = ()
    copies: tuple[Copied, ...] = ()

    @property
    def saved_us(self) -> float | None:
        """What padding saves, or would, less what it copies."""
        told = self.numbers
        return told["kept_us"] - told["padded_us"] - told["copies_us"] if told else None


def describe_padding(choice: PaddingChoice) -> report.PaddingDecision:
    sizes, padded = ([shown_size(size) for size in sizes] for sizes in (choice.sizes, choice.padded))
    times = {name: round(us, 3) for name, us in choice.numbers.items()}
    shown = {"sizes": " x ".join(map(str, sizes)), "padded": " x ".join(map(str, padded)), "knob": KNOB}
    return report.PaddingDecision(
        **replace(choice, numbers={**times, **shown}).told(),
        product=choice.nodes[0],
        sizes=sizes,
        padded=padded,
        predicted_kept_us=times.get("kept_us"),
        predicted_padded_us=times.get("padded_us"),
        predicted_copies_us=times.get("copies_us"),
        predicted_saved_us=None if choice.saved_us is None else round(choice.saved_us, 3),
        copies=[report.PaddingCopy(node=one.node, what=one.what, bytes=one.bytes) for one in choice.copies],
    )
