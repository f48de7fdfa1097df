"""A worker for tests: starts a zygote, watches its jobs, and answers requests of the test, a JSON object a line.

Request: {"name", "source", "limits", "wall_seconds"}; {"release": name} closes a job's stdin.
Answers: {"ready"} once; for each job {"begun"} and then {"name", "output", "ending", "exit", "seconds", "peak"}.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from server.sandbox import JobLimits, Usage, Watch

OUTPUT_BYTES = 256 * 1024
PERIOD_SECONDS = 0.05


@dataclass
class Running:
    limits: JobLimits
    deadline: float
    started: float
    output: int
    release: int | None
    watch: Watch | None = None
    pidfd: int = -1
    text: bytearray = field(default_factory=bytearray)
    ending: str | None = None
    exit: dict[str, Any] | None = None
    peak: Usage | None = None


class Worker:
    def __init__(self, told: dict[str, Any]) -> None:
        self.tier = told["config"]["tier"]
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = Path(__file__).with_name("zygote_program.py")
        self.zygote = subprocess.Popen(
            [sys.executable, str(program), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": os.environ["PYTHONPATH"], "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self.channel.send(json.dumps(told).encode())
        first = self.channel.recv(1 << 20)
        if not first:
            raise SystemExit(f"the zygote ended with code {self.zygote.wait()}")
        self.jobs: dict[str, Running] = {}
        zygote = json.loads(first)
        answer({"ready": True, "keeper": self.zygote.pid, "threads": zygote["threads"], "number": zygote["ready"]})

    def serve(self) -> None:
        requests = b""
        while True:
            outputs = {job.output: job for job in self.jobs.values() if job.output >= 0}
            waiting = [0, self.channel.fileno(), *outputs]
            readable, _, _ = select.select(waiting, [], [], PERIOD_SECONDS if self.jobs else None)
            for descriptor in readable:
                if descriptor == 0:
                    chunk = os.read(0, 1 << 20)
                    if not chunk:
                        return
                    *lines, requests = (requests + chunk).split(b"\n")
                    for line in lines:
                        self.take(json.loads(line))
                elif descriptor == self.channel.fileno():
                    if not self.hear():
                        return
                elif outputs[descriptor].output == descriptor:
                    # Otherwise its job was found to be over just now.
                    self.read(outputs[descriptor])
            self.look()

    def take(self, asked: dict[str, Any]) -> None:
        if "release" in asked:
            job = self.jobs[asked["release"]]
            if job.release is not None:
                os.close(job.release)
                job.release = None
            return
        output, theirs = os.pipe()
        stdin, release = os.pipe()
        now = time.monotonic()
        limits = JobLimits.model_validate(asked["limits"])
        self.jobs[asked["name"]] = Running(limits, now + asked["wall_seconds"], now, output, release)
        message = {key: asked[key] for key in ("name", "source", "limits")}
        socket.send_fds(self.channel, [json.dumps(message).encode()], [theirs, stdin])
        os.close(theirs)
        os.close(stdin)

    def hear(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self.channel, 1 << 20, 1)
        if not message:
            return False
        told = json.loads(message)
        if "forked" in told:
            job = self.jobs[told["forked"]]
            job.pidfd = descriptors[0]
            try:
                job.watch = Watch(job.pidfd, self.tier, Path(told["folder"]))
            except ProcessLookupError:
                job.watch = None
            answer({"begun": told["forked"], "guard": job.watch.process if job.watch else None})
        else:
            self.finish(told)
        return True

    def read(self, job: Running) -> None:
        chunk = os.read(job.output, 1 << 16)
        if chunk:
            job.text += chunk
        else:
            os.close(job.output)
            job.output = -1

    def look(self) -> None:
        for job in self.jobs.values():
            if job.watch is None:
                continue
            usage = job.watch.usage()
            if job.peak is None or usage.memory_bytes > job.peak.memory_bytes:
                job.peak = usage
            over = "output_limit" if len(job.text) > OUTPUT_BYTES else job.watch.over(job.limits)
            is_late = time.monotonic() > job.deadline
            job.ending = job.ending or over or ("time_limit" if is_late else None)
            if job.ending is not None:
                job.watch.kill()

    def finish(self, told: dict[str, Any]) -> None:
        name = told["ended"]
        job = self.jobs.pop(name)
        while job.output >= 0 and select.select([job.output], [], [], 0)[0] and len(job.text) <= OUTPUT_BYTES:
            self.read(job)
        for descriptor in (job.output, job.pidfd, job.release):
            if descriptor is not None and descriptor >= 0:
                os.close(descriptor)
        job.output = -1
        if job.watch is not None:
            job.watch.close()
        answer(
            {
                "name": name,
                "output": job.text.decode(errors="replace"),
                "ending": job.ending or "exited",
                "exit": told["exit"],
                "descriptors": told["descriptors"] + len(os.listdir("/proc/self/fd")),
                "seconds": time.monotonic() - job.started,
                "peak": vars(job.peak) if job.peak else None,
            }
        )


def answer(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def main() -> None:
    with open(0, "rb", buffering=0, closefd=False) as requests:  # which takes no byte of the next line
        first = requests.readline()
    Worker(json.loads(first)).serve()


main()
