"""Two machines of a Ray cluster, each with a worker: what runs, what is lost, and what goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from compiler.options import Options
from server.executors.protocol import Spec, WorkerDevice
from server.executors.ray import RayExecutor
from server.sandbox.processes import descendants
from server.wire.messages import Changed, Limits, Started
from server.wire.profile import build_id, detected_profile
from tests.ray.cluster import WAIT_SECONDS, Cluster, cluster, eventually
from tests.ray.fake_worker import PAYLOAD_BYTES, FakeWorker
from tests.ray.reading import Job, until
from tests.server.conftest import TRUSTED, running_service
from tests.worker.harness import worker_process

pytest.importorskip("ray", reason="needs the extra fusionscope[ray]")

MIB = 1024 * 1024
LIMITS = Limits(wall_seconds=600, output_bytes=MIB, report_bytes=64 * MIB)
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Machines:
    """Two nodes, "one" and "two", with a worker each, and what web has of them."""

    def __init__(self, folder: Path, cluster: Cluster, stack: ExitStack) -> None:
        self.folder = folder
        self.cluster = cluster
        self.executor = executor_of(cluster.address, cluster.token)
        self.not_there = folder / "absent.sock"
        self._stack = stack
        self._workers: dict[str, Any] = {}
        self._jobs = 0
        for name in ("one", "two"):
            self.start_worker(name)
        cluster.start_node("one", self.socket("one"))
        cluster.start_node("two", self.socket("two"), self.not_there)

    def socket(self, name: str) -> Path:
        return self.folder / f"{name}.sock"

    def name(self, node: str) -> str:
        """What the executor calls the worker of that node."""
        return f"{node}:{self.socket(node)}"

    def start_worker(self, name: str) -> None:
        self._workers[name] = self._stack.enter_context(worker_process(socket=self.socket(name), spares=0, **TRUSTED))

    def kill(self, what: str, node: str) -> None:
        """Kills the node itself, its worker, its bridges, or the gateway that leads to all nodes."""
        if what == "node":
            self.cluster.kill_node(node)
        elif what == "worker":
            self._workers[node].process.kill()
        elif what == "bridge":
            kill_all(self.cluster.processes(node), "ray::Bridge")
        else:
            kill_all(descendants(os.getpid()), "server.executors.ray_gateway")

    def restore(self, what: str, node: str) -> None:
        if what == "node":
            self.cluster.start_node(node, self.socket(node))
        elif what == "worker":
            self.start_worker(node)

    def device(self, node: str) -> WorkerDevice | None:
        return next((one for one in self.executor.devices() if one.name == self.name(node)), None)

    async def until(self, is_so: Callable[[], object]) -> None:
        await until(self.executor, is_so)

    async def both_free(self) -> None:
        await self.until(lambda: all((one := self.device(node)) and one.free == 1 for node in ("one", "two")))

    async def submit(self, source: str) -> Job:
        self._jobs += 1
        before = {one.name: one.free for one in self.executor.devices()}
        handle = await self.executor.submit(Spec(f"test.{self._jobs}", source, Options(), LIMITS, detected_profile()))
        (device,) = (one.name for one in self.executor.devices() if one.free < before[one.name])
        return Job(device, handle)

    def waiting(self, file: str) -> str:
        """A snippet that ends when there is that file."""
        path = str(self.folder / file)
        return f"import os, time\nwhile not os.path.exists({path!r}):\n    time.sleep(0.01)\nverdict = {file!r}"


def executor_of(address: str, token: Path) -> RayExecutor:
    return RayExecutor(address, token, build_id(), [detected_profile()], 32 * MIB)


def kill_all(processes: list[int], text: str) -> None:
    found = [one for one in processes if text in command(one)]
    assert found, f"no process {text}"
    for process in found:
        os.kill(process, signal.SIGKILL)


def verdict(payloads: list[bytes]) -> str:
    parts: dict[str, Any] = {}
    for payload in payloads:
        parts |= json.loads(payload)
    return str(parts["/summary"]["verdict"])


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """Ray makes sockets below it, whose paths cannot be long."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machines() -> AsyncIterator[Machines]:
    with ExitStack() as stack:
        folder = stack.enter_context(short_folder())
        made = Machines(folder, stack.enter_context(cluster(folder)), stack)
        await made.executor.start()
        try:
            yield made
        finally:
            await made.executor.stop()


