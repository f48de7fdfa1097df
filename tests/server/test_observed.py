"""What a report claims against what the service saw: what cannot be is neither believed nor kept as an answer."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.report import (
    Contestant,
    Environment,
    Graph,
    Kernel,
    Report,
    Stage,
    Summary,
    SweepResult,
    SweptSize,
    TimingResult,
)
from server.observed import contradictions
from server.wire.messages import Ended, WorkerIdentity
from tests.server.conftest import Service, forging

PROFILE = WorkerIdentity(python="3.12.0", torch="2.13.0", triton="3.7.1", device="cpu", device_name="a processor")
GPU = PROFILE.model_copy(update={"device": "cuda", "device_name": "NVIDIA H200"})
ENDED = Ended(job="a.1", ending="exited", exit_code=0, wall_seconds=10.0)


def measured(eager: list[float], compiled: list[float], **fields: Any) -> Report:
    """A report whose sums follow from its samples."""
    middle = {name: sorted(samples)[len(samples) // 2] for name, samples in (("eager", eager), ("compiled", compiled))}
    contestants = [
        Contestant(name=name, samples_ms=samples, median_ms=middle[name], low_ms=samples[0], high_ms=samples[-1])
        for name, samples in (("eager", eager), ("compiled", compiled))
    ]
    summary = Summary(
        eager_ms=middle["eager"], compiled_ms=middle["compiled"], speedup=middle["eager"] / middle["compiled"]
    )
    timing = TimingResult(method="m", device="cpu", cold_l2=False, contestants=contestants)
    return Report(source="", status="ok", timing=timing, summary=summary, **fields)


def kernel(**fields: Any) -> Graph:
    return Graph(name="g", kernels=[Kernel.model_validate({**_KERNEL, **fields})])


_KERNEL: dict[str, object] = {
    name: "k" for name, field in Kernel.model_fields.items() if field.is_required() and field.annotation is str
}
for _name, _field in Kernel.model_fields.items():
    if _field.is_required() and _name not in _KERNEL:
        _KERNEL[_name] = (
            [] if "list" in str(_field.annotation) else "triton" if "triton" in str(_field.annotation) else 0
        )


def test_what_can_be_is_believed() -> None:
    stages = [Stage(name="measure", ms=9000.0, status="done")]
    environment = Environment(python="3.12.0", torch="2.13.0", triton="3.7.1", device="cpu", device_name="a processor")
    report = measured([20.0, 21.0, 22.0], [1.0, 1.1, 1.2], stages=stages, environment=environment)
    assert contradictions(report, ENDED, PROFILE).sentences == []
    assert contradictions(Report(source=""), ENDED, PROFILE).sentences == []
    on_gpu = Report(source="", environment=Environment(device="cuda:0", device_name="NVIDIA H200"))
    assert contradictions(on_gpu, ENDED, GPU).sentences == []
    beside_gpu = Report(source="", environment=Environment(device="cpu", device_name="its processor"))
    assert contradictions(beside_gpu, ENDED, GPU).sentences == []


@pytest.mark.parametrize(
    ("claimed", "told"),
    [
        (Report(source="", environment=Environment(device="cuda")), "the device 'cuda'"),
        (Report(source="", environment=Environment(device="cpu", device_name="NVIDIA H200")), "'NVIDIA H200'"),
        (Report(source="", environment=Environment(torch="9.9")), "torch '9.9'"),
    ],
)
def test_another_machine_is_told(claimed: Report, told: str) -> None:
    found = contradictions(claimed, ENDED, PROFILE)
    assert told in found.sentences[0] and not found.are_of_times


@pytest.mark.parametrize(
    ("claimed", "told"),
    [
        (Report(source="", stages=[Stage(name="run", ms=6000.0, status="done")] * 2), "stages add up to 12 s"),
        (Report(source="", stages=[Stage(name="run", ms=-5.0, status="done")]), "less than no time"),
        (measured([5000.0, 5000.0, 5000.0], [1.0, 1.0, 1.0]), "samples of the times add up to 15 s"),
        (measured([1.0, 1.0, 1.0], [1e-6, 1e-6, 1e-6]), "no call does"),
        (Report(source="", summary=Summary(speedup=48e6)), "not the quotient"),
        (Report(source="", summary=Summary(eager_ms=4800.0)), "not what was sampled"),
        (Report(source="", graphs=[kernel(measured_us=-1.0)]), "took no time"),
        (Report(source="", graphs=[kernel(gb_per_s=1e9)]), "GB in a second"),
        (Report(source="", graphs=[kernel(measured_us=11e6)]), "kernels add up to 11 s"),
        (
            Report(source="", sweep=SweepResult(name="N", sizes=[SweptSize(value=1, eager_ms=20_000.0)])),
            "sizes add up to 20 s",
        ),
    ],
)
def test_times_that_cannot_be_are_told(claimed: Report, told: str) -> None:
    found = contradictions(claimed, ENDED, PROFILE)
    assert found.are_of_times
    assert any(told in sentence for sentence in found.sentences), found.sentences


pytest_asyncio_scope = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio_scope
async def test_the_service_says_what_it_saw(service: Service) -> None:
    report = await service.explore("import time; time.sleep(0.2); verdict = 'seen'")
    seen = report["observed"]
    assert (seen["ending"], seen["exit_code"], seen["signal"]) == ("exited", 0, None)
    assert seen["wall_seconds"] >= 0.2 and seen["attempt"] == 1 and seen["contradictions"] == []
    assert (seen["tier"], seen["device"]) == ("trusted", "cpu") and seen["device_name"] and seen["torch"]
    crashed = (await service.explore("import os; os.abort()"))["observed"]
    assert (crashed["exit_code"], crashed["signal"]) == (None, 6)


@pytest_asyncio_scope
async def test_a_forged_report_is_neither_believed_nor_kept_as_an_answer(service: Service) -> None:
    forged = {
        "/status": "ok",
        "/environment": {"device": "cuda", "device_name": "NVIDIA H200", "torch": "9.9"},
        "/summary": {"eager_ms": 480.0, "compiled_ms": 1e-5, "speedup": 48e6, "verdict": "48 million times as fast"},
        "/timing": measured([480.0] * 3, [1e-5] * 3).model_dump()["timing"],
    }
    report = await service.explore(forging(forged))
    assert report["summary"]["verdict"].startswith("This report is not to be believed: ")
    assert report["environment"]["device"] == "cpu" and report["environment"]["torch"] != "9.9"
    assert "H200" not in report["environment"]["device_name"]
    summary = report["summary"]
    assert [summary[name] for name in ("eager_ms", "compiled_ms", "speedup")] == [None, None, None]
    assert report["timing"] is None
    told = " ".join(report["observed"]["contradictions"])
    assert "NVIDIA H200" in told and "no call does" in told
    path = f"/api/v1/explorations/{report['id']}"
    assert "immutable" not in (await service.client.get(path)).headers["cache-control"]
    text = (await service.client.get(f"{path}.md")).text
    assert "not to be believed" in text
    again = await service.explore(forging(forged))
    assert again["observed"]["attempt"] == 2, "it was run again"


@pytest_asyncio_scope
async def test_a_forged_report_cannot_pass_for_another_exploration(service: Service) -> None:
    source = forging({"/status": "ok", "/summary": {"verdict": "mine"}, "/output": "also mine"})
    report = await service.explore(source)
    assert (report["source"], report["output"], report["status"]) == (source, "also mine", "ok")
    for part in ("/id", "/source", "/observed", "/options", "/based_on", "/version"):
        rejected = await service.explore(forging({part: None, "/status": "ok"}))
        assert rejected["error"]["type"] == "ReportRejected" and rejected["observed"]["ending"] == "exited"
    await service.next_job_is_fine()


@pytest_asyncio_scope
@pytest.mark.parametrize(
    "payload",
    [
        b'{"/status": "ok"',
        b"NaN",
        b"[" * 30_000,
        b'{"/summary": {"eager_ms": NaN}}',
        b'{"/summary": {"eager_ms": 1e999}}',
        b'{"/output": "\\ud800"}',
        b'{"/graphs": ' + b"9" * 6000 + b"}",
        b'{"/surprise": 1}',
        b"\x01" * 10_000,
    ],
    ids=["incomplete", "not an object", "deep", "NaN", "infinite", "surrogate", "huge integer", "extra part", "noise"],
)
async def test_what_is_no_report_is_rejected(service: Service, payload: bytes) -> None:
    report = await service.explore(forging(payload))
    assert (report["status"], report["error"]["type"]) == ("crashed", "ReportRejected")
    await service.next_job_is_fine()
