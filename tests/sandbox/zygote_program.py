"""A zygote for tests: forks jobs that run a source text. Takes its config and a socket from the worker's program."""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from server.sandbox import Job, JobLimits, Sandbox, SandboxConfig, begin, isolation, landlock, private_memory

OUTPUT, INPUT = 1, 0


def main() -> NoReturn:
    channel = socket.socket(fileno=int(sys.argv[1]))
    told = json.loads(channel.recv(1 << 20))
    # The one place where layers are taken away: without them, attacks must be seen to escape.
    isolation._switched_off = frozenset(told["switched_off"])
    landlock._newest = told.get("landlock", landlock._newest)
    sandbox = Sandbox(SandboxConfig.model_validate(told["config"]))
    sandbox.enter()
    channel.send(json.dumps({"ready": os.getpid(), "threads": len(os.listdir("/proc/self/task"))}).encode())
    jobs: dict[str, Job] = {}
    while True:
        ended = {job.ended: name for name, job in jobs.items()}
        readable, _, _ = select.select([channel.fileno(), *ended], [], [])
        for descriptor in readable:
            if descriptor == channel.fileno():
                message, descriptors, _, _ = socket.recv_fds(channel, 1 << 20, 2)
                if not message:
                    os._exit(0)
                fork(sandbox, channel, jobs, json.loads(message), descriptors)
            else:
                name = ended[descriptor]
                exit_ = jobs.pop(name).wait()
                held = len(os.listdir("/proc/self/fd"))
                channel.send(json.dumps({"ended": name, "exit": vars(exit_), "descriptors": held}).encode())


def fork(
    sandbox: Sandbox, channel: socket.socket, jobs: dict[str, Job], asked: dict[str, Any], descriptors: list[int]
) -> None:
    limits = JobLimits.model_validate(asked["limits"])
    numbers = dict(zip((OUTPUT, INPUT), descriptors))

    def run(folder: Path) -> NoReturn:
        begin(limits, private_memory())
        os.dup2(OUTPUT, 2)
        exec(compile(asked["source"], "snippet", "exec"), {"__name__": "__main__", "FOLDER": str(folder)})
        sys.stdout.flush()
        os._exit(0)

    job = sandbox.fork(limits, numbers, run)
    jobs[asked["name"]] = job
    for descriptor in descriptors:
        os.close(descriptor)
    message = json.dumps({"forked": asked["name"], "folder": str(job.folder)}).encode()
    socket.send_fds(channel, [message], [job.ended])


main()
