"""Write `deploy/seccomp-worker.json`: the system calls of a worker's container where tier A is wanted.

    python tools/seccomp_profile.py

Docker's default profile keeps a container from making namespaces, and tier A is made of them. This profile allows
every call that libseccomp knows of both processors but those below; a call that is newer than the profile does not
exist. It bounds the worker. Each job has a far stricter filter besides, which `server/sandbox` sets.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyseccomp

PATH = Path(__file__).resolve().parents[1] / "deploy" / "seccomp-worker.json"
ARCHITECTURES = {"SCMP_ARCH_X86_64": pyseccomp.Arch.X86_64, "SCMP_ARCH_AARCH64": pyseccomp.Arch.AARCH64}
HIGHEST_NUMBER = 1023
"""No processor's table reaches as far."""

DENIED = {
    "the machine": "acct adjtimex clock_adjtime clock_settime delete_module finit_module init_module ioperm iopl "
    "kexec_file_load kexec_load quotactl quotactl_fd reboot setdomainname settimeofday swapoff swapon syslog vhangup",
    "other processes, from outside": "kcmp perf_event_open pidfd_getfd process_madvise process_mrelease "
    "process_vm_readv process_vm_writev ptrace",
    "the kernel's own keyrings; keyctl alone is used, to begin an empty one": "add_key request_key",
    "files by other means than their path": "fanotify_init fanotify_mark name_to_handle_at open_by_handle_at",
    "programs in the kernel": "bpf io_uring_enter io_uring_register io_uring_setup userfaultfd",
    "where memory lies, and memory that the watchdog cannot see": "get_mempolicy mbind memfd_secret migrate_pages "
    "move_pages set_mempolicy set_mempolicy_home_node",
    "mounting by the newer calls; the older ones are used": "fsconfig fsmount fsopen fspick move_mount open_tree "
    "open_tree_attr",
    "what no program of today calls": "_sysctl afs_syscall create_module epoll_ctl_old epoll_wait_old "
    "get_kernel_syms getpmsg lookup_dcookie modify_ldt nfsservctl putpmsg query_module security sysfs tuxcall uselib "
    "ustat vserver",
}
"""What is not allowed, by the reason."""

ONLY_WITH = {
    # A worker has no network, and the sockets of virtual machines would be a way around that.
    "socket": (1,),
    "socketpair": (1,),
    # The usual one, and the question which it is.
    "personality": (0, 0xFFFFFFFF),
}
"""Calls that are allowed with these values of their first argument alone; 1 is AF_UNIX."""


def known_calls() -> list[str]:
    """The names of all calls of all `ARCHITECTURES`, as libseccomp has them."""
    found = set()
    for architecture in ARCHITECTURES.values():
        for number in range(HIGHEST_NUMBER + 1):
            try:
                name = pyseccomp.resolve_syscall(architecture, number)
            except ValueError:
                continue
            found.add(name.decode() if isinstance(name, bytes) else name)
    return sorted(found)


def profile() -> dict[str, Any]:
    """The profile in the form that Docker and Podman read."""
    denied = {name for names in DENIED.values() for name in names.split()}
    bounded = [
        {
            "names": [name],
            "action": "SCMP_ACT_ALLOW",
            "args": [{"index": 0, "value": value, "op": "SCMP_CMP_EQ"}],
        }
        for name, values in ONLY_WITH.items()
        for value in values
    ]
    allowed = [name for name in known_calls() if name not in denied | ONLY_WITH.keys()]
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "architectures": list(ARCHITECTURES),
        "syscalls": [{"names": allowed, "action": "SCMP_ACT_ALLOW"}, *bounded],
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(profile(), indent=2) + "\n")
