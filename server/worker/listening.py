"""The socket that webs connect to."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

_LONGEST_PATH = 107
_SOCKET_MODE = 0o660
"""Whoever may enter the folder and is of its group: web has a user of its own where the two run in containers."""


class CannotListen(Exception):
    """The socket cannot be made; the message says why and what to do."""


async def listen(path: Path, connected: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]) -> asyncio.Server:
    """Listens at `path`, in a folder that is made closed to others where there is none. A socket that nobody listens at
    any more is replaced. Raises `CannotListen`."""
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise CannotListen(f"the path of its socket has more than {_LONGEST_PATH} bytes; set a shorter `socket`.")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_stale(path)
        server = await asyncio.start_unix_server(connected, path)
        path.chmod(_SOCKET_MODE)
        return server
    except OSError as failure:
        raise CannotListen(f"its socket {path} cannot be made: {failure.strerror or failure}.") from None


def _remove_stale(path: Path) -> None:
    """Raises `CannotListen` where the place is taken by something that is alive, or by no socket."""
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise CannotListen(f"{path} is there and is no socket; set another `socket`.")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.settimeout(1)
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
    raise CannotListen(f"another worker listens at {path}; set another `socket`, or end that one.")
