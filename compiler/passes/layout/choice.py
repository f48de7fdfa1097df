"""The record of a layout decision, which holds for all convolutions of a region."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compiler.lowering.channels_last import Conversion

#: The reason of a region that is channels-last.
LAID_OUT = "layout.channels_last"
#: ... where the library rounds to TF32 only then, which a knob allows.
ROUNDED = "layout.rounded"
#: ... of a convolution that is a product of patches.
PRODUCT = "layout.patches"
#: ... of a depthwise convolution that is a loop.
LOOP = "layout.depthwise"


@dataclass(frozen=True)
class LayoutChoice:
    """One region of convolutions, by the names of their ATen nodes, and why its tensors lie as they do.

    `buffers` lie channels-last where eager's are contiguous, or would. The times are predictions of the region's calls
    and, where it moves, of its conversions, in microseconds; None where nothing was weighed. What is folded counts too:
    the filters where the region moves, and the passes that this spares where it is kept."""

    reason: str
    convolutions: tuple[str, ...]
    lines: tuple[int, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict, hash=False)
    buffers: tuple[str, ...] = ()
    #: Each copy with its bytes, read and written.
    conversions: tuple[tuple[Conversion, int], ...] = ()
    kept_us: float | None = None
    moved_us: float | None = None

    @property
    def is_moved(self) -> bool:
        return self.reason in (LAID_OUT, ROUNDED)
