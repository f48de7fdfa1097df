"""What is made of a report: files of its kernels, and answers that stay answers where the report was forged."""

from __future__ import annotations

import asyncio
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from compiler.report import Report
from server.apart import Apart
from server.database.compressed import body_of
from server.database.reports import Finished, write
from server.derived import READERS
from server.wire.parts import split
from tests.server.conftest import Service

pytestmark = pytest.mark.asyncio(loop_scope="module")

EXAMPLE: dict[str, Any] = json.loads((Path(__file__).parents[2] / "web" / "src" / "test" / "report.json").read_text())
TEXTS = ("", "buf0", "`", "64*s0", "1/0", "graph_0", "\u202e", "<b>", "a" * 300, "__import__('os')", "s0")
NUMBERS = (0, -1, 1, 10**6, 10**18, -(10**18))


async def stored(service: Service, report: Report, id: str) -> str:
    """The address of `report`, put into the database as a finished exploration."""
    report = report.model_copy(update={"id": id})
    finished = Finished(id, 1, "ok", True, "test", None, "", 9, body_of(split(report)))
    await service.app.state.web.database.write(partial(write, finished=finished))
    return f"/api/v1/explorations/{id}"


async def test_a_kernel_is_a_file_that_stands_alone(service: Service) -> None:
    report = Report.model_validate(EXAMPLE)
    path = await stored(service, report, "a" * 20)
    kernel = next(kernel for kernel in report.graphs[0].kernels if kernel.kind != "extern")
    answer = await service.client.get(f"{path}/kernels/{kernel.name}.py")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/x-python")
    assert answer.headers["content-disposition"] == f'attachment; filename="{kernel.name}.py"'
    compile(answer.text, "kernel.py", "exec")
    assert "fusionscope" not in {line.split()[1] for line in answer.text.splitlines() if line.startswith("import ")}
    again = await service.client.get(
        f"{path}/kernels/{kernel.name}.py", headers={"If-None-Match": answer.headers["etag"]}
    )
    assert again.status_code == 304
    missing = await service.client.get(f"{path}/kernels/{kernel.name}x.py")
    assert missing.status_code == 404 and kernel.name in missing.json()["detail"]
    elsewhere = await service.client.get(f"{path}/kernels/{kernel.name}.py?graph=no_such_graph")
    assert elsewhere.status_code == 404


async def test_a_kernel_name_cannot_write_headers(service: Service) -> None:
    forged = json.loads(json.dumps(EXAMPLE))
    name = 'x"\r\nX-Injected: 1'
    forged["graphs"][0]["kernels"] = [{**forged["graphs"][0]["kernels"][0], "name": name}]
    path = await stored(service, Report.model_validate(forged), "b" * 20)
    answer = await service.client.get(f"{path}/kernels/x%22%0D%0AX-Injected%3A%201.py")
    assert answer.status_code in (200, 409) and "x-injected" not in answer.headers
    if answer.status_code == 200:
        assert answer.headers["content-disposition"] == 'attachment; filename="x____X-Injected__1.py"'


@pytest.mark.parametrize(
    ("id", "fused"),
    [
        # Units that there never were.
        ("c" * 20, [[[100, 101, 102]]]),
        # A unit that fuses with itself, and so is twice as large after each round.
        ("d" * 20, [[[0, 0, 0]] for _ in range(200)]),
    ],
)
async def test_a_report_whose_parts_do_not_fit_is_answered_and_told_of(
    service: Service, id: str, fused: list[Any]
) -> None:
    forged = json.loads(json.dumps(EXAMPLE))
    graph = forged["graphs"][0]
    graph["rounds"] = [{**graph["rounds"][0], "number": number, "fused": one} for number, one in enumerate(fused, 1)]
    path = await stored(service, Report.model_validate(forged), id)
    names = [loop["name"] for loop in graph["loops"]]
    with capture_logs() as logged:
        answer = await service.client.get(f"{path}/why", params={"a": names[0], "b": names[1]})
    assert answer.status_code == 409
    assert "is inconsistent" in answer.json()["detail"]
    # The service may tell of its workers at any time.
    assert [line["event"] for line in logged].count("report_inconsistent") == 1


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way] * bool(way) + [place for key, one in inner for place in places(one, (*way, key))]


