"""Parts: a report cut up and put together is the same report, and no change that is none gets in."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from compiler.options import Options
from compiler.report import Environment, FxNode, Graph, Report, Stage, Summary
from server.running import RunningReport
from server.wire.messages import WorkerIdentity
from server.wire.parts import MOST_GRAPHS, Parts, PartsRejected, Sent, as_object, join, split


def stage(name: str) -> Stage:
    return Stage(name=name, ms=1.5, status="done")


def way() -> list[Report]:
    """A report as it grows: stages, then a graph, then what is in it, then another graph."""
    captured = Report(source="x", stages=[stage("capture")], graphs=[Graph(name="g0", fx=[])])
    node = FxNode(name="mul", op="call", target="aten.mul", lines=[3], text='ä \N{SNOWMAN} \\ " \u2028')
    lowered = captured.model_copy(update={"stages": [*captured.stages, stage("lower")]}, deep=True)
    lowered.graphs[0].aten = [node] * 3
    again = lowered.model_copy(update={"graphs": [*lowered.graphs, Graph(name="g1", partner="g0")]})
    over = again.model_copy(update={"status": "ok", "summary": Summary(verdict="fine", kernels=1)})
    return [Report(source="x"), captured, lowered, again, over]


def fresh(most_bytes: int = 10**6) -> Parts:
    return Parts(Report(source="x"), most_bytes)


@pytest.mark.parametrize("report", way(), ids=range(len(way())))
def test_a_report_in_parts_is_the_same_report_byte_for_byte(report: Report) -> None:
    assert join(split(report)) == report.model_dump_json().encode()


def test_each_change_brings_the_other_side_to_the_newer_report() -> None:
    sent, parts = Sent(), fresh()
    for report in way():
        names = parts.take(sent.changed(report))
        assert parts.report() == report
        assert parts.join() == report.model_dump_json().encode()
        changed = json.loads(as_object(parts.all(), names))
        assert all(changed[name] == json.loads(parts[name]) for name in names)


def test_only_what_changed_is_sent() -> None:
    sent = Sent()
    _, captured, lowered, again, over = way()
    sent.changed(captured)
    assert set(json.loads(sent.changed(lowered))) == {"/stages", "/graphs/0/aten"}
    assert {"/graphs", "/graphs/1/name"} <= set(json.loads(sent.changed(again)))
    assert set(json.loads(sent.changed(over))) == {"/status", "/summary"}
    assert sent.changed(over) == b""


def test_a_graph_that_is_gone_is_gone() -> None:
    sent, parts = Sent(), fresh()
    *_, two, _ = way()
    parts.take(sent.changed(two))
    one = two.model_copy(update={"graphs": two.graphs[1:]})
    parts.take(sent.changed(one))
    assert parts.report() == one
    assert not any(name.startswith("/graphs/1/") for name in parts.all())


def test_what_the_service_knows_is_not_taken_from_anybody_else() -> None:
    parts = fresh()
    for name in ("version", "id", "source", "options", "based_on"):
        with pytest.raises(PartsRejected, match="no part"):
            parts.take(json.dumps({f"/{name}": "1"}).encode())
    assert parts.put(Report(source="x", id="a", environment=Environment(torch="2"))) == ["/id", "/environment"]
    assert parts.head().id == "a"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b"[" * 100_000,
        b'{"/output":"' + b"9" * 100,
        b'{"/output":"\\ud800"}',
        b'{"/output":"\xff"}',
        b'{"/output":1}',
        b'{"/output":null}',
        b'{"output":""}',
        b'{"/nothing":1}',
        b'{"/summary":{"eager_ms":NaN}}',
        b'{"/summary":{"eager_ms":Infinity}}',
        b'{"/summary":{"eager_ms":1e999}}',
        b'{"/summary":{"eager_ms":-1e999}}',
        b'{"/summary":{"eager_ms":' + b"9" * 400 + b".0}}",
        b'{"/environment":{"clocks":{"sm":1e999}}}',
        b'{"/summary":{"forged":1}}',
        b'{"/stages":[{"name":"capture"}]}',
        b'{"/environment":{"seed":' + b"9" * 6000 + b"}}",
        b'{"/environment":{"clocks":' + b'{"a":' * 150 + b"1" + b"}" * 150 + b"}",
        b'{"/graphs":1}',
        b'{"/graphs":-1}',
        b'{"/graphs":true}',
        b'{"/graphs":"1","/graphs/0/name":"g"}',
        b'{"/graphs":[]}',
        b'{"/graphs":1e3}',
        b'{"/graphs/0/name":"g"}',
        b'{"/graphs":1,"/graphs/0/name":"g","/graphs/1/name":"h"}',
        b'{"/graphs":1,"/graphs/0/name":"g","/graphs/00/name":"h"}',
        b'{"/graphs":1,"/graphs/0/name":"g","/graphs/0/nothing":"h"}',
        b'{"/graphs":1,"/graphs/0/name":"g","/graphs/-1/name":"h"}',
        f'{{"/graphs":{MOST_GRAPHS + 1}}}'.encode(),
        b'{"/graphs":' + b"9" * 4000 + b"}",
    ],
)
def test_what_is_no_change_of_a_report_is_refused_and_changes_nothing(payload: bytes) -> None:
    parts = fresh()
    before = parts.join()
    with pytest.raises(PartsRejected) as refusal:
        parts.take(payload)
    assert len(str(refusal.value)) < 500
    assert parts.join() == before


def test_a_text_about_infinity_is_a_text() -> None:
    parts = fresh()
    assert parts.take(b'{"/output":"Infinity 1e999 NaN"}') == ["/output"]


def test_what_is_written_twice_counts_once_and_is_written_anew() -> None:
    parts = fresh()
    parts.take(b'{"/output" : "a" , "/output":\n"b", "/summary":{"kernels":"7"}}')
    assert parts["/output"] == b'"b"'
    assert parts.report().summary.kernels == 7


def test_a_report_that_grows_too_large_is_refused_and_stays_as_it_was() -> None:
    parts = fresh(most_bytes=4000)
    parts.take(json.dumps({"/output": "a" * 2000}).encode())
    with pytest.raises(PartsRejected, match="at most 4000"):
        parts.take(json.dumps({"/output": "a" * 4000}).encode())
    with pytest.raises(PartsRejected, match="at most 4000"):
        parts.take(json.dumps({"/graphs": 9} | {f"/graphs/{n}/name": "g" for n in range(9)}).encode())
    assert parts.report().output == "a" * 2000


def test_what_web_reads_while_a_job_runs_is_small() -> None:
    """Each stage is an event. All else of a large report is read apart."""
    parts = fresh()
    with pytest.raises(PartsRejected, match="at most 32768 are allowed"):
        parts.take(json.dumps({"/stages": [stage("capture").model_dump()] * 20_000}).encode())
    parts.take(json.dumps({"/output": "a" * 300_000}).encode())


@pytest.mark.asyncio
async def test_a_change_costs_what_it_changes_however_large_the_report_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snippet may send thousands of small changes of a report of 32 MiB."""
    job: Any = SimpleNamespace(
        id="a", source="x", options=Options(), based_on=None, profile=WorkerIdentity(device="cpu"), attempt=1
    )
    running = RunningReport(job, 10**6)
    await running.take(b'{"/stages":[{"name":"capture","ms":1.5,"status":"done"}],"/output":"a"}')

    def read_all(*_: object) -> bytes:
        raise AssertionError("All of the report was put together.")

    monkeypatch.setattr("server.wire.parts.join", read_all)
    assert await running.take(b'{"/output":"b"}') == []
    assert await running.take(b'{"/environment":{"torch":"9"}}') == []
    stages = [stage("capture").model_dump(), stage("lower").model_dump()]
    ((told, changed),) = await running.take(json.dumps({"/stages": stages}).encode())
    assert json.loads(told)["name"] == "lower" and json.loads(changed)["/output"] == "b"


@pytest.mark.asyncio
async def test_an_event_brings_no_more_than_a_reader_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reader takes memory for it; the report itself has all."""
    monkeypatch.setattr("server.running.MOST_CHANGED_BYTES", 1000)
    job: Any = SimpleNamespace(
        id="a", source="x", options=Options(), based_on=None, profile=WorkerIdentity(device="cpu"), attempt=1
    )
    running = RunningReport(job, 10**6)
    names = ("capture", "lower", "schedule")
    outputs = ("a" * 10, "b" * 1000, "c" * 10)
    told = []
    for place, output in enumerate(outputs, start=1):
        stages = [stage(name).model_dump() for name in names[:place]]
        ((_, changed),) = await running.take(json.dumps({"/stages": stages, "/output": output}).encode())
        told.append(json.loads(changed))
    assert [set(changed) for changed in told] == [{"/stages", "/output"}, {"/stages"}, {"/stages"}]
    assert json.loads(running.body(None))["output"] == outputs[-1]
