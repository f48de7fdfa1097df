"""Processes are killed at random moments; each exploration that was promised must end, and be answered once.

Web is started again after it was killed, as systemd or a container engine would; what is below it must come back by
itself. A promise that was kept before a kill must read the same after it.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from typing import Any

import httpx2

from bench.service.running import Running, client_of, kill, running

EXPLORATIONS = "/api/v1/explorations"
#: Sleeps a little, so that a kill often finds it running.
SOURCE = "import time\ntime.sleep(0.3)\nunlike = {number}\n"


def kills(number: int, seed: int) -> dict[str, Any]:
    """So many kills, with explorations asked for before and between them."""
    chance = random.Random(seed)
    killed: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    faults: list[str] = []
    promised: dict[str, str] = {}
    ends: dict[str, str] = {}
    # An attempt that a kill has ended is no fault of the snippet's: with so many kills one may meet several.
    with running(lease_seconds="5", attempts="10") as service, client_of(service) as client:
        service.wait_for("/readyz", client)
        for turn in range(number):
            _promise(client, turn, promised, faults, asked)
            time.sleep(chance.uniform(0.0, 1.0))
            killed[_kill_one(service, chance)] += 1
            if service.has_ended:
                service.start()
                service.wait_for("/healthz", client)
            _look_after(client, promised, ends, faults)
        statuses = _all_ends(client, promised, ends, faults, patience=300.0)
        left = len([line for line in service.processes().values() if "defunct" in line])
    return {
        f"{number} kills": {
            "killed": dict(killed),
            "answers": dict(asked),
            "promised": len(promised),
            "ended": dict(statuses),
            "unfinished": len(promised) - sum(statuses.values()),
            "faults": len(faults),
            "first_faults": faults[:10],
            "zombies": left,
        }
    }


def _promise(
    client: httpx2.Client, number: int, promised: dict[str, str], faults: list[str], asked: Counter[str]
) -> None:
    source = SOURCE.format(number=number)
    try:
        answer = client.post(EXPLORATIONS, json={"source": source})
    except httpx2.TransportError as failure:
        asked[type(failure).__name__] += 1
    else:
        asked[str(answer.status_code)] += 1
        if answer.status_code in (200, 202):
            promised[answer.json()["id"]] = source
        elif answer.status_code != 429:
            faults.append(f"asking: {answer.status_code} {answer.text[:200]}")


def _kill_one(service: Running, chance: random.Random) -> str:
    """Any process of the service's, the web program as often as all others together."""
    others = [process for process in service.processes() if process != service.process]
    if not others or chance.random() < 0.5:
        service.kill()
        return "web"
    kill(chance.choice(others))
    return "below web"


def _look_after(client: httpx2.Client, promised: dict[str, str], ends: dict[str, str], faults: list[str]) -> None:
    """A few of the promises: each must be known, and one that has ended must not change."""
    for id in list(promised)[-5:]:
        with contextlib.suppress(httpx2.TransportError):
            answer = client.get(f"{EXPLORATIONS}/{id}")
            if answer.status_code != 200:
                faults.append(f"{id}: {answer.status_code} {answer.text[:200]}")
                continue
            status, tag = answer.json()["status"], answer.headers.get("etag", "")
            if status != "running" and ends.setdefault(id, tag) != tag:
                faults.append(f"{id} was answered twice")


def _all_ends(
    client: httpx2.Client, promised: dict[str, str], ends: dict[str, str], faults: list[str], patience: float
) -> Counter[str]:
    """How all promises ended; those that have not after so many seconds are missing."""
    until = time.monotonic() + patience
    statuses: dict[str, str] = {}
    while len(statuses) < len(promised) and time.monotonic() < until:
        for id in promised.keys() - statuses.keys():
            answer = client.get(f"{EXPLORATIONS}/{id}")
            if answer.status_code != 200:
                faults.append(f"{id}: {answer.status_code} at the end")
                statuses[id] = f"lost ({answer.status_code})"
                continue
            report = answer.json()
            if report["status"] == "running":
                continue
            statuses[id] = report["status"]
            if report["source"] != promised[id]:
                faults.append(f"{id} is of another source")
            if ends.setdefault(id, answer.headers.get("etag", "")) != answer.headers.get("etag", ""):
                faults.append(f"{id} was answered twice")
        time.sleep(0.5)
    return Counter(statuses.values())
