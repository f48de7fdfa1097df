"""Databases to test with: SQLite always, PostgreSQL where there is one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import Connection, text

from server.database.engine import Database
from tests.server.database import servers


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server. Where none is installed, tests with one are skipped, and say so."""
    named = os.environ.get(servers.VARIABLE)
    if named:
        yield named
    elif servers.programs() is None:
        pytest.skip(f"PostgreSQL is not installed and {servers.VARIABLE} names no server")
    else:
        with servers.server() as running:
            yield running.url


@pytest_asyncio.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """An empty database with the newest schema."""
    if request.param == "sqlite":
        opened = Database(f"sqlite:///{tmp_path / 'test.sqlite3'}")
    else:
        opened = Database(request.getfixturevalue("postgres_url"))
        for statement in ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public"):
            await opened.write(partial(Connection.execute, statement=text(statement)))
    await opened.open()
    yield opened
    await opened.close()
