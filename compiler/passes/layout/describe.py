"""Decisions on convolutions as a report shows them: their layouts, and what is folded into them."""

from __future__ import annotations

from typing import Any, Literal

from compiler import report
from compiler.passes.folding.fold import Folding
from compiler.passes.layout.choice import LAID_OUT, LOOP, PRODUCT, ROUNDED, LayoutChoice
from compiler.schedule.records.reasons import message_of

VERDICTS: dict[str, Literal["channels_last", "loop", "product"]] = {
    LAID_OUT: "channels_last",
    ROUNDED: "channels_last",
    PRODUCT: "product",
    LOOP: "loop",
}


def describe_layout(choice: LayoutChoice) -> report.LayoutDecision:
    told: dict[str, Any] = {
        name: value if name.endswith("_error") else round(value, 3) if isinstance(value, float) else value
        for name, value in choice.numbers.items()
    }
    return report.LayoutDecision(
        verdict=VERDICTS.get(choice.reason, "kept"),
        reason=choice.reason,
        message=message_of(choice.reason, choice.numbers),
        convolutions=list(choice.convolutions),
        numbers=told,
        predicted_kept_us=told.get("kept_us"),
        predicted_moved_us=told.get("moved_us"),
        buffers=list(choice.buffers),
        conversions=[
            report.LayoutConversion(
                buffer=conversion.name,
                source=conversion.source,
                what=conversion.what,
                reader=conversion.reader,
                bytes=size,
            )
            for conversion, size in choice.conversions
        ],
        lines=list(choice.lines),
    )


def describe_folding(folding: Folding) -> report.FoldingDecision:
    figures = {"saved_us": folding.saved_us, "filter_us": folding.filter_us}
    return report.FoldingDecision(
        verdict="folded" if folding.is_folded else "kept",
        reason=folding.reason,
        message=message_of(folding.reason, figures),
        nodes=list(folding.nodes),
        predicted_saved_us=round(folding.saved_us, 3),
        predicted_filter_us=round(folding.filter_us, 3),
        lines=list(folding.lines),
    )
