"""Finished explorations. A report is written once, in the transaction that ends its job, and read as it was written."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property, partial

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, Table, delete, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from compiler.report import REPORT_VERSION
from server.database.compressed import Body, as_gzip, inflated
from server.database.engine import Database
from server.database.tables import contents, explorations, pieces
from server.readings import Unread

REUSABLE = frozenset({"ok", "wrong_result", "user_error"})
"""Statuses that the same snippet would reach again."""

MOST_CHILDREN = 50
KEPT_BYTES = 1024 * 1024
"""Up to this length a body is kept as it is too, once it was read so; a longer one is inflated for each reader."""
_DELETED_AT_ONCE = 100


class Child(BaseModel):
    """An exploration that is based on another one."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"id": "3210fedcba9876543210", "status": "ok", "asked": "largest group 2"}}
    )

    id: str = Field(description="Its id.")
    status: str = Field(description="Its status.")
    asked: str = Field(description="What it asks to be different, in words.")


@dataclass(frozen=True)
class Finished:
    """A report that is to be stored. `last_event` is the number of the event that will tell of the end."""

    id: str
    attempt: int
    status: str
    is_reusable: bool
    build: str
    based_on: str | None
    asked: str
    last_event: int
    body: Body


@dataclass(frozen=True)
class Stored:
    """A report as it was stored, and its body as a gzip file, byte for byte the same for every reader."""

    id: str
    attempt: int
    status: str
    is_reusable: bool
    report_version: int
    build: str
    based_on: str | None
    last_event: int
    tag: str
    length: int
    gzipped: bytes

    @cached_property
    def body(self) -> bytes:
        return inflated(self.gzipped)

    @property
    def held_bytes(self) -> int:
        """What it takes in memory once somebody has asked for it as it is, not compressed."""
        return len(self.gzipped) + (self.length if self.length <= KEPT_BYTES else 0)

    @property
    def unread(self) -> Unread:
        return Unread(self.id, self.report_version, self.length, self.gzipped, is_gzipped=True)


class Reports:
    """Stored reports by their ids. Those that cannot change are kept in memory, up to `cache_bytes` of them."""

    def __init__(self, database: Database, cache_bytes: int) -> None:
        self._database = database
        self._cache_bytes = cache_bytes
        self._cached: OrderedDict[str, Stored] = OrderedDict()
        self._held_bytes = 0
        self._forgotten = 0

    def cached(self, id: str) -> Stored | None:
        """The report where it is in memory: no other one is the answer then."""
        found = self._cached.get(id)
        if found is not None:
            self._cached.move_to_end(id)
        return found

    async def get(self, id: str) -> Stored | None:
        found = self.cached(id)
        if found is not None:
            return found
        forgotten = self._forgotten
        found = await self._database.read(partial(read, id=id))
        if found is not None and found.is_reusable and forgotten == self._forgotten:
            # Otherwise another report may be on its way since we have looked.
            self.remember(found)
        return found

    def remember(self, stored: Stored) -> None:
        """Keeps it in memory."""
        self.forget(stored.id)
        if stored.held_bytes > self._cache_bytes // 4:
            return
        self._cached[stored.id] = stored
        self._held_bytes += stored.held_bytes
        while self._held_bytes > self._cache_bytes:
            self.forget(next(iter(self._cached)))

    def forget(self, id: str) -> None:
        """To be called where the report of `id` may become another one."""
        self._forgotten += 1
        found = self._cached.pop(id, None)
        self._held_bytes -= found.held_bytes if found is not None else 0

    async def children(self, id: str) -> list[Child]:
        """The explorations based on this one, the newest first: one more than `MOST_CHILDREN` where there are more."""
        of_it = select(explorations).where(explorations.c.based_on == id)
        newest = of_it.order_by(explorations.c.finished_at.desc()).limit(MOST_CHILDREN + 1)
        rows = await self._database.read(lambda connection: connection.execute(newest).all())
        return [Child(id=row.id, status=row.status, asked=row.asked) for row in rows]

    async def count(self) -> int:
        count = select(func.count()).select_from(explorations)
        return await self._database.read(lambda connection: connection.scalar(count)) or 0


