"""The parts of a running web that routes ask for, in one place."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from server.database.engine import Database, DatabaseUnavailable
from server.executors.protocol import Executor
from server.explorations import Explorations
from server.local_worker import LocalWorker
from server.metrics import Metrics
from server.profiles import Profiles
from server.supervised import Supervised

_CHECK_AGAIN_SECONDS = 1.0


@dataclass
class WebState:
    """What `app.state.web` holds while the application runs."""

    explorations: Explorations
    database: Database
    executor: Executor
    tasks: Supervised
    metrics: Metrics
    profiles: Profiles
    build: str
    warnings: list[str]
    local_worker: LocalWorker | None = None
    _checked_at: float = -_CHECK_AGAIN_SECONDS
    _database_problem: str | None = None
    _one_check: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def database_problem(self) -> str | None:
        """Why the database cannot be written now, or None. Asked at most once a second, however many want to know."""
        async with self._one_check:
            if time.monotonic() - self._checked_at >= _CHECK_AGAIN_SECONDS:
                try:
                    await self.database.check()
                    self._database_problem = None
                except DatabaseUnavailable as failure:
                    self._database_problem = str(failure)
                self._checked_at = time.monotonic()
        return self._database_problem

    def worker_problem(self) -> str:
        """Why no worker is ready, as a clause."""
        own = self.local_worker.problem if self.local_worker is not None else None
        problems = [own] if own else [device.problem or "starting" for device in self.executor.devices()]
        return "; ".join(problems) or "none is set up: see the setting `workers`"
