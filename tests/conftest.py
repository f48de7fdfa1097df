"""The order of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

BROWSER = Path(__file__).parent / "browser"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright leaves its event loop running in the process, where no other loop then starts."""
    items.sort(key=lambda item: BROWSER in item.path.parents)
