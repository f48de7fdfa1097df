"""The probe of a worker tells ready from not ready, and says what is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from server.wire import probe
from server.wire.messages import Hello, Message, State, WorkerIdentity, send

HELLO = Hello(build="0" * 16, profile=WorkerIdentity(), tier="B", isolation=("Landlock", "seccomp"), slots=1)


def probed(socket: Path, *said: Message | bytes) -> int:
    """The probe's exit code where a worker at `socket` says `said` and then waits."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for message in said:
            if isinstance(message, bytes):
                writer.write(message)
            else:
                await send(writer, message)
        await reader.read()
        writer.close()

    return asyncio.run(_while_listening(socket, speak))


async def _while_listening(
    socket: Path, speak: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
) -> int:
    async with await asyncio.start_unix_server(speak, socket):
        return await asyncio.to_thread(probe.main, [str(socket)])


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "worker.sock"


def test_a_worker_that_is_ready_is_healthy(socket: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert probed(socket, HELLO, State(ready=True)) == 0
    assert capsys.readouterr().out == "ready, tier B (Landlock, seccomp)\n"


def test_a_worker_that_is_not_ready_says_why(socket: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert probed(socket, HELLO, State(ready=False, problem="torch is being imported")) == 1
    assert "not ready: torch is being imported" in capsys.readouterr().out


def test_what_is_no_worker_is_told(socket: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert probed(socket, b"\xff" * 64) == 1
    assert "No worker answers" in capsys.readouterr().out


def test_where_nobody_listens_the_socket_is_named(socket: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe.main([str(socket)]) == 1
    assert str(socket) in capsys.readouterr().out


def test_one_that_is_silent_is_given_up(
    socket: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "ANSWER_SECONDS", 0.2)
    assert probed(socket) == 1
    assert "Nothing was said" in capsys.readouterr().out
