"""Where the browser of the page's tests comes from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import chromium


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """A Chromium that starts; without one the test fails, with the remedy."""
    return chromium.find_chromium()
