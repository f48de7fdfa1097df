"""The durable queue. Every change is one transaction, guarded by the state and the attempt that it starts from, so any
number of webs may share the table: what one has taken or ended, another finds taken or ended.

    queued  --lease-->  leased  --finish-->  done
       ^                  |
       +--- expired, or given back

The next job is of the client whose turn it is: of those who have one waiting, the one who was served the longest ago.
A job that a free slot is kept for, and before which none waits that could take that slot, is written down as leased.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Update,
    and_,
    delete,
    func,
    or_,
    select,
    tuple_,
    update,
)

from compiler.options import Options
from server.database import reports
from server.database.engine import Database
from server.database.new_jobs import Limits, Wanted, can_be_taken, insert_job, note_client, room_beside
from server.database.reports import Finished, Stored
from server.database.tables import clients, jobs
from server.wire.messages import WorkerIdentity

State = Literal["queued", "leased", "done"]


@dataclass(frozen=True)
class Job:
    """A row of the table."""

    id: str
    state: State
    attempt: int
    tries: int
    client: str
    source: str
    options: Options
    based_on: str | None
    profile: WorkerIdentity
    build: str
    queued_at: float
    owner: str | None
    lease_until: float | None
    deadline: float | None
    started_at: float | None
    wall_seconds: float | None
    is_cancelled: bool

    @property
    def name(self) -> str:
        """What the worker knows this attempt by."""
        return f"{self.id}.{self.attempt}"

    @property
    def uses_gpu(self) -> bool:
        return self.profile.device == "cuda" and self.options.device != "cpu"


@dataclass(frozen=True)
class Enqueued:
    """A job that waits or runs. `before` is how many wait before it; None where it was there already."""

    job: Job
    before: int | None


class JobTable:
    """The jobs of one database, as one web, `owner`, sees and changes them."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self.owner = owner

    async def enqueue(
        self,
        wanted: Wanted,
        limits: Limits,
        seconds_a_job: float,
        is_refresh: bool,
        lease_seconds: float | None = None,
        admit: Callable[[], None] = lambda: None,
    ) -> Stored | Enqueued:
        """Writes the job down, or finds that there is one already, or its report. Committed when it returns; `flush`
        says when it would survive the loss of power too.

        `lease_seconds` are given where a slot is kept for the job: it is leased at once if it is the next one. `admit`
        is called before a new job is made, and may raise. Raises `QueueFull`.
        """

        def work(connection: Connection) -> Stored | Enqueued:
            room = room_beside(connection, wanted)
            is_next = lease_seconds is not None and room.before_it == 0
            row = insert_job(connection, wanted, self.owner, lease_seconds if is_next else None)
            if row is None:
                return Enqueued(_job(connection, wanted.id), None)
            if row.attempt > 1 and not is_refresh:
                # Only now: with the row in our hands nobody else can store a report of it meanwhile.
                stored = reports.read(connection, wanted.id)
                if stored is not None and stored.is_reusable:
                    connection.rollback()
                    return stored
            room.check(limits, seconds_a_job)
            admit()
            note_client(connection, wanted.client, row.queued_at if is_next else None)
            return Enqueued(_of(row, wanted.options, wanted.profile), 0 if is_next else room.waiting)

        return await self._database.write(work)

    async def flush(self) -> None:
        """Returns when all that was committed before this was called would survive the loss of power."""
        await self._database.flush()

    async def get(self, id: str) -> Job | None:
        return await self._database.read(partial(_job_or_none, id=id))

    async def active(self, ids: Collection[str]) -> dict[str, Job]:
        """Those of `ids` that wait or run."""
        # PostgreSQL takes no text with a NUL, not even to look for it.
        possible = [id for id in ids if "\0" not in id]
        wanted = select(jobs).where(jobs.c.id.in_(possible), jobs.c.state != "done")
        found = await self._database.read(lambda connection: connection.execute(wanted).all())
        return {row.id: _of(row) for row in found}

    async def queue(self) -> list[str]:
        """Ids of all that wait, in the order in which they will be taken, as far as that can be said now."""
        waiting = (
            select(jobs.c.id, jobs.c.client, func.coalesce(clients.c.served_at, 0))
            .select_from(jobs.outerjoin(clients, jobs.c.client == clients.c.key))
            .where(jobs.c.state == "queued")
            .order_by(jobs.c.queued_at)
        )
        found = await self._database.read(lambda connection: connection.execute(waiting).all())
        return in_turn((row[0], row[1], row[2]) for row in found)

    async def lease(self, profiles: Collection[str], build: str, seconds: float) -> Job | None:
        """Takes the next job that one of `profiles` (as JSON) can run; None where there is none."""
        waiting = can_be_taken(jobs.c.profile.in_(profiles), build)
        one = select(jobs.c.id).where(waiting).limit(1)
        if await self._database.read(lambda connection: connection.scalar(one)) is None:
            return None
        candidate = (
            select(jobs.c.id, jobs.c.client)
            .select_from(jobs.outerjoin(clients, jobs.c.client == clients.c.key))
            .where(waiting)
            .order_by(func.coalesce(clients.c.served_at, 0), jobs.c.queued_at)
            .limit(1)
            .with_for_update(of=jobs, skip_locked=True)
        )

        def work(connection: Connection) -> Job | None:
            found = connection.execute(candidate).one_or_none()
            if found is None:
                return None
            now = time.time()
            taken = connection.execute(
                update(jobs)
                .where(jobs.c.id == found.id, jobs.c.state == "queued")
                .values(state="leased", owner=self.owner, lease_until=now + seconds, started_at=None)
            )
            if taken.rowcount == 0:
                return None
            note_client(connection, found.client, now)
            return _job(connection, found.id)

        return await self._database.write(work)

    async def begin(self, job: Job, started_at: float, wall_seconds: float, deadline: float) -> None:
        """Notes that a job of ours has started."""
        values = {"started_at": started_at, "wall_seconds": wall_seconds, "deadline": deadline}
        noted = update(jobs).where(self._is_ours(job)).values(values)
        await self._database.write(lambda connection: connection.execute(noted))

    async def renew(self, running: Iterable[Job], seconds: float | None) -> tuple[set[str], set[str]]:
        """Prolongs leases of ours, or, where `seconds` is None, looks at them: the names of those that are lost, and of
        those that are to be cancelled."""
        by_key = {(job.id, job.attempt): job.name for job in running}
        if not by_key:
            return set(), set()
        ours = and_(
            tuple_(jobs.c.id, jobs.c.attempt).in_(list(by_key)), jobs.c.state == "leased", jobs.c.owner == self.owner
        )

        def work(connection: Connection) -> dict[str, bool]:
            if seconds is not None:
                connection.execute(update(jobs).where(ours).values(lease_until=time.time() + seconds))
            rows = connection.execute(select(jobs.c.id, jobs.c.attempt, jobs.c.is_cancelled).where(ours))
            return {by_key[row.id, row.attempt]: row.is_cancelled for row in rows}

        found = await (self._database.read if seconds is None else self._database.write)(work)
        lost = {name for name in by_key.values() if name not in found}
        return lost, {name for name, is_cancelled in found.items() if is_cancelled}

    async def give_back(self, job: Job, has_run: bool, counts: bool) -> None:
        """Puts a job of ours back into the queue, at its old place; `counts` says whether that was one of its tries."""
        again = _queued_again(has_run, counts).where(self._is_ours(job))
        await self._database.write(lambda connection: connection.execute(again))

    async def expired(self, most_tries: int, running: Collection[str]) -> list[Job]:
        """Puts back those whose owner has not been heard of; those that were tried often enough are returned. `running`
        are the ids of those that run here: a lease of ours that could not be renewed in time is no lost one."""
        has_expired = and_(jobs.c.state == "leased", jobs.c.lease_until < time.time(), jobs.c.id.not_in(running))
        one = select(jobs.c.id).where(has_expired).limit(1)
        if await self._database.read(lambda connection: connection.scalar(one)) is None:
            return []
        may_run_again = and_(has_expired, jobs.c.tries < most_tries, jobs.c.is_cancelled.is_(False))

        def work(connection: Connection) -> list[Job]:
            connection.execute(_queued_again(True, True).where(may_run_again))
            return [_of(row) for row in connection.execute(select(jobs).where(has_expired))]

        return await self._database.write(work)

    async def cancel(self, id: str) -> Job | None:
        """Notes that the job is to end, wherever it is; None where there is none that waits or runs."""
        cancelled = (
            update(jobs).where(jobs.c.id == id, jobs.c.state != "done").values(is_cancelled=True).returning(*jobs.c)
        )
        row = await self._database.write(lambda connection: connection.execute(cancelled).one_or_none())
        return None if row is None else _of(row)

    async def tell_wanted(self, ids: Collection[str]) -> None:
        """Notes that somebody waits for these."""
        if not ids:
            return
        noted = update(jobs).where(jobs.c.id.in_(ids), jobs.c.state == "queued").values(wanted_at=time.time())
        await self._database.write(lambda connection: connection.execute(noted))

    async def to_end(self, unwanted_seconds: float, build: str) -> list[Job]:
        """Waiting jobs that are to be cancelled, or that nobody has waited for so long, or whose build has gone."""
        before = time.time() - unwanted_seconds
        is_of_the_past = and_(jobs.c.build != build, jobs.c.queued_at < before)
        over = or_(jobs.c.is_cancelled, jobs.c.wanted_at < before, is_of_the_past)
        found = select(jobs).where(jobs.c.state == "queued", over)
        return [_of(row) for row in await self._database.read(lambda connection: connection.execute(found).all())]

    async def finish(self, job: Job, finished: Finished) -> Stored | None:
        """Ends the job and stores its report, both or neither; None where another attempt has taken its place."""
        done = (
            update(jobs)
            .where(self._is_as_found(job))
            .values(state="done", finished_at=time.time(), owner=None, lease_until=None, source="", options="{}")
        )

        def work(connection: Connection) -> Stored | None:
            return reports.write(connection, finished) if connection.execute(done).rowcount else None

        stored = await self._database.write(work)
        if stored is not None:
            await self._database.flush()
        return stored

    async def changed_since(self, moment: float) -> list[str]:
        """Ids of the explorations whose report may be another one than before `moment`."""
        may_differ = select(jobs.c.id).where(or_(jobs.c.state != "done", jobs.c.finished_at >= moment))
        return list(await self._database.read(lambda connection: connection.scalars(may_differ).all()))

    async def remove_done(self, before: float) -> None:
        """Forgets jobs that ended before then, and clients whose jobs are all gone."""
        has_jobs = select(jobs.c.id).where(jobs.c.client == clients.c.key).exists()

        def work(connection: Connection) -> None:
            connection.execute(delete(jobs).where(jobs.c.state == "done", jobs.c.finished_at < before))
            connection.execute(delete(clients).where(clients.c.served_at < before, ~has_jobs))

        await self._database.write(work)

    def _is_ours(self, job: Job) -> ColumnElement[bool]:
        return and_(
            jobs.c.id == job.id, jobs.c.attempt == job.attempt, jobs.c.state == "leased", jobs.c.owner == self.owner
        )

    def _is_as_found(self, job: Job) -> ColumnElement[bool]:
        of_owner = jobs.c.owner.is_(None) if job.owner is None else jobs.c.owner == job.owner
        found = and_(jobs.c.id == job.id, jobs.c.attempt == job.attempt, jobs.c.state == job.state, of_owner)
        # A lease of another web must not have been renewed since.
        is_expired = job.owner is not None and job.owner != self.owner
        return and_(found, jobs.c.lease_until == job.lease_until) if is_expired else found


