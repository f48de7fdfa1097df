"""The zygote: one thread that has imported everything and does nothing but fork. `python -m server.worker.zygote`.

It is started by the worker with a clean environment and one socket; all else comes as the first packet. `Sandbox.enter`
leaves a keeper behind, which is the process that the worker started, and goes on in a child. The zygote obeys the
rules without which a forked process hangs or cannot use the GPU: no parallel operation ever runs here
(`torch.set_num_threads(1)` first of all), CUDA is never started (torch asks the driver's management library instead,
`PYTORCH_NVML_BASED_CUDA_CHECK`), nothing is compiled here, and no snippet's code, nor what a snippet wrote, is ever
read. When the worker is gone it ends, and by the sandbox's promise all that it has forked ends with it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from server.sandbox import Job, Sandbox
from server.wire.messages import DeviceFacts
from server.worker import cuda_trial, snippet
from server.worker.channel import (
    Failed,
    Fork,
    Forked,
    Gone,
    Program,
    Ready,
    Settled,
    ZygoteConfig,
    receive_packet,
    send_packet,
)

CHANNEL = 3
"""The descriptor of the socket to the worker."""

_TRIAL = "trial"


def main() -> int:
    """Forks until the worker closes the socket."""
    channel = socket.socket(fileno=CHANNEL)
    channel.set_inheritable(False)
    first = receive_packet(channel)
    if first is None:
        return 0
    config = ZygoteConfig.model_validate_json(first[0])
    try:
        sandbox = Sandbox(config.sandbox)
        sandbox.enter()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        snippet.point_caches_to(sandbox.job_folder)
        explore = _import(config.program)
    except Exception as failure:  # noqa: BLE001 - the worker must learn why there is no zygote
        traceback.print_exc()
        send_packet(channel, Failed(message=f"{type(failure).__name__}: {failure}"[:2000]))
        return 1
    # Objects made so far live as long as we do; unless the collector forgets them, its first run in each process
    # would touch, hence copy, all of their memory.
    gc.freeze()
    send_packet(channel, Ready(devices=_known_devices()))
    with contextlib.suppress(ConnectionError):  # the worker is gone
        _Forker(channel, sandbox, config, explore).serve()
    return 0


def _import(program: Program) -> snippet.Explore:
    if "torch" in program.imports:
        torch: Any = importlib.import_module("torch")
        torch.set_num_threads(1)
    for name in program.imports:
        importlib.import_module(name)
    module, _, function = program.explore.partition(":")
    explore: snippet.Explore = getattr(importlib.import_module(module), function)
    return explore


def _check_threads() -> None:
    names = [Path("/proc/self/task", task, "comm").read_text().strip() for task in os.listdir("/proc/self/task")]
    if len(names) > 1:
        # A lock that another thread holds at the fork would be held for ever in the new process.
        known = [thread.name for thread in threading.enumerate()]
        print(f"The zygote has {len(names)} threads; jobs may hang: {names}, of Python's {known}.", file=sys.stderr)


def _known_devices() -> tuple[DeviceFacts, ...]:
    """The compiler's records of devices, where the compiler is what we run."""
    known: Any = sys.modules.get("compiler.devices")
    if known is None:
        return ()
    found = []
    for device in (known.cpu_device(), *known.GPUS):
        facts = dataclasses.asdict(device)
        name, kind, target = (str(facts.pop(field)) for field in ("name", "kind", "target"))
        found.append(DeviceFacts(name=name, kind=kind, target=target, facts=facts))
    return tuple(found)


class _Forker:
    """Answers the worker's packets, and tells it of each process that is gone."""

    def __init__(
        self, channel: socket.socket, sandbox: Sandbox, config: ZygoteConfig, explore: snippet.Explore
    ) -> None:
        self._channel = channel
        self._sandbox = sandbox
        self._config = config
        self._explore = explore
        self._jobs: dict[int, Job] = {}
        kept_out = config.program.start_cuda if config.sandbox.uses_gpu else frozenset[str]()
        self._later = [name for name in config.program.later if name not in kept_out]
        self._in_spares = tuple(name for name in config.program.later if name in kept_out)
        self._trial: int | None = None
        self._is_tried = not self._in_spares
        self._is_settled = False
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Returns when the worker is gone."""
        self._selector.register(self._channel, selectors.EVENT_READ)
        while True:
            waits = self._is_settled or self._trial is not None
            ready = self._selector.select(None if waits else 0)
            if not ready:
                self._settle_further()
            for key, _ in ready:
                if key.data is _TRIAL:
                    self._end_trial(key.fd)
                elif key.data is not None:
                    self._tell_gone(key.data)
                elif not self._answer():
                    return

    def _settle_further(self) -> None:
        """One step of what can be done while nothing is asked."""
        if self._later:
            try:
                importlib.import_module(self._later[0])
            except Exception:  # noqa: BLE001 - jobs that need it say so themselves
                traceback.print_exc()
            del self._later[0]
            return
        if not self._is_tried:
            self._trial, ended = cuda_trial.begin_trial(self._in_spares)
            self._selector.register(ended, selectors.EVENT_READ, _TRIAL)
            return
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        _check_threads()
        self._is_settled = True
        send_packet(self._channel, Settled())

    def _end_trial(self, ended: int) -> None:
        """What may be imported here is no spare's work."""
        assert self._trial is not None
        self._selector.unregister(ended)
        os.close(ended)
        if cuda_trial.has_passed(self._trial):
            self._later += self._in_spares
            self._in_spares = ()
        self._trial, self._is_tried = None, True

    def _answer(self) -> bool:
        """Takes one packet. False when the worker is gone."""
        received = receive_packet(self._channel)
        if received is None:
            return False
        data, descriptors = received
        message = Fork.model_validate_json(data)
        try:
            self._fork(message, descriptors)
        except OSError as failure:
            problem = f"no process could be made: {failure.strerror}"
            send_packet(self._channel, Failed(number=message.number, message=problem))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _fork(self, message: Fork, descriptors: list[int]) -> None:
        reports, output, requests, *group = descriptors
        given = {
            1: output,
            2: output,
            snippet.REPORTS: reports,
            snippet.CRASHES: output,
            snippet.REQUESTS: requests,
        }
        job = self._sandbox.fork(message.limits, given, self._main(), *group)
        self._jobs[message.number] = job
        self._selector.register(job.ended, selectors.EVENT_READ, message.number)
        send_packet(self._channel, Forked(number=message.number, folder=job.folder), (job.ended,))

    def _main(self) -> Callable[[Path], NoReturn]:
        preparation = snippet.Preparation(
            imports=tuple(self._later),
            imports_of_spares=self._in_spares,
            warm_source=self._config.program.warm_source,
            threads=self._config.threads,
        )
        return lambda folder: snippet.main(folder, self._explore, preparation)

    def _tell_gone(self, number: int) -> None:
        job = self._jobs.pop(number)
        self._selector.unregister(job.ended)
        ended = job.wait()
        send_packet(
            self._channel,
            Gone(
                number=number,
                exit_code=ended.exit_code,
                signal=ended.signal,
                processor_seconds=ended.processor_seconds,
                failure=ended.failure,
            ),
        )


if __name__ == "__main__":
    raise SystemExit(main())
