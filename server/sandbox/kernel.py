"""The few Linux calls that Python has no function for, by number and by name.

Every function raises OSError with the kernel's reason, or returns what the kernel returned; deciding what to do
about a refusal is the caller's business.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_MOVE = 8192
MS_NOATIME = 1024
MS_NODIRATIME = 2048
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_RELATIME = 1 << 21
MNT_DETACH = 2

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

_CAPABILITY_VERSION_3 = 0x20080522


def _check(result: int, call: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{call}: {os.strerror(code)}")
    return result


def prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    _check(_libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero), f"prctl {option}")


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), f"unshare {flags:#x}")


@contextlib.contextmanager
def reading_as(user: int, group: int) -> Iterator[None]:
    """For this thread: files, and other processes' /proc entries, are read with the rights of `user`. Needs root."""
    _libc.setfsgid(group)
    _libc.setfsuid(user)
    try:
        yield
    finally:
        _libc.setfsuid(os.geteuid())
        _libc.setfsgid(os.getegid())


def setns(descriptor: int, kind: int) -> None:
    _check(_libc.setns(descriptor, kind), f"setns {kind:#x}")


def set_seccomp_filter(program: int) -> None:
    """`program` is the address of a `struct sock_fprog`."""
    mode_filter, zero = ctypes.c_ulong(2), ctypes.c_ulong(0)
    _check(_libc.prctl(PR_SET_SECCOMP, mode_filter, ctypes.c_ulong(program), zero, zero), "prctl PR_SET_SECCOMP")


def pivot_root(new: str, old: str) -> None:
    _check(_libc.pivot_root(os.fsencode(new), os.fsencode(old)), "pivot_root")


def umount(target: Path, flags: int) -> None:
    _check(_libc.umount2(os.fsencode(target), flags), f"umount {target}")


def mount(source: Path | None, target: Path, flags: int, kind: str | None = None, data: str | None = None) -> None:
    arguments = [None if value is None else os.fsencode(value) for value in (source, target, kind, data)]
    what, where, filesystem, options = arguments
    _check(_libc.mount(what, where, filesystem, ctypes.c_ulong(flags), options), f"mount {target}")


def syscall(number: int, *arguments: int | ctypes.c_void_p | None) -> int:
    """A raw system call; integers go as longs, pointers as they are."""
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    _libc.syscall.restype = ctypes.c_long
    return _check(_libc.syscall(ctypes.c_long(number), *converted), f"syscall {number}")


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapabilityData(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


def drop_capabilities() -> None:
    """Gives up every capability for good, such as those that a new user namespace hands to its creator."""
    for capability in range(64):
        # Fails beyond the last that there is; and without CAP_SETPCAP, where no_new_privs keeps the rest out of reach.
        if _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), *[ctypes.c_ulong(0)] * 3) < 0:
            break
    _libc.prctl(PR_CAP_AMBIENT, ctypes.c_ulong(PR_CAP_AMBIENT_CLEAR_ALL), *[ctypes.c_ulong(0)] * 3)
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    nothing = (_CapabilityData * 2)()
    _check(_libc.capset(ctypes.byref(header), ctypes.byref(nothing)), "capset")
