"""Who may use the service: tokens and their quotas, other sites, other names, and reading only."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from server import tokens
from server.app import create_app
from server.cli import app as command_line
from server.clients import Client, Clients, Counts
from server.problems import Problem
from server.settings import Settings, WrongSettings
from server.tokens import Quota, TokenFile, WrongTokens

HIGHLIGHT = {"source": "x = 1", "language": "python"}
ELSEWHERE = ("203.0.113.7", 4711)


@asynccontextmanager
async def client_of(
    address: tuple[str, int] = ("127.0.0.1", 1), base_url: str = "http://localhost", **settings: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a service without its rooms: what is asked here is answered before any of them."""
    app = create_app(Settings(log_format="json", **settings))
    transport = httpx2.ASGITransport(app=app, client=address)
    async with httpx2.AsyncClient(transport=transport, base_url=base_url, follow_redirects=False) as client:
        yield client


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    return tmp_path / "private" / "tokens.json"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8000", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("192.168.7.8", 200),
        ("fusion.example.org:80", 200),
        ("evil.example", 421),
        ("evil.example@localhost", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("", 421),
        ("[::1", 421),
    ],
)
@pytest.mark.parametrize("listens_on", ["127.0.0.1", "0.0.0.0", "::"])
async def test_only_declared_names_and_addresses_are_answered(host: str, status: int, listens_on: str) -> None:
    async with client_of(host=listens_on, allowed_hosts=("fusion.example.org",)) as client:
        answer = await client.get("/api/v1/examples", headers={"Host": host})
        assert answer.status_code == status
        if status == 421:
            assert "FUSIONSCOPE_ALLOWED_HOSTS" in answer.json()["detail"]


@pytest.mark.asyncio
async def test_a_request_has_one_name() -> None:
    async with client_of() as client:
        answer = await client.get("/api/v1/examples", headers=[("Host", "127.0.0.1"), ("Host", "evil.example")])
        assert answer.status_code == 421


@pytest.mark.asyncio
async def test_every_name_is_answered_only_where_that_is_set_in_so_many_words() -> None:
    async with client_of(host="0.0.0.0", allowed_hosts=("*",)) as client:
        assert (await client.get("/api/v1/examples", headers={"Host": "any.example"})).status_code == 200


@pytest.mark.asyncio
async def test_another_site_may_use_the_api_only_where_it_is_allowed() -> None:
    friend, stranger = {"Origin": "https://notes.example.org"}, {"Origin": "https://evil.example"}
    async with client_of(cors_origins=("https://notes.example.org",)) as client:
        answer = await client.post("/api/v1/highlight", json=HIGHLIGHT, headers=friend)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, friend["Origin"])
        assert "access-control-allow-credentials" not in answer.headers
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        assert (await client.options("/api/v1/explorations", headers=friend | asked)).status_code == 200
        assert (await client.options("/api/v1/explorations", headers=stranger | asked)).status_code == 400
        refused = await client.post("/api/v1/highlight", json=HIGHLIGHT, headers=stranger)
        assert refused.status_code == 403
        read = await client.get("/api/v1/examples", headers=stranger)
        assert "access-control-allow-origin" not in read.headers


@pytest.mark.parametrize("origin", ["notes.example.org", "https://a.org; script-src *", "https://a.org/path", "'none'"])
def test_a_site_that_is_no_origin_is_no_setting(origin: str) -> None:
    for name in ("cors_origins", "frame_ancestors"):
        with pytest.raises(WrongSettings, match=r"https://name\.example") as wrong:
            Settings.load(**{name: (origin,)})
        assert f"(FUSIONSCOPE_{name.upper()})" in str(wrong.value) and "Value error" not in str(wrong.value)


def test_not_every_site_is_allowed_where_there_are_tokens(token_file: Path) -> None:
    with pytest.raises(WrongSettings, match="cors_origins"):
        Settings.load(tokens=token_file, cors_origins=("*",))


