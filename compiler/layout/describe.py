"""Decisions on convolutions, their layouts and what is folded into them, and on products that are padded."""

from __future__ import annotations

from typing import Any, Literal

from compiler import report
from compiler.capture.describe import shown_size
from compiler.folding.fold import Folding
from compiler.layout.choice import LAID_OUT, LOOP, PRODUCT, ROUNDED, LayoutChoice
from compiler.padding.choice import PaddingChoice
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
