"""The program between web and a Ray cluster: `python -m server.executors.ray_gateway`, which `RayExecutor` starts.

It is a driver of Ray's, and the only process of ours at web's side that Ray lives in: Ray ends a driver whose cluster's
head is gone for a minute, and web has to go on. Each worker of the cluster becomes a Unix socket in `--folder`:
whoever connects to it has a tunnel to that worker, through a `Bridge` on its node.

    standard output   a `View` whenever it changes, as a line of JSON
    standard input    says nothing; the program ends with it, and so with web, however web ends

Backpressure: each direction asks for one chunk at a time, so no more than a chunk waits anywhere on the way.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import shutil
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from server.executors import ray_bridge
from server.executors.ray_view import Reachable, View

RESOURCE_PREFIX = "fusionscope:"
"""A node says that it has a worker by a custom resource: this and the path of the worker's socket."""

LOOK_SECONDS = 1.0
SILENCE_SECONDS = 5.0
"""For the cluster's head to say which nodes there are."""
OPEN_SECONDS = 60.0
"""For a bridge to start on its node and to connect: Ray starts a process for it."""
_NO_ANSWER = "does not answer: it does not exist, or it has another token"
_LONGEST_PROBLEM = 300


@dataclass(frozen=True)
class Place:
    """Where a worker is: a node of the cluster, and a path there."""

    node_id: str
    path: str


class Gateway:
    """All workers of a cluster that this process is connected to. `tell` hears each new view."""

    def __init__(self, folder: Path, tell: Callable[[View], None]) -> None:
        self._folder = folder
        self._tell = tell
        self._tunnels: dict[str, Tunnel] = {}
        self._problem: str | None = None
        self._told: View | None = None
        self._sockets_made = 0

    async def run(self) -> None:
        """Looks for workers that come and go, for ever. Raises whatever Ray raises."""
        while True:
            await self._keep(workers_of(await self._nodes()))
            await asyncio.sleep(LOOK_SECONDS)

    async def _nodes(self) -> list[dict[str, Any]]:
        # Without its head, Ray waits a minute and then ends this process. Tunnels work until then.
        asked = asyncio.create_task(asyncio.to_thread(ray.nodes))
        await asyncio.wait({asked}, timeout=SILENCE_SECONDS)
        self._problem = None if asked.done() else "the head of the Ray cluster does not answer"
        self._tell_news()
        return await asked

    async def _keep(self, found: Mapping[str, Place]) -> None:
        gone = [name for name, tunnel in self._tunnels.items() if found.get(name) != tunnel.place]
        for name in gone:
            await self._tunnels.pop(name).close()
        for name in found.keys() - self._tunnels.keys():
            self._sockets_made += 1
            socket = self._folder / f"{self._sockets_made}.sock"
            self._tunnels[name] = tunnel = Tunnel(found[name], socket, self._tell_news)
            await tunnel.open()
        self._tell_news()

    def _tell_news(self) -> None:
        workers = (
            Reachable(name=name, socket=tunnel.socket, problem=tunnel.problem)
            for name, tunnel in sorted(self._tunnels.items())
        )
        view = View(problem=self._problem, workers=tuple(workers))
        if view != self._told:
            self._told = view
            self._tell(view)


