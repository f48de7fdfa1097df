"""The filters of both processors, run by an interpreter of their programs. Calls have the numbers of the
kernel's own headers, not of the library that writes the filters. So a machine of one kind sees what the other refuses.
"""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from server.sandbox.syscalls import Rules, programs

HEADERS = Path("/usr/include")
TABLES = {
    "X86_64": (0xC000003E, HEADERS / "x86_64-linux-gnu" / "asm" / "unistd_64.h"),
    "AARCH64": (0xC00000B7, HEADERS / "asm-generic" / "unistd.h"),
}
ALLOW, ERRNO, KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000

NEEDED = "read write openat close mmap mprotect futex execve exit_group wait4 getrandom newfstatat prlimit64"
REFUSED = (
    "ptrace process_vm_readv process_vm_writev pidfd_getfd perf_event_open mount umount2 pivot_root chroot unshare "
    "setns open_tree move_mount fsopen bpf userfaultfd io_uring_setup io_uring_enter io_uring_register add_key "
    "request_key keyctl memfd_secret fanotify_init open_by_handle_at personality syslog landlock_create_ruleset acct "
    "reboot kexec_load init_module finit_module delete_module settimeofday clock_settime sethostname shmget semget "
    "msgget mq_open mbind set_mempolicy io_setup io_submit io_destroy sendmsg sendmmsg inotify_init1 inotify_add_watch"
)


def numbers(header: Path) -> dict[str, int]:
    """The calls of a kernel's header by their names."""
    text = header.read_text()
    found = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    assert len(found) > 300
    return found | {"newfstatat": found.get("newfstatat", found.get("fstatat", 79))}


def answer(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """What a filter answers to a call: a classic BPF program over `struct seccomp_data`."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    instructions = list(struct.iter_unpack("<HBBI", program))
    accumulator, place = 0, 0
    while True:
        code, if_true, if_false, constant = instructions[place]
        place += 1
        match code:
            case 0x20:  # load a word
                (accumulator,) = struct.unpack_from("<I", data, constant)
            case 0x54:  # and
                accumulator &= constant
            case 0x05:  # jump
                place += constant
            case 0x15:
                place += if_true if accumulator == constant else if_false
            case 0x25:
                place += if_true if accumulator > constant else if_false
            case 0x35:
                place += if_true if accumulator >= constant else if_false
            case 0x06:  # return
                return int(constant)
            case _:
                raise AssertionError(f"the instruction {code:#x}")


class Filters:
    def __init__(self, processor: str) -> None:
        self.architecture, header = TABLES[processor]
        self.numbers = numbers(header)
        self._programs = programs(Rules(guards_metadata=True), processor)

    def answer(self, name: str, *arguments: int) -> int:
        """Of both filters, the one that the kernel follows: the sharper."""
        return self.answer_to(self.numbers[name], *arguments)

    def answer_to(self, number: int, *arguments: int, architecture: int | None = None) -> int:
        answers = [answer(program, architecture or self.architecture, number, *arguments) for program in self._programs]
        return min(answers, key=lambda found: found - (1 << 32) if found == KILL_PROCESS else found)


@pytest.fixture(scope="module", params=[name for name, (_, header) in TABLES.items() if header.exists()])
def filters(request: pytest.FixtureRequest) -> Filters:
    return Filters(request.param)


def test_what_a_job_needs_is_allowed_and_what_it_must_not_is_refused(filters: Filters) -> None:
    assert {name: filters.answer(name) for name in NEEDED.split()} == dict.fromkeys(NEEDED.split(), ALLOW)
    assert {name: filters.answer(name) for name in REFUSED.split()} == dict.fromkeys(
        REFUSED.split(), ERRNO | errno.EPERM
    )
    assert filters.answer("fchmodat") == filters.answer("setxattr") == ERRNO | errno.EPERM


def test_arguments_decide_where_a_call_is_allowed_in_part(filters: Filters) -> None:
    assert filters.answer("clone", 17) == ALLOW
    assert filters.answer("clone", 0x10000000 | 17) & ERRNO
    assert filters.answer("clone3") == ERRNO | errno.ENOSYS, "the C library then calls clone"
    assert filters.answer("socket", 2, 1) == ERRNO | errno.EAFNOSUPPORT
    assert (filters.answer("socketpair", 1, 1), filters.answer("socketpair", 2, 1) & ERRNO) == (ALLOW, ERRNO)
    assert (filters.answer("ioctl", 0, 0x5401), filters.answer("ioctl", 0, 0x5412)) == (ALLOW, ERRNO | errno.EPERM)
    assert (filters.answer("fcntl", 0, 1030), filters.answer("fcntl", 0, 1026)) == (ALLOW, ERRNO | errno.EPERM)
    assert filters.answer("ioctl", 0, (1 << 32) | 0x5412) == ERRNO | errno.EPERM, "the kernel looks at the lower half"


def test_what_is_not_known_is_not_there_and_another_interface_ends_the_job(filters: Filters) -> None:
    assert filters.answer_to(1000) == ERRNO | errno.ENOSYS
    for architecture in (0x40000003, 0x40000028):  # i386, 32-bit ARM
        assert filters.answer_to(filters.numbers["read"], architecture=architecture) == KILL_PROCESS
    if filters.architecture == TABLES["X86_64"][0]:
        assert filters.answer_to(0x40000000 | 1) == KILL_PROCESS, "x32"
