"""Workers of many machines, through a Ray cluster.

    web: RayExecutor -- Unix socket --> gateway -- Ray --> bridge -- Unix socket --> worker
         (this module)                  (ray_gateway)      (ray_bridge, on the worker's node)

On each machine the operator starts the worker program, which has the sandbox and is no task of Ray's, and joins the
machine to the cluster with a custom resource that names the worker's socket. Ray brings what it is good at: which
machines there are, which are gone, and an authenticated way to them. All else is as on one machine: what goes through
the tunnel is the wire, byte for byte, and it is `LocalExecutor` that speaks it. So the same code checks protocol, build
and profile, counts slots, hears of silence and loss, and cancels; Ray's own queue, retries and serialization are not
used, and nothing that a job wrote is ever unpickled.

Ray lives in the gateway, a process that this executor starts and starts again. One that dies takes the connections with
it: jobs end as "worker_lost" at once, and web goes on. This machine must be a node of the cluster itself (it may be its
head): Ray's thin client cannot do without one either, and would add a server between.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import sys
from collections.abc import AsyncIterator, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from server.executors.local import LocalExecutor
from server.executors.protocol import Handle, Spec, WorkerDevice
from server.executors.ray_view import MOST_LINE_BYTES, View
from server.own_folders import OwnFolder
from server.wire.messages import WorkerIdentity

log = structlog.get_logger(__name__)

GATEWAY = (sys.executable, "-P", "-m", "server.executors.ray_gateway")
_PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
"""What the gateway sees of our environment, besides Ray's own variables."""
_END_SECONDS = 10.0
_PAUSES_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)


class RayExecutor:
    """The workers of the cluster at `address`, of this `build` and of one of `profiles`. `token` is the file of the
    cluster's token; without one Ray looks where it always does."""

    def __init__(
        self,
        address: str,
        token: Path | None,
        build: str,
        profiles: Collection[WorkerIdentity],
        most_payload_bytes: int,
        gateway: tuple[str, ...] = GATEWAY,
    ) -> None:
        self._address = address
        self._token = token
        self._command = gateway
        self._workers = LocalExecutor((), build, profiles, most_payload_bytes)
        self._view = View(problem=f"the Ray cluster at {address} has not been reached yet")
        self._restarts = 0
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name="gateway to Ray")

    async def stop(self) -> None:
        await self._workers.stop()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def devices(self) -> tuple[WorkerDevice, ...]:
        """The workers of the cluster. Where there are none, one that is not ready stands for the cluster."""
        problems = {worker.name: worker.problem for worker in self._view.workers}
        devices = (
            device if device.ready else dataclasses.replace(device, problem=problems.get(device.name) or device.problem)
            for device in self._workers.devices()
        )
        return tuple(devices) or (self._cluster(),)

    def changed(self) -> Coroutine[Any, Any, None]:
        return self._workers.changed()

    async def submit(self, spec: Spec) -> Handle:
        return await self._workers.submit(spec)

    def _cluster(self) -> WorkerDevice:
        return WorkerDevice(
            name=f"Ray cluster at {self._address}",
            profile=WorkerIdentity(),
            slots=0,
            free=0,
            ready=False,
            problem=self._view.problem or f"no node of the Ray cluster at {self._address} has a worker",
            tier=None,
            isolation=(),
            facts=(),
            restarts=self._restarts,
        )

    async def _keep(self) -> None:
        failures = 0
        while True:
            self._view = View(problem=self._view.problem)
            try:
                code = await self._run_gateway()
                problem = self._view.problem or f"the gateway to Ray has ended with code {code}"
            except ValueError:  # what it said is no view, or too long a line
                problem = "the gateway to Ray is not understood"
            except OSError as failure:
                problem = f"the gateway to Ray cannot be started: {failure.strerror or failure}"
            failures = 0 if self._view.workers else failures + 1
            self._restarts += 1
            log.warning("gateway_ended", address=self._address, problem=problem)
            await self._take(View(problem=problem))
            await asyncio.sleep(_PAUSES_SECONDS[min(failures, len(_PAUSES_SECONDS) - 1)])

    async def _run_gateway(self) -> int:
        """From the gateway's start to its end; returns its exit code."""
        async with self._gateway() as process:
            assert process.stdout is not None
            while line := await process.stdout.readline():
                await self._take(View.model_validate_json(line))
            return await process.wait()

    @asynccontextmanager
    async def _gateway(self) -> AsyncIterator[asyncio.subprocess.Process]:
        with OwnFolder("fusionscope-ray-") as own:
            folder = str(own.path)
            process = await asyncio.create_subprocess_exec(
                *self._command,
                *("--address", self._address, "--folder", folder),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                cwd=folder,
                env=gateway_environment(os.environ, self._token),
                limit=MOST_LINE_BYTES,
                start_new_session=True,
            )
            try:
                yield process
            finally:
                await _end(process)

    async def _take(self, view: View) -> None:
        self._view = view
        await self._workers.keep({worker.name: worker.socket for worker in view.workers})


def gateway_environment(environment: Mapping[str, str], token: Path | None) -> dict[str, str]:
    """What the gateway is started with: nothing of web's secrets, and with authentication by token unless Ray's own
    variables say otherwise. It reports no usage to Ray's makers."""
    passed_on = {name: value for name, value in environment.items() if name in _PASSED_ON or name.startswith("RAY_")}
    ours = {"RAY_AUTH_TOKEN_PATH": str(token.absolute())} if token is not None else {}
    defaults = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
    return {**defaults, **passed_on, **ours, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUNBUFFERED": "1"}


async def _end(process: asyncio.subprocess.Process) -> None:
    """The gateway ends with its standard input; one that does not is killed."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
