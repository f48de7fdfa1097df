"""Other processes: not seen, not read, not signalled, not slowed, not traced."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from .harness import Box, Outside, is_alive, processes_named
from .prelude import LIBC, NUMBERS, attempt, call, ctypes, read


def look_around(process: int, others: list[int], **rest: object) -> None:
    import glob

    for path in glob.glob("/proc/[0-9]*/environ") + [f"/proc/{process}/{name}" for name in ("environ", "maps", "mem")]:
        if not path.startswith(f"/proc/{os.getpid()}/"):
            attempt(path, lambda: read(path))
    for other in others:
        attempt(f"command line {other}", lambda: read(f"/proc/{other}/cmdline"))
    attempt("memory of 1", lambda: read("/proc/1/mem"))
    attempt("memory of parent", lambda: read(f"/proc/{os.getppid()}/mem"))
    attempt("own environment", lambda: (dict(os.environ), read("/proc/self/environ")))


def test_nothing_is_learned_of_other_processes(box: Box, outside: Outside) -> None:
    others = [box.process.pid, box.keeper, outside.decoy.pid, os.getpid()]
    found = box.run(look_around, others=others, **outside.given)
    assert outside.secret not in found.output
    assert set(found.did) == {"own environment"}
    assert "PYTHONPATH" in found.did["own environment"]
    # What the zygote was told does not stand on its command line, which a job's guard still has.
    assert str(box.folder) not in Path(f"/proc/{box.keeper}/cmdline").read_text()


def signal_others(targets: list[int], **rest: object) -> None:
    import fcntl
    import resource
    import socket

    for target in targets:
        attempt(f"stop {target}", lambda: os.kill(target, 19))
        attempt(f"end {target}", lambda: os.kill(target, 9))
        attempt(f"tgkill {target}", lambda: call("tgkill", target, target, 9))
        attempt(f"tkill {target}", lambda: call("tkill", target, 9))
        attempt(f"queue {target}", lambda: call("rt_sigqueueinfo", target, 9, ctypes.create_string_buffer(128)))
        attempt(f"pidfd {target}", lambda: call("pidfd_send_signal", os.pidfd_open(target), 9, None, 0))
        attempt(f"limit {target}", lambda: resource.prlimit(target, resource.RLIMIT_CPU, (1, 1)))
        attempt(f"read limit {target}", lambda: resource.prlimit(target, resource.RLIMIT_CPU))
        attempt(f"processors {target}", lambda: os.sched_setaffinity(target, {0}))
        attempt(f"scheduler {target}", lambda: os.sched_setscheduler(target, os.SCHED_BATCH, os.sched_param(0)))
        attempt(f"nice {target}", lambda: os.setpriority(os.PRIO_PROCESS, target, 19))
        attempt(f"io priority {target}", lambda: call("ioprio_set", 1, target, 3 << 13))
        attempt(f"attach {target}", lambda: call("ptrace", 16, target, 0, 0))
        attempt(f"seize {target}", lambda: call("ptrace", 0x4206, target, 0, 0))
        attempt(f"read {target}", lambda: call("process_vm_readv", target, 0, 0, 0, 0, 0))
        attempt(f"write {target}", lambda: call("process_vm_writev", target, 0, 0, 0, 0, 0))
        attempt(f"take descriptor {target}", lambda: call("pidfd_getfd", os.pidfd_open(target), 0, 0))
        attempt(f"compare {target}", lambda: call("kcmp", target, os.getpid(), 0, 0, 0))
        ours, _theirs = socket.socketpair()
        attempt(f"own {target}", lambda: fcntl.fcntl(ours, 8, target))
    attempt("nice user", lambda: call("setpriority", 2, 0, 19))


def test_no_other_process_is_touched(box: Box, outside: Outside) -> None:
    # Its numbers as they are outside; inside of a process namespace they are nobody's, or the job's own.
    targets = [outside.decoy.pid, box.keeper, box.process.pid, os.getpid()]
    found = box.run(signal_others, targets=targets, **outside.given)
    assert outside.is_decoy_untouched()
    assert box.process.poll() is None and is_alive(box.keeper)
    names = {name for name in found.did if name != "nice user"}
    assert not names
    assert len(found.refused) >= 4 * 19


def signal_family(**rest: object) -> None:
    for target in (1, os.getppid()):
        attempt(f"end {target}", lambda: os.kill(target, 9))
        attempt(f"stop {target}", lambda: os.kill(target, 19))
        attempt(f"attach {target}", lambda: call("ptrace", 16, target, 0, 0))
    LIBC.syscall(ctypes.c_long(NUMBERS["kill"]), ctypes.c_long(-1), ctypes.c_long(9))
    os.kill(0, 9)


def test_signals_to_everybody_reach_the_job_alone(box: Box, outside: Outside) -> None:
    found = box.run(signal_family)
    assert outside.is_decoy_untouched()
    assert not [name for name in found.did if not name.startswith(("end 1", "stop 1", f"end {os.getpid()}"))]
    assert found.ending == "exited"


def freeze_by_tracing(process: int, **rest: object) -> None:
    for request in (0x4206, 16):
        attempt(f"trace {request}", lambda: call("ptrace", request, process, 0, 0))
    attempt("trace me", lambda: call("ptrace", 0, 0, 0, 0))
    child = os.fork()
    if child == 0:
        import time

        time.sleep(60)
    attempt("trace child", lambda: call("ptrace", 16, child, 0, 0))
    os.kill(child, 9)


def test_nobody_is_frozen_by_tracing(box: Box, outside: Outside) -> None:
    found = box.run(freeze_by_tracing, **outside.given)
    assert outside.is_decoy_untouched()
    assert not found.did


def leave_daemons(name: str, **rest: object) -> None:
    import contextlib
    import signal
    import sys
    import time

    write_pipe = os.pipe()[1]
    if os.fork() == 0:
        os.setsid()
        for number in range(1, 32):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
        LIBC.prctl(1, 0, 0, 0, 0)
        LIBC.prctl(15, name.encode(), 0, 0, 0)
        for number in range(3):
            os.close(number)
        while True:
            time.sleep(0.005)
            if os.fork():
                os._exit(0)
            os.setsid()
    time.sleep(0.1)
    sys.stdout.write(f"left {write_pipe}\n")


def test_no_daemon_outlives_its_job(box: Box) -> None:
    name = f"left{os.urandom(4).hex()}"
    found = box.run(leave_daemons, name=name)
    assert found.output.startswith("left") and found.exit_code == 0
    # The answer comes after the end of all that the job has started, so nothing has to be waited for.
    assert not processes_named(name)


def leave_orphan(**rest: object) -> None:
    import time

    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
    os.write(1, b"done")


def test_an_orphan_that_holds_the_output_does_not_hold_the_job(box: Box) -> None:
    found = box.run(leave_orphan)
    assert (found.output, found.ending, found.exit_code) == ("done", "exited", 0)


def stand_still(how: str, **rest: object) -> None:
    import signal
    import time

    if how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "closed":
        os.closerange(0, 1000)
    time.sleep(1000)


def test_a_job_that_stands_still_ends_at_its_time(box: Box) -> None:
    jobs = [box.start(stand_still, wall=0.5, how=how) for how in ("stopped", "closed", "asleep")]
    for found in map(box.result, jobs):
        assert found.ending == "time_limit"


def end_oddly(how: str, **rest: object) -> None:
    import sys

    if how == "segmentation fault":
        ctypes.string_at(0)
    elif how == "abort":
        os.abort()
    elif how == "exit":
        sys.exit("bye")
    os._exit(42)


def test_how_a_job_ended_is_told_as_it_was(box: Box) -> None:
    hows = {
        "segmentation fault": (None, signal.SIGSEGV),
        "abort": (None, signal.SIGABRT),
        "exit": (1, None),
        "code": (42, None),
    }
    jobs = {how: box.start(end_oddly, how=how) for how in hows}
    for how, job in jobs.items():
        found = box.result(job)
        assert (found.exit_code, found.signal, found.ending) == (*hows[how], "exited")


def fork_without_end(name: str, **rest: object) -> None:
    import time

    LIBC.prctl(15, name.encode(), 0, 0, 0)
    made = 0
    for _ in range(10_000):
        try:
            if os.fork() == 0:
                while True:
                    try:
                        os.fork()
                    except OSError:
                        time.sleep(0.05)
            made += 1
        except OSError:
            break
    os.write(1, f"stopped at {made}\n".encode())
    time.sleep(1000)


def test_a_fork_bomb_meets_a_limit_and_leaves_nothing(box: Box) -> None:
    name = f"bomb{os.urandom(4).hex()}"
    job = box.start(fork_without_end, wall=4.0, name=name)
    seen = 0
    while not box.has_ended(job):
        seen = max(seen, len(processes_named(name)))
        time.sleep(0.1)
    found = box.result(job)
    assert found.ending == "time_limit"
    assert not processes_named(name)
    # Where jobs share the worker's user its other processes, as of other tests, are counted when the job begins, and
    # may end later. A bomb without a limit has thousands.
    assert 1 < seen < 200


def start_threads(**rest: object) -> None:
    import threading
    import time

    made = 0
    try:
        while made < 5000:
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
            made += 1
    except RuntimeError:
        pass
    os.write(1, f"{made}".encode())
    os._exit(0)


def test_threads_count_as_processes(box: Box) -> None:
    assert 0 < int(box.run(start_threads).output) < 48
