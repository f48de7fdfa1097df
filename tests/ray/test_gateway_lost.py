"""What web makes of its gateway to Ray: of what it says, and of its end. No Ray is needed: a program stands in."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from compiler.options import Options
from server.executors.protocol import NoSlot, Spec
from server.executors.ray import RayExecutor, gateway_environment
from server.executors.ray_view import Reachable, View
from server.wire.messages import Limits, Started
from server.wire.profile import build_id, detected_profile
from tests.ray.fake_worker import FakeWorker
from tests.ray.reading import Job, until

GATEWAY = (
    "import os, pathlib, sys, threading, time\n"
    "threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()\n"
    "said, last = pathlib.Path(sys.argv[1]), None\n"
    "while True:\n"
    "    text = said.read_text()\n"
    "    if text == 'end':\n"
    "        sys.exit(3)\n"
    "    if text != last:\n"
    "        last = text\n"
    "        print(text, flush=True)\n"
    "    time.sleep(0.01)\n"
)
"""It says whatever stands in a file, and ends where that is "end", or with its standard input."""
SPEC = Spec("job.1", "", Options(), Limits(wall_seconds=60, output_bytes=1024, report_bytes=2**27), detected_profile())


class Gateway:
    """An executor whose gateway says what it is told to, and a worker that runs one job without end."""

    def __init__(self, folder: Path) -> None:
        self._said = folder / "said"
        self.socket = folder / "worker.sock"
        command = (sys.executable, "-c", GATEWAY, str(self._said))
        self.executor = RayExecutor("head:1", None, build_id(), [detected_profile()], 2**20, command)

    def says(self, text: str) -> None:
        new = self._said.with_suffix(".new")
        new.write_text(text)
        new.replace(self._said)

    def sees(self, *workers: Reachable, problem: str | None = None) -> None:
        self.says(View(workers=workers, problem=problem).model_dump_json())

    async def begin(self) -> Job:
        """A job that runs at the worker, which the gateway sees."""
        self.sees(Reachable(name="node:worker", socket=self.socket))
        await until(self.executor, lambda: self.executor.devices()[0].free == 1)
        job = Job("node:worker", await self.executor.submit(SPEC))
        await job.next(Started)
        return job


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[Gateway]:
    made = Gateway(folder)
    made.sees()
    async with FakeWorker(payloads=0).listening(made.socket):
        await made.executor.start()
        try:
            yield made
        finally:
            await made.executor.stop()


@pytest.mark.asyncio
async def test_a_worker_that_has_left_the_cluster_has_lost_its_job(tmp_path: Path) -> None:
    async with gateway(tmp_path) as made:
        job = await made.begin()
        made.sees()
        _, ended = await job.end()
        assert ended.ending == "worker_lost"
        await until(made.executor, lambda: not made.executor.devices()[0].ready)
        assert "no node" in str(made.executor.devices()[0].problem)
        with pytest.raises(NoSlot):
            await made.executor.submit(SPEC)


@pytest.mark.asyncio
@pytest.mark.parametrize("said", ["end", "no JSON", '{"workers": 3}', "x" * (5 * 2**20)])
async def test_a_gateway_that_ends_or_talks_nonsense_is_started_again(tmp_path: Path, said: str) -> None:
    async with gateway(tmp_path) as made:
        job = await made.begin()
        made.says(said)
        _, ended = await job.end()
        assert ended.ending == "worker_lost"
        await until(made.executor, lambda: "gateway" in str(made.executor.devices()[0].problem))
        made.sees(Reachable(name="node:worker", socket=made.socket))
        await until(made.executor, lambda: made.executor.devices()[0].name == "node:worker")


@pytest.mark.asyncio
async def test_why_a_worker_cannot_be_reached_is_told_in_the_gateways_words(tmp_path: Path) -> None:
    async with gateway(tmp_path) as made:
        made.sees(Reachable(name="node:worker", socket=tmp_path / "absent.sock", problem="its node is on fire"))
        await until(made.executor, lambda: made.executor.devices()[0].problem == "its node is on fire")
        made.sees(problem="the head is on holiday")
        await until(made.executor, lambda: made.executor.devices()[0].problem == "the head is on holiday")


def test_the_gateway_gets_rays_variables_and_no_secret_of_webs() -> None:
    told = gateway_environment(
        {"PATH": "/bin", "RAY_AUTH_TOKEN": "t", "FUSIONSCOPE_DATABASE": "postgresql://user:secret@host/name"}, None
    )
    assert {"PATH": "/bin", "RAY_AUTH_TOKEN": "t"}.items() <= told.items()
    assert not any("secret" in value for value in told.values())


def test_rays_authentication_is_on_and_its_reports_of_usage_are_off_unless_ray_was_told_otherwise(
    tmp_path: Path,
) -> None:
    told = gateway_environment({}, tmp_path / "token")
    assert told["RAY_AUTH_MODE"] == "token"
    assert told["RAY_AUTH_TOKEN_PATH"] == str(tmp_path / "token")
    assert told["RAY_USAGE_STATS_ENABLED"] == "0"
    assert gateway_environment({"RAY_AUTH_MODE": "disabled"}, None)["RAY_AUTH_MODE"] == "disabled"
