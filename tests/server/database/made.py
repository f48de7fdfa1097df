"""Jobs and reports to put into a database."""

from __future__ import annotations

from compiler.options import Options
from compiler.report import Report
from server.database.compressed import body_of
from server.database.jobs import Enqueued, Job, JobTable
from server.database.new_jobs import Limits, Wanted
from server.database.reports import Finished
from server.wire.messages import WorkerIdentity
from server.wire.parts import split

BUILD = "0123456789abcdef"
CPU = WorkerIdentity(python="3.12.0", torch="2.13.0", device="cpu", device_name="a processor")
GPU = CPU.model_copy(update={"device": "cuda", "device_name": "a GPU"})
ROOM = Limits(waiting=100, of_one_client=100)


def wanted(id: str, client: str = "somebody", profile: WorkerIdentity = CPU, build: str = BUILD) -> Wanted:
    return Wanted(id, client, f"source of {id}", Options(), None, profile, build)


async def enqueue(table: JobTable, id: str, client: str = "somebody", limits: Limits = ROOM, **fields: object) -> Job:
    found = await table.enqueue(wanted(id, client, **fields), limits, 5.0, is_refresh=False)  # type: ignore[arg-type]
    assert isinstance(found, Enqueued)
    return found.job


async def lease(table: JobTable, seconds: float = 60.0, profile: WorkerIdentity = CPU) -> Job | None:
    return await table.lease([profile.model_dump_json()], BUILD, seconds)


def report_of(job: Job, output: str = "") -> Report:
    return Report(id=job.id, source=job.source, status="ok", output=output)


def finished(job: Job, report: Report | None = None, status: str = "ok") -> Finished:
    body = body_of(split(report or report_of(job)))
    return Finished(job.id, job.attempt, status, status == "ok", BUILD, job.based_on, "", 3, body)
