"""The order of the tests, and how often Python looks for cycles meanwhile."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

# A search goes through all that torch, Dynamo and sympy hold, and finds next to nothing.
gc.set_threshold(20_000, 20, 20)

BROWSER = Path(__file__).parent / "browser"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright leaves its event loop running in the process, where no other loop then starts."""
    items.sort(key=lambda item: BROWSER in item.path.parents)