async def test_every_worker_of_the_cluster_is_a_device(machines: Machines) -> None:
    await machines.both_free()
    absent = f"two:{machines.not_there}"
    await machines.until(lambda: "cannot be reached" in (named(machines, absent).problem or ""))
    assert {one.name for one in machines.executor.devices()} == {machines.name("one"), machines.name("two"), absent}
    assert not named(machines, absent).ready
    one = named(machines, machines.name("one"))
    assert (one.ready, one.slots, one.profile, one.problem) == (True, 1, detected_profile(), None)


def named(machines: Machines, name: str) -> WorkerDevice:
    return next(one for one in machines.executor.devices() if one.name == name)


async def test_jobs_run_on_both_machines_at_the_same_time(machines: Machines) -> None:
    await machines.both_free()
    meet = "open({mine!r}, 'w').close()\n"
    one = await machines.submit(meet.format(mine=str(machines.folder / "a")) + machines.waiting("b"))
    two = await machines.submit(meet.format(mine=str(machines.folder / "b")) + machines.waiting("a"))
    (some, ended), (others, other_ended) = await asyncio.gather(one.end(), two.end())
    assert {one.device, two.device} == {machines.name("one"), machines.name("two")}
    assert (ended.ending, verdict(some)) == ("exited", "b")
    assert (other_ended.ending, verdict(others)) == ("exited", "a")


async def test_a_job_is_cancelled_through_the_cluster(machines: Machines) -> None:
    await machines.both_free()
    job = await machines.submit(machines.waiting("never"))
    await job.next(Started)
    await job.handle.cancel()
    _, ended = await job.end()
    assert ended.ending == "cancelled"


@pytest.mark.parametrize("what", ["worker", "bridge", "node", "gateway"])
async def test_what_is_lost_in_the_middle_is_told_and_runs_elsewhere(machines: Machines, what: str) -> None:
    await machines.both_free()
    jobs = [await machines.submit(machines.waiting(f"end of {what}")) for _ in range(2)]
    lost, other = sorted(jobs, key=lambda job: job.device)
    for job in jobs:
        await job.next(Changed)
    machines.kill(what, "one")
    _, ended = await lost.end()
    assert (ended.ending, bool(ended.problem)) == ("worker_lost", True)
    if what == "gateway":
        _, ended = await other.end()
        assert ended.ending == "worker_lost"
    (machines.folder / f"end of {what}").touch()
    if what != "gateway":
        payloads, ended = await other.end()
        assert (ended.ending, verdict(payloads)) == ("exited", f"end of {what}")
    await machines.until(lambda: (two := machines.device("two")) and two.free == 1)
    payloads, ended = await (await machines.submit(machines.waiting(f"end of {what}"))).end()
    assert (ended.ending, verdict(payloads)) == ("exited", f"end of {what}")
    machines.restore(what, "one")
    await machines.both_free()


async def test_a_flood_that_nobody_reads_stays_at_the_worker(machines: Machines) -> None:
    await machines.both_free()
    flood, flooding = FakeWorker(payloads=256), f"two:{machines.not_there}"
    flood.may_end.set()
    async with flood.listening(machines.not_there):
        await machines.until(lambda: named(machines, flooding).ready)
        jobs = [await machines.submit(machines.waiting("end of flood")) for _ in range(3)]
        job = next(job for job in jobs if job.device == flooding)
        await job.next(Started)
        await asyncio.sleep(3)  # A busy machine only makes the flood smaller.
        assert flood.sent * PAYLOAD_BYTES < 8 * MIB
        payloads, ended = await job.end()
        assert ended.ending == "exited"
        assert payloads == [flood.payload(number) for number in range(flood.payloads)]
        (machines.folder / "end of flood").touch()
        for other in jobs:
            if other is not job:
                await other.end()
    await machines.until(lambda: not named(machines, flooding).ready)
    (gateway,) = (one for one in descendants(os.getpid()) if "ray_gateway" in command(one))
    assert peak_bytes(gateway) < 256 * MIB


