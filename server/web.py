"""The program web, put together: from its settings to what routes ask for, and back down again in order."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from server.apart import close_all
from server.database.engine import Database
from server.database.jobs import JobTable
from server.database.reports import Reports
from server.database.retention import Retention
from server.dispatcher import MIB, Dispatcher
from server.executors.local import LocalExecutor
from server.executors.protocol import Executor
from server.executors.ray import RayExecutor
from server.explorations import Explorations
from server.local_worker import LocalWorker
from server.metrics import Metrics
from server.profiles import Profiles
from server.settings import Settings
from server.state import WebState
from server.supervised import Supervised
from server.watched import Watches
from server.wire.profile import build_id


@asynccontextmanager
async def running(settings: Settings, local_worker: LocalWorker | None) -> AsyncIterator[WebState]:
    """Web with its background tasks, and with a worker of its own where one is given, which ends with it.

    Raises `DatabaseUnavailable` and `WrongProfiles`.
    """
    async with AsyncExitStack() as stack:
        stack.callback(close_all)
        if local_worker is not None:
            stack.push_async_callback(local_worker.stop)
        profiles, build, tasks, metrics = Profiles.load(settings.profiles), build_id(), Supervised(), Metrics()
        database = Database(database_url(settings), settings.database_busy_seconds)
        stack.push_async_callback(database.close)
        await database.open()
        executor = _executor(settings, local_worker, build, profiles)
        stack.push_async_callback(executor.stop)
        table, watches = JobTable(database, _owner()), Watches()
        reports = Reports(database, settings.answers_mib * MIB)
        dispatcher = Dispatcher(settings, table, reports, executor, watches, metrics, build)
        stack.push_async_callback(dispatcher.stop)
        explorations = Explorations(settings, table, reports, watches, dispatcher, profiles, build, metrics)
        stack.push_async_callback(tasks.stop)
        if local_worker is not None:
            local_worker.start(tasks)
        await executor.start()
        dispatcher.start(tasks)
        Retention(database, table, reports, settings).start(tasks)
        metrics.queue_depth.set_function(lambda: dispatcher.waiting)
        yield WebState(
            explorations, database, executor, tasks, metrics, profiles, build, settings.warnings(), local_worker
        )


def database_url(settings: Settings) -> str:
    """The setting's, or that of a file in the data folder."""
    if settings.database is not None:
        return settings.database.get_secret_value()
    return f"sqlite:///{settings.data_folder() / 'explorations.sqlite3'}"


def _executor(settings: Settings, local_worker: LocalWorker | None, build: str, profiles: Profiles) -> Executor:
    most_payload_bytes = settings.report_mib * MIB
    if settings.executor == "ray":
        return RayExecutor(settings.ray_address, settings.ray_token, build, profiles.declared, most_payload_bytes)
    own = [] if local_worker is None else [local_worker.socket]
    sockets = [*(Path(path) for path in settings.workers), *own]
    return LocalExecutor(sockets, build, profiles.declared, most_payload_bytes, own)


def _owner() -> str:
    """A name of this web among those that share its database, never used again."""
    return f"{socket.gethostname()[:30]}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
