"""Operators of the first tables, and what holds for all tables. Test modules run in processes of their own, so that the
others have a module of theirs."""

from __future__ import annotations

import torch
from torch._ops import OpOverloadPacket

from compiler.lowering.decompositions import decompositions
from compiler.lowering.registry import LOWERINGS
from tests.lowering.everywhere import (  # noqa: F401
    calls_of,
    test_lowered_operator_equals_eager,
    test_operator_in_cpp_equals_eager,
    test_operator_in_triton_equals_eager,
)
from tests.lowering.tables import OF_NUMBERS, OPERATORS

calls = calls_of(OF_NUMBERS)


def test_names_of_rows_are_unique() -> None:
    names = [operator.name for operator in OPERATORS]
    assert len(set(names)) == len(names)
    assert torch.get_default_dtype() == torch.float32


#: Besides the special functions of `torch.special`; `equal` answers for whole tensors, so no graph holds it.
LEFT_TO_PYTORCH = {"equal", "frexp", "gcd", "i0", "igamma", "igammac", "lcm", "ldexp", "nextafter", "polygamma"}


def test_every_pointwise_operator_of_aten_but_rare_ones_becomes_loops() -> None:
    """By a lowering of ours, by a decomposition, or by one that ATen applies itself."""
    decomposed = decompositions()
    found = [getattr(torch.ops.aten, name) for name in dir(torch.ops.aten)]
    packets = [packet for packet in found if isinstance(packet, OpOverloadPacket)]
    overloads = [getattr(packet, name) for packet in packets for name in packet.overloads()]
    pointwise = [o for o in overloads if torch.Tag.pointwise in o.tags and not o._schema.is_mutable]
    missing = [o for o in pointwise if o not in LOWERINGS and o not in decomposed and not o._can_decompose()]
    assert len(pointwise) > 200
    names = {str(o.overloadpacket).removeprefix("aten.") for o in missing}
    assert {name for name in names if not name.startswith("special_")} <= LEFT_TO_PYTORCH
    assert all(hasattr(torch.special, name.removeprefix("special_")) for name in names - LEFT_TO_PYTORCH)
