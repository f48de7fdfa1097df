"""How long a request takes."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2

from bench.service.figures import in_milliseconds
from bench.service.running import PATIENCE_SECONDS, Running, client_of, kill, running

EXPLORATIONS = "/api/v1/explorations"
#: CLOCK_MONOTONIC is one clock for all processes of a machine.
#: It looks up its callers for the moment at which the compiler was called.
FIRST_LINE = """import time; print('first line', time.monotonic())
import sys
caller = sys._getframe()
while caller is not None and 'exploration' not in caller.f_locals:
    caller = caller.f_back
print('compiler', caller.f_locals['exploration'].began)
unlike = {number}
"""
#: Between two requests, so that a new spare is warm: as long as a person takes to read an answer.
PAUSE_SECONDS = 4.0


def first_line(samples: int) -> dict[str, Any]:
    """From the request to the first line of the snippet, one client at a time, a warm service.

    The request is written to a socket as it is: what a client library takes to put it together is not the service's."""
    seconds, within = [], []
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(running())
        service.wait_for("/readyz", stack.enter_context(client_of(service)))
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", service.port), PATIENCE_SECONDS))
        for number in range(samples + 1):
            _until_warm(service, number + 1)
            request = _as_sent(service, {"source": FIRST_LINE.format(number=number)})
            asked = time.monotonic()
            connection.sendall(request)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            report = json.load(answer)
            line, called = (re.search(rf"{name} (\d+\.\d+)", report["output"]) for name in ("first line", "compiler"))
            assert line is not None and called is not None, report
            seconds.append(float(line[1]) - asked)
            within.append(float(line[1]) - float(called[1]))
        told = {"request to first line": seconds, "of that in the compiler": within}
        return {name: in_milliseconds(found[1:]) for name, found in told.items()} | _spares(service)


def _as_sent(service: Running, asked: dict[str, Any]) -> bytes:
    body = json.dumps(asked).encode()
    lines = (
        f"POST {EXPLORATIONS}?wait=60 HTTP/1.1",
        f"Host: 127.0.0.1:{service.port}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*lines, "", "")).encode() + body


def _until_warm(service: Running, spares: int) -> None:
    """As long as a person takes to read an answer, and then until so many spares have been warm in all."""
    end = time.monotonic() + 30.0
    time.sleep(PAUSE_SECONDS)
    while len(service.said("spare_warm")) < spares and time.monotonic() < end:
        time.sleep(0.1)


def snippet(path: Path, samples: int, at_once: int) -> dict[str, Any]:
    """From the request to the report of one snippet: with timing, without, and several unlike ones at once."""
    source = path.read_text()
    results: dict[str, Any] = {}
    with running() as service, client_of(service) as client:
        service.wait_for("/readyz", client)
        for name, timing in (("with timing", True), ("without timing", False)):
            seconds, wall = [], []
            for number in range(samples):
                time.sleep(PAUSE_SECONDS)
                started = time.monotonic()
                report = _explore(client, f"{source}\n# {name} {number}\n", timing={"enabled": timing})
                seconds.append(time.monotonic() - started)
                wall.append({stage["name"]: round(stage["ms"]) for stage in report["stages"]})
                assert report["status"] == "ok", report["error"]
            results[f"{path.stem}, {name}"] = in_milliseconds(seconds) | {"stages_ms": wall[-1]}
        time.sleep(PAUSE_SECONDS)
        with ThreadPoolExecutor(at_once) as threads:
            started = time.monotonic()
            together = [f"{source}\n# {number} of several\n" for number in range(at_once)]
            ends = list(threads.map(lambda text: (_explore(client, text)["status"], time.monotonic()), together))
        assert all(status == "ok" for status, _ in ends)
        results[f"{path.stem}, {at_once} at once"] = {"last_s": round(max(end for _, end in ends) - started, 2)}
        results |= _spares(service)
    return results


def _spares(service: Running) -> dict[str, Any]:
    """How long spares took to be warm, and the steps of the latest. One that a job took meanwhile tells less."""
    spares = service.said("spare_warm")
    whole = [spare for spare in spares if not spare["taken"]]
    if not whole:
        return {"spares": {"made": len(spares), "taken before they were warm": len(spares)}}
    times = in_milliseconds([spare["seconds"] for spare in whole])
    taken = len(spares) - len(whole)
    return {"spares": {**times, "taken before they were warm": taken, "steps_s": whole[-1]["steps"]}}


def stored(requests: int, connections: int) -> dict[str, Any]:
    """Reading a report that is stored: one at a time, and as many as go over several connections."""
    with running() as service, client_of(service) as client:
        service.wait_for("/readyz", client)
        report = _explore(client, FIRST_LINE.format(number=0))
        path = f"{EXPLORATIONS}/{report['id']}"
        for _ in range(50):
            client.get(path)
        seconds = []
        for _ in range(min(requests, 1000)):
            started = time.monotonic()
            assert client.get(path).status_code == 200
            seconds.append(time.monotonic() - started)
        rate = asyncio.run(_rate(service, path, requests, connections))
    return {"stored exploration": in_milliseconds(seconds) | {"requests_a_second": round(rate)}}


def starts(samples: int) -> dict[str, Any]:
    """Until work can be taken: from nothing, and after what runs snippets was killed."""
    fresh, again = [], []
    for _ in range(samples):
        started = time.monotonic()
        with running() as service, client_of(service) as client:
            fresh.append(service.wait_for("/readyz", client, started))
            time.sleep(1.0)
            again.append(_ready_after_kill(service, client))
    return {"ready after a start": in_milliseconds(fresh), "ready after a kill": in_milliseconds(again)}


def _ready_after_kill(service: Running, client: httpx2.Client) -> float:
    """Kills everything below the web program. The worker must first be missed, then be back."""
    below = [process for process in service.processes() if process != service.process]
    killed = time.monotonic()
    for process in below:
        kill(process)
    while client.get("/readyz").status_code == 200 and time.monotonic() < killed + 10:
        time.sleep(0.002)
    return service.wait_for("/readyz", client, killed)


def _explore(client: httpx2.Client, source: str, **options: Any) -> dict[str, Any]:
    answer = client.post(f"{EXPLORATIONS}?wait=60", json={"source": source, **options})
    assert answer.status_code == 200, answer.text[:500]
    report: dict[str, Any] = answer.json()
    return report


async def _rate(service: Running, path: str, requests: int, connections: int) -> float:
    """Requests a second over kept connections. Written on bare sockets: a client library is slower than the service."""
    asked = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAccept-Encoding: gzip\r\n\r\n".encode()
    share = requests // connections

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        for _ in range(share):
            writer.write(asked)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = re.search(rb"(?i)content-length: (\d+)", head)
            assert length is not None, head
            await reader.readexactly(int(length[1]))
        writer.close()

    started = time.monotonic()
    await asyncio.gather(*(client() for _ in range(connections)))
    return share * connections / (time.monotonic() - started)
