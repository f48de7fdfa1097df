"""How much one client may explore, on the whole service; and what is never logged while it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from server import tokens
from server.tokens import Quota
from tests.server.conftest import forging, running_service

pytestmark = pytest.mark.asyncio

WORD = "quetzalcoatl"
SLOW = "import time; time.sleep(600)  # {}"


def authorized(file: Path, name: str, quota: Quota) -> dict[str, str]:
    return {"Authorization": f"Bearer {tokens.make(file, name, quota)}"}


async def test_each_token_has_its_own_share_and_what_is_stored_costs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    few = authorized(file, "few", Quota(explorations_per_hour=2))
    one = authorized(file, "one", Quota(jobs_at_once=1))
    async with running_service(tmp_path, tokens=file) as service:
        path = "/api/v1/explorations?wait=60"
        for number in range(2):
            answer = await service.client.post(path, json={"source": f"verdict = {number}"}, headers=few)
            assert answer.status_code == 200
        third = await service.client.post(path, json={"source": "verdict = 3"}, headers=few)
        assert third.status_code == 429 and 3000 <= int(third.headers["retry-after"]) <= 3600
        stored = await service.client.post(path, json={"source": "verdict = 1"}, headers=few)
        assert (stored.status_code, stored.json()["summary"]["verdict"]) == (200, "1")

        slow = await service.client.post("/api/v1/explorations", json={"source": SLOW.format(1)}, headers=one)
        assert slow.status_code == 202
        second = await service.client.post("/api/v1/explorations", json={"source": SLOW.format(2)}, headers=one)
        assert second.status_code == 429 and int(second.headers["retry-after"]) >= 1
        same = await service.client.post("/api/v1/explorations", json={"source": SLOW.format(1)}, headers=one)
        assert same.status_code == 202, "the same one is not another one"
        gone = await service.client.delete(f"/api/v1/explorations/{slow.json()['id']}", headers=one)
        assert gone.json()["status"] == "cancelled"
        after = await service.client.post(path, json={"source": "verdict = 4"}, headers=one)
        assert after.status_code == 200


async def test_read_only_answers_what_is_stored_and_explores_nothing(tmp_path: Path) -> None:
    async with running_service(tmp_path) as service:
        report = await service.explore("verdict = 'kept'")
    async with running_service(tmp_path, read_only=True, host="0.0.0.0") as service:
        (warning,) = (await service.client.get("/healthz")).json()["warnings"]
        assert "without tokens" in warning
        assert await service.explore("verdict = 'kept'") == report
        path = f"/api/v1/explorations/{report['id']}"
        for suffix in ("", ".md", ".html", "/events", "/children"):
            assert (await service.client.get(path + suffix)).status_code == 200
        refused = [
            await service.client.post("/api/v1/explorations", json={"source": "verdict = 'new'"}),
            await service.client.post("/api/v1/explorations", json={"source": "verdict = 'kept'", "cache": "refresh"}),
        ]
        assert [answer.status_code for answer in refused] == [403, 403]
        assert "read-only" in refused[0].json()["detail"]


async def test_no_snippet_is_logged_however_it_ends(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ends = [
        f"verdict = '{WORD}'",
        f"raise ValueError('{WORD}')",
        f"1 / 0  # {WORD}",
        f"{WORD} is no Python",
        f"import os, sys; print('{WORD}'); sys.stderr.write('{WORD}'); os.write(2, b'{WORD}'); os.abort()",
        forging({"/summary": {"verdict": WORD, WORD: WORD}}),
        forging(WORD.encode()),
        f"import os; os.write(3, b'{WORD}' * 1000)",
        f"import sys; sys.exit('{WORD}')",
    ]
    async with running_service(tmp_path, log_requests=True) as service:
        for source in ends:
            report = await service.explore(source)
            id = report["id"]
            for path in ("", ".md", ".html", f"/why?a={WORD}&b=x", "/comparison"):
                await service.client.get(f"/api/v1/explorations/{id}{path}")
        await service.next_job_is_fine()
    logged = capfd.readouterr().err
    assert logged.count("job_done") == len(ends) + 1
    assert WORD not in logged
