"""Which system calls a job may make, as two seccomp filters that libseccomp writes for a processor: this machine's.

The first lets through the calls that libseccomp has a name for, some of them with some arguments only, and answers
ENOSYS to the rest: what a newer kernel brings is not known, so it is not there. The second refuses what a job has no
use for, or what the other layers do not cover. Calls of another binary interface (i386, x32, 32-bit ARM) end the
process.

The filters are written once, in the zygote, and a job only loads them.
"""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from server.sandbox import kernel
from server.sandbox.config import NoSandbox

_HIGHEST_NUMBER = 1024
_NEW_NAMESPACES = 0x7E020000
_AF_UNIX = 1
_SOCK_SEQPACKET, _SOCKET_TYPE = 5, 0xF
_PRIO_PROCESS, _IOPRIO_WHO_PROCESS = 0, 1

_DEBUGGING = (
    "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_getfd perf_event_open"
)
_MOUNTS = (
    "mount umount umount2 pivot_root chroot unshare setns open_tree move_mount fsopen fsconfig fsmount fspick "
    "mount_setattr open_tree_attr statmount listmount swapon swapoff quotactl quotactl_fd"
)
_KERNEL_SURFACE = (
    "bpf userfaultfd io_uring_setup io_uring_enter io_uring_register add_key request_key keyctl memfd_secret "
    "fanotify_init fanotify_mark name_to_handle_at open_by_handle_at lookup_dcookie modify_ldt personality syslog "
    "landlock_create_ruleset landlock_add_rule landlock_restrict_self lsm_set_self_attr _sysctl sysfs ustat uselib "
    "nfsservctl vm86 vm86old"
)
# Of these the whole machine has one supply, which a job could take from all other programs.
_ASYNCHRONOUS_FILES = "io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents"
_MACHINE = (
    "acct reboot kexec_load kexec_file_load init_module finit_module delete_module create_module iopl ioperm "
    "settimeofday clock_settime clock_adjtime adjtimex stime sethostname setdomainname vhangup"
)
# What stays in memory while no process has it: nobody outside could count it, or find it afterwards.
_SYSTEM_V = "shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink ipc"
_MEMORY_PLACEMENT = "mbind migrate_pages move_pages set_mempolicy set_mempolicy_home_node"
# The network: in its own namespace a job would still reach vsock and netlink.
_SOCKETS = "socket socketcall"
# Where one kind of socket is allowed, it can be waited on, and reaches nobody.
_OTHER_SOCKETS, _REACHING = "socketcall", "connect"

# A message can hold descriptors. Those on their way count against every process of the user, so that a job could keep
# the zygote from sending one; and nobody outside could count the memory that they stand for.
_MESSAGES = "sendmsg sendmmsg"
# What a job reads lies in folders that others read too: who watches them sees what other jobs open.
_WATCHING_FILES = "inotify_init inotify_init1 inotify_add_watch"

# Landlock has no rights for these, and a job of the worker's own user owns the worker's files.
_METADATA = (
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat setxattr lsetxattr "
    "fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr"
)
_NEVER_ALONE = "clone3"
"""Its arguments lie in memory, where no filter sees them; the C library then calls clone."""

_TERMINAL_AND_OWNER = (0x5412, 0x541C, 0x8901, 0x8902)
"""TIOCSTI and TIOCLINUX type into a terminal; FIOSETOWN and SIOCSPGRP have the kernel send signals to others."""
_OWNER_AND_FILES = (8, 15, 1024, 1026)
"""F_SETOWN and F_SETOWN_EX, likewise; F_SETLEASE makes whoever opens the file wait; F_NOTIFY watches a folder."""


@dataclass(frozen=True)
class Rules:
    """What a tier needs beyond what all have in common."""

    allows_memory_placement: bool = False
    """CUDA asks for it."""
    allows_listening: bool = False
    """CUDA waits at a local socket of packets, to which other processes could hand memory; without it CUDA does not
    start. The job's cannot be connected, so it reaches no other socket of the machine."""
    guards_metadata: bool = False
    """The job's user may own files outside of its folder, and nothing else protects their modes and times."""
    guards_processes: bool = False
    """The job's user may have processes outside of the job, and nothing else protects their priorities."""
    guards_signals_of: int | None = None
    """The job's process, where nothing else keeps its signals in: it may then signal itself and its group alone."""
    guards_truncation: bool = False
    """Landlock does not cover it yet."""


def library() -> Any:
    """pyseccomp, found. Raises `NoSandbox` where libseccomp is not installed."""
    try:
        import pyseccomp
    except (ImportError, RuntimeError, OSError) as failure:
        raise NoSandbox(f"libseccomp cannot be loaded ({failure}): install libseccomp2, or libseccomp.") from None
    return pyseccomp


def programs(rules: Rules, processor: str = "NATIVE") -> tuple[bytes, bytes]:
    """The two filters as BPF programs, to be loaded in this order. `processor` is libseccomp's name of an architecture.
    Raises `NoSandbox`."""
    seccomp = library()
    return _allowed(seccomp, rules, processor), _refused(seccomp, rules, processor)


