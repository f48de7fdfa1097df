"""One worker with small programs for all tests of a module, and a web of each test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.worker.harness import Web, WorkerProcess, worker_process


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    with worker_process(slots=2, spares=2, memory_gib=1, disk_mib=64, open_files=256, processes=128) as running:
        yield running


@pytest_asyncio.fixture
async def web(worker: WorkerProcess) -> AsyncIterator[Web]:
    async with worker.web() as connected:
        yield connected


@pytest.fixture
def marker(tmp_path: Path) -> str:
    """A text that no other process carries in its command line."""
    return f"marker-{tmp_path.name}-{id(tmp_path)}"
