"""Python's search for cycles, held back."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Within, Python does not look for cycles: a search goes through all that torch and Dynamo hold, many times in the
    compilation of a model, and finds nothing, as a compilation makes no cycles worth the name; and it would end up in
    samples of times."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
