"""Where the browser of the page's tests comes from."""

from __future__ import annotations

import chromium
import page as page_tools
import pytest


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """A Chromium that starts. Without one the test fails and says what to do: it is never skipped."""
    try:
        return chromium.find_chromium()
    except page_tools.SetupProblem as problem:
        pytest.fail(str(problem), pytrace=False)
