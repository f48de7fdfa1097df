"""Landlock: the process gives up writing outside its folder, TCP, and signalling anyone but its own children.

See https://docs.kernel.org/userspace-api/landlock.html. Each version ("ABI") of Landlock knows more rights; we ask
for those that the running kernel knows. Nothing needs privileges, only `no_new_privs` beforehand.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from server.sandbox import kernel

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_WRITE_FILE = 1 << 1
_REMOVE_DIRECTORY, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_ANYTHING = 0b1111111 << 6
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_BIND_TCP, _CONNECT_TCP = 1, 2
_SCOPE_ABSTRACT_SOCKET, _SCOPE_SIGNAL = 1, 2


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """The Landlock version of this kernel, 0 where there is none."""
    try:
        return kernel.syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def restrict(writable: list[Path]) -> list[str]:
    """Confines this process for good: writes only beneath `writable`. Returns what is now enforced, in words."""
    abi = version()
    if abi == 0:
        return []
    files = _WRITE_FILE | _REMOVE_DIRECTORY | _REMOVE_FILE | _MAKE_ANYTHING
    enforced = ["no writes outside the job's folder"]
    if abi >= 2:
        files |= _REFER
    if abi >= 3:
        files |= _TRUNCATE
    network = scoped = 0
    if abi >= 4:
        network = _BIND_TCP | _CONNECT_TCP
        enforced.append("no TCP")
    if abi >= 6:
        scoped = _SCOPE_ABSTRACT_SOCKET | _SCOPE_SIGNAL
        enforced.append("no signals to processes outside the job")

    # Older kernels know a shorter structure and refuse a longer one.
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = _Ruleset(files, network, scoped)
    descriptor = kernel.syscall(_CREATE_RULESET, ctypes.cast(ctypes.pointer(ruleset), ctypes.c_void_p), size, 0)
    try:
        for path in writable:
            _allow_beneath(descriptor, path, files)
        kernel.syscall(_RESTRICT_SELF, descriptor, 0)
    finally:
        os.close(descriptor)
    return enforced


def _allow_beneath(ruleset: int, path: Path, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        allowed = rights if path.is_dir() else rights & (_WRITE_FILE | _TRUNCATE)
        rule = _PathBeneath(allowed, parent)
        pointer = ctypes.cast(ctypes.pointer(rule), ctypes.c_void_p)
        kernel.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, pointer, 0)
    finally:
        os.close(parent)
