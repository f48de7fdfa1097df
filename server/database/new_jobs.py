"""Writing a new job down: what is asked for, whether there is room for it, and the row that it becomes.

All of it stands between a request and the first line of its snippet. So its statements are made once: to make one takes
longer than to execute it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sqlalchemy import BindParameter, ColumnElement, Connection, Row, and_, bindparam, func, select
from sqlalchemy.dialects.postgresql import Insert as PostgreSQLInsert
from sqlalchemy.dialects.sqlite import Insert as SQLiteInsert
from sqlalchemy.sql.dml import ReturningInsert

from compiler.options import Options
from server.database.reports import upserting
from server.database.tables import clients, explorations, jobs
from server.wire.messages import WorkerIdentity


class QueueFull(Exception):
    """As many explorations wait as may: in all ("all"), or of this client ("own"), or as many of this client's wait and
    run as may ("running"). `number` is how many do, and `seconds` says when to ask again."""

    def __init__(self, of: Literal["all", "own", "running"], number: int, seconds: float) -> None:
        super().__init__(f"As many explorations as may wait: {number}.")
        self.of, self.number, self.seconds = of, number, seconds


@dataclass(frozen=True)
class Wanted:
    """An exploration that is asked for."""

    id: str
    client: str
    source: str
    options: Options
    based_on: str | None
    profile: WorkerIdentity
    build: str


@dataclass(frozen=True)
class Limits:
    """How many may wait, in all and of one client, and how many of this client may wait and run."""

    waiting: int
    of_one_client: int
    at_once: int | None = None


@dataclass(frozen=True)
class Room:
    """How many jobs wait, how many of this client do, how many of this client wait or run, and how many would be taken
    before a new one of its device and build."""

    waiting: int
    of_client: int
    at_once: int
    before_it: int

    def check(self, limits: Limits, seconds_a_job: float) -> None:
        """Raises `QueueFull`. What waits will have been taken, one of it, after the time of a job."""
        seconds = max(1.0, seconds_a_job)
        if self.waiting >= limits.waiting:
            raise QueueFull("all", self.waiting, seconds)
        if self.of_client >= limits.of_one_client:
            raise QueueFull("own", self.of_client, seconds)
        if limits.at_once is not None and self.at_once >= limits.at_once:
            raise QueueFull("running", self.at_once, seconds)


def can_be_taken(is_of_profile: ColumnElement[bool], build: str | BindParameter[str]) -> ColumnElement[bool]:
    """What waits, and a worker of such a profile can run."""
    return and_(jobs.c.state == "queued", jobs.c.is_cancelled.is_(False), is_of_profile, jobs.c.build == build)


_IS_OWN, _IS_WAITING = jobs.c.client == bindparam("of_client"), jobs.c.state == "queued"
_COMPETES = and_(
    can_be_taken(jobs.c.profile == bindparam("of_profile"), bindparam("of_build")), jobs.c.id != bindparam("but_for")
)
_ROOM = select(
    func.count().filter(_IS_WAITING),
    func.count().filter(_IS_WAITING, _IS_OWN),
    func.count().filter(_IS_OWN),
    func.count().filter(_COMPETES),
).where(jobs.c.state != "done")


@cache
def _new_job(dialect: str) -> ReturningInsert[Any]:
    """Writes a job down where none of its id waits or runs."""
    earlier = select(explorations.c.attempt).where(explorations.c.id == bindparam("of_exploration")).scalar_subquery()
    new = upserting(dialect, jobs).values(attempt=func.coalesce(earlier, 0) + 1)
    replaced = {column.name: new.excluded[column.name] for column in jobs.c if column.name != "id"}
    return new.on_conflict_do_update(
        index_elements=[jobs.c.id],
        set_={**replaced, "attempt": jobs.c.attempt + 1},
        where=jobs.c.state == "done",
    ).returning(*jobs.c)


@cache
def _served_client(dialect: str) -> SQLiteInsert | PostgreSQLInsert:
    served = upserting(dialect, clients)
    return served.on_conflict_do_update(index_elements=[clients.c.key], set_={"served_at": served.excluded.served_at})


@cache
def _known_client(dialect: str) -> SQLiteInsert | PostgreSQLInsert:
    return upserting(dialect, clients).on_conflict_do_nothing()


def room_beside(connection: Connection, wanted: Wanted) -> Room:
    """How many there are beside the new one."""
    profile = wanted.profile.model_dump_json()
    of = {"of_client": wanted.client, "of_profile": profile, "of_build": wanted.build, "but_for": wanted.id}
    return Room(*map(int, connection.execute(_ROOM, of).one()))


def insert_job(connection: Connection, wanted: Wanted, owner: str, lease_seconds: float | None) -> Row[Any] | None:
    """The row of a new job, of `owner` where it is leased; None where one waits or runs."""
    now = time.time()
    values: dict[str, Any] = {
        "id": wanted.id,
        "of_exploration": wanted.id,
        "state": "queued" if lease_seconds is None else "leased",
        "tries": 1,
        "client": wanted.client,
        "source": wanted.source,
        "options": wanted.options.model_dump_json(),
        "based_on": wanted.based_on,
        "profile": wanted.profile.model_dump_json(),
        "build": wanted.build,
        "queued_at": now,
        "wanted_at": now,
        "owner": None if lease_seconds is None else owner,
        "lease_until": None if lease_seconds is None else now + lease_seconds,
        "deadline": None,
        "started_at": None,
        "wall_seconds": None,
        "is_cancelled": False,
        "finished_at": None,
    }
    return connection.execute(_new_job(connection.dialect.name), values).one_or_none()


def note_client(connection: Connection, key: str, served_at: float | None) -> None:
    """Whose job was taken then, or, where that is None, who is known from now on."""
    statement = _known_client if served_at is None else _served_client
    connection.execute(statement(connection.dialect.name), {"key": key, "served_at": served_at or 0.0})
