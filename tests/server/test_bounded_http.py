"""What one connection may take before its request is whole, on real sockets and the server that web runs on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import uvicorn
from starlette.types import Receive, Scope, Send

from server import bounded_http
from server.bounded_http import BoundedHttp, Connections

PATIENCE_SECONDS = 60
HEAD = b"POST / HTTP/1.1\r\nHost: here\r\n"


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        continue
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"well"})


@contextlib.asynccontextmanager
async def serving(connections: Connections, served: Any = application) -> AsyncIterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    http = BoundedHttp.within(connections)
    server = uvicorn.Server(uvicorn.Config(served, http=http, ws="none", lifespan="off", log_config=None))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    yield listener.getsockname()[1]
    server.should_exit = True
    await task


@pytest_asyncio.fixture
async def port() -> AsyncIterator[int]:
    async with serving(Connections()) as port:
        yield port


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_SECONDS):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
    return b""


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HT",
        HEAD,
        HEAD + b"Content-Length: 10\r\n\r\nfive.",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nfi",
    ],
    ids=["nothing", "half a line", "half the headers", "half a body", "half a chunk"],
)
async def test_a_request_that_does_not_come_is_given_up(
    port: int, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(bounded_http, "REQUEST_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(begun)
    assert b"200" not in await until_closed(reader)
    writer.close()


@pytest.mark.asyncio
async def test_a_connection_that_is_kept_may_rest(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(HEAD + b"Content-Length: 2\r\n\r\nhi")
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert (await reader.readuntil(b"well")).startswith(b"HTTP/1.1 200")
        with monkeypatch.context() as patch:
            patch.setattr(bounded_http, "REQUEST_SECONDS", 0.05)
            await asyncio.sleep(0.5)
    writer.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("piece", [b"X-More: " + b"a" * 65_000 + b"\r\n", b"a" * 65_000], ids=["headers", "one header"])
async def test_headers_without_an_end_are_given_up(port: int, piece: bytes) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HEAD + b"X: ")
    most = 16 * bounded_http.MOST_REQUEST_BYTES // len(piece)
    with pytest.raises(ConnectionError):
        for _ in range(most):
            writer.write(piece)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await writer.drain()
    writer.close()


async def asked(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """A connection that has sent a request and stays open, and the head of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HEAD + b"Content-Length: 2\r\n\r\nhi")
    async with asyncio.timeout(PATIENCE_SECONDS):
        return reader, writer, await reader.readuntil(b"\r\n\r\n")


@pytest.mark.asyncio
async def test_an_address_has_so_many_connections_and_others_have_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(Connections(2, ["192.0.2.0/24"])) as port:
        monkeypatch.setattr(bounded_http, "address_name", lambda _: ("198.51.100.7", False))
        first = [await asked(port) for _ in range(2)]
        assert all(b" 200 " in head for _, _, head in first)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        refused = await until_closed(reader)
        assert refused.startswith(b"HTTP/1.1 429 ") and b"retry-after: 5" in refused.lower()
        with monkeypatch.context() as patch:
            patch.setattr(bounded_http, "address_name", lambda _: ("198.51.100.8", False))
            first.append(await asked(port))
        assert b" 200 " in first[-1][2]
        first[0][1].close()
        await first[0][1].wait_closed()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while b" 429 " in (again := (await asked_or_refused(port))):
                await asyncio.sleep(0.01)
        assert b" 200 " in again
        for _, one, _ in first:
            one.close()
        writer.close()


async def asked_or_refused(port: int) -> bytes:
    try:
        _, writer, head = await asked(port)
    except (ConnectionError, asyncio.IncompleteReadError):
        return b" 429 "
    writer.close()
    return head


@pytest.mark.parametrize("peer", [("127.0.0.1", 1), ("::1", 1, 0, 0), ("192.0.2.9", 1), ""])
def test_this_machine_and_proxies_are_not_counted(peer: object) -> None:
    class Transport(asyncio.Transport):
        def get_extra_info(self, name: str, default: object = None) -> object:
            return peer

    assert Connections(2, ["192.0.2.0/24"]).counted(Transport()) is None


@pytest.mark.asyncio
async def test_an_answer_that_nobody_takes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits of it is held in memory. One that is taken goes on, however long it is."""
    monkeypatch.setattr(bounded_http, "ANSWER_SECONDS", 0.3)
    size, is_given_up = 64 * 2**20, asyncio.Event()

    async def large(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": bytes(size)})

    lost = BoundedHttp.connection_lost

    def tell_lost(self: BoundedHttp, failure: Exception | None) -> None:
        lost(self, failure)
        is_given_up.set()

    monkeypatch.setattr(BoundedHttp, "connection_lost", tell_lost)
    async with serving(Connections(), large) as port:
        _, idle = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        idle.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await is_given_up.wait()
        idle.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        assert len(await until_closed(reader)) > size
        writer.close()
