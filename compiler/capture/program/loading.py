"""A `DataLoader` of a snippet loads in the snippet's own process.

Its worker processes hand their tensors over through sockets, which a confined snippet has none of: it would wait for
the first batch until its time is up. What is computed from a batch is the same.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from torch.utils.data import DataLoader

_OF_WORKERS = ("num_workers", "multiprocessing_context", "persistent_workers", "prefetch_factor", "timeout")


@contextlib.contextmanager
def loading_here(note: Callable[[str], None]) -> Iterator[None]:
    """Within the block loaders are made without worker processes, and `note` is told of those that wanted some."""
    usual = DataLoader.__init__

    @functools.wraps(usual)
    def make(*args: Any, **settings: Any) -> None:
        given = inspect.signature(usual).bind(*args, **settings)
        if given.arguments.get("num_workers"):
            note("A DataLoader has no worker processes here: it loaded its data in the snippet's own process.")
            for name in _OF_WORKERS:
                given.arguments.pop(name, None)
        usual(*given.args, **given.kwargs)

    with mock.patch.object(DataLoader, "__init__", make):
        yield
