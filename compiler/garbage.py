"""Python's search for cycles, held back."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from compiler.accelerators import is_on

#: Objects made within, by several compilations, after which the next begins with a search: the cycles among them are
#: some hundred megabytes at most. What a program makes that counts as old at once never brings Python to search it.
MOST_KEPT = 500_000

#: Python 3.12 begins with 375 objects that are frozen; who freezes what a program has at hand freezes many more.
FROZEN_BY_PYTHON = 1000

#: Objects that were made within since the last search from here.
_kept = 0
#: Somebody else has frozen objects, and so they are not ours to thaw. Kept, since to count them is to visit each: a
#: tenth of a second in a process that was forked from one that had frozen all that torch holds.
_is_frozen = False


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Within, Python does not look for cycles: a search goes through all that torch and Dynamo hold, many times in the
    compilation of a model, and finds nothing, as a compilation makes no cycles worth the name; and it would end up in
    samples of times.

    Afterwards what there is counts as old. Else the next thing that is made has Python go through all of it as new, and
    soon after, as so much is new, through all that the process has: a third of a second beside a model. That is made up
    for when a later one begins."""
    global _kept
    if not is_on("garbage_kept"):
        yield
        return
    was_enabled = gc.isenabled()
    if was_enabled and _kept > MOST_KEPT:
        gc.collect()
        _kept = 0
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not is_frozen_by_others():
                _kept += gc.get_count()[0]
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def is_frozen_by_others() -> bool:
    """Found out once. A process that has frozen what it has, and forks, finds it out for all that it forks."""
    global _is_frozen
    _is_frozen = _is_frozen or gc.get_freeze_count() > FROZEN_BY_PYTHON
    return _is_frozen
