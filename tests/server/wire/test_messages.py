"""Messages: each comes back as it was sent, and nothing else is taken for one."""

from __future__ import annotations

import asyncio

import pytest

from compiler.options import Options
from server.wire.frames import FrameError, frame
from server.wire.messages import (
    Cancel,
    Changed,
    DeviceFacts,
    Ended,
    Hello,
    Limits,
    Log,
    Message,
    Run,
    Started,
    State,
    Welcome,
    WorkerIdentity,
    next_for_worker,
    next_from_worker,
)

pytestmark = pytest.mark.asyncio

LIMITS = Limits(wall_seconds=60, output_bytes=1024, report_bytes=1024)
FACTS = DeviceFacts(name="T4", kind="gpu", target="sm_75", facts={"bandwidth": 3.2e11})
FOR_WORKER: list[Message] = [
    Welcome(build="b"),
    Run(job="a.1", source="x = 'ä\u2028'", options=Options(seed=3), limits=LIMITS),
    Cancel(job="a.1"),
]
FROM_WORKER: list[Message] = [
    Hello(build="b", profile=WorkerIdentity(torch="2"), tier="A", isolation=("pid",), slots=2, devices=(FACTS,)),
    State(ready=False, problem="it is importing its libraries", running=("a.1", "b.2"), restarts=1),
    Started(job="a.1", wall_seconds=60),
    Log(job="a.1", text="\N{REPLACEMENT CHARACTER}\0line\n"),
    Ended(job="a.1", ending="memory_limit", signal=9, wall_seconds=1.5, peak_memory_bytes=2**33, tier="B"),
]


def reader_of(header: bytes, payload: bytes = b"") -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(frame(header, payload) + payload)
    reader.feed_eof()
    return reader


@pytest.mark.parametrize("message", FOR_WORKER, ids=lambda message: message.kind)
async def test_what_web_says_arrives(message: Message) -> None:
    reader = reader_of(message.model_dump_json().encode())
    assert await next_for_worker(reader) == message
    assert await next_for_worker(reader) is None


@pytest.mark.parametrize("message", FROM_WORKER, ids=lambda message: message.kind)
async def test_what_a_worker_says_arrives(message: Message) -> None:
    reader = reader_of(message.model_dump_json().encode())
    assert await next_from_worker(reader, 0) == (message, b"")
    assert await next_from_worker(reader, 0) is None


async def test_a_change_brings_its_payload() -> None:
    message = Changed(job="a.1")
    reader = reader_of(message.model_dump_json().encode(), b"\xff\0")
    assert await next_from_worker(reader, 2) == (message, b"\xff\0")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"kind":"unknown"}',
        b'{"kind":"log","job":"a.1"}',
        b'{"kind":"log","job":"a.1","text":"","more":1}',
        b'{"kind":"run","job":"a.1"}',
        b'{"kind":"log","job":"' + b"a" * 100 + b'","text":""}',
        b"[" * 100_000,
    ],
)
async def test_anything_else_is_refused_by_both(header: bytes) -> None:
    for read in (next_for_worker(reader_of(header)), next_from_worker(reader_of(header), 10)):
        with pytest.raises(FrameError) as refusal:
            await read
        assert len(str(refusal.value)) < 300


async def test_only_a_change_may_have_a_payload() -> None:
    header = Log(job="a.1", text="").model_dump_json().encode()
    with pytest.raises(FrameError, match="no payload"):
        await next_from_worker(reader_of(header, b"x"), 10)
    with pytest.raises(FrameError, match="at most"):
        await next_for_worker(reader_of(Cancel(job="a.1").model_dump_json().encode(), b"x"))


async def test_a_refusal_does_not_quote_a_snippet() -> None:
    header = b'{"kind":"run","job":"a.1","source":"secret = 1","options":{},"limits":{}}'
    with pytest.raises(FrameError) as refusal:
        await next_for_worker(reader_of(header))
    assert "secret" not in str(refusal.value)
