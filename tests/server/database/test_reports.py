"""Reports in pieces: the same bytes come back, what is alike is stored once, and what is old goes."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import sqlite3
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import Connection, func, select, update

from compiler.report import REPORT_VERSION, Report
from server.database import engine
from server.database.compressed import SHARED_BYTES, Body, as_gzip, body_of, body_of_text
from server.database.engine import Database, DatabaseUnavailable
from server.database.jobs import JobTable
from server.database.reports import Reports, Stored
from server.database.retention import Retention
from server.database.retention import _taken_bytes as taken
from server.database.tables import contents, explorations
from server.dispatcher import Dispatcher
from server.executors.protocol import Executor
from server.metrics import Metrics
from server.readings import NotPossible
from server.settings import WebSettings
from server.watched import Watches
from server.wire.parts import join, split
from tests.server.database.made import BUILD, ROOM, enqueue, finished, lease, report_of, wanted

pytestmark = pytest.mark.asyncio

EXAMPLE = Path(__file__).parents[3] / "web" / "src" / "test" / "report.json"


async def keep(database: Database, id: str, output: str = "", status: str = "ok") -> Stored:
    table = JobTable(database, "web")
    await enqueue(table, id)
    job = await lease(table)
    assert job is not None
    stored = await table.finish(job, finished(job, report_of(job, output), status))
    assert stored is not None
    return stored


async def test_what_a_snippet_writes_is_stored_whatever_it_is(database: Database) -> None:
    """A report that cannot be stored is tried again for ever: the database may only be locked."""
    table = JobTable(database, "web")
    await enqueue(table, "a")
    job = await lease(table)
    assert job is not None
    asked = replace(finished(job), asked="forbid buf0\0buf1", based_on="b")
    assert await table.finish(job, asked) is not None
    (child,) = await Reports(database, 0).children("b")
    assert child.asked == "forbid buf0\N{REPLACEMENT CHARACTER}buf1"


async def test_an_id_that_no_database_has_is_not_found(database: Database) -> None:
    assert await Reports(database, 0).get("a\0b") is None
    assert await JobTable(database, "web").active(["a\0b"]) == {}


async def test_a_body_of_pieces_is_one_gzip_file() -> None:
    report = Report.model_validate_json(EXAMPLE.read_bytes())
    body = body_of(split(report))
    stored = Stored("a", 1, "ok", True, 3, "b", None, 9, body.tag, body.length, _gzip(body))
    assert len(body.pieces) > 5
    assert gzip.decompress(stored.gzipped) == stored.body == join(split(report)) == report.model_dump_json().encode()
    assert len(stored.gzipped) < body.length / 3
    assert stored.unread.report() == report
    alone = body_of_text(stored.body)
    assert gzip.decompress(_gzip(alone)) == stored.body and alone.tag == body.tag
    assert gzip.decompress(_gzip(body_of_text(b""))) == b""


def _gzip(body: Body) -> bytes:
    return as_gzip((piece.data for piece in body.pieces), body.checksum, body.length)


async def test_what_is_alike_is_stored_once_and_goes_with_its_last_report(database: Database) -> None:
    long, other = "alike " * SHARED_BYTES, "other " * SHARED_BYTES
    await keep(database, "a", long)
    await keep(database, "b", long)
    reports = Reports(database, 1 << 20)
    assert await _count(database, contents) == 1
    retention = Retention(database, JobTable(database, "web"), reports, WebSettings(keep_days=1))
    await _age(database, "a", days=2)
    assert await retention.sweep() == 1
    assert await reports.get("a") is None and (await reports.get("b")) is not None
    assert await _count(database, contents) == 1
    table = JobTable(database, "web")
    await table.enqueue(wanted("b"), ROOM, 1.0, is_refresh=True)
    job = await lease(table)
    assert job is not None
    await table.finish(job, finished(job, report_of(job, other)))
    assert await _count(database, contents) == 1, "the earlier report's part went with it"
    await _age(database, "b", days=2)
    assert await retention.sweep() == 1
    assert await _count(database, contents) == 0


async def test_a_clock_that_is_set_makes_nothing_old(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table, reports, now = JobTable(database, "web"), Reports(database, 0), time.time()
    await keep(database, "a")
    retention = Retention(database, table, reports, WebSettings(keep_days=1))
    monkeypatch.setattr(time, "time", lambda: now + 365 * 86400)
    assert await retention.sweep() == 0
    assert await table.get("a") is not None
    monkeypatch.setattr(time, "time", lambda: now - 365 * 86400)
    assert await retention.sweep() == 0
    await _age(database, "a", days=2)
    assert await retention.sweep() == 1


@pytest.mark.parametrize("is_set_here_too", [False, True])
async def test_a_report_of_another_web_is_seen_whatever_the_clock_says(
    database: Database, monkeypatch: pytest.MonkeyPatch, is_set_here_too: bool
) -> None:
    await keep(database, "a")
    reports, other, now = Reports(database, 1 << 20), JobTable(database, "other"), time.time()
    nobody = cast(Executor, None)
    here = Dispatcher(WebSettings(), JobTable(database, "here"), reports, nobody, Watches(), Metrics(), BUILD)
    here.arrived()
    await other.enqueue(wanted("a"), ROOM, 1.0, is_refresh=True)
    job = await lease(other)
    assert job is not None
    await here._look()
    assert await reports.get("a") is not None and reports.cached("a") is not None
    with monkeypatch.context() as context:
        context.setattr(time, "time", lambda: now - 3600)
        assert await other.finish(job, finished(job)) is not None
        if is_set_here_too:
            await here._look()
    if not is_set_here_too:
        await here._look()
    assert reports.cached("a") is None


async def test_the_oldest_go_first_where_all_take_too_much(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = random.Random(1)
    for number in range(30):
        text = "".join(chr(noise.randrange(33, 126)) for _ in range(60_000))
        await keep(database, f"e{number:02}", text)
        await _age(database, f"e{number:02}", days=1 - number / 1000)
    reports = Reports(database, 0)
    retention = Retention(database, JobTable(database, "web"), reports, WebSettings(keep_mib=1))
    counted: list[int] = []

    def count(connection: Connection) -> int:
        counted.append(taken(connection))
        return counted[-1]

    monkeypatch.setattr("server.database.retention._taken_bytes", count)
    assert await retention.sweep() > 10
    assert len(counted) == 1, "it takes long where there is much"
    await retention.sweep()
    assert counted[-1] <= 0.9 * 2**20
    left = [number for number in range(30) if await reports.get(f"e{number:02}") is not None]
    assert left == list(range(30 - len(left), 30)) and 0 < len(left) < 25
    assert await retention.sweep() == 0


async def test_what_cannot_change_is_kept_in_memory_and_no_more_than_may(database: Database) -> None:
    stored = await keep(database, "a", "x" * 1000)
    await keep(database, "moment", status="timeout")
    reports = Reports(database, 5 * stored.held_bytes)
    assert reports.cached("a") is None
    assert await reports.get("a") == stored and reports.cached("a") == stored
    await reports.get("moment")
    assert reports.cached("moment") is None, "it will be run again"
    for number in range(6):
        await keep(database, f"more-{number}", "x" * 1000)
        await reports.get(f"more-{number}")
    assert reports.cached("a") is None and reports.cached("more-5") is not None
    reports.forget("more-5")
    assert reports.cached("more-5") is None


async def test_a_report_of_another_version_is_served_as_it_is(database: Database) -> None:
    body = json.dumps({"version": 99, "id": "a", "something": "new"}).encode()
    stored = Stored("a", 1, "ok", True, 99, "b", None, 1, "tag", len(body), _gzip(body_of_text(body)))
    assert stored.body == body
    with pytest.raises(NotPossible, match="version 99"):
        stored.unread.report()


async def test_a_store_of_a_later_version_is_told_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "explorations.sqlite3"
    database = Database(f"sqlite:///{path}")
    await database.open()
    await database.close()
    with contextlib.closing(sqlite3.connect(path)) as later:
        later.execute("UPDATE alembic_version SET version_num = '9999'")
        later.commit()
    with pytest.raises(DatabaseUnavailable, match="a later version of Fusionscope has changed it"):
        await Database(f"sqlite:///{path}").open()


async def test_an_earlier_store_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "explorations.sqlite3"
    report = Report(id="a" * 20, source="x = 'ä'", status="ok", based_on="b" * 20, output="line\n" * 1000)
    body = report.model_dump_json(exclude={"observed"}).replace(f'"version":{REPORT_VERSION}', '"version":2').encode()
    with sqlite3.connect(path) as earlier:
        earlier.execute("CREATE TABLE explorations (id VARCHAR(40) PRIMARY KEY, status, finished_at, report BLOB)")
        earlier.execute("CREATE TABLE exploration_links (child, parent, status, asked, finished_at)")
        earlier.execute(
            "INSERT INTO explorations VALUES (?, 'ok', '2026-11-01 10:00:00.000000', ?)",
            ("a" * 20, zlib.compress(body)),
        )
    database = Database(f"sqlite:///{path}")
    for _ in range(2):  # the second time there is nothing to do
        await database.open()
    reports = Reports(database, 0)
    stored = await reports.get("a" * 20)
    assert stored is not None and stored.body == body and stored.report_version == 2
    assert [child.id for child in await reports.children("b" * 20)] == ["a" * 20]
    assert stored.unread.report().output == report.output
    await database.close()


async def test_a_disk_that_is_nearly_full_is_told_before_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(f"sqlite:///{tmp_path / 'test.sqlite3'}")
    await database.open()
    await database.check()
    monkeypatch.setattr(engine, "LEAST_FREE_BYTES", 2**62)
    with pytest.raises(DatabaseUnavailable, match=r"its disk has \d+ MiB left"):
        await database.check()
    await database.close()


async def test_a_locked_database_is_told_apart_from_a_wrong_statement(tmp_path: Path) -> None:
    path = tmp_path / "test.sqlite3"
    database = Database(f"sqlite:///{path}", busy_seconds=0.1)
    await database.open()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DatabaseUnavailable, match="locked"):
        await database.check()
    assert await Reports(database, 0).get("a") is None, "it can be read meanwhile"
    holder.execute("ROLLBACK")
    await database.check()
    holder.close()
    await database.close()


async def _count(database: Database, table: Any) -> int:
    count = select(func.count()).select_from(table)
    return await database.read(lambda connection: connection.scalar(count)) or 0


async def _age(database: Database, id: str, days: float) -> None:
    aged = update(explorations).where(explorations.c.id == id).values(finished_at=time.time() - days * 86400)
    await database.write(lambda connection: connection.execute(aged))
