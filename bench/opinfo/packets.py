"""How many of the ATen operators that TorchInductor lowers itself do we lower?

TorchInductor's own are the operators of its table of lowerings that are no fallbacks in it. One of them counts as
lowered by us if a sample reached it, and whatever it became held no call of PyTorch's own for want of a lowering
(an `ExternNode` that `is_fallback`), in any dtype of the sweep. Matrix products, convolutions, attention, sorting and
top-k are library calls there as here and no fallbacks, and complex numbers are left to PyTorch there as here. An
operator is met where it stands in an ATen graph, before or after decomposition. A variant in place (`add_`) is met with
the one that it is turned into: a functional graph has no other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload


@dataclass
class Met:
    """The ATen operators that samples reached, and why those that fell back did."""

    names: set[str] = field(default_factory=set)
    reasons: defaultdict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, packets: dict[str, str | None], dtype: str) -> None:
        for name, reason in packets.items():
            self.names.add(name)
            if reason is not None:
                self.reasons[name].setdefault(dtype, reason)


@cache
def lowered_by_inductor() -> frozenset[str]:
    """Names of the ATen operators, all overloads as one, that TorchInductor has a lowering of its own for."""
    from torch._inductor import lowering

    return frozenset(
        target.overloadpacket.__name__
        for target in lowering.lowerings
        if isinstance(target, OpOverload) and target.namespace == "aten" and target not in lowering.fallbacks
    )


def functional(name: str) -> str:
    """`add_` -> `add`, `__iand__` -> `__and__`."""
    if name.startswith("__i") and name.endswith("__"):
        return f"__{name[3:]}"
    if name.endswith("_") and not name.endswith("__") and hasattr(torch.ops.aten, name[:-1]):
        return name[:-1]
    return name


def packets_report(met: Met) -> dict[str, Any]:
    """Which of TorchInductor's are lowered, which fall back and why, and which no sample reached."""
    wanted = sorted(lowered_by_inductor())
    reached = {name: functional(name) for name in wanted if functional(name) in met.names or name in met.names}
    falls_back = {
        name: next(iter(reasons.values()))
        for name, own in reached.items()
        if (reasons := {**met.reasons.get(name, {}), **met.reasons.get(own, {})})
    }
    lowered = [name for name in reached if name not in falls_back]
    return {
        "of_inductor": len(wanted),
        "lowered": len(lowered),
        "share": len(lowered) / len(wanted),
        "falls_back": falls_back,
        "not_reached": [name for name in wanted if name not in reached],
    }
