"""Connections and transactions.

SQLite has one writer at a time: within this process writers wait for each other here, in order, and for those of other
processes in SQLite itself, for as long as `busy_seconds`. A writing transaction takes its lock when it begins, so what
it has read still holds when it writes. PostgreSQL needs neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATION_LOCK = 0x66757369
"""PostgreSQL's advisory lock that one web holds while it migrates: any number that nobody else here uses."""


class DatabaseUnavailable(Exception):
    """The database is locked, gone or full: it may come back. The message says what it said, and names no snippet."""


_DEFECTS = (IntegrityError, ProgrammingError, DataError, NotSupportedError)
"""What a database that is there says of a statement that is wrong."""


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    """Turns what says that the database cannot be used now into `DatabaseUnavailable`."""
    try:
        yield
    except (DBAPIError, PoolTimeout, OSError) as failure:
        if isinstance(failure, _DEFECTS):
            raise
        raise DatabaseUnavailable(_told(failure)) from failure
    except Exception as failure:
        # What goes wrong while asyncpg connects comes as it is.
        if type(failure).__module__.partition(".")[0] != "asyncpg":
            raise
        raise DatabaseUnavailable(_told(failure)) from failure


def _told(failure: Exception) -> str:
    origin = getattr(failure, "orig", None) or failure
    said = str(origin).strip().splitlines() or [type(origin).__name__]
    return said[0][-200:]


class Database:
    """One database, by SQLAlchemy's URL of an async driver."""

    def __init__(self, url: str, busy_seconds: float = 5.0) -> None:
        self.is_sqlite = url.startswith("sqlite")
        if self.is_sqlite:
            self._engine = create_async_engine(url, connect_args={"timeout": busy_seconds}, hide_parameters=True)
            event.listen(self._engine.sync_engine, "connect", _prepare_sqlite)
            event.listen(self._engine.sync_engine, "begin", _begin_sqlite)
        else:
            self._engine = create_async_engine(
                url,
                pool_pre_ping=True,
                hide_parameters=True,  # they are snippets, and errors are logged
                pool_timeout=busy_seconds,
                connect_args={"timeout": busy_seconds, "command_timeout": max(30.0, busy_seconds)},
            )
        # What a reader puts together of several rows must be of one moment.
        self._reading = (
            self._engine if self.is_sqlite else self._engine.execution_options(isolation_level="REPEATABLE READ")
        )
        self._writing = self._engine.execution_options(is_writing=True)
        self._one_writer = asyncio.Lock()
        self._wal: Path | None = None

    async def open(self) -> None:
        """Brings the schema up to date. Raises `DatabaseUnavailable`."""
        async with self.write() as connection:
            if not self.is_sqlite:
                await connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _MIGRATION_LOCK})
            await connection.run_sync(_upgrade)
            if self.is_sqlite:
                files = await connection.execute(text("SELECT file FROM pragma_database_list WHERE name = 'main'"))
                self._wal = Path(f"{files.scalar_one()}-wal")

    async def close(self) -> None:
        await self._engine.dispose()

    @contextlib.asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Raises `DatabaseUnavailable`."""
        with _telling():
            async with self._reading.connect() as connection:
                yield connection

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """A transaction: committed when the block ends, undone when it raises. Raises `DatabaseUnavailable`."""
        with _telling():
            async with contextlib.AsyncExitStack() as stack:
                if self.is_sqlite:
                    await stack.enter_async_context(self._one_writer)
                yield await stack.enter_async_context(self._writing.begin())

    async def flush(self) -> None:
        """Returns when all that was committed before would survive the loss of power. Raises `DatabaseUnavailable`."""
        if self._wal is not None:
            with _telling():
                await asyncio.to_thread(_flush, self._wal)

    async def check(self) -> None:
        """Raises `DatabaseUnavailable` where nothing can be written now."""
        async with self.write() as connection:
            await connection.execute(text("UPDATE clients SET served_at = served_at WHERE key = ''"))


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _prepare_sqlite(connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
    # SQLAlchemy begins transactions by itself, see below: the driver must not.
    connection.isolation_level = None
    cursor = connection.cursor()
    for setting in ("auto_vacuum=INCREMENTAL", "journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _flush(wal: Path) -> None:
    """Makes what was written to a file safe, whoever wrote it. Where it is gone, the last connection was closed and has
    moved all that it held into the database."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(wal, os.O_RDONLY)
        try:
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)


def _begin_sqlite(connection: Connection) -> None:
    is_writing = connection.get_execution_options().get("is_writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")
