"""No request makes the service fail: generated from its description, or malformed in ways that nobody generates."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server import tokens
from server.app import create_app
from server.local_worker import LocalWorker
from server.settings import Settings
from tests.server.conftest import TRUSTED, Service, running_service
from tests.server.run_worker import PLAIN, command


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The service behind its own description, with little programs in the compiler's place, and a token for it."""
    # Imported where it is used: it takes a second, of each process that collects this module.
    import schemathesis
    from schemathesis.python import asgi

    folder = tmp_path_factory.mktemp("described")
    token = tokens.make(folder / "tokens.json", "schemathesis", tokens.Quota())
    settings = Settings(
        data=folder,
        tokens=folder / "tokens.json",
        log_format="json",
        allowed_hosts=(asgi.HOST,),
        queue_limit=4,
        **TRUSTED,
    )
    app = create_app(settings, worker=LocalWorker(settings, command(PLAIN)))
    authorization = {"Authorization": f"Bearer {token}"}
    yield schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers=authorization), authorization
    asgi.shutdown_lifespans()


OPERATIONS = [
    (path, method)
    for path, methods in create_app(Settings(log_format="json")).openapi()["paths"].items()
    for method in methods
]


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_answer_is_as_the_description_says(described: Any, path: str, method: str) -> None:
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

    schema, authorization = described
    operation = schema[path][method.upper()]
    known = {parameter.name for parameter in operation.query}

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(case=st.one_of(operation.as_strategy(), operation.as_strategy(GenerationMode.NEGATIVE)))
    def holds(case: Any) -> None:
        # It says 503 until its worker is there, as it should.
        excluded = [not_a_server_error] if path == "/readyz" else []
        if path.endswith("/explorations"):
            # How options go together (rules that exist, sizes that differ) is more than a schema says.
            excluded.append(positive_data_acceptance)
        if isinstance(case.query, dict):
            if set(case.query) - known:
                # Parameters that nobody has heard of are passed over, as everywhere in the web.
                excluded.append(negative_data_rejection)
            # Waiting is right, and takes as long as it was asked to.
            case.query = {name: value for name, value in case.query.items() if name != "wait"}
        case.call_and_validate(headers=authorization, excluded_checks=excluded)

    holds()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def read_only(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A service that explores nothing, so that a body that is well after all costs nothing."""
    async with running_service(tmp_path_factory.mktemp("malformed"), read_only=True) as running:
        yield running


@pytest.mark.asyncio(loop_scope="module")
async def test_what_explores_nothing_is_ready_without_a_worker(read_only: Service) -> None:
    answer = await read_only.client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "device": ""})


DEEP = 100_000

BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"source = 1",
    "not UTF-8": b'{"source": "\xff\xfe"}',
    "UTF-16": '{"source": "x"}'.encode("utf-16"),
    "overlong UTF-8": b'{"source": "\xc0\xaf"}',
    "a byte order mark": b'\xef\xbb\xbf{"source": "x = 1"}',
    "cut off": b'{"source": "x',
    "something after": b'{"source": "x"} {"source": "y"}',
    "nested lists": b"[" * DEEP + b"]" * DEEP,
    "nested objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "nested within a field": b'{"source": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "nested in an option": b'{"source": "x", "timing": ' + b'{"enabled":' * 500 + b"1" + b"}" * 500 + b"}",
    "a huge whole number": b'{"source": "x", "seed": ' + b"9" * 10_000 + b"}",
    "a huge exponent": b'{"source": "x", "max_seconds": 1e999999}',
    "a huge negative exponent": b'{"source": "x", "max_seconds": 1e-999999}',
    "NaN": b'{"source": "x", "max_seconds": NaN}',
    "infinity": b'{"source": "x", "timing": {"max_seconds": Infinity}}',
    "negative infinity": b'{"source": "x", "seed": -Infinity}',
    "a key twice": b'{"source": "x", "source": ["y"]}',
    "half a character": b'{"source": "\\ud800"}',
    "half a character in a key": b'{"source": "x", "\\udfff": 1}',
    "half a character in an option": b'{"source": "x", "device_model": "\\ud83d"}',
    "half a character in a list": b'{"source": "x", "force": [["\\ud800", "a"]]}',
    "NUL": b'{"source": "x\\u0000y"}',
    "NUL in an option": b'{"source": "x", "target": "sm_90\\u0000"}',
    "a raw NUL": b'{"source": "x\x00"}',
    "only spaces": b" " * 1000,
    "a list": b"[]",
    "a text": b'"x"',
    "null": b"null",
    "true": b"true",
    "a number": b"1",
    "every type wrong": b'{"source": 1, "seed": "1", "peer": [], "timing": 1, "force": {}, "sweep": [], "inputs": "x"}',
    "a list as a text": b'{"source": ["x"]}',
    "an unknown key of a mebibyte": b'{"source": "x", "' + b"k" * 900_000 + b'": 1}',
    "a hundred thousand keys": json.dumps({"source": "x", **{f"k{n}": n for n in range(60_000)}}).encode(),
    "too many pairs": json.dumps({"source": "x", "force": [["a", "b"]] * 50_000}).encode(),
    "a source that is too long": json.dumps({"source": "é" * 40_000}).encode(),
    "one byte too many": json.dumps({"source": "x" * 65_537}).encode(),
    "more than a mebibyte": json.dumps({"source": "x" * 1_100_000}).encode(),
}

TYPES = ("application/json", "application/json; charset=utf-16", "text/plain", "", "application/json;;;", "a/b/c")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", ["/api/v1/explorations", "/api/v1/highlight"])
@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in BODIES.items()])
async def test_no_body_makes_it_fail(read_only: Service, path: str, body: bytes) -> None:
    for media_type in TYPES:
        answer = await read_only.client.post(path, content=body, headers={"Content-Type": media_type})
        assert_refused_well(answer, also=(200, 403))


@pytest.mark.asyncio(loop_scope="module")
async def test_a_body_whose_length_is_not_told_is_counted(read_only: Service) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(400):
            yield b"x" * 10_000

    answer = await read_only.client.post(
        "/api/v1/explorations", content=pieces(), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413
    assert_refused_well(answer)


STRANGE = (
    "%00",
    "%ff%fe",
    "..",
    "%2e%2e%2f",
    "a" * 5000,
    "%0d%0aX-Injected:%201",
    "\u202e",
    "%F0%9F%98%80",
    "-",
    "'--",
)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("strange", STRANGE)
async def test_no_address_makes_it_fail(read_only: Service, strange: str) -> None:
    paths = [
        f"/api/v1/explorations/{strange}",
        f"/api/v1/explorations/{strange}.md",
        f"/api/v1/explorations/{strange}.html",
        f"/api/v1/explorations/{strange}/events",
        f"/api/v1/explorations/{strange}/why?a={strange}&b={strange}",
        f"/api/v1/explorations/x/comparison?with={strange}",
        f"/api/v1/reasons/{strange}",
        f"/api/v1/highlight.css?theme={strange}",
        f"/x/{strange}",
        f"/{strange}",
        f"/session?next={strange}",
    ]
    for path in paths:
        answer = await read_only.client.get(path)
        assert "x-injected" not in answer.headers
        # Who needs no token is led from the form to the page, wherever the address says.
        assert answer.headers.get("location", "/") == "/"
        assert_refused_well(answer, also=(200, 303, 503))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("value", ["9" * 5000, "-1", "1e9", "\u0661", "", "a, b, c" * 1000, '"', "W/"])
async def test_no_header_makes_it_fail(read_only: Service, value: str) -> None:
    names = ("If-None-Match", "Last-Event-ID", "Accept", "X-Request-ID", "Authorization", "Cookie", "Origin", "Range")
    for name in names:
        for path in ("/api/v1/explorations/x", "/api/v1/explorations/x/events", "/api/v1/examples"):
            answer = await read_only.client.get(path, headers={name.encode(): value.encode()})
            assert_refused_well(answer, also=(200,))


def assert_refused_well(answer: httpx2.Response, also: tuple[int, ...] = ()) -> None:
    """A problem that says what is wrong, of a status that blames the client; or one of `also`."""
    if answer.status_code in also:
        return
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code and len(problem["detail"]) > 20
    assert len(answer.content) < 20_000, "what was sent is not sent back at length"