@pytest.mark.asyncio
async def test_only_the_embedded_page_is_shown_in_a_frame_and_only_by_whom_it_may(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html><title>page</title>")
    allowed = ("https://wiki.example.org",)
    async with client_of(static=tmp_path, frame_ancestors=allowed) as client:
        embedded = await client.get("/embed/" + "a" * 20)
        assert embedded.status_code == 200
        assert "frame-ancestors 'self' https://wiki.example.org" in embedded.headers["content-security-policy"]
        assert "x-frame-options" not in embedded.headers
        for path in ("/", "/x/" + "a" * 20, "/api/v1/examples"):
            other = await client.get(path)
            assert "frame-ancestors 'none'" in other.headers["content-security-policy"]
            assert other.headers["x-frame-options"] == "DENY"
    async with client_of(static=tmp_path) as client:
        policy = (await client.get("/embed/" + "a" * 20)).headers["content-security-policy"]
        assert re.search(r"frame-ancestors 'self'(;|$)", policy)


@pytest.mark.asyncio
async def test_with_tokens_only_who_has_one_is_served(token_file: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html><title>page</title>")
    token = tokens.make(token_file, "ci", Quota())
    async with client_of(tokens=token_file, static=tmp_path) as client:
        for path in ("/api/v1/examples", "/api/v1/openapi.json", "/api/v1/explorations/x", "/metrics"):
            none = await client.get(path)
            assert (none.status_code, none.headers["www-authenticate"]) == (401, "Bearer")
            assert none.headers["content-type"] == "application/problem+json"
        for wrong in (token + "x", token[:-1], "", "é", "Bearer " + token):
            answer = await client.get("/api/v1/examples", headers={b"Authorization": f"Bearer {wrong}".encode()})
            assert answer.status_code == 401
            assert token[:12] not in answer.text
        right = await client.get("/api/v1/examples", headers={"Authorization": f"bearer {token}"})
        assert right.status_code == 200
        page = await client.get("/x/" + "a" * 20)
        assert (page.status_code, page.headers["location"]) == (303, "/session?next=%2Fx%2F" + "a" * 20)


@pytest.mark.asyncio
async def test_where_nobody_needs_a_token_nobody_is_asked_for_one() -> None:
    async with client_of() as client:
        answer = await client.get("/session?next=/x/" + "a" * 20)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


@pytest.mark.asyncio
async def test_a_person_signs_in_once_and_the_page_has_the_token(token_file: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html><title>page</title>")
    token = tokens.make(token_file, "ada", Quota())
    async with client_of(tokens=token_file, static=tmp_path) as client:
        form = await client.get('/session?next=/x/"><script>')
        assert form.status_code == 200 and "<script>" not in form.text
        wrong = await client.post("/session", data={"token": "no", "next": "/"})
        assert wrong.status_code == 401 and "set-cookie" not in wrong.headers
        elsewhere = await client.post("/session", data={"token": token, "next": "//evil.example"})
        assert elsewhere.headers["location"] == "/"
        client.cookies.clear()
        there = await client.post("/session", data={"token": token, "next": "/x/" + "a" * 20})
        assert (there.status_code, there.headers["location"]) == (303, "/x/" + "a" * 20)
        assert {"HttpOnly", "SameSite=lax"} <= set(there.headers["set-cookie"].split("; "))
        assert (await client.get("/x/" + "a" * 20)).text.endswith("<title>page</title>")
        assert (await client.get("/api/v1/examples")).status_code == 200
        foreign = await client.post("/api/v1/highlight", json=HIGHLIGHT, headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        await client.delete("/session")
        assert (await client.get("/api/v1/examples")).status_code == 401


@pytest.mark.asyncio
async def test_reading_may_be_open_to_all_and_exploring_is_not(token_file: Path) -> None:
    tokens.make(token_file, "ci", Quota())
    async with client_of(tokens=token_file, public_reads=True) as client:
        assert (await client.get("/api/v1/examples")).status_code == 200
        assert (await client.post("/api/v1/highlight", json=HIGHLIGHT)).status_code == 200
        assert (await client.post("/api/v1/explorations", json={"source": "x = 1"})).status_code == 401
        assert (await client.delete("/api/v1/explorations/x")).status_code == 401
        assert (await client.get("/metrics")).status_code == 401, "that is for the operator"


@pytest.mark.asyncio
async def test_a_client_that_asks_too_often_is_told_when_to_come_back(token_file: Path) -> None:
    token = tokens.make(token_file, "eager", Quota(requests_per_minute=3))
    other = tokens.make(token_file, "calm", Quota(requests_per_minute=3))
    async with client_of(tokens=token_file) as client:
        headers = {"Authorization": f"Bearer {token}"}
        answers = [await client.get("/api/v1/examples", headers=headers) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert 1 <= int(answers[3].headers["retry-after"]) <= 60
        assert answers[3].headers["content-type"] == "application/problem+json"
        beside = await client.get("/api/v1/examples", headers={"Authorization": f"Bearer {other}"})
        assert beside.status_code == 200, "each token has a quota of its own"


@pytest.mark.asyncio
async def test_addresses_are_counted_except_this_machines_own() -> None:
    async with client_of(ELSEWHERE, requests_per_minute=2) as client:
        assert [(await client.get("/api/v1/examples")).status_code for _ in range(3)] == [200, 200, 429]
    async with client_of(requests_per_minute=2) as client:
        assert [(await client.get("/api/v1/examples")).status_code for _ in range(5)] == [200] * 5


def test_after_the_time_that_was_told_the_next_request_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    counts, client = Counts(), Client("token:x", Quota(explorations_per_hour=2))
    counts.take_exploration(client)
    now += 600
    counts.take_exploration(client)
    with pytest.raises(Problem) as raised:
        counts.take_exploration(client)
    assert raised.value.status == 429 and raised.value.headers is not None
    told = int(raised.value.headers["Retry-After"])
    now += told - 2
    with pytest.raises(Problem):
        counts.take_exploration(client)
    now += 3
    counts.take_exploration(client)


def test_one_network_of_ipv6_is_one_client() -> None:
    clients = Clients(None, Quota(requests_per_minute=1), public_reads=False)
    keys = {clients.by_address(f"2001:db8::{number:x}").key for number in range(1, 9)}
    assert len(keys) == 1
    assert clients.by_address("::ffff:203.0.113.7").key == clients.by_address("203.0.113.7").key
    assert clients.by_address("::1").quota == Quota() and clients.by_address(None).quota == Quota()


@pytest.mark.parametrize("told", ["unknown", "_hidden", "203.0.113.7:4711", "[2001:db8::1]:443", "localhost", "127.1"])
def test_whom_a_proxy_does_not_name_by_an_address_is_not_this_machine(told: str) -> None:
    clients = Clients(None, Quota(requests_per_minute=1), public_reads=False)
    assert clients.by_address(told).quota == Quota(requests_per_minute=1)


def test_a_token_is_kept_as_a_hash_alone_and_can_be_revoked(token_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tokens.make(token_file, "ci", Quota(jobs_at_once=2))
    assert text not in token_file.read_text()
    assert os.stat(token_file).st_mode & 0o077 == 0
    monkeypatch.setattr(tokens, "_CHECK_SECONDS", 0.0)
    read = TokenFile(token_file)
    holder = read.holder(text)
    assert holder is not None and (holder.name, holder.jobs_at_once) == ("ci", 2)
    with pytest.raises(WrongTokens, match="already"):
        tokens.make(token_file, "ci", Quota())
    tokens.revoke(token_file, "ci")
    assert read.holder(text) is None, "a change is noticed without a restart"


def test_a_token_expires(token_file: Path) -> None:
    now = datetime.now(UTC)
    over = tokens.make(token_file, "over", Quota(), now - timedelta(seconds=1))
    good = tokens.make(token_file, "good", Quota(), now + timedelta(days=1))
    read = TokenFile(token_file)
    assert read.holder(over) is None and read.holder(good) is not None


def test_a_file_of_tokens_that_breaks_later_lets_nobody_new_in(
    token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "_CHECK_SECONDS", 0.0)
    text = tokens.make(token_file, "ci", Quota())
    read = TokenFile(token_file)
    token_file.write_text("{")
    assert read.holder(text) is not None and read.holder("other") is None
    with pytest.raises(WrongTokens, match="not valid"):
        TokenFile(token_file)
    token_file.unlink()
    with pytest.raises(WrongTokens, match="cannot be read"):
        create_app(Settings(tokens=token_file))


def test_a_name_that_no_token_may_have_is_told_in_words(token_file: Path) -> None:
    with pytest.raises(WrongTokens, match="The token's name is not valid: it has up to 40 letters, digits, dots"):
        tokens.make(token_file, "a b", Quota())


def test_the_command_makes_lists_and_revokes(token_file: Path) -> None:
    def run(*words: str) -> Any:
        return CliRunner().invoke(command_line, ["token", *words, "--file", str(token_file)])

    made = run("ci", "--jobs-at-once", "2", "--days", "30")
    assert made.exit_code == 0 and made.stdout.startswith(tokens.PREFIX)
    assert TokenFile(token_file).holder(made.stdout.strip()) is not None
    assert "ci: 600 requests a minute" in run().stdout and made.stdout.strip() not in run().stdout
    assert run("a b").exit_code == 2
    assert run("--revoke").exit_code == 2 and "name the token" in run("--revoke").stderr
    assert run("ci", "--revoke").exit_code == 0
    assert json.loads(token_file.read_text()) == {"tokens": []}
    assert run("ci", "--revoke").exit_code == 2


def test_a_service_that_others_reach_without_tokens_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    assert Settings(host="127.0.0.1").warnings() == []
    assert "FUSIONSCOPE_TOKENS" in " ".join(Settings(host="0.0.0.0").warnings())
    create_app(Settings(host="0.0.0.0", log_format="json"))
    assert "FUSIONSCOPE_TOKENS" in capfd.readouterr().err
