"""Processes are killed at random moments; each exploration that was promised must end, and be answered once.

Web, the worker and, where it is installed, PostgreSQL run as programs of their own. What is killed is started again at
once, as systemd or a container engine would; what is below the worker must come back by itself. Most kills are aimed at
one exploration: while it waits, while its snippet sleeps, or when that is over and its report is on its way to the
store. A promise that was kept before a kill must read the same after it.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx2

from bench.service.running import Site, kill, site

EXPLORATIONS = "/api/v1/explorations"
SLEEP_SECONDS = 0.3
SOURCE = f"import time\ntime.sleep({SLEEP_SECONDS})\nunlike = {{number}}\n"
#: More wait or run at no time: one that has met many kills would be given up at last.
MOST_AT_ONCE = 4
#: How long a kill waits for the moment that it is aimed at; what runs snippets may have to start first.
AIM_SECONDS = 40.0
KINDS = {"web": 3, "job": 3, "database": 2, "worker": 1, "zygote": 1}
MOMENTS = ("waits", "runs", "runs", "finishes", "finishes", "any")

Moment = Literal["waits", "runs", "finishes", "is over"]


@dataclass
class Seen:
    """What was promised and what came of it. `ends` are the tags of reports that are done."""

    chance: random.Random
    killed: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    promised: dict[str, str] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def under_way(self) -> list[str]:
        return [id for id in self.promised if id not in self.ends]


def kills(number: int, seed: int) -> dict[str, Any]:
    """So many kills, with explorations asked for before and between them."""
    seen = Seen(random.Random(seed))
    started = time.monotonic()
    # An attempt that a kill has ended is no fault of the snippet's: with so many kills one may meet several.
    with site(lease_seconds="5", attempts="20") as running:
        running.web.wait_for("/readyz", running.client)
        for turn in range(number):
            _promise(running, turn, seen)
            _kill_one(running, seen)
            running.start_again()
            running.web.wait_for("/healthz", running.client)
            _look_after(running.client, seen)
            if turn % 10 == 9:
                told = f"{turn + 1} kills, {len(seen.promised)} promised, {len(seen.ends)} ended"
                print(f"{told}, faults: {seen.faults}", flush=True)
        last = _all_ends(running.client, seen, patience=300.0)
        database = "PostgreSQL" if running.database is not None else "SQLite"
    return {
        f"{number} kills": {
            "database": database,
            "seconds": round(time.monotonic() - started),
            "killed": dict(sorted(seen.killed.items())),
            "met": dict(sorted(seen.met.items())),
            "answers": dict(sorted(seen.answers.items())),
            "promised": len(seen.promised),
            "ended": dict(Counter(report["status"] for report in last.values())),
            "attempts": dict(sorted(Counter(str(_attempt(report)) for report in last.values()).items())),
            "unfinished": len(seen.promised) - len(last),
            "faults": len(seen.faults),
            "first_faults": seen.faults[:10],
        }
    }


def _attempt(report: dict[str, Any]) -> int:
    return int((report["observed"] or {"attempt": 0})["attempt"])


def _promise(running: Site, number: int, seen: Seen) -> None:
    if len(seen.under_way()) >= MOST_AT_ONCE:
        return
    source = SOURCE.format(number=number)
    try:
        answer = running.client.post(EXPLORATIONS, json={"source": source})
    except httpx2.TransportError as failure:
        seen.answers[type(failure).__name__] += 1
        return
    seen.answers[str(answer.status_code)] += 1
    if answer.status_code in (200, 202):
        seen.promised[answer.json()["id"]] = source
    elif answer.status_code not in (429, 503):
        seen.faults.append(f"asking: {answer.status_code} {answer.text[:200]}")


def _kill_one(running: Site, seen: Seen) -> None:
    """Waits for the moment that is drawn, and kills what is drawn. SQLite's database is web's own process."""
    kind = seen.chance.choices(list(KINDS), list(KINDS.values()))[0]
    aimed = seen.chance.choice(MOMENTS)
    moment = _aim(running.client, aimed, seen)
    if kind == "web" or (kind == "database" and running.database is None):
        running.web.kill()
    elif kind == "worker":
        running.worker.kill()
    elif kind == "database":
        assert running.database is not None
        running.database.kill()
    else:
        parents, leaves = running.below_worker()
        among = leaves if kind == "job" else parents
        if among:
            kill(seen.chance.choice(among))
    seen.killed[kind] += 1
    seen.met[f"{kind}: {moment}"] += 1


def _aim(client: httpx2.Client, aimed: str, seen: Seen) -> Moment:
    """Waits for one exploration to be where the kill is aimed at; where it is when that is over."""
    chance, under_way = seen.chance, seen.under_way()
    target = under_way[0] if under_way else None
    if target is None or aimed == "waits":
        time.sleep(chance.uniform(0.0, 0.05))
        return _moment(client, under_way[-1] if under_way else None)[0]
    if aimed == "any":
        time.sleep(chance.uniform(0.0, 1.0))
        return _moment(client, target)[0]
    until = time.monotonic() + AIM_SECONDS
    found, ran_seconds = _moment(client, target)
    while found == "waits" and time.monotonic() < until:
        time.sleep(0.01)
        found, ran_seconds = _moment(client, target)
    if found in ("waits", "is over"):
        return found
    since = time.monotonic() - ran_seconds
    ends = SLEEP_SECONDS if aimed == "runs" else SLEEP_SECONDS + 0.15
    wanted = chance.uniform(0.0 if aimed == "runs" else SLEEP_SECONDS, ends)
    time.sleep(max(0.0, since + wanted - time.monotonic()))
    return "runs" if time.monotonic() - since < SLEEP_SECONDS else "finishes"


def _moment(client: httpx2.Client, id: str | None) -> tuple[Moment, float]:
    """Where an exploration is, and the seconds that its snippet has run."""
    if id is None:
        return "is over", 0.0
    with contextlib.suppress(httpx2.TransportError):
        answer = client.get(f"{EXPLORATIONS}/{id}")
        if answer.status_code == 200 and (report := answer.json())["status"] != "running":
            return "is over", 0.0
        if answer.status_code == 200 and report["observed"] is not None:
            ran_seconds = float(report["observed"]["wall_seconds"])
            return "runs" if ran_seconds < SLEEP_SECONDS else "finishes", ran_seconds
    return "waits", 0.0


def _look_after(client: httpx2.Client, seen: Seen) -> None:
    """A few of the promises: each must be known, and one that has ended must not change."""
    ids = list(seen.promised)
    older = seen.chance.sample(ids[:-8], min(2, len(ids[:-8])))
    for id in {*ids[-8:], *older}:
        with contextlib.suppress(httpx2.TransportError):
            answer = client.get(f"{EXPLORATIONS}/{id}")
            if answer.status_code != 503:  # the database is not back yet
                _check(id, answer, seen)


def _check(id: str, answer: httpx2.Response, seen: Seen) -> dict[str, Any] | None:
    """The report where it is done."""
    if answer.status_code != 200:
        seen.faults.append(f"{id}: {answer.status_code} {answer.text[:200]}")
        return None
    report: dict[str, Any] = answer.json()
    if report["source"] != seen.promised[id]:
        seen.faults.append(f"{id} is of another source")
    if report["status"] == "running":
        if id in seen.ends:
            seen.faults.append(f"{id} was done and runs again")
        return None
    tag = answer.headers.get("etag", "")
    if seen.ends.setdefault(id, tag) != tag:
        seen.faults.append(f"{id} was answered twice")
    return report


def _all_ends(client: httpx2.Client, seen: Seen, patience: float) -> dict[str, dict[str, Any]]:
    """The reports of all promises that have ended within so many seconds."""
    until = time.monotonic() + patience
    ended: dict[str, dict[str, Any]] = {}
    while len(ended) < len(seen.promised) and time.monotonic() < until:
        for id in seen.promised.keys() - ended.keys():
            answer = client.get(f"{EXPLORATIONS}/{id}")
            if answer.status_code == 503:
                continue
            report = _check(id, answer, seen)
            if report is not None:
                ended[id] = report
        time.sleep(0.5)
    return ended