def changed(value: Any, chance: random.Random) -> Any:
    """A value of the same type, most of the time, that its neighbours do not expect."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return chance.choice(NUMBERS)
    if isinstance(value, str):
        return chance.choice(TEXTS)
    if isinstance(value, list):
        return chance.choice(([], value[:1], value + value, value[::-1]))
    return None


def forgeries(number: int) -> list[Report]:
    """Reports of the right types whose parts do not fit together: the example with a few places changed."""
    chance, all_places = random.Random(7), places(EXAMPLE)
    found: list[Report] = []
    while len(found) < number:
        forged = json.loads(json.dumps(EXAMPLE))
        for way in chance.sample(all_places, 8):
            parent = forged
            try:
                for key in way[:-1]:
                    parent = parent[key]
                parent[way[-1]] = changed(parent[way[-1]], chance)
            except (KeyError, IndexError, TypeError):
                continue  # an earlier change took it away
        try:
            found.append(Report.model_validate(forged))
        except ValidationError:
            continue
    return found


async def test_no_forged_report_makes_the_service_fail(service: Service) -> None:
    for number, report in enumerate(forgeries(30)):
        path = await stored(service, report, f"{number:020x}")
        loops = [node.name for graph in report.graphs for node in graph.loops]
        kernels = [kernel.name for graph in report.graphs for kernel in graph.kernels if kernel.name]
        asked: list[tuple[str, dict[str, str]]] = [
            (path, {}),
            (f"{path}.md", {}),
            (f"{path}.html", {}),
            (f"{path}/events", {}),
        ]
        asked += [(f"{path}/why", {"a": loops[0], "b": name}) for name in loops[1:]]
        asked += [(f"{path}/kernels/{name}.py", {}) for name in kernels]
        asked += [(f"{path}/comparison", {"with": f"{max(number - 1, 0):020x}"})]
        for address, parameters in asked:
            answer = await service.client.get(address, params=parameters)
            assert answer.status_code in (200, 404, 409, 422), (address, answer.text)


async def slow_to_name(service: Service, id: str) -> str:
    """The address of a file that takes very long to say that it is not there."""
    forged = json.loads(json.dumps(EXAMPLE))
    # Names with the same letters as the one that is asked for, in another order, take longest to compare.
    forged["graphs"][0]["kernels"] = [
        {**forged["graphs"][0]["kernels"][0], "name": "ab" * 99 + str(number % 10)} for number in range(20_000)
    ]
    return f"{await stored(service, Report.model_validate(forged), id)}/kernels/{'ba' * 99}.py"


async def test_what_takes_too_long_is_given_up_and_holds_up_nobody(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = await slow_to_name(service, "0c" * 10)
    monkeypatch.setattr("server.derived.MOST_SECONDS", 0.5)
    answers = await asyncio.gather(*(service.client.get(address) for _ in range(3)))
    assert [(answer.status_code, "more than 0.5 seconds" in answer.text) for answer in answers] == [(409, True)] * 3
    monkeypatch.undo()
    honest = await stored(service, Report.model_validate(EXAMPLE), "0d" * 10)
    assert (await service.client.get(f"{honest}.md")).status_code == 200


async def test_one_client_does_not_keep_the_others_from_what_is_computed(service: Service) -> None:
    address = await slow_to_name(service, "1c" * 10)
    honest = await stored(service, Report.model_validate(EXAMPLE), "1d" * 10)
    asked = [asyncio.create_task(service.client.get(address)) for _ in range(6)]
    try:
        await asyncio.wait(asked, timeout=0.5)
        transport = httpx2.ASGITransport(app=service.app, client=("192.0.2.7", 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=300) as other:
            assert (await other.get(f"{honest}.md")).status_code == 200
    finally:
        for task in asked:
            task.cancel()
        await asyncio.wait(asked)
        READERS.close()


async def test_no_more_than_so_many_wait_for_what_is_computed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await stored(service, Report.model_validate(EXAMPLE), "0e" * 10)
    monkeypatch.setattr("server.derived.READERS", Apart(1, (), most=0))
    answer = await service.client.get(f"{path}.md")
    assert answer.status_code == 503 and answer.headers["retry-after"] == "5"


async def test_no_report_is_read_by_web_itself(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """To read a large one takes seconds, in which web would answer nobody."""
    report = Report.model_validate(EXAMPLE)
    path = await stored(service, report, "1a" * 10)
    other = await stored(service, report.model_copy(update={"based_on": "1a" * 10}), "1b" * 10)

    def read(*_: object, **__: object) -> Report:
        raise AssertionError("Web has read a report.")

    monkeypatch.setattr(Report, "model_validate_json", read)
    loops = [loop.name for loop in report.graphs[0].loops]
    kernel = next(kernel.name for kernel in report.graphs[0].kernels if kernel.kind != "extern")
    asked: list[tuple[str, dict[str, str]]] = [
        (f"{path}.md", {}),
        (f"{other}.html", {}),
        (f"{path}/why", {"a": loops[0], "b": loops[1]}),
        (f"{path}/values", {"path": "graphs | count"}),
        (f"{other}/comparison", {"with": "1a" * 10}),
        (f"{path}/kernels/{kernel}.py", {}),
        (f"{path}/events", {}),
    ]
    for address, parameters in asked:
        answer = await service.client.get(address, params=parameters)
        assert answer.status_code == 200, (address, answer.text)
