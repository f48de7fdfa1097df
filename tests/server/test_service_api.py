"""What the API promises to a client that asks properly, and what it says to one that does not."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from compiler.options import DEVICE_MODELS, RULES, Options
from compiler.report import REPORT_VERSION
from server.database.compressed import body_of_text
from server.database.reports import Finished, write
from server.worker.channel import Program
from tests.server.conftest import Service, forging, running_service

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_finished_exploration_is_answered_with_its_report(service: Service) -> None:
    answer = await service.client.post("/api/v1/explorations?wait=60", json={"source": "verdict = 'done'"})
    assert answer.status_code == 200
    report = answer.json()
    assert report["status"] == "ok"
    assert report["summary"]["verdict"] == "done"
    assert [stage["name"] for stage in report["stages"]] == ["capture", "run", "compare"]
    assert answer.headers["location"] == f"/api/v1/explorations/{report['id']}"


async def test_an_unfinished_one_is_answered_202_with_its_place(service: Service) -> None:
    answer = await service.client.post("/api/v1/explorations", json={"source": "import time; time.sleep(1)"})
    assert answer.status_code == 202
    assert answer.json()["status"] == "running"
    events = await service.events(answer.json()["id"])
    assert events[-1]["event"] == "done"
    final = await service.client.get(answer.headers["location"])
    assert final.json()["status"] == "ok"


async def test_the_same_question_is_answered_from_the_store(service: Service) -> None:
    source = "import time; verdict = time.time()"
    first = await service.explore(source)
    assert await service.explore(source) == first
    again = await service.explore(source, cache="refresh")
    assert again["id"] == first["id"]
    assert again["summary"]["verdict"] != first["summary"]["verdict"]


async def test_other_options_are_another_exploration(service: Service) -> None:
    first = await service.explore("verdict = options.seed")
    second = await service.explore("verdict = options.seed", seed=7)
    assert first["id"] != second["id"]
    assert second["summary"]["verdict"] == "7"


async def test_a_stored_report_never_changes_and_says_so(service: Service) -> None:
    report = await service.explore("verdict = 'stored'")
    answer = await service.client.get(f"/api/v1/explorations/{report['id']}")
    assert "immutable" in answer.headers["cache-control"]
    tag = answer.headers["etag"]
    unchanged = await service.client.get(f"/api/v1/explorations/{report['id']}", headers={"If-None-Match": tag})
    assert unchanged.status_code == 304
    assert not unchanged.content


async def test_a_head_is_that_of_the_answer_without_its_body(service: Service) -> None:
    report = f"/api/v1/explorations/{(await service.explore('verdict = 5'))['id']}"
    for path in ("/healthz", "/readyz", "/api/v1/devices", "/metrics", report, f"{report}.md", f"{report}/nothing"):
        whole, head = [await service.client.request(method, path) for method in ("GET", "HEAD")]
        assert (head.status_code, head.content) == (whole.status_code, b""), path
        assert head.headers.get("etag") == whole.headers.get("etag")
        assert head.headers["content-type"] == whole.headers["content-type"]
    assert (await service.client.head(f"{report}/events")).status_code == 405
    counted = (await service.client.get("/metrics")).text
    assert 'route="/readyz"' in counted and 'status="405"' in counted


async def test_a_method_that_is_not_answered_is_told_which_are(service: Service) -> None:
    """All of them: several routes may answer one path."""
    of_one = f"/api/v1/explorations/{'a' * 20}"
    allowed = {
        "/api/v1/explorations": "POST",
        of_one: "HEAD, GET, DELETE",
        f"{of_one}/events": "GET",
        "/healthz": "HEAD, GET",
    }
    for path, methods in allowed.items():
        answer = await service.client.put(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods), path


async def test_a_report_can_be_read_as_text(service: Service) -> None:
    report = await service.explore("verdict = 'one kernel instead of four'")
    answer = await service.client.get(f"/api/v1/explorations/{report['id']}.md")
    assert answer.headers["content-type"].startswith("text/markdown")
    assert "one kernel instead of four" in answer.text
    assert report["id"] in answer.text


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "body.source"),
        ({"source": ""}, "body.source"),
        ({"source": "x" * 70_000}, "body.source"),
        ({"source": "x\0"}, "body.source"),
        ({"source": "x", "mode": "fast"}, "body.mode"),
        ({"source": "x", "colour": "red"}, "body.colour"),
        ({"source": "x", "timing": {"min_runs": 0}}, "body.timing.min_runs"),
        ({"source": "x", "target": "sm"}, "body.target"),
    ],
)
async def test_an_invalid_request_is_told_what_is_wrong_and_where(
    service: Service, body: dict[str, object], where: str
) -> None:
    answer = await service.client.post("/api/v1/explorations", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == 422
    assert where in problem["detail"]
    assert where in [error["where"] for error in problem["errors"]]


@pytest.mark.parametrize(
    ("sent", "content_type", "said"),
    [
        ('{"source": "x", "devcie": "cpu"}', "application/json", "body.devcie: there is no such field; perhaps device"),
        ('{"source": "x", "timing": {"runs": 3}}', "application/json", "body.timing.runs: there is no such field"),
        ('{"source": "x\\u0000"}', "application/json", "body.source: the source contains a NUL character"),
        ('{"source": ', "application/json", "it is not JSON from character 11 on: Expecting value"),
        ('{"source": "x"}', "text/plain; charset=utf-8", "body: it is not called JSON: send Content-Type"),
        ("[1]", "application/json", "body: it must be an object with names and values"),
        (
            '{"source": "x", "sweep": {"name": "N", "values": [1]}}',
            "application/json",
            "body.sweep.values: it must have at least 2 values, and has 1",
        ),
    ],
)
async def test_a_fault_of_a_request_is_told_in_words(service: Service, sent: str, content_type: str, said: str) -> None:
    answer = await service.client.post("/api/v1/explorations", content=sent, headers={"Content-Type": content_type})
    assert answer.status_code == 422 and said in answer.json()["detail"]


async def test_broken_json_is_a_problem_too(service: Service) -> None:
    headers = {"Content-Type": "application/json"}
    for content in (b"{", b"\xff\xfe", b"[]", b'{"source": "\\ud800"}'):
        answer = await service.client.post("/api/v1/explorations", content=content, headers=headers)
        assert answer.status_code in (400, 422), content
        assert answer.headers["content-type"] == "application/problem+json"


async def test_a_body_that_is_too_large_is_refused(service: Service) -> None:
    answer = await service.client.post("/api/v1/explorations", json={"source": "x" * 2_000_000})
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/explorations/00000000000000000000",
        "/api/v1/explorations/00000000000000000000.md",
        "/api/v1/explorations/00000000000000000000/events",
        "/api/v1/nothing",
        "/nothing",
    ],
)
async def test_what_does_not_exist_is_a_problem_with_a_way_out(service: Service, path: str) -> None:
    answer = await service.client.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.json()["detail"]) > 30


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


async def test_a_person_reads_what_is_missing_and_a_program_gets_json(service: Service) -> None:
    for path in ("/nothing", "/x/", "/assets/nothing.js", "/no<script>/here"):
        page = await service.client.get(path, headers={"Accept": BROWSER})
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
        assert '<a href="/">' in page.text and "<script" not in page.text
        assert "There is nothing at /" in page.text and "default-src 'none'" in page.headers["content-security-policy"]
        program = await service.client.get(path, headers={"Accept": "*/*"})
        assert (program.status_code, program.headers["content-type"]) == (404, "application/problem+json")
        assert page.headers["vary"] == program.headers["vary"] == "Accept"
    api = await service.client.get("/api/v1/nothing", headers={"Accept": BROWSER})
    assert (api.status_code, api.headers["content-type"]) == (404, "application/problem+json")


async def test_a_full_queue_says_when_to_come_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with running_service(tmp_path_factory.mktemp("full"), queue_limit=1) as busy:
        await busy.next_job_is_fine()
        running = await busy.start("import time; time.sleep(500)")
        await busy.until_started(running)
        waiting = await busy.start("import time; time.sleep(501)")
        refused = await busy.client.post("/api/v1/explorations", json={"source": "third = 3"})
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert (await busy.client.delete(f"/api/v1/explorations/{waiting}")).json()["status"] == "cancelled"
        cancelled = await busy.client.delete(f"/api/v1/explorations/{running}")
        assert cancelled.json()["status"] == "cancelled"
        assert [stage["name"] for stage in cancelled.json()["stages"]] == ["capture"]
        await busy.next_job_is_fine()


async def test_without_a_worker_what_is_stored_is_answered_and_what_is_new_waits(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data = tmp_path_factory.mktemp("down")
    async with running_service(data) as first:
        kept = await first.explore("verdict = 'kept'")
    async with running_service(data, Program(explore="no_such_module:explore", imports=(), later=())) as down:
        assert (await down.client.get(f"/api/v1/explorations/{kept['id']}")).json() == kept
        asked_again = await down.client.post("/api/v1/explorations", json={"source": "verdict = 'kept'"})
        assert (asked_again.status_code, asked_again.json()) == (200, kept)
        new = await down.client.post("/api/v1/explorations", json={"source": "verdict = 'new'"})
        assert new.status_code == 202
        not_ready = await down.client.get("/readyz")
        assert not_ready.status_code == 503 and "no worker is ready" in not_ready.json()["detail"]
        assert (await down.client.get("/healthz")).status_code == 200
    async with running_service(data) as third:
        report = await third.explore("verdict = 'new'")
        assert (report["id"], report["summary"]["verdict"]) == (new.json()["id"], "new")


async def test_health_tells_of_worker_database_and_tasks(service: Service) -> None:
    await service.explore("x = 1")
    health = (await service.client.get("/healthz")).json()
    assert (health["worker"], health["database"]) == ("ready", "writable")
    (worker,) = health["workers"]
    assert (worker["state"], worker["device"], worker["tier"], worker["free"]) == ("ready", "cpu", "trusted", 1)
    assert {"dispatcher", "leases", "queue", "sweeper"} <= {task["name"] for task in health["tasks"]}
    assert all(task["state"] == "works" for task in health["tasks"])
    assert (await service.client.get("/readyz")).status_code == 200
    metrics = (await service.client.get("/metrics")).text
    assert "fusionscope_worker_ready 1.0" in metrics
    assert 'fusionscope_job_seconds_count{device="cpu",status="ok"}' in metrics
    assert 'fusionscope_stage_seconds_count{device="cpu",stage="capture"}' in metrics


async def test_a_body_comes_compressed_where_that_is_accepted_and_is_known_again(service: Service) -> None:
    report = await service.explore("verdict = 'encoded'; print('line ' * 3000)")
    path = f"/api/v1/explorations/{report['id']}"
    plain = await service.client.get(path, headers={"Accept-Encoding": "identity"})
    packed = await service.client.get(path, headers={"Accept-Encoding": "br, gzip;q=0.5"})
    refused = await service.client.get(path, headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in plain.headers and "content-encoding" not in refused.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 10
    assert plain.json() == packed.json() == refused.json() == report
    tags = {plain.headers["etag"], packed.headers["etag"]}
    assert len(tags) == 2, "two forms are two things"
    for tag in (*tags, f'"other", W/{plain.headers["etag"]}', "*"):
        assert (await service.client.get(path, headers={"If-None-Match": tag})).status_code == 304
    assert (await service.client.get(path, headers={"If-None-Match": '"other"'})).status_code == 200


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_what_an_answer_varies_by_is_named_once(service: Service, encoding: str) -> None:
    report = await service.explore("verdict = 'varied'; print('line ' * 3000)")
    # Whoever likes several forms is answered by the route, and not from memory.
    headers = {"Accept": "application/json, text/markdown;q=0.5", "Accept-Encoding": encoding}
    for suffix in ("", ".md"):
        answer = await service.client.get(f"/api/v1/explorations/{report['id']}{suffix}", headers=headers)
        assert answer.status_code == 200 and len(answer.content) > 4096
        assert answer.headers["vary"] == "Accept, Accept-Encoding"


async def test_a_long_body_is_inflated_piece_by_piece(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a reader who takes it slowly holds no memory."""
    report = await service.explore("verdict = 'long'; print('line ' * 60_000)")
    path = f"/api/v1/explorations/{report['id']}"
    plain = {"Accept-Encoding": "identity"}
    whole = await service.client.get(path, headers=plain)
    monkeypatch.setattr("server.stored_answers.KEPT_BYTES", 1000)
    pieces = await service.client.get(path, headers=plain)
    assert pieces.content == whole.content and len(whole.content) > 64 * 1024
    for name in ("content-length", "etag", "content-type", "cache-control"):
        assert pieces.headers[name] == whole.headers[name], name
    head = await service.client.head(path, headers=plain)
    assert (head.content, head.headers["content-length"]) == (b"", whole.headers["content-length"])
    asked = await service.client.post(
        "/api/v1/explorations", json={"source": "verdict = 'long'; print('line ' * 60_000)"}, headers=plain
    )
    assert (asked.status_code, asked.content) == (200, whole.content)


