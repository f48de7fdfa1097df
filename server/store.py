"""Reports on disk: one table, one row an exploration, the report as compressed JSON.

SQLite by default; any database that SQLAlchemy can reach without blocking works by its URL. Reports that say
something about a moment rather than about the snippet (a timeout, a crash, a cancellation) are kept under their id
but marked as not reusable, so that asking again runs again.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import BaseModel
from sqlalchemy import DateTime, LargeBinary, String, delete, event, func, select
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import ConnectionPoolEntry

from compiler.report import Report

REUSABLE = frozenset({"ok", "wrong_result", "user_error"})
"""Statuses that the same snippet would reach again."""


MOST_CHILDREN = 50


class Base(DeclarativeBase):
    pass


class StoredExploration(Base):
    """A finished exploration; `report` is its JSON, compressed by zlib."""

    __tablename__ = "explorations"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    status: Mapped[str] = mapped_column(String(20))
    finished_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    report: Mapped[bytes] = mapped_column(LargeBinary)


class StoredLink(Base):
    """That one exploration is based on another one. A table of its own: it is added to stores that had none."""

    __tablename__ = "exploration_links"

    child: Mapped[str] = mapped_column(String(40), primary_key=True)
    parent: Mapped[str] = mapped_column(String(40), index=True)
    status: Mapped[str] = mapped_column(String(20))
    asked: Mapped[str] = mapped_column(String(400))
    finished_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class Child(BaseModel):
    """An exploration that is based on another one; `asked` says in words what it asks to be different."""

    id: str
    status: str
    asked: str


@dataclass(frozen=True)
class Stored:
    """A report as it was stored: its JSON, byte for byte the same for every reader."""

    id: str
    status: str
    body: bytes

    @property
    def is_reusable(self) -> bool:
        return self.status in REUSABLE

    def report(self) -> Report:
        return Report.model_validate_json(self.body)


class Store:
    """Reports by their ids, and which exploration is based on which; `url` is SQLAlchemy's of an async database."""

    def __init__(self, url: str) -> None:
        self._engine = create_async_engine(url)
        if self._engine.dialect.name == "sqlite":
            event.listen(self._engine.sync_engine, "connect", _tune_sqlite)
        self._session = async_sessionmaker(self._engine, expire_on_commit=False)

    async def open(self) -> None:
        """Makes the table when missing."""
        async with self._engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)

    async def close(self) -> None:
        await self._engine.dispose()

    async def get(self, id: str) -> Stored | None:
        async with self._session() as session:
            row = await session.get(StoredExploration, id)
            return None if row is None else Stored(row.id, row.status, zlib.decompress(row.report))

    async def put(self, report: Report) -> Stored:
        """Stores `report` under its id, in place of an earlier one."""
        body = report.model_dump_json().encode()
        row = StoredExploration(
            id=report.id, status=report.status, finished_at=datetime.now(UTC), report=zlib.compress(body, 6)
        )
        async with self._session.begin() as session:
            await session.merge(row)
            if report.based_on is not None:
                await session.merge(_link(report, report.based_on, row.finished_at))
        return Stored(report.id, report.status, body)

    async def children(self, id: str) -> list[Child]:
        """The explorations based on this one, the newest first, at most 50."""
        newest = select(StoredLink).where(StoredLink.parent == id).order_by(StoredLink.finished_at.desc())
        async with self._session() as session:
            rows = await session.scalars(newest.limit(MOST_CHILDREN))
            return [Child(id=row.child, status=row.status, asked=row.asked) for row in rows]

    async def remove(self, id: str) -> None:
        async with self._session.begin() as session:
            await session.execute(delete(StoredLink).where(StoredLink.child == id))
            await session.execute(delete(StoredExploration).where(StoredExploration.id == id))

    async def count(self) -> int:
        async with AsyncSession(self._engine) as session:
            return await session.scalar(select(func.count()).select_from(StoredExploration)) or 0


def _link(report: Report, parent: str, finished_at: datetime) -> StoredLink:
    asked = "; ".join(f"{told.option.replace('_', ' ')} {', '.join(told.asked)}" for told in report.what_if)
    return StoredLink(child=report.id, parent=parent, status=report.status, asked=asked[:400], finished_at=finished_at)


def _tune_sqlite(connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
    """Readers do not wait for the writer, and a writer waits for another one instead of failing."""
    cursor = connection.cursor()
    for setting in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=5000"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()
