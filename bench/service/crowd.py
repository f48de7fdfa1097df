"""Many clients at once, each asking for something else every moment: reports, new explorations, events, nonsense.

What is wrong: a status that the request does not deserve, an id that was promised and is not known, a report of another
source, an exploration that never ends. What is no fault: 429, which says when to come again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx2

from bench.service.figures import in_milliseconds
from bench.service.running import Running, client_of, running

EXPLORATIONS = "/api/v1/explorations"
#: A snippet that is explored once, and then read by all.
STORED = "import torch\n\ndef f(x: 'f32[64]'):\n    return x.sin() + 1\n"
NONSENSE: tuple[tuple[bytes, int], ...] = (
    (b'{"source": ', 422),
    (b'{"source": "x = 1", "surprise": 1}', 422),
    (b'{"source": ""}', 422),
    (b"\xff\xfe", 422),
)


@dataclass
class Seen:
    """What all clients saw."""

    statuses: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    promised: dict[str, str] = field(default_factory=dict)
    """Sources by the ids that were answered with 202 or 200."""

    def fault(self, text: str) -> None:
        self.faults.append(text[:300])


def crowd(clients: int, seconds: float, seed: int) -> dict[str, Any]:
    """`clients` for so many seconds, then each promise is looked after."""
    with running(queue_limit="64") as service, client_of(service) as client:
        service.wait_for("/readyz", client)
        stored = client.post(f"{EXPLORATIONS}?wait=60", json={"source": STORED}).json()
        seen = Seen()
        memory = [service.web_memory()]
        asyncio.run(_all(service, stored["id"], clients, seconds, seed, seen, memory))
        unfinished = _promises_kept(client, seen, patience=300.0)
        return {
            f"{clients} clients for {seconds:g} s": {
                "requests": sum(seen.statuses.values()),
                "statuses": dict(sorted(seen.statuses.items())),
                "promised": len(seen.promised),
                "unfinished": unfinished,
                "faults": len(seen.faults),
                "first_faults": seen.faults[:10],
                "web_memory_mib": [round(size / 2**20) for size in memory],
            }
            | in_milliseconds(seen.seconds)
        }


async def _all(
    service: Running, stored: str, clients: int, seconds: float, seed: int, seen: Seen, memory: list[int]
) -> None:
    end = time.monotonic() + seconds
    limits = httpx2.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx2.AsyncClient(base_url=service.address, timeout=60, limits=limits) as client:
        tasks = [_one(client, stored, random.Random(f"{seed} {number}"), end, seen) for number in range(clients)]
        watching = asyncio.create_task(_watch(service, memory, seconds / 10))
        await asyncio.gather(*tasks)
        watching.cancel()


async def _watch(service: Running, memory: list[int], pause: float) -> None:
    while True:
        await asyncio.sleep(pause)
        memory.append(service.web_memory())


async def _one(client: httpx2.AsyncClient, stored: str, chance: random.Random, end: float, seen: Seen) -> None:
    while time.monotonic() < end:
        act = chance.choices((_read, _read_text, _ask_why, _explore_new, _ask_nonsense), (50, 10, 10, 15, 15))[0]
        started = time.monotonic()
        try:
            await act(client, stored, chance, seen)
        except httpx2.HTTPError as failure:
            seen.fault(f"{act.__name__}: {type(failure).__name__}: {failure}")
        seen.seconds.append(time.monotonic() - started)
        await asyncio.sleep(chance.expovariate(1.0))


async def _read(client: httpx2.AsyncClient, stored: str, chance: random.Random, seen: Seen) -> None:
    answer = await client.get(f"{EXPLORATIONS}/{stored}")
    _expect(seen, "read", answer, 200)
    if answer.status_code == 200 and answer.json()["source"] != STORED:
        seen.fault("a report of another source")


async def _read_text(client: httpx2.AsyncClient, stored: str, chance: random.Random, seen: Seen) -> None:
    _expect(seen, "text", await client.get(f"{EXPLORATIONS}/{stored}.md"), 200)


async def _ask_why(client: httpx2.AsyncClient, stored: str, chance: random.Random, seen: Seen) -> None:
    _expect(seen, "why", await client.get(f"{EXPLORATIONS}/{stored}/why?a=sin&b=add"), 200)


async def _explore_new(client: httpx2.AsyncClient, stored: str, chance: random.Random, seen: Seen) -> None:
    # Of few sources, so that several clients ask for the same at the same time.
    source = f"unlike = {chance.randrange(500)}\n"
    answer = await client.post(EXPLORATIONS, json={"source": source})
    _expect(seen, "explore", answer, 200, 202)
    if answer.status_code not in (200, 202):
        return
    id = answer.json()["id"]
    seen.promised[id] = source
    found = await client.get(f"{EXPLORATIONS}/{id}")
    _expect(seen, "promised", found, 200)
    if chance.random() < 0.1:
        _expect(seen, "cancel", await client.delete(f"{EXPLORATIONS}/{id}"), 200, 202)


async def _ask_nonsense(client: httpx2.AsyncClient, stored: str, chance: random.Random, seen: Seen) -> None:
    body, status = chance.choice(NONSENSE)
    answer = await client.post(EXPLORATIONS, content=body, headers={"Content-Type": "application/json"})
    _expect(seen, "nonsense", answer, status)
    _expect(seen, "unknown", await client.get(f"{EXPLORATIONS}/{chance.randrange(16**8):020x}"), 404)


def _expect(seen: Seen, what: str, answer: httpx2.Response, *statuses: int) -> None:
    seen.statuses[f"{what} {answer.status_code}"] += 1
    if answer.status_code == 429:
        if not answer.headers.get("retry-after", "").isdigit():
            seen.fault(f"{what}: 429 without Retry-After")
    elif answer.status_code not in statuses:
        seen.fault(f"{what}: {answer.status_code} {answer.text[:200]}")


def _promises_kept(client: httpx2.Client, seen: Seen, patience: float) -> int:
    """Waits for all that was promised; how many have not ended after so many seconds."""
    end = time.monotonic() + patience
    waiting = dict(seen.promised)
    while waiting and time.monotonic() < end:
        for id, source in list(waiting.items()):
            answer = client.get(f"{EXPLORATIONS}/{id}")
            if answer.status_code == 429:
                time.sleep(1.0)
                continue
            _expect(seen, "promised", answer, 200)
            report = answer.json()
            if answer.status_code != 200 or report["source"] != source:
                seen.fault(f"promise {id} is not kept: {answer.status_code}")
                del waiting[id]
            elif report["status"] != "running":
                del waiting[id]
        time.sleep(0.5)
    return len(waiting)
