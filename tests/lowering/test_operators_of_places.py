"""Operators of the tables in which places matter as much as numbers: views, lists, pools, scatters, scans, images."""

from __future__ import annotations

from tests.lowering.everywhere import (  # noqa: F401
    calls_of,
    test_lowered_operator_equals_eager,
    test_operator_in_cpp_equals_eager,
    test_operator_in_triton_equals_eager,
)
from tests.lowering.tables import OF_PLACES

calls = calls_of(OF_PLACES)