class Tunnel:
    """From a socket on this machine to one worker. It has one user at a time: another one waits for its turn.

    A bridge ends with the connection that it carried, and is kept until it has carried one: each bridge is a process on
    the worker's machine, and web tries a worker that is not there again and again.
    """

    def __init__(self, place: Place, socket: Path, changed: Callable[[], None]) -> None:
        self.place = place
        self.socket = socket
        self.problem: str | None = None
        self._changed = changed
        self._server: asyncio.Server | None = None
        self._users: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._bridge: Any = None

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._accept, self.socket)

    async def close(self) -> None:
        """Ends it for whoever uses it."""
        if self._server is not None:
            self._server.close()
        self.socket.unlink(missing_ok=True)
        for user in self._users:
            user.cancel()
        await asyncio.gather(*self._users, return_exceptions=True)
        self._end_bridge()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        user = asyncio.create_task(self._serve(reader, writer))
        self._users.add(user)
        user.add_done_callback(self._users.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._turn:
                bridge = await self._reach()
                if bridge is not None and not reader.at_eof():  # a user may have lost patience
                    await self._carry(bridge, reader, writer)
        finally:
            writer.close()

    async def _reach(self) -> Any:
        """A bridge that is connected to the worker; None, and `problem`, where that is not possible now."""
        try:
            if self._bridge is None:
                self._bridge = _bridge_at(self.place.node_id)
            async with asyncio.timeout(OPEN_SECONDS):
                problem = await self._bridge.open.remote(self.place.path)
        except (RayError, TimeoutError) as failure:
            self._end_bridge()
            problem = f"Ray cannot start a bridge on its node ({type(failure).__name__})"
        self._set_problem(problem or None)
        return None if problem else self._bridge

    async def _carry(self, bridge: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _first_of(_to_worker(bridge, reader), _to_web(bridge, writer))
        except RayError as failure:
            self._set_problem(f"Ray has lost the bridge on its node ({type(failure).__name__})")
        except OSError:
            pass  # web has gone
        finally:
            self._end_bridge()

    def _end_bridge(self) -> None:
        bridge, self._bridge = self._bridge, None
        if bridge is not None:
            # It would otherwise wait for the worker's next word before it ends.
            ray.kill(bridge)

    def _set_problem(self, problem: str | None) -> None:
        if problem != self.problem:
            self.problem = problem
            self._changed()


def workers_of(nodes: Iterable[Mapping[str, Any]]) -> dict[str, Place]:
    """The workers that `ray.nodes()` tells of, by their names: the node's name or address, and the path there."""
    return {
        f"{node['NodeName']}:{path}": Place(node["NodeID"], path)
        for node in nodes
        if node["Alive"]
        for resource in node["Resources"]
        if resource.startswith(RESOURCE_PREFIX) and (path := resource.removeprefix(RESOURCE_PREFIX))
    }


def _bridge_at(node_id: str) -> Any:
    there = NodeAffinitySchedulingStrategy(node_id, soft=False)
    return ray.remote(ray_bridge.Bridge).options(num_cpus=0, max_restarts=0, scheduling_strategy=there).remote()


async def _to_worker(bridge: Any, reader: asyncio.StreamReader) -> None:
    while data := await reader.read(ray_bridge.CHUNK_BYTES):
        await bridge.send.remote(data)


async def _to_web(bridge: Any, writer: asyncio.StreamWriter) -> None:
    while data := await bridge.receive.remote():
        writer.write(data)
        await writer.drain()


async def _first_of(*works: Coroutine[Any, Any, None]) -> None:
    """Until the first of them ends; the others are cancelled. Raises what that one raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def _first_sentence(failure: BaseException) -> str:
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    first = lines[0].partition(". ")[0] if lines else type(failure).__name__
    return first[:_LONGEST_PROBLEM].rstrip(".")


def _end_with_stdin(folder: Path) -> None:
    # In a thread, because Ray may hold up the others for a minute.
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _run(address: str, folder: Path, tell: Callable[[View], None]) -> int:
    """Until the cluster is lost."""
    try:
        with _impatience(lambda: tell(View(problem=f"the Ray cluster at {address} {_NO_ANSWER}"))):
            ray.init(address=address, namespace="fusionscope", log_to_driver=False, logging_level=logging.ERROR)
        ray.cloudpickle.register_pickle_by_value(ray_bridge)
        asyncio.run(Gateway(folder, tell).run())
    except Exception as failure:  # noqa: BLE001 - Ray raises many kinds, and web has to hear of each
        tell(View(problem=f"the Ray cluster at {address} cannot be used: {_first_sentence(failure)}"))
    return 1


@contextlib.contextmanager
def _impatience(complain: Callable[[], None]) -> Iterator[None]:
    """Complains where the block takes longer than an answer may. Ray itself tries for most of a minute."""
    timer = threading.Timer(SILENCE_SECONDS, complain)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m server.executors.ray_gateway", description="Joins web to Ray.")
    parser.add_argument("--address", required=True, help='Where the cluster\'s head is: host:port, or "auto".')
    parser.add_argument("--folder", required=True, type=Path, help="Private folder for the workers' sockets.")
    arguments = parser.parse_args()
    # What Ray prints must not come between the lines that web reads.
    views = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_stdin, args=(arguments.folder,), daemon=True).start()

    def tell(view: View) -> None:
        print(view.model_dump_json(), file=views, flush=True)

    return _run(arguments.address, arguments.folder, tell)


if __name__ == "__main__":
    sys.exit(main())
