"""Waiting for a service that was started."""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 300


def wait_until_ready(url: str) -> None:
    """A service that does not start is a failure of its own, told apart from a page that does not work."""
    last: Exception | None = None
    for _ in range(START_SECONDS * 5):
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=30):
                return
        except OSError as error:
            last = error
            time.sleep(0.2)
    raise RuntimeError(f"the service is not ready after {START_SECONDS} s") from last
