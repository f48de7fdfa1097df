"""What the tests of the sandbox stand on: a box that runs attacks, and witnesses outside of it.

An attack is a function of a test's module. Its text is sent to a job, with `prelude.py` before it, and called there.
"""

from __future__ import annotations

import inspect
import json
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.sandbox import MIB, JobLimits, code_folders, processes
from server.sandbox.config import FIRST_JOB_USER

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PRELUDE = (HERE / "prelude.py").read_text()
PLAIN_USER = 61900
PATIENCE_SECONDS = 240.0

LIMITS = JobLimits(
    cpu_seconds=20,
    memory_bytes=192 * MIB,
    processes=48,
    open_files=64,
    file_bytes=16 * MIB,
    disk_bytes=32 * MIB,
    disk_files=512,
    shared_memory_bytes=16 * MIB,
)


def zygote_below(keeper: int) -> int:
    """The zygote of a sandbox. In tier A there is process 1 of its namespace between."""
    child = processes.descendants(keeper)[0]
    status = Path(f"/proc/{child}/status").read_text()
    numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
    return processes.descendants(child)[0] if numbers[-1] == "1" else child


@dataclass(frozen=True)
class Outcome:
    """A job that is over, as the worker saw it."""

    output: str
    ending: str
    exit_code: int | None
    signal: int | None
    failure: str | None
    seconds: float
    peak: dict[str, int] | None
    descriptors: int
    """Those of the zygote and the worker together, when the job was over."""

    @property
    def attempts(self) -> list[tuple[str, bool, str]]:
        """What the job says that it tried: a name, whether it worked, and the answer."""
        found = []
        for line in self.output.splitlines():
            if line.startswith("@@"):
                name, worked, answer = json.loads(line[2:])
                found.append((name, worked, answer))
        return found

    @property
    def did(self) -> dict[str, str]:
        return {name: answer for name, worked, answer in self.attempts if worked}

    @property
    def refused(self) -> dict[str, str]:
        return {name: answer for name, worked, answer in self.attempts if not worked}


def numbers_of_calls() -> dict[str, int]:
    """Every system call that libseccomp knows, by its name."""
    import pyseccomp

    found = {}
    for number in range(1024):
        try:
            found[pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, number).decode()] = number
        except ValueError:
            continue
    return found


class Box:
    """A worker and its zygote. `user` is the worker's; root's jobs get users of their own in tier B.

    `is_contained` leaves root with what it has in a container. `switched_off` are layers that are left out, and
    `landlock=` is the newest version of it that is used. `uses_gpu` allows what CUDA needs, with a GPU or without.
    """

    def __init__(
        self,
        tier: str,
        user: int,
        switched_off: tuple[str, ...] = (),
        is_contained: bool = False,
        uses_gpu: bool = False,
        **more: Any,
    ) -> None:
        self.tier, self.user = tier, user
        self.workspace = Path(tempfile.mkdtemp(prefix="sandbox-", dir="/tmp"))
        self.workspace.chmod(0o711)
        self.folder = self.workspace / "jobs"
        self.folder.mkdir(mode=0o700)
        os.chown(self.folder, user, user)
        (self.workspace / "mounts").mkdir()
        command = [sys.executable, str(HERE / "worker_program.py")]
        if user != os.geteuid() or is_contained:
            command = [sys.executable, str(HERE / "as_user.py"), str(user), *command]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **{"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
                "WORKSPACE": str(self.workspace / "mounts"),
            },
            start_new_session=True,
        )
        config = {
            "tier": tier,
            "uses_gpu": uses_gpu,
            "folder": str(self.folder),
            "readable": [str(path) for path in code_folders()],
            "first_uid": FIRST_JOB_USER,
        }
        self._answers: dict[str, queue.Queue[dict[str, Any] | None]] = {}
        self._begun: dict[str, threading.Event] = {}
        self._guards: dict[str, int | None] = {}
        self._ready: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._number = 0
        self._is_lost = False
        self._send({"config": config, "switched_off": list(switched_off), **more})
        threading.Thread(target=self._listen, daemon=True).start()
        ready = self._ready.get(timeout=PATIENCE_SECONDS)
        assert ready is not None, f"tier {tier} does not start as user {user}"
        self.keeper, self.threads = ready["keeper"], ready["threads"]
        self.zygote_number = ready["number"]
        """Its process id, as it sees it itself."""

    def start(
        self, attack: Callable[..., None] | str, limits: JobLimits = LIMITS, wall: float = 120.0, **given: Any
    ) -> str:
        """Starts a job; its name, once its guard is being watched."""
        self._number += 1
        name = f"job{self._number}"
        self._answers[name], self._begun[name] = queue.Queue(), threading.Event()
        source = attack if isinstance(attack, str) else f"{inspect.getsource(attack)}\n{attack.__name__}(**GIVEN)\n"
        source = f"{PRELUDE}\nNUMBERS.update({numbers_of_calls()!r})\nGIVEN = {given!r}\n{source}"
        self._send({"name": name, "source": source, "limits": limits.model_dump(), "wall_seconds": wall})
        assert self._begun[name].wait(PATIENCE_SECONDS) and not self._is_lost, "the worker is lost"
        return name

    def guard_of(self, name: str) -> int | None:
        return self._guards[name]

    def release(self, name: str) -> None:
        """Ends the input that a job may wait for."""
        self._send({"release": name})

    def has_ended(self, name: str) -> bool:
        return self._is_lost or not self._answers[name].empty()

    def result(self, name: str) -> Outcome:
        told = self._answers[name].get(timeout=PATIENCE_SECONDS)
        assert told is not None, "the worker is lost"
        exit_ = told["exit"]
        return Outcome(
            told["output"],
            told["ending"],
            exit_["exit_code"],
            exit_["signal"],
            exit_["failure"],
            told["seconds"],
            told["peak"],
            told["descriptors"],
        )

    def run(
        self, attack: Callable[..., None] | str, limits: JobLimits = LIMITS, wall: float = 120.0, **given: Any
    ) -> Outcome:
        outcome = self.result(self.start(attack, limits, wall, **given))
        assert outcome.failure is None, outcome.failure
        return outcome

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE_SECONDS)
        wait_until(lambda: not is_alive(self.keeper), "the keeper outlives its worker")
        shutil.rmtree(self.workspace, ignore_errors=True)

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told = json.loads(line)
            if "ready" in told:
                self._ready.put(told)
            elif "begun" in told:
                self._guards[told["begun"]] = told["guard"]
                self._begun[told["begun"]].set()
            else:
                self._answers[told["name"]].put(told)
        self._ready.put(None)
        self._is_lost = True
        for begun in self._begun.values():
            begun.set()
        for answers in self._answers.values():
            answers.put(None)


