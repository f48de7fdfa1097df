"""`as_user.py USER PROGRAM …` runs a program as a plain user who may read the interpreter, wherever root has put it.

As user 0 it keeps the capabilities alone that a container has by default: mounts, tracing and the like are not among
them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from server.sandbox import kernel
from server.sandbox.code_access import open_to_others
from server.sandbox.config import code_folders

user, program = int(sys.argv[1]), sys.argv[2:]
open_to_others((*code_folders(), Path(__file__).parents[2]), Path(os.environ["WORKSPACE"]))
if user == 0:
    # CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD,
    # AUDIT_WRITE and SETFCAP, as https://docs.docker.com/engine/security/#linux-kernel-capabilities lists them.
    for capability in set(range(64)) - {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}:
        with contextlib.suppress(OSError):
            kernel.prctl(kernel.PR_CAPBSET_DROP, capability)
else:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
os.execv(program[0], program)
