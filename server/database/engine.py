"""Connections and transactions. One is a function of a connection, and is done as a whole.

With SQLite it is done in a thread: a thread for each statement would cost several times what the statements do. SQLite
has one writer at a time: within this process one thread does what writes, in order, and waits for the writers of other
processes in SQLite itself, for as long as `busy_seconds`. A writing transaction takes its lock when it begins, so what
it has read still holds when it writes. PostgreSQL needs none of that, and its driver is asynchronous.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATION_LOCK = 0x66757369
"""PostgreSQL's advisory lock that one web holds while it migrates: any number that nobody else here uses."""


LEAST_FREE_BYTES = 8 * 2**20
"""What the disk of a file of SQLite's must have left: a large report, and what is written beside it."""
_READERS = 4
"""Threads that read from SQLite."""
T = TypeVar("T")


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
    """One database, by SQLAlchemy's URL. We choose the driver, whichever it names."""

    def __init__(self, url: str, busy_seconds: float = 5.0) -> None:
        """Raises `DatabaseUnavailable` where the URL is none."""
        self.is_sqlite = url.startswith("sqlite")
        try:
            read = make_url(url)
        except (ArgumentError, ValueError):
            # What these say quotes the URL, which may hold a password.
            raise DatabaseUnavailable("its URL cannot be read, see the setting database in docs/settings.md") from None
        self._access = _SQLite(read, busy_seconds) if self.is_sqlite else _PostgreSQL(read, busy_seconds)
        self._wal: Path | None = None

    async def open(self) -> None:
        """Brings the schema up to date. Raises `DatabaseUnavailable`."""
        self._wal = await self.write(_upgrade)

    async def close(self) -> None:
        await self._access.close()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` finds, all of one moment. Raises `DatabaseUnavailable`."""
        with _telling():
            return await self._access.read(work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Does `work` in a transaction: committed when it returns, undone when it raises. Whoever goes away meanwhile
        does not stop it. Raises `DatabaseUnavailable`."""
        with _telling():
            return await self._access.write(work)

    async def flush(self) -> None:
        """Returns when all that was committed before would survive the loss of power. Raises `DatabaseUnavailable`."""
        if self._wal is not None:
            with _telling():
                await asyncio.to_thread(_flush, self._wal)

    async def check(self) -> None:
        """Raises `DatabaseUnavailable` where nothing can be written now, or hardly anything any more."""
        if self._wal is not None:
            left = await asyncio.to_thread(_free_bytes, self._wal.parent)
            if left < LEAST_FREE_BYTES:
                raise DatabaseUnavailable(f"its disk has {left // 2**20} MiB left")
        await self.write(lambda connection: connection.execute(_WRITES_NOTHING))


class _SQLite:
    def __init__(self, url: URL, busy_seconds: float) -> None:
        own = url.set(drivername="sqlite")
        self._engine = create_engine(own, connect_args={"timeout": busy_seconds}, hide_parameters=True)
        event.listen(self._engine, "connect", _prepare_sqlite)
        event.listen(self._engine, "begin", _begin_sqlite)
        self._writing = self._engine.execution_options(is_writing=True)
        self._readers = ThreadPoolExecutor(_READERS, "database")
        self._writer = ThreadPoolExecutor(1, "database-writer")
        #: Of the writing thread alone. To take one from the pool and to give it back costs as much as a statement.
        self._connection: Connection | None = None

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, _read, self._engine, work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._write, work)

    def _write(self, work: Callable[[Connection], T]) -> T:
        self._connection = self._connection or self._writing.connect()
        try:
            with self._connection.begin():
                return work(self._connection)
        except BaseException:
            self._let_go()
            raise

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, self._let_go)
        for threads in (self._writer, self._readers):
            await asyncio.to_thread(threads.shutdown)
        self._engine.dispose()


class _PostgreSQL:
    def __init__(self, url: URL, busy_seconds: float) -> None:
        self._engine = create_async_engine(
            url.set(drivername="postgresql+asyncpg"),
            pool_pre_ping=True,
            hide_parameters=True,  # they are snippets, and errors are logged
            pool_timeout=busy_seconds,
            connect_args={"timeout": busy_seconds, "command_timeout": max(30.0, busy_seconds)},
        )
        # What a reader puts together of several rows must be of one moment.
        self._reading = self._engine.execution_options(isolation_level="REPEATABLE READ")

    async def read(self, work: Callable[[Connection], T]) -> T:
        async with self._reading.connect() as connection:
            return await connection.run_sync(work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        async with self._engine.begin() as connection:
            return await connection.run_sync(work)

    async def close(self) -> None:
        await self._engine.dispose()


_WRITES_NOTHING = text("UPDATE clients SET served_at = served_at WHERE key = ''")


def _read(engine: Engine, work: Callable[[Connection], T]) -> T:
    with engine.connect() as connection:
        return work(connection)


def _free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _upgrade(connection: Connection) -> Path | None:
    """Where the database is a file of SQLite's, its write-ahead log."""
    if connection.dialect.name != "sqlite":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _MIGRATION_LOCK})
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as failure:
        raise DatabaseUnavailable(f"a later version of Fusionscope has changed it: {failure}") from failure
    if connection.dialect.name != "sqlite":
        return None
    file = connection.scalar(text("SELECT file FROM pragma_database_list WHERE name = 'main'"))
    return Path(f"{file}-wal")


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
