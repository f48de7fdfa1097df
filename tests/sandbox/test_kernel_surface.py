"""Calls that a job has no use for, from whose defects others have escaped."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable

import pytest

from .harness import Box, Outside
from .prelude import LIBC, NUMBERS, attempt, call, ctypes, read, write


def enter_namespaces(process: int, **rest: object) -> None:
    attempt("mount", lambda: call("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, 0))
    attempt("umount", lambda: call("umount2", b"/proc", 2))
    attempt("pivot", lambda: call("pivot_root", b".", b"."))
    attempt("chroot", lambda: call("chroot", b"."))
    for name, flag in (("user", 0x10000000), ("mounts", 0x20000), ("processes", 0x20000000), ("network", 0x40000000)):
        attempt(f"unshare {name}", lambda: call("unshare", flag))
        attempt(f"clone {name}", lambda: call("clone", flag | 17, 0, 0, 0, 0))
    attempt("clone3", lambda: call("clone3", ctypes.create_string_buffer(88), 88))
    attempt("open_tree", lambda: call("open_tree", -100, b"/", 1))
    attempt("fsopen", lambda: call("fsopen", b"tmpfs", 0))
    for path in ("/proc/1/ns/mnt", f"/proc/{os.getppid()}/ns/user", f"/proc/{process}/ns/mnt", "/proc/self/ns/mnt"):
        attempt(f"setns {path}", lambda: call("setns", os.open(path, os.O_RDONLY), 0))
    attempt("control group", lambda: write("/sys/fs/cgroup/pids/cgroup.procs", b"0"))


def test_no_namespace_is_entered_and_nothing_is_mounted(box: Box, outside: Outside) -> None:
    found = box.run(enter_namespaces, **outside.given)
    assert not found.did
    assert len(found.refused) == 20


def call_the_kernel(**rest: object) -> None:
    buffer = ctypes.create_string_buffer(4096)
    attempt("bpf", lambda: call("bpf", 0, buffer, 72))
    attempt("perf", lambda: call("perf_event_open", buffer, 0, -1, -1, 0))
    attempt("userfaultfd", lambda: call("userfaultfd", 1))
    attempt("asynchronous files", lambda: call("io_setup", 1, ctypes.create_string_buffer(8)))
    attempt("io_uring", lambda: call("io_uring_setup", 8, buffer))
    attempt("add_key", lambda: call("add_key", b"user", b"name", b"payload", 7, -3))
    attempt("request_key", lambda: call("request_key", b"user", b"name", 0, -3))
    attempt("keyctl", lambda: call("keyctl", 0, -3, 1))
    attempt("secret memory", lambda: call("memfd_secret", 0))
    attempt("module", lambda: call("finit_module", 0, b"", 0))
    attempt("kexec", lambda: call("kexec_load", 0, 0, 0, 0))
    attempt("reboot", lambda: call("reboot", 0xFEE1DEAD - (1 << 32), 672274793, 0, 0))
    attempt("log", lambda: call("syslog", 3, buffer, 4096))
    attempt("clock", lambda: call("clock_settime", 0, buffer))
    attempt("host name", lambda: call("sethostname", b"x", 1))
    attempt("swap", lambda: call("swapoff", b"/dev/null"))
    attempt("personality", lambda: call("personality", 0x0040000))
    attempt("shared memory", lambda: call("shmget", 0, 4096, 0o1600))
    attempt("semaphore", lambda: call("semget", 0, 1, 0o1600))
    attempt("message queue", lambda: call("msgget", 0, 0o1600))
    attempt("posix queue", lambda: call("mq_open", b"x", 0o102, 0o600, 0))
    attempt("quota", lambda: call("quotactl", 0, 0, 0, 0))
    attempt("unknown", lambda: call("unknown"))
    attempt("far unknown", lambda: call("far unknown"))
    attempt("undumpable", lambda: LIBC.prctl(4, 0, 0, 0, 0) and 1 / 0)
    attempt("terminal", lambda: call("ioctl", 0, 0x5412, buffer))


def test_rare_calls_are_refused(box: Box) -> None:
    numbers = "NUMBERS.update({'unknown': 999, 'far unknown': 100000})\n"
    import inspect

    found = box.run(f"{numbers}{inspect.getsource(call_the_kernel)}\ncall_the_kernel()")
    assert set(found.did) <= {"undumpable"}
    assert "ZeroDivisionError" in found.refused["undumpable"]
    assert len(found.refused) == 26


def read_the_machine(**rest: object) -> None:
    for path in ("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/proc/kcore", "/proc/kmsg", "/sys/kernel/security"):
        attempt(path, lambda: read(path))
    attempt("sysrq", lambda: write("/proc/sysrq-trigger", b"h"))
    attempt("core pattern", lambda: write("/proc/sys/kernel/core_pattern", b"|/x"))
    attempt("overcommit", lambda: write("/proc/sys/vm/overcommit_memory", b"1"))
    attempt("addresses", lambda: next(line for line in read("/proc/kallsyms").splitlines() if int(line.split()[0], 16)))


def test_the_machine_is_not_read_or_changed(box: Box) -> None:
    assert not box.run(read_the_machine).did


def gain_privileges(**rest: object) -> None:
    import subprocess

    def output(*command: str) -> str:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=100).stdout.decode()

    attempt("su", lambda: output("/bin/su", "-c", "id"))
    attempt(
        "mount", lambda: subprocess.run(["/bin/mount", "-t", "tmpfs", "x", "/tmp"], check=True, capture_output=True)
    )
    attempt("root", lambda: os.setuid(0) if os.getuid() else 1 / 0)
    attempt("groups", lambda: os.setgroups([0]))
    attempt("status", lambda: read("/proc/self/status").decode())


def test_no_privilege_is_gained(box: Box) -> None:
    found = box.run(gain_privileges)
    assert "uid=0" not in found.output
    assert set(found.did) <= {"su", "status"}
    status = found.did["status"]
    assert re.search(r"NoNewPrivs:\\t1", status)
    assert re.search(r"CapEff:\\t0+\\n", status) and re.search(r"CapPrm:\\t0+\\n", status)
    assert re.search(r"Seccomp:\\t2", status)


def call_as_i386(**rest: object) -> None:
    import mmap

    # mov eax, 20 (getpid there); int 0x80; ret
    code = bytes.fromhex("b814000000cd80c3")
    page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
    page.write(code)
    answer = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    os.write(1, f"answered {answer}".encode())


def call_as_x32(**rest: object) -> None:
    os.write(1, f"answered {ctypes.CDLL(None).syscall(ctypes.c_long(0x40000000 + 39))}".encode())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these interfaces are those of x86-64")
@pytest.mark.parametrize("attack", [call_as_i386, call_as_x32])
def test_other_binary_interfaces_end_the_job(box: Box, attack: Callable[..., None]) -> None:
    found = box.run(attack)
    assert "answered" not in found.output
    assert found.signal == 31


def test_attacks_know_the_numbers_of_their_calls() -> None:
    assert NUMBERS == {}