class Outside:
    """What an attack must not reach: files, a process, listeners. They belong to the user that jobs may have."""

    def __init__(self, folder: Path, user: int) -> None:
        self.user = user
        self.folder = folder
        folder.chmod(0o777)
        self.secret = f"secret-{os.urandom(8).hex()}"
        self.file = folder / "store.db"
        self.file.write_text(self.secret)
        os.chown(self.file, user, user)
        self.file.chmod(0o644)
        self._metadata = self._status()
        self.connections: list[str] = []
        self._sockets: list[socket.socket] = []
        self.tcp_port = self._listen(socket.AF_INET, ("127.0.0.1", 0)).getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.udp.setblocking(False)
        self.path = str(folder / "listener")
        self._listen(socket.AF_UNIX, self.path)
        os.chmod(self.path, 0o777)
        self.abstract = f"sandbox-{os.urandom(8).hex()}"
        self._listen(socket.AF_UNIX, f"\0{self.abstract}")
        self.decoy = self._start_decoy()
        self._process = self._state()

    def _start_decoy(self) -> subprocess.Popen[bytes]:
        def become() -> None:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(self.user, self.user, self.user)
                os.setresuid(self.user, self.user, self.user)

        return subprocess.Popen(
            ["/usr/bin/sleep", "100000"],
            env={"SECRET": self.secret},
            preexec_fn=become,
            stdin=subprocess.DEVNULL,
        )

    def _listen(self, family: int, address: Any) -> socket.socket:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen()
        self._sockets.append(listener)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                self.connections.append(str(address))
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        return listener

    def _status(self) -> tuple[Any, ...]:
        found = os.lstat(self.file)
        return found.st_mode, found.st_uid, found.st_gid, found.st_size, found.st_mtime_ns, found.st_nlink

    @property
    def given(self) -> dict[str, Any]:
        """What an attack is told: everything that it could use."""
        return {
            "file": str(self.file),
            "folder": str(self.folder),
            "process": self.decoy.pid,
            "tcp_port": self.tcp_port,
            "udp_port": self.udp.getsockname()[1],
            "path": self.path,
            "abstract": self.abstract,
        }

    def is_file_untouched(self) -> bool:
        return (
            self._status() == self._metadata
            and self.file.read_text() == self.secret
            and not os.listxattr(self.file)
            and sorted(os.listdir(self.folder)) == ["listener", "store.db"]
        )

    def _state(self) -> tuple[Any, ...]:
        process = self.decoy.pid
        # A process that sleeps is seen running, or waiting for its program to be read, for a moment after its start.
        state = re.compile("State:\t[RD]")
        wait_until(lambda: not state.search(Path(f"/proc/{process}/status").read_text()), "the decoy does not sleep")
        return (
            self.decoy.poll(),
            [
                line
                for line in Path(f"/proc/{process}/status").read_text().splitlines()
                if line[:5] in ("State", "Trace")
            ],
            os.getpriority(os.PRIO_PROCESS, process),
            os.sched_getaffinity(process),
            os.sched_getscheduler(process),
            Path(f"/proc/{process}/limits").read_text(),
        )

    def is_decoy_untouched(self) -> bool:
        """It lives, is neither stopped nor traced, and has the priority, processors and limits that it began with."""
        try:
            return is_alive(self.decoy.pid) and self._state() == self._process
        except (FileNotFoundError, ProcessLookupError):  # it was about to die, and is gone by now
            return False

    def was_reached(self) -> bool:
        try:
            self.udp.recv(100)
        except BlockingIOError:
            return bool(self.connections)
        return True

    def close(self) -> None:
        self.decoy.kill()
        self.decoy.wait()
        for opened in (*self._sockets, self.udp):
            opened.close()


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def wait_until(holds: Callable[[], bool], otherwise: str, seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)


def processes_named(name: str) -> list[int]:
    """Living processes with `name` as their thread's name, whoever owns them."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if Path(f"/proc/{entry}/comm").read_text().strip() == name and is_alive(int(entry)):
                    found.append(int(entry))
            except OSError:
                continue
    return found
