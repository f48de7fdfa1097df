"""The attacks of `tests/sandbox` as snippets of a worker with the real compiler, judged by what is seen from outside.

Each tier, with a worker that is root and with a plain one. Without Landlock, and without seccomp, the same evidence
must show an escape: else it would show none in the first place.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.service.figures import ROOT
from compiler.options import Options, Timing
from server.sandbox.config import FIRST_JOB_USER
from server.worker.channel import Program
from tests.sandbox import test_files, test_kernel_surface, test_limits, test_network, test_processes
from tests.sandbox.harness import PLAIN_USER, PRELUDE, Outside, numbers_of_calls, processes_named
from tests.worker.harness import Web, WorkerProcess, worker_process

#: What must still be explored afterwards, within the little memory that attacks are given here.
SNIPPET = """
import torch

@torch.compile
def f(x):
    return torch.softmax(x * 2.0, -1)

f(torch.randn(64, 256))
"""
QUICK = Options(timing=Timing(max_seconds=0.05))
LIMITS = {"memory_gib": 0.75, "disk_mib": 64, "shared_memory_mib": 16, "processes": 64}
TOO_MUCH_MB = 1500
WALL_SECONDS = 40
#: Of those that would not end by themselves.
SHORT_WALL_SECONDS = 5


@dataclass(frozen=True)
class Seen:
    """What became of an attack: what it wrote, which of its attempts worked, how it ended, what it left."""

    output: str
    did: frozenset[str]
    ending: str
    signal: int | None
    has_left: bool


@dataclass(frozen=True)
class Attack:
    """`may` are attempts that harm nobody; `endings` are how it must end, and `signal` what must end it, where that is
    its evidence. Elsewhere it must have said something: what did nothing was not contained."""

    run: Callable[..., None]
    may: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    signal: int | None = None
    given: tuple[tuple[str, Any], ...] = ()
    wall_seconds: int = WALL_SECONDS

    def is_contained(self, seen: Seen, outside: Outside) -> bool:
        is_untouched = outside.is_file_untouched() and outside.is_decoy_untouched() and not outside.was_reached()
        is_silent = outside.secret not in seen.output and "uid=0" not in seen.output and "answered" not in seen.output
        is_over = seen.ending in self.endings if self.endings else bool(seen.output) or seen.signal is not None
        is_over = is_over and not seen.has_left and seen.signal == (self.signal if not self.endings else seen.signal)
        return is_untouched and is_silent and is_over and seen.did <= self.may


def flood_output(**rest: Any) -> None:
    while True:
        os.write(2, b"x" * 65536)


def flood_reports(**rest: Any) -> None:
    while True:
        os.write(3, b"x" * 65536)


def _taking(attack: Callable[..., None]) -> Attack:
    return Attack(attack, endings=("memory_limit",), given=(("megabytes", TOO_MUCH_MB),))


ATTACKS = (
    Attack(test_files.read_everything, may=frozenset({"passwd"})),
    Attack(test_files.change_everything),
    Attack(test_files.change_metadata),
    Attack(test_files.watch_files),
    Attack(test_network.connect_everywhere),
    Attack(test_processes.look_around, may=frozenset({"own environment"})),
    Attack(test_processes.signal_others, may=frozenset({"nice user"})),
    Attack(test_processes.freeze_by_tracing),
    # Its processes replace each other all the time, and share its pipes: a limit may end it first.
    Attack(test_processes.leave_daemons, endings=("exited", "memory_limit", "report_limit", "time_limit")),
    Attack(test_processes.leave_orphan),
    # What its processes have each written to may be too much together. The compiler's own clock may end it, and the
    # second of the next, before the worker's does.
    Attack(
        test_processes.fork_without_end,
        endings=("time_limit", "exited", "memory_limit"),
        wall_seconds=SHORT_WALL_SECONDS,
    ),
    *(
        Attack(test_processes.stand_still, endings=endings, given=(("how", how),), wall_seconds=3)
        for how, endings in (("stopped", ("time_limit",)), ("closed", ("time_limit", "exited")))
    ),
    Attack(test_kernel_surface.enter_namespaces),
    Attack(test_kernel_surface.call_the_kernel, may=frozenset({"undumpable"})),
    Attack(test_kernel_surface.read_the_machine),
    Attack(test_kernel_surface.gain_privileges, may=frozenset({"su", "status"})),
    Attack(test_kernel_surface.call_as_i386, signal=signal.SIGSYS),
    Attack(test_kernel_surface.call_as_x32, signal=signal.SIGSYS),
    _taking(test_limits.take_private_by_three),
    _taking(test_limits.take_shared_mappings),
    _taking(test_limits.take_shared_by_three),
    _taking(test_limits.take_memfd),
    _taking(test_limits.take_closed_memfd),
    _taking(test_limits.take_memfd_in_a_program_that_nobody_may_read),
    # In tier A the disk is full, elsewhere who fills it is ended. The report keeps the first 64 KiB of what is printed.
    Attack(test_limits.fill_disk, endings=("exited", "disk_limit", "memory_limit")),
    Attack(flood_output, endings=("exited", "disk_limit"), wall_seconds=SHORT_WALL_SECONDS),
    Attack(flood_reports, endings=("report_limit",)),
)

ESCAPES = {
    ("B", "landlock"): {"read_everything", "change_everything", "signal_others"},
    ("B", "seccomp"): {"change_metadata", "watch_files", "connect_everywhere", "call_the_kernel", "call_as_i386"},
    ("A", "seccomp"): {"connect_everywhere", "enter_namespaces", "call_the_kernel", "call_as_i386"},
}
"""What gets out where a tier lacks a layer, on x86-64."""


def attacks() -> dict[str, Any]:
    """Runs all of it. Raises AssertionError where an attack gets out, or where none does without a layer."""
    users = {"root": 0, "plain": PLAIN_USER} if os.geteuid() == 0 else {"plain": os.geteuid()}
    found: dict[str, Any] = {}
    for name, user in users.items():
        for tier in ("A", "B"):
            found[f"tier {tier}, {name}"] = asyncio.run(_attack(tier, user, ATTACKS))
    for (tier, layer), names in ESCAPES.items():
        by_name = {attack.run.__name__: attack for attack in ATTACKS}
        chosen = tuple(by_name[name] for name in sorted(names))
        found[f"tier {tier}, plain, without {layer}"] = asyncio.run(_attack(tier, PLAIN_USER, chosen, layer))
    return {"attacks": found}


async def _attack(tier: str, user: int, chosen: tuple[Attack, ...], without: str | None = None) -> dict[str, Any]:
    started = time.monotonic()
    contained, unexpected = 0, list[str]()
    program = Program(readable=(ROOT / "tests", ROOT / "bench"))
    if without is not None:
        program = program.model_copy(update={"imports": (*program.imports, f"bench.service.without_{without}")})
    with worker_process(program, user=user, tier=tier, slots=2, spares=1, **LIMITS) as worker:
        async with worker.web() as web:
            await web.ready()
            for attack in chosen:
                with _witnesses(user) as outside:
                    seen = await _run(web, worker, attack, outside, without)
                    is_contained = attack.is_contained(seen, outside)
                told = f"tier {tier}, user {user}, without {without}: {attack.run.__name__}"
                print(f"{told}: {'contained' if is_contained else 'ESCAPED'} ({seen.ending})", flush=True)
                if is_contained is not (without is None):
                    unexpected.append(attack.run.__name__)
                    print(f"{sorted(seen.did)}, signal {seen.signal}: {seen.output[-2000:]}", flush=True)
                contained += is_contained
            report = (await web.run(SNIPPET, QUICK, wall_seconds=WALL_SECONDS)).report()
            assert report["/status"] == "ok", report["/error"]
    assert not unexpected, f"tier {tier}, user {user}, without {without}: {unexpected}"
    seconds = round(time.monotonic() - started, 1)
    return {"attacks": len(chosen), "contained": contained, "seconds": seconds}


def source_of(attack: Attack, given: dict[str, Any]) -> str:
    """The snippet that is the attack."""
    numbers = {**numbers_of_calls(), "unknown": 999, "far unknown": 100_000}
    call = f"{inspect.getsource(attack.run)}\n{attack.run.__name__}(**GIVEN)\n"
    return f"{PRELUDE}\nNUMBERS.update({numbers!r})\nGIVEN = {given!r}\n{call}"


@contextlib.contextmanager
def _witnesses(user: int) -> Iterator[Outside]:
    with tempfile.TemporaryDirectory(prefix="outside-") as folder:
        outside = Outside(Path(folder), user or FIRST_JOB_USER)
        try:
            yield outside
        finally:
            outside.close()


async def _run(web: Web, worker: WorkerProcess, attack: Attack, outside: Outside, without: str | None) -> Seen:
    """Runs one beside another job, which must not be disturbed."""
    others = [worker.process.pid, worker.keeper, outside.decoy.pid, os.getpid()]
    # What escapes would end the worker, and with it what is to be seen.
    targets = others if without is None else [outside.decoy.pid]
    mark = f"mark{os.urandom(4).hex()}"
    given = {**outside.given, "others": others, "targets": targets, "name": mark, **dict(attack.given)}
    source = source_of(attack, given)
    sibling = await web.begin("import time\ntime.sleep(1)\nprint('undisturbed')", QUICK)
    done = await web.run(source, QUICK, wall_seconds=attack.wall_seconds)
    beside = await web.done(sibling)
    assert beside.report()["/output"] == "undisturbed\n", beside.ended
    assert worker.process.poll() is None and done.ended is not None
    output = done.report().get("/output", "") + done.output
    # The report cuts long lines; a name and whether it worked come first.
    did = frozenset(re.findall(r'(?m)^@@\["(.*?)", true, ', output))
    return Seen(output, did, done.ended.ending, done.ended.signal, bool(processes_named(mark)))