def _queued_again(has_run: bool, counts: bool) -> Update:
    """Puts jobs back into the queue, at their old places."""
    return update(jobs).values(
        state="queued",
        owner=None,
        lease_until=None,
        started_at=None,
        attempt=jobs.c.attempt + int(has_run),
        tries=jobs.c.tries + int(counts),
    )


def in_turn(waiting: Iterable[tuple[str, str, float]]) -> list[str]:
    """The order in which jobs are taken: `waiting` has id, client and when the client was served, the oldest first."""
    served: dict[str, float] = {}
    of_client: dict[str, list[str]] = {}
    for id, client, served_at in waiting:
        served.setdefault(client, served_at)
        of_client.setdefault(client, []).append(id)
    # Stable: of clients who were served at the same time, the one whose job is the oldest comes first.
    turn = sorted(of_client, key=lambda client: served[client])
    rounds = max(map(len, of_client.values()), default=0)
    return [of_client[client][place] for place in range(rounds) for client in turn if place < len(of_client[client])]


def _job(connection: Connection, id: str) -> Job:
    return _of(connection.execute(select(jobs).where(jobs.c.id == id)).one())


def _job_or_none(connection: Connection, id: str) -> Job | None:
    row = connection.execute(select(jobs).where(jobs.c.id == id)).one_or_none()
    return None if row is None else _of(row)


def _of(row: Row[Any], options: Options | None = None, profile: WorkerIdentity | None = None) -> Job:
    """The job of a row, whose options and profile are read from it unless they are known."""
    values = {name: row._mapping[name] for name in Job.__dataclass_fields__}
    values["options"] = options or Options.model_validate_json(row.options)
    values["profile"] = profile or WorkerIdentity.model_validate_json(row.profile)
    return Job(**values)