async def test_fifty_who_ask_for_the_same_at_once_share_one_job(service: Service) -> None:
    source = "import time; time.sleep(0.3); verdict = time.time_ns()"

    async def ask_and_read() -> tuple[str, str]:
        answer = await service.client.post("/api/v1/explorations", json={"source": source})
        assert answer.status_code in (200, 202)
        found = await service.client.get(answer.headers["location"])
        assert found.status_code == 200, "an id that was promised"
        events = await service.events(answer.json()["id"])
        assert events[-1]["event"] == "done"
        report = (await service.client.get(answer.headers["location"])).json()
        return report["id"], report["summary"]["verdict"]

    found = await asyncio.gather(*(ask_and_read() for _ in range(50)))
    assert len(set(found)) == 1, "all saw the one report"


async def test_the_catalogue(service: Service) -> None:
    await service.explore("x = 1")
    version = (await service.client.get("/api/v1/version")).json()
    assert version["report"] == REPORT_VERSION
    assert version["worker"]["device"] == "cpu"
    assert (await service.client.get("/api/v1/devices")).json()["here"]["device"] == "cpu"
    examples = (await service.client.get("/api/v1/examples")).json()
    assert len(examples) >= 8
    choices = (await service.client.get("/api/v1/choices")).json()
    asked = Options(rules_off=choices["rules"], device_model=choices["device_models"][-1])
    assert asked.rules_off == RULES and choices["device_models"] == list(DEVICE_MODELS)
    assert (await service.client.get("/api/v1/reasons/no_such_reason")).status_code == 404


