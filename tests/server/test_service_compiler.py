"""The service with the compiler that it is made for, confined as it is in use."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from compiler.report import Report
from server import gallery
from server.app import create_app
from server.settings import Settings
from tests.server.conftest import Service

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(120)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real_service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    # The kernel counts processes by user, and a fork bomb of another test may run as the same one at this moment.
    app = create_app(Settings(data=tmp_path_factory.mktemp("data"), log_format="json", processes=2048))
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=90) as client:
            yield Service(app, client)


async def test_an_example_becomes_kernels_in_the_confined_worker(real_service: Service) -> None:
    example = next(example for example in gallery.examples() if example.name == "pointwise_chain")
    source = example.source.replace("4096, 4096", "256, 256")
    raw = await real_service.explore(source, wait=60, timing={"enabled": False})
    report = Report.model_validate(raw)
    assert report.status == "ok", report.error
    assert [stage.name for stage in report.stages][:2] == ["capture", "lower"]
    assert len(report.graphs[0].kernels) == 1
    text = await real_service.client.get(f"/api/v1/explorations/{report.id}.md")
    assert report.graphs[0].kernels[0].name in text.text
    pair = report.graphs[0].decisions[0]
    found = await real_service.client.get(f"/api/v1/explorations/{report.id}/why", params={"a": pair.a, "b": pair.b})
    assert (found.json()[0]["verdict"], found.json()[0]["kernels"]) == ("fused", [report.graphs[0].kernels[0].name])
    unknown = await real_service.client.get(
        f"/api/v1/explorations/{report.id}/why", params={"a": f"{pair.a}x", "b": pair.b}
    )
    assert unknown.headers["content-type"] == "application/problem+json" and unknown.status_code == 404
    assert f"The nearest are {pair.a}" in unknown.json()["detail"]


async def test_a_crash_below_the_compiler_names_the_line(real_service: Service) -> None:
    report = await real_service.explore("import ctypes\n\nctypes.string_at(0)", wait=60)
    assert (report["status"], report["error"]["type"], report["error"]["line"]) == ("crashed", "SIGSEGV", 3)


async def test_known_devices_are_those_of_the_compiler(real_service: Service) -> None:
    await real_service.explore("1 / 0", wait=60)
    known = (await real_service.client.get("/api/v1/devices")).json()["known"]
    assert {"cpu", "sm_90"} <= {device["target"] for device in known}
