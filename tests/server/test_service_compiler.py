"""The service with the compiler that it is made for, confined as it is in use."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from compiler.report import Report
from server import gallery
from server.worker.channel import Program
from tests.server.conftest import TWO_KERNELS, Service, running_service

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real_service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """With the compiler, in the tier that works here."""
    # The kernel counts processes by user, and a fork bomb of another test may run as the same one at this moment.
    data = tmp_path_factory.mktemp("data")
    async with running_service(
        data, Program(), tier=None, trust_snippets=None, processes=2048, wall_seconds=600
    ) as running:
        yield running


async def test_an_example_becomes_kernels_in_the_confined_worker(real_service: Service) -> None:
    example = next(example for example in gallery.examples() if example.name == "pointwise_chain")
    source = example.source.replace("4096, 4096", "256, 256")
    raw = await real_service.explore(source, timing={"enabled": False})
    report = Report.model_validate(raw)
    assert report.status == "ok", report.error
    assert [stage.name for stage in report.stages][:2] == ["capture", "lower"]
    assert len(report.graphs[0].kernels) == 1
    assert report.observed is not None and report.observed.tier in ("A", "B")
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


async def test_the_examples_of_the_description_are_of_its_example_of_a_request(real_service: Service) -> None:
    described = real_service.app.openapi()
    asked = described["components"]["schemas"]["ExplorationRequest"]["example"]
    id = (await real_service.explore(**asked, timing={"enabled": False}))["id"]
    refused = []
    for path, methods in described["paths"].items():
        # A trace and another exploration are none of the example's.
        if "{id}" not in path or "/explorations/" not in path or path.endswith((".trace.json", "/comparison")):
            continue
        method = next(name for name in methods if name != "delete")
        shown = {one["name"]: one["schema"]["examples"][0] for one in methods[method].get("parameters", ())}
        address = path.format(**{"name": shown.get("name"), "id": id})
        asked = {one["name"]: shown[one["name"]] for one in methods[method]["parameters"] if one["in"] == "query"}
        answer = await real_service.client.request(method, address, params=asked)
        if answer.status_code not in (200, 202):
            refused.append(answer.text)
    assert refused == []


async def test_measured_times_of_an_honest_snippet_contradict_nothing(real_service: Service) -> None:
    raw = await real_service.explore(SIZES, timing={"min_runs": 3})
    report = Report.model_validate(raw)
    assert report.status == "ok" and report.observed is not None, report.error
    assert report.observed.contradictions == []
    assert report.summary.eager_ms and report.timing is not None and report.environment.device == "cpu"
    assert report.observed.wall_seconds >= sum(stage.ms for stage in report.stages) / 1000 - 0.25


async def test_a_crash_below_the_compiler_names_the_line(real_service: Service) -> None:
    report = await real_service.explore("import ctypes\n\nctypes.string_at(0)")
    assert (report["status"], report["error"]["type"], report["error"]["line"]) == ("crashed", "SIGSEGV", 3)


async def test_known_devices_are_those_of_the_compiler(real_service: Service) -> None:
    await real_service.explore("1 / 0")
    known = (await real_service.client.get("/api/v1/devices")).json()["known"]
    assert {"cpu", "sm_90"} <= {device["target"] for device in known}


SIZES = """import torch
N = 64
def f(x):
    return (torch.sin(x) / N).sum(-1)
f(torch.randn(1024 // N, N))
"""


async def test_a_sweep_runs_confined_like_every_snippet_and_is_told_as_text(real_service: Service) -> None:
    wanted = {"name": "N", "values": [128, 32, 0]}
    raw = await real_service.explore(SIZES, timing={"enabled": False}, sweep=wanted)
    report = Report.model_validate(raw)
    assert report.status == "ok" and report.sweep is not None, report.error
    assert [(size.value, size.launches) for size in report.sweep.sizes[1:]] == [(32, 1), (128, 1)]
    # Python says it in other words from release to release.
    assert (report.sweep.sizes[0].error or "").startswith("ZeroDivisionError (line 5): ")
    stages = [event for event in await real_service.events(report.id) if event["event"] == "stage"]
    assert sum(json.loads(event["data"])["stage"]["name"].startswith("sweep ") for event in stages) == 3
    text = (await real_service.client.get(f"/api/v1/explorations/{report.id}.md")).text
    assert "## Sizes of N" in text and "| 128 | 1 | 4,128 |" in text
    assert "- N = 0: ZeroDivisionError (line 5): " in text


async def test_a_sweep_that_asks_for_nothing_sensible_is_told_what_is_wrong(real_service: Service) -> None:
    unknown = await real_service.explore(SIZES, produce=["capture"], sweep={"name": "M", "values": [1, 2]})
    assert (unknown["status"], unknown["error"]["type"]) == ("user_error", "UnknownSize")
    assert "Its sizes are N (64, line 2)" in unknown["error"]["message"]
    asked = {"source": SIZES, "sweep": {"name": "N", "values": [4]}}
    refused = await real_service.client.post("/api/v1/explorations", json=asked)
    assert refused.status_code == 422 and "sweep" in refused.text


async def test_a_what_if_is_linked_to_its_first_and_compared_with_it(real_service: Service) -> None:
    client = real_service.client
    first = await real_service.explore(TWO_KERNELS, timing={"min_runs": 3})
    asked = {"forbid": [["relu", "sum_1"]], "force": [["sum_1", "mul"]], "timing": {"min_runs": 3}}
    second = await real_service.explore(TWO_KERNELS, based_on=first["id"], **asked)
    assert second["status"] == "ok", second["error"]
    assert second["based_on"] == first["id"] != second["id"]
    told = {one["option"]: one for one in second["what_if"]}
    assert (told["forbid"]["outcome"], told["force"]["outcome"]) == ("done", "refused")
    assert told["force"]["reason"] == "index.reversed"
    (child,) = (await client.get(f"/api/v1/explorations/{first['id']}/children")).json()
    assert child == {"id": second["id"], "status": "ok", "asked": "force sum_1, mul; forbid relu, sum_1"}
    beside = (await client.get(f"/api/v1/explorations/{second['id']}/comparison")).json()
    assert (beside["before"], beside["after"]) == (first["id"], second["id"])
    figures = {(one["kind"], one["name"]): one for one in beside["figures"]}
    kernels = figures["counted", "generated kernels"]
    assert kernels["after"] == kernels["before"] + 1 == second["summary"]["kernels"]
    measured, predicted = figures["measured", "compiled"], figures["predicted", "generated kernels in a row"]
    assert (
        measured["before"] == first["summary"]["compiled_ms"] and measured["after"] == second["summary"]["compiled_ms"]
    )
    assert predicted["after"] > predicted["before"] and predicted["device"] == "NVIDIA H200"
    text = (await client.get(f"/api/v1/explorations/{second['id']}.md")).text
    assert f"Based on exploration {first['id']}" in text and "- forbid relu and sum_1: done" in text
    assert beside["verdict"] in text and "| generated kernels | counted | " in text
