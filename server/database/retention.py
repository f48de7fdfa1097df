"""What is removed: explorations beyond an age, the oldest while all take more than they may, and the parts, jobs and
clients that nothing refers to any more."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

import structlog
from sqlalchemy import Connection, Select, delete, func, select, text

from server.database.engine import Database, DatabaseUnavailable
from server.database.jobs import JobTable
from server.database.reports import Reports, remove_unreferred
from server.database.tables import contents, explorations, pieces
from server.settings import WebSettings
from server.supervised import Supervised

log = structlog.get_logger(__name__)

SWEEP_SECONDS = 300.0
JOB_SECONDS = 3600.0
"""How long an ended job is remembered; its report is another thing."""
_DAY_SECONDS = 86400.0
_BATCH = 100
_LOW = 0.9
"""Sweeping by size goes on until this share of the bound is taken, so that it does not begin again soon."""


class Retention:
    """The sweeper of one web. Several may sweep one database at a time."""

    def __init__(self, database: Database, table: JobTable, reports: Reports, settings: WebSettings) -> None:
        self._database = database
        self._table = table
        self._reports = reports
        self._settings = settings
        self._booted_at = time.time() - _lived_seconds()

    def start(self, tasks: Supervised) -> None:
        tasks.forever("sweeper", self._step, expected=(DatabaseUnavailable,))

    async def _step(self) -> None:
        await self.sweep()
        await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> int:
        """Removes what is to go; how many explorations that were."""
        removed = 0
        # A clock that was set forward makes nothing old.
        now = min(time.time(), self._booted_at + _lived_seconds())
        if self._settings.keep_days > 0:
            removed += await self._remove_older_than(now - self._settings.keep_days * _DAY_SECONDS)
        if self._settings.keep_mib > 0:
            removed += await self._remove_down_to(self._settings.keep_mib * 1024 * 1024)
        await self._table.remove_done(now - JOB_SECONDS)
        if removed:
            log.info("explorations_removed", number=removed)
        if removed and self._database.is_sqlite:
            await self._database.write(lambda connection: connection.execute(text("PRAGMA incremental_vacuum")))
        return removed

    async def _remove_older_than(self, moment: float) -> int:
        removed = 0
        oldest = select(explorations.c.id).where(explorations.c.finished_at < moment).limit(_BATCH)
        while (batch := await self._remove(oldest))[0]:
            removed += batch[0]
        return removed

    async def _remove_down_to(self, most_bytes: int) -> int:
        removed = 0
        # To add up what a full store has takes a second or two: once, and not after each batch.
        taken_bytes = await self._database.read(_taken_bytes)
        if taken_bytes <= most_bytes:
            return 0
        oldest = select(explorations.c.id).order_by(explorations.c.finished_at).limit(_BATCH // 10)
        while taken_bytes > most_bytes * _LOW:
            batch, freed_bytes = await self._remove(oldest)
            if batch == 0:
                break
            removed += batch
            taken_bytes -= freed_bytes
        return removed

    async def _remove(self, oldest: Select[Any]) -> tuple[int, int]:
        """How many explorations were removed, and the bytes that they took."""
        ids, freed_bytes = await self._database.write(partial(_remove, oldest=oldest))
        for id in ids:
            self._reports.forget(id)
        return len(ids), freed_bytes


def _lived_seconds() -> float:
    """Since the machine has started, its sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _taken_bytes(connection: Connection) -> int:
    own = connection.scalar(select(func.coalesce(func.sum(explorations.c.own_bytes), 0)))
    shared = connection.scalar(select(func.coalesce(func.sum(contents.c.bytes), 0)))
    return int(own or 0) + int(shared or 0)


def _remove(connection: Connection, oldest: Select[Any]) -> tuple[list[str], int]:
    """Removes these explorations and what nothing refers to then; gives their ids, and the bytes that all took."""
    ids = list(connection.scalars(oldest))
    referred = select(pieces.c.content).where(pieces.c.exploration.in_(ids), pieces.c.content.is_not(None))
    hashes = list(connection.scalars(referred.distinct()))
    connection.execute(delete(pieces).where(pieces.c.exploration.in_(ids)))
    removed = delete(explorations).where(explorations.c.id.in_(ids)).returning(explorations.c.own_bytes)
    freed_bytes = sum(connection.scalars(removed))
    return ids, freed_bytes + remove_unreferred(connection, hashes)
