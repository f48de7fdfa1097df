"""The record of a layout decision, which holds for all convolutions of a region, and how a report tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compiler import report
from compiler.decisions import Decision
from compiler.lowering.channels_last import Conversion

#: The verdict on a region that moves.
MOVED = "channels_last"


@dataclass(frozen=True)
class LayoutChoice(Decision):
    """One region of convolutions, which are its nodes, and why its tensors lie as they do.

    `buffers` lie channels-last where eager's are contiguous, or would. The numbers `kept_us` and `moved_us` are
    predictions of the region's calls and, where it moves, of its conversions; there are none where nothing was weighed.
    What is folded counts too: the filters where the region moves, and the passes that this spares where it is kept."""

    buffers: tuple[str, ...] = ()
    #: Each copy with its bytes, read and written.
    conversions: tuple[tuple[Conversion, int], ...] = ()


def describe_layout(choice: LayoutChoice) -> report.LayoutDecision:
    numbers: dict[str, Any] = {
        name: value if name.endswith("_error") else round(value, 3) if isinstance(value, float) else value
        for name, value in choice.numbers.items()
    }
    return report.LayoutDecision(
        **choice.told(),
        convolutions=list(choice.nodes),
        numbers=numbers,
        predicted_kept_us=numbers.get("kept_us"),
        predicted_moved_us=numbers.get("moved_us"),
        buffers=list(choice.buffers),
        conversions=[
            report.LayoutConversion(buffer=one.name, source=one.source, what=one.what, reader=one.reader, bytes=size)
            for one, size in choice.conversions
        ],
    )
