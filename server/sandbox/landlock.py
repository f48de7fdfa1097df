"""Landlock: a process gives up all files but those that it is allowed, TCP, and signals to processes beyond its own.

See https://docs.kernel.org/userspace-api/landlock.html. Each version ("ABI") of Landlock knows more rights; all that
the running kernel knows are given up. Nothing needs privileges, only `no_new_privs` beforehand. It says nothing about
modes, owners, times and extended attributes, nor about whether a name exists: seccomp and users are for those.

The calls are made through ctypes, since no kept Python package knows the newest rights.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

from server.sandbox import kernel

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16, 6: 16, 7: 16, 8: 16, 9: 17}
"""How many rights to files each version has: REFER came with 2, TRUNCATE 3, IOCTL_DEV 5, RESOLVE_UNIX 9."""
_newest = max(_RIGHTS_BY_VERSION)
"""The version that is used at most: what a newer one brings is not known here. Tests lower it."""
_BIND_TCP, _CONNECT_TCP = 1, 2
_SCOPE_ABSTRACT_SOCKET, _SCOPE_SIGNAL = 1, 2
SCOPES_SIGNALS = 6
COVERS_TRUNCATION = 3


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """The Landlock version of this kernel, 0 where there is none."""
    try:
        return min(_newest, kernel.syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION))
    except OSError:
        return 0


def confine(
    *,
    read: Iterable[Path] = (),
    write: Iterable[Path] = (),
    devices: Iterable[Path] = (),
    own: Iterable[Path] = (),
    list_only: Iterable[Path] = (),
) -> None:
    """Confines this process for good. Paths that do not exist are passed over.

    `read` may be read and run, `write` used in every way but for making devices, `devices` used as devices; of `own`,
    a process's place in /proc, existing files may be written; `list_only` shows names.
    """
    abi = version()
    if not abi:
        return
    everything = (1 << _RIGHTS_BY_VERSION[abi]) - 1
    network = _BIND_TCP | _CONNECT_TCP if abi >= 4 else 0
    scoped = _SCOPE_ABSTRACT_SOCKET | _SCOPE_SIGNAL if abi >= SCOPES_SIGNALS else 0
    # Older kernels know a shorter structure and refuse a longer one.
    size = 8 if abi < 4 else 16 if abi < SCOPES_SIGNALS else 24
    ruleset = _Ruleset(everything, network, scoped)
    descriptor = kernel.syscall(_CREATE_RULESET, ctypes.cast(ctypes.pointer(ruleset), ctypes.c_void_p), size, 0)
    rights = (
        (read, _EXECUTE | _READ_FILE | _READ_DIR),
        (write, everything & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)),
        (devices, _READ_FILE | _READ_DIR | _WRITE_FILE | _IOCTL_DEV),
        (own, _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE),
        (list_only, _READ_DIR),
    )
    try:
        for paths, allowed in rights:
            for path in paths:
                _allow_beneath(descriptor, path, allowed & everything)
        kernel.syscall(_RESTRICT_SELF, descriptor, 0)
    finally:
        os.close(descriptor)


def _allow_beneath(ruleset: int, path: Path, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rule = _PathBeneath(rights if path.is_dir() else rights & _OF_FILES, parent)
        pointer = ctypes.cast(ctypes.pointer(rule), ctypes.c_void_p)
        kernel.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, pointer, 0)
    finally:
        os.close(parent)