async def test_every_listed_reason_can_be_read_alone(service: Service) -> None:
    listed = (await service.client.get("/api/v1/reasons")).json()
    assert listed
    for reason in listed:
        alone = (await service.client.get(f"/api/v1/reasons/{reason['id']}")).json()
        assert "## What to do" in alone.pop("page")
        assert alone == reason


async def test_the_description_of_the_api_is_whole(service: Service) -> None:
    description = (await service.client.get("/api/v1/openapi.json")).json()
    defined = set(description["components"]["schemas"])
    referred = {part.split('"')[0] for part in str(description).replace("'", '"').split("#/components/schemas/")[1:]}
    assert referred <= defined
    assert "/api/v1/explorations/{id}/events" in description["paths"]


async def test_why_answers_for_two_loops_in_either_order(service: Service) -> None:
    decision = {
        "a": "buf0",
        "b": "buf1",
        "round": 1,
        "kind": "vertical",
        "verdict": "refused",
        "reason": "shape.numel",
        "message": "m",
        "sides": [{"unit": 0}, {"unit": 1}],
    }
    loops = [
        {"name": name, "kind": "pointwise", "sizes": [place]} for place, name in enumerate(("buf0", "buf1", "buf2"))
    ]
    parts = {"/status": "ok", "/graphs": 1, "/graphs/0/name": "g"}
    parts |= {"/graphs/0/loops": loops, "/graphs/0/decisions": [decision]}
    report = await service.explore(forging(parts))
    path = f"/api/v1/explorations/{report['id']}/why"
    for pair in ({"a": "buf0", "b": "buf1"}, {"a": "buf1", "b": "buf0"}):
        assert [found["message"] for found in (await service.client.get(path, params=pair)).json()] == ["m"]
    (never,) = (await service.client.get(path, params={"a": "buf0", "b": "buf2"})).json()
    assert (never["verdict"], never["reason"]) == ("never considered", "policy.nothing_shared")
    unknown = await service.client.get(path, params={"a": "buf0", "b": "buf9"})
    assert unknown.status_code == 404 and "The nearest are buf2, buf1, buf0" in unknown.json()["detail"]