def command(process: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text()
    return ""


def peak_bytes(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


async def test_web_tries_a_job_again_on_another_machine(machines: Machines) -> None:
    await machines.both_free()
    began, address, token = machines.folder / "began", machines.cluster.address, machines.cluster.token
    source = (
        "import os, time\n"
        f"while os.path.exists({str(began)!r}) is False or os.stat({str(began)!r}).st_size == 0:\n"
        f"    open({str(began)!r}, 'a').close()\n"
        "    time.sleep(0.01)\n"
        "verdict = 'at last'"
    )
    data = machines.folder / "data"
    async with running_service(data, executor="ray", ray_address=address, ray_token=token) as service:
        answer = await service.client.post("/api/v1/explorations", json={"source": source})
        assert answer.status_code == 202, answer.text
        await asyncio.to_thread(eventually, began.exists)
        devices = service.app.state.web.executor.devices()
        (node,) = (one.name.partition(":")[0] for one in devices if one.ready and not one.free)
        machines.kill("worker", node)
        began.write_text("once")
        report = await service.explore(source)
        assert (report["status"], report["summary"]["verdict"]) == ("ok", "at last")
        assert report["observed"]["attempt"] > 1
        assert "one:" in (await service.client.get("/healthz")).text
    machines.restore("worker", node)
    await machines.both_free()


async def test_nothing_is_left_of_a_web_that_is_killed(machines: Machines) -> None:
    await machines.both_free()
    program = (
        "import asyncio, sys\nfrom tests.ray.test_ray_executor import *\n"
        "async def run():\n"
        "    executor = executor_of(sys.argv[1], Path(sys.argv[2]))\n"
        "    await executor.start()\n"
        "    while not any(one.ready for one in executor.devices()):\n"
        "        await executor.changed()\n"
        f"    await executor.submit(Spec('killed.1', {machines.waiting('for ever')!r}, Options(), LIMITS, "
        "detected_profile()))\n"
        "    print('running', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(run())\n"
    )
    web = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, machines.cluster.address, str(machines.cluster.token)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert web.stdout is not None
    async with asyncio.timeout(WAIT_SECONDS):
        while await web.stdout.readline() != b"running\n":
            assert not web.stdout.at_eof()
    left = descendants(web.pid)
    assert left
    web.kill()
    await web.wait()
    assert await asyncio.to_thread(eventually, lambda: not any(is_alive(one) for one in left))
    # Its job ends with it: both workers have room for others again.
    endings: set[str] = set()
    async with asyncio.timeout(WAIT_SECONDS):
        while endings != {"exited"}:
            await machines.both_free()
            jobs = [await machines.submit("verdict = 'free'") for _ in range(2)]
            endings = {(await job.end())[1].ending for job in jobs}


def is_alive(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize("fault", ["token", "no token", "address"])
async def test_a_cluster_that_cannot_be_used_is_told(machines: Machines, fault: str) -> None:
    token = machines.folder / "another token"
    token.write_text("0" * 32)
    if fault == "no token":
        executor = executor_of(machines.cluster.address, machines.folder / "not there")
    else:
        executor = executor_of(machines.cluster.address if fault == "token" else "nonsense", token)
    told = {"token": "has another token", "no token": "RAY_AUTH_TOKEN_PATH", "address": "Invalid address"}[fault]
    await executor.start()
    try:
        await until(executor, lambda: told in (executor.devices()[0].problem or ""))
        assert [one.ready for one in executor.devices()] == [False]
    finally:
        await executor.stop()