def read(connection: Connection, id: str) -> Stored | None:
    """The report of `id` with its pieces put together."""
    if "\0" in id:  # PostgreSQL takes no such text, not even to look for it
        return None
    row = connection.execute(select(explorations).where(explorations.c.id == id)).one_or_none()
    if row is None:
        return None
    joined = pieces.outerjoin(contents, pieces.c.content == contents.c.hash)
    found = connection.execute(
        select(func.coalesce(pieces.c.inline, contents.c.piece))
        .select_from(joined)
        .where(pieces.c.exploration == id)
        .order_by(pieces.c.place)
    )
    return Stored(
        id=row.id,
        attempt=row.attempt,
        status=row.status,
        is_reusable=row.is_reusable,
        report_version=row.report_version,
        build=row.build,
        based_on=row.based_on,
        last_event=row.last_event,
        tag=row.tag,
        length=row.body_bytes,
        gzipped=as_gzip(found.scalars(), row.checksum, row.body_bytes),
    )


def write(connection: Connection, finished: Finished) -> Stored:
    """Puts a report in place of the one of an earlier attempt, within the caller's transaction."""
    body = finished.body
    of_earlier = select(pieces.c.content).where(pieces.c.exploration == finished.id, pieces.c.content.is_not(None))
    earlier = list(connection.scalars(of_earlier))
    connection.execute(delete(pieces).where(pieces.c.exploration == finished.id))
    connection.execute(delete(explorations).where(explorations.c.id == finished.id))
    own_bytes = sum(len(piece.data) for piece in body.pieces if piece.content is None)
    connection.execute(
        insert(explorations).values(
            id=finished.id,
            attempt=finished.attempt,
            status=finished.status,
            is_reusable=finished.is_reusable,
            report_version=REPORT_VERSION,
            build=finished.build,
            based_on=finished.based_on,
            # The snippet's word. PostgreSQL keeps no text with a NUL.
            asked=finished.asked.replace("\0", "\N{REPLACEMENT CHARACTER}"),
            finished_at=time.time(),
            last_event=finished.last_event,
            tag=body.tag,
            body_bytes=body.length,
            checksum=body.checksum,
            own_bytes=own_bytes,
        )
    )
    shared = {piece.content: piece.data for piece in body.pieces if piece.content is not None}
    if shared:
        rows = [{"hash": content, "piece": data, "bytes": len(data)} for content, data in sorted(shared.items())]
        connection.execute(upserting(connection.dialect.name, contents).on_conflict_do_nothing(), rows)
    rows = [
        {
            "exploration": finished.id,
            "place": place,
            "content": piece.content,
            "inline": None if piece.content is not None else piece.data,
        }
        for place, piece in enumerate(body.pieces)
    ]
    connection.execute(insert(pieces), rows)
    remove_unreferred(connection, earlier)
    return Stored(
        id=finished.id,
        attempt=finished.attempt,
        status=finished.status,
        is_reusable=finished.is_reusable,
        report_version=REPORT_VERSION,
        build=finished.build,
        based_on=finished.based_on,
        last_event=finished.last_event,
        tag=body.tag,
        length=body.length,
        gzipped=as_gzip((piece.data for piece in body.pieces), body.checksum, body.length),
    )


def upserting(dialect: str, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that can say what becomes of a conflict: both databases spell it alike, SQLAlchemy apart."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def remove_unreferred(connection: Connection, hashes: list[bytes]) -> int:
    """Removes those contents that no report has any more; how many bytes these took."""
    freed = 0
    for first in range(0, len(hashes), _DELETED_AT_ONCE):
        is_referred = select(pieces.c.place).where(pieces.c.content == contents.c.hash).exists()
        batch = hashes[first : first + _DELETED_AT_ONCE]
        unreferred = delete(contents).where(contents.c.hash.in_(batch), ~is_referred)
        freed += sum(connection.scalars(unreferred.returning(contents.c.bytes)))
    return freed