async def test_a_report_of_another_version_is_read_as_it_is_and_never_an_error_of_the_server(service: Service) -> None:
    body = b'{"version": 99, "id": "abcdefabcdefabcdefab", "stages": [], "status": "ok", "of the future": {}}'
    id = "abcdefabcdefabcdefab"
    finished = Finished(id, 1, "ok", True, "another build", None, "", 5, body_of_text(body))
    await service.app.state.web.database.write(partial(write, finished=finished))
    path = f"/api/v1/explorations/{id}"
    read = await service.client.get(path)
    assert (read.status_code, read.content) == (200, body)
    assert [event["event"] for event in await service.events(id)] == ["done"]
    for rest in (".md", "/why?a=x&b=y", f"/comparison?with={id}"):
        answer = await service.client.get(f"{path}{rest}")
        assert answer.status_code == 409, (rest, answer.text)
        assert "another version" in answer.json()["detail"]
    based = await service.client.post("/api/v1/explorations", json={"source": "x = 1", "based_on": id})
    assert based.status_code == 422 and "another version" in based.json()["detail"]


async def test_an_answer_that_was_cut_says_so(service: Service) -> None:
    names = [f"buf{number}" for number in range(8)]
    loops = [
        {"name": name, "kind": "pointwise", "sizes": [place + 1], "origins": ["left" if place < 4 else "right"]}
        for place, name in enumerate(names)
    ]
    aten = [{"name": name, "op": "call_function", "target": name} for name in ("left", "right")]
    graphs = {"/graphs": 1, "/graphs/0/name": "g", "/graphs/0/loops": loops, "/graphs/0/aten": aten}
    report = await service.explore(forging({"/status": "ok", **graphs}))
    path = f"/api/v1/explorations/{report['id']}/why"
    many = await service.client.get(path, params={"a": "left", "b": "right"})
    assert many.status_code == 200, many.text
    assert (len(many.json()), many.headers["x-cut-at"]) == (9, "9")
    few = await service.client.get(path, params={"a": "buf0", "b": "right"})
    assert len(few.json()) == 4 and "x-cut-at" not in few.headers