def load(program: bytes) -> None:
    """Puts this process, with one thread and no_new_privs, below a filter for good."""

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]

    instructions = ctypes.create_string_buffer(program, len(program))
    described = Program(len(program) // 8, ctypes.addressof(instructions))
    kernel.set_seccomp_filter(ctypes.addressof(described))


def _allowed(seccomp: Any, rules: Rules, processor: str) -> bytes:
    filter_ = _new(seccomp, seccomp.ERRNO(errno.ENOSYS), processor)
    conditions = _conditions(seccomp, rules)
    for number in range(_HIGHEST_NUMBER):
        try:
            name = seccomp.resolve_syscall(getattr(seccomp.Arch, processor), number).decode()
        except ValueError:
            continue
        if name in _NEVER_ALONE.split() or (name == "openat2" and rules.guards_truncation):
            continue
        for condition in conditions.get(name, [()]):
            filter_.add_rule(seccomp.ALLOW, name, *condition)
    return _exported(filter_)


def _conditions(seccomp: Any, rules: Rules) -> dict[str, list[tuple[Any, ...]]]:
    """For a call that is allowed with some arguments only: the alternatives, each a condition on all of them."""

    def equal(position: int, value: int) -> Any:
        return seccomp.Arg(position, seccomp.EQ, value)

    found: dict[str, list[tuple[Any, ...]]] = {
        "clone": [(seccomp.Arg(0, seccomp.MASKED_EQ, _NEW_NAMESPACES, 0),)],
        "socketpair": [(equal(0, _AF_UNIX),)],
        "prlimit64": [(equal(0, 0),)],
    }
    if rules.allows_listening:
        is_of_packets = seccomp.Arg(1, seccomp.MASKED_EQ, _SOCKET_TYPE, _SOCK_SEQPACKET)
        found["socket"] = [(equal(0, _AF_UNIX), is_of_packets)]
    if rules.guards_processes:
        for name in ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"):
            found[name] = [(equal(0, 0),)]
        found["setpriority"] = [(equal(0, _PRIO_PROCESS), equal(1, 0))]
        found["ioprio_set"] = [(equal(0, _IOPRIO_WHO_PROCESS), equal(1, 0))]
    if rules.guards_signals_of is not None:
        for name in ("kill", "rt_sigqueueinfo", "tgkill", "rt_tgsigqueueinfo"):
            found[name] = [(equal(0, process),) for process in (0, rules.guards_signals_of)]
    return found


def _refused(seccomp: Any, rules: Rules, processor: str) -> bytes:
    filter_ = _new(seccomp, seccomp.ALLOW, processor)

    def is_known(name: str) -> bool:
        """Not where the processor has no such call, or where libseccomp does not know it: then neither filter does."""
        return bool(seccomp.resolve_syscall(getattr(seccomp.Arch, processor), name) >= 0)

    for name, code in _refusals(rules):
        if is_known(name):
            filter_.add_rule(seccomp.ERRNO(code), name)
    not_permitted = seccomp.ERRNO(errno.EPERM)
    for request in _TERMINAL_AND_OWNER:
        # The kernel looks at the lower half alone.
        filter_.add_rule(not_permitted, "ioctl", seccomp.Arg(1, seccomp.MASKED_EQ, 0xFFFFFFFF, request))
    for command in _OWNER_AND_FILES:
        filter_.add_rule(not_permitted, "fcntl", seccomp.Arg(1, seccomp.MASKED_EQ, 0xFFFFFFFF, command))
    # Whoever watches a job reads its /proc entries, which a process that is not dumpable would close.
    filter_.add_rule(not_permitted, "prctl", seccomp.Arg(0, seccomp.MASKED_EQ, 0xFFFFFFFF, kernel.PR_SET_DUMPABLE))
    if rules.guards_truncation:
        truncates = os.O_TRUNC | os.O_ACCMODE
        for name, position in (("openat", 2), ("open", 1)):
            if is_known(name):
                argument = seccomp.Arg(position, seccomp.MASKED_EQ, truncates, os.O_TRUNC)
                filter_.add_rule(not_permitted, name, argument)
    return _exported(filter_)


def _refusals(rules: Rules) -> Iterable[tuple[str, int]]:
    everywhere = (_ASYNCHRONOUS_FILES, _MESSAGES, _WATCHING_FILES)
    for names in (_DEBUGGING, _MOUNTS, _KERNEL_SURFACE, _MACHINE, _SYSTEM_V, *everywhere):
        yield from ((name, errno.EPERM) for name in names.split())
    sockets = _OTHER_SOCKETS if rules.allows_listening else _SOCKETS
    yield from ((name, errno.EAFNOSUPPORT) for name in sockets.split())
    optional = {
        _REACHING: rules.allows_listening,
        _MEMORY_PLACEMENT: not rules.allows_memory_placement,
        _METADATA: rules.guards_metadata,
        "tkill pidfd_send_signal": rules.guards_signals_of is not None,
        "truncate": rules.guards_truncation,
    }
    for names, is_refused in optional.items():
        if is_refused:
            yield from ((name, errno.EPERM) for name in names.split())


def _new(seccomp: Any, default: int, processor: str) -> Any:
    filter_ = seccomp.SyscallFilter(default)
    if processor != "NATIVE":
        filter_.remove_arch(seccomp.Arch.NATIVE)
        filter_.add_arch(getattr(seccomp.Arch, processor))
    filter_.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)
    return filter_


def _exported(filter_: Any) -> bytes:
    with tempfile.TemporaryFile() as file:
        filter_.export_bpf(file)
        file.seek(0)
        return file.read()
