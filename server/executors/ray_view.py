"""What the gateway tells web, as one line of JSON whenever it changes: the cluster's workers and how to reach them."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

MOST_LINE_BYTES = 4 * 1024 * 1024
"""Room for more than ten thousand workers."""


class Reachable(BaseModel):
    """One worker of the cluster. `socket` is on this machine and leads to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    socket: Path
    problem: str | None = None
    """Why it could not be reached when that was tried last, as a clause."""


class View(BaseModel):
    """The cluster as the gateway sees it. `problem` says what is wrong with the cluster as a whole, as a clause."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str | None = None
    workers: tuple[Reachable, ...] = ()
