"""Which descriptors a process keeps: those that it was given, by their numbers, and no other."""

from __future__ import annotations

import fcntl
import itertools
import os
import resource
from collections.abc import Mapping

_MOST_DESCRIPTORS = 1 << 20
"""As many as Linux lets a process open, where nobody has raised that."""


def keep_only(wanted: Mapping[int, int]) -> None:
    """Leaves the descriptors of `wanted` open, each under the number that is its key.

    Where 0, 1 or 2 are not among them they become /dev/null: a library that writes to them must not meet a file.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    sources = {number: nothing for number in range(3)} | dict(wanted)
    above = max(sources) + 1
    # All move out of the way first: a number that is wanted may be that of another's source.
    moved = {number: fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, above) for number, source in sources.items()}
    for number, source in moved.items():
        os.dup2(source, number, inheritable=number <= 2)
    highest = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    numbers = [*sorted(sources), highest if highest != resource.RLIM_INFINITY else _MOST_DESCRIPTORS]
    for number, following in itertools.pairwise(numbers):
        os.closerange(number + 1, following)
