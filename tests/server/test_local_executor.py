"""The executor of local workers: whom it takes, what it hears, and what becomes of jobs whose worker is lost."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from compiler.options import Options
from server.executors.local import LocalExecutor
from server.executors.protocol import NoSlot, Spec, WorkerDevice
from server.wire.messages import (
    Changed,
    Ended,
    Hello,
    Limits,
    Run,
    Started,
    State,
    Welcome,
    WorkerIdentity,
    next_for_worker,
    send,
)

pytestmark = pytest.mark.asyncio

PROFILE = WorkerIdentity(python="3.12.0", torch="2.13.0", device="cpu", device_name="a processor")
HELLO = Hello(build="build", profile=PROFILE, tier="trusted", isolation=("none",), slots=2)


class FakeWorker:
    """One that says what a test tells it to."""

    def __init__(self, path: Path, hello: Hello = HELLO) -> None:
        self.path = path
        self.hello = hello
        self.heard: asyncio.Queue[Any] = asyncio.Queue()
        self.writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.path)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self.writers:
            writer.close()
        self.path.unlink(missing_ok=True)

    async def say(self, message: Any, payload: bytes = b"") -> None:
        await send(self.writers[-1], message, payload)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            await send(writer, self.hello)
            while (message := await next_for_worker(reader)) is not None:
                if isinstance(message, Welcome):
                    await send(writer, State(ready=True))
                self.heard.put_nowait(message)
        except ConnectionError:
            pass


@asynccontextmanager
async def connected(*paths: Path) -> AsyncIterator[LocalExecutor]:
    executor = LocalExecutor(paths, "build", [PROFILE], most_payload_bytes=1000)
    await executor.start()
    try:
        yield executor
    finally:
        await executor.stop()


async def until(executor: LocalExecutor, is_so: Callable[[WorkerDevice], object]) -> WorkerDevice:
    async with asyncio.timeout(120):
        while True:
            changed = asyncio.create_task(executor.changed())
            device = executor.devices()[0]
            if is_so(device):
                changed.cancel()
                return device
            await changed


def spec(job: str = "a.1") -> Spec:
    limits = Limits(wall_seconds=60, output_bytes=1000, report_bytes=1000)
    return Spec(job, "source", Options(), limits, PROFILE)


async def test_a_worker_may_come_late_go_and_come_again(tmp_path: Path) -> None:
    async with connected(tmp_path / "w.sock") as executor:
        first = await until(executor, lambda device: device.problem and "cannot be reached" in device.problem)
        assert not first.ready and first.free == 0
        worker = FakeWorker(tmp_path / "w.sock")
        await worker.start()
        ready = await until(executor, lambda device: device.ready)
        assert (ready.slots, ready.free, ready.tier, ready.problem) == (2, 2, "trusted", None)
        await worker.stop()
        await until(executor, lambda device: not device.ready)
        again = FakeWorker(tmp_path / "w.sock")
        await again.start()
        assert (await until(executor, lambda device: device.ready)).restarts == 1
        await again.stop()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"protocol": 99}, "version 99 of the protocol"),
        ({"build": "other"}, "it is of the build other and this web of build"),
        ({"profile": PROFILE.model_copy(update={"torch": "9.9"})}, "it has torch '9.9' for '2.13.0'"),
    ],
)
async def test_a_worker_that_does_not_fit_is_refused_with_a_sentence(
    tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    worker = FakeWorker(tmp_path / "w.sock", HELLO.model_copy(update=fields))
    await worker.start()
    async with connected(tmp_path / "w.sock") as executor:
        device = await until(executor, lambda device: device.problem and told in device.problem)
        assert not device.ready
        with pytest.raises(NoSlot):
            await executor.submit(spec())
    assert worker.heard.empty(), "it was never welcome"
    await worker.stop()


async def test_another_users_program_in_the_place_of_our_own_worker_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w.sock"
    worker = FakeWorker(path)
    await worker.start()
    ours = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: ours + 1)
    executor = LocalExecutor([path], "build", [PROFILE], most_payload_bytes=1000, own=[path])
    await executor.start()
    await until(executor, lambda device: device.problem and "another user's program" in device.problem)
    await executor.stop()
    assert worker.heard.empty()
    await worker.stop()


async def test_a_job_is_heard_from_its_start_to_its_end(tmp_path: Path) -> None:
    worker = FakeWorker(tmp_path / "w.sock")
    await worker.start()
    async with connected(tmp_path / "w.sock") as executor:
        await until(executor, lambda device: device.ready)
        handle = await executor.submit(spec())
        assert executor.devices()[0].free == 1
        assert isinstance(await worker.heard.get(), Welcome)
        assert isinstance(await worker.heard.get(), Run)
        said = [
            (Started(job="a.1", wall_seconds=60), b""),
            (Changed(job="a.1"), b"{}"),
            (Ended(job="a.1", ending="exited"), b""),
        ]
        for message, payload in [(Started(job="late.1", wall_seconds=1), b""), *said]:
            await worker.say(message, payload)
        assert [event async for event in handle.events()] == said
        assert executor.devices()[0].free == 2
    await worker.stop()


async def test_a_reader_that_goes_away_holds_up_nobody(tmp_path: Path) -> None:
    worker = FakeWorker(tmp_path / "w.sock")
    await worker.start()
    async with connected(tmp_path / "w.sock") as executor:
        await until(executor, lambda device: device.ready)
        left, kept = await executor.submit(spec("left.1")), await executor.submit(spec("kept.1"))
        for _ in range(100):
            await worker.say(Changed(job="left.1"), b"x" * 1000)
        await worker.say(Ended(job="kept.1", ending="exited"))
        events = left.events()
        await anext(events)
        await events.aclose()
        assert [event[0].kind async for event in kept.events()] == ["ended"]
    await worker.stop()


async def test_every_job_of_a_lost_worker_ends(tmp_path: Path) -> None:
    worker = FakeWorker(tmp_path / "w.sock")
    await worker.start()
    async with connected(tmp_path / "w.sock") as executor:
        await until(executor, lambda device: device.ready)
        handles = [await executor.submit(spec(name)) for name in ("a.1", "b.1")]
        await worker.stop()
        for handle in handles:
            (ended,) = [event[0] async for event in handle.events()]
            assert isinstance(ended, Ended) and ended.ending == "worker_lost"


async def test_a_payload_beyond_what_is_allowed_ends_the_connection_and_not_web(tmp_path: Path) -> None:
    worker = FakeWorker(tmp_path / "w.sock")
    await worker.start()
    async with connected(tmp_path / "w.sock") as executor:
        await until(executor, lambda device: device.ready)
        handle = await executor.submit(spec())
        await worker.say(Changed(job="a.1"), b"x" * 1001)
        (ended,) = [event[0] async for event in handle.events()]
        assert isinstance(ended, Ended) and ended.ending == "worker_lost"
        assert "at most 1000 are allowed" in (ended.problem or "")
        await until(executor, lambda device: device.ready)
    await worker.stop()


async def test_the_worker_with_most_room_gets_the_job(tmp_path: Path) -> None:
    workers = [FakeWorker(tmp_path / f"{number}.sock") for number in range(2)]
    for worker in workers:
        await worker.start()
    async with connected(*(worker.path for worker in workers)) as executor:
        async with asyncio.timeout(120):
            while not all(device.ready for device in executor.devices()):
                await asyncio.sleep(0.01)
        for number in range(4):
            await executor.submit(spec(f"{number}.1"))
        assert [device.free for device in executor.devices()] == [0, 0]
        with pytest.raises(NoSlot):
            await executor.submit(spec("5.1"))
    for worker in workers:
        await worker.stop()
