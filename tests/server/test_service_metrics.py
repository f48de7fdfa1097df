"""What /metrics tells whoever runs the service, and that nobody who asks can make it grow without end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.conftest import Service, forging, running_service

pytestmark = pytest.mark.asyncio


async def samples(service: Service) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = (await service.client.get("/metrics")).text
    families = text_string_to_metric_families(text)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(found: dict[tuple[str, frozenset[tuple[str, str]]], float], name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


async def test_they_tell_of_requests_jobs_waits_and_devices(tmp_path: Path) -> None:
    async with running_service(tmp_path) as service:
        report = await service.explore("verdict = 'counted'")
        await service.explore("verdict = 'counted'")
        await service.explore("import os; os.abort()")
        await service.client.get(f"/api/v1/explorations/{report['id']}.md")
        found = await samples(service)
        assert value(found, "fusionscope_jobs_total", device="cpu", ending="exited") == 2
        assert value(found, "fusionscope_queue_seconds_count") == 2
        assert value(found, "fusionscope_timing_wait_seconds_count", device="cpu") == 2
        assert value(found, "fusionscope_job_seconds_count", device="cpu", status="ok") == 1
        assert value(found, "fusionscope_stage_seconds_count", device="cpu", stage="run") == 1
        assert value(found, "fusionscope_served_from_store_total") == 1
        route = "/api/v1/explorations/{id}.md"
        assert value(found, "fusionscope_requests_total", route=route, status="200") == 1
        ready = {labels: value for (name, labels), value in found.items() if name == "fusionscope_device_ready"}
        assert list(ready.values()) == [1]
        assert dict(next(iter(ready)))["device"] == "cpu"


async def test_no_request_and_no_report_makes_a_series_of_its_own(tmp_path: Path) -> None:
    async with running_service(tmp_path) as service:
        await service.explore("verdict = 0")
        await service.client.get("/metrics")
        before = {name for name, labels in await samples(service)}
        stages = [{"name": f"forged{number}", "ms": 1.0, "status": "done"} for number in range(40)]
        await service.explore(forging({"/stages": stages, "/status": "ok"}))
        for number in range(40):
            for path in (
                f"/nothing{number}",
                f"/x/{number}",
                f"/api/v1/explorations/{number}",
                f"/api/v1/reasons/r{number}",
            ):
                await service.client.get(path, headers={"X-Request-ID": f"id{number}"})
        text = (await service.client.get("/metrics")).text
        assert not re.search(r"forged|nothing|r39|id39", text)
        assert {name for name, labels in await samples(service)} == before
