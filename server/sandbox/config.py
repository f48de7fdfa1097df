"""What a sandbox has to be told, and the reason that it gives when it cannot be had."""

from __future__ import annotations

import os
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from server.wire.messages import Tier

FIRST_JOB_USER = 61000
"""The first user of jobs where the worker is root and nothing else is configured."""

CANARY = "canary"
"""A file beside the folder of a trial's sandbox, which everybody may read and no job can."""


class NoSandbox(Exception):
    """No tier works here. The message is a sentence that says why, and what to do."""


class SandboxConfig(BaseModel):
    """Goes to the zygote as JSON through a pipe: jobs may be able to read command lines and environments."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tier: Tier
    uses_gpu: bool = False
    folder: Path = Field(description="Of this sandbox alone. Jobs' folders lie in it, and whatever is left is deleted.")
    readable: tuple[Path, ...] = Field(
        default=(), description="What jobs may read besides the system's folders; see `code_folders`."
    )
    first_uid: int | None = Field(
        default=None,
        ge=1,
        description="Where the worker is root: jobs get users from here on that nothing else has, 256 at the most. "
        "Sandboxes of one machine need numbers that are so far apart.",
    )


def code_folders() -> tuple[Path, ...]:
    """What jobs must be able to read: the interpreter, its packages, this package, compilers, shared libraries.

    Whoever has more code for jobs adds its folders. Names are kept as they are beside what links make of them.
    """
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    standard = (path for name, path in sysconfig.get_paths().items() if name in ("stdlib", "platstdlib", "purelib"))
    wanted = [
        *map(Path, (sys.base_prefix, sys.prefix, *standard, *site.getsitepackages())),
        Path(sys.executable).resolve().parent,
        Path(__file__).parents[1],
        *_folders_of_compilers(),
        *(Path(path) for path in libraries if path.startswith("/")),
    ]
    found = {path for name in wanted if name.is_dir() for path in (name, name.resolve())} - {Path("/")}
    found |= set(_links_to_interpreter())
    return tuple(sorted(path for path in found if not any(other in found for other in path.parents)))


def _links_to_interpreter() -> Iterator[Path]:
    """The links that the interpreter's name leads through, such as `~/.local/bin/python3.13`.

    A virtual environment names the first of them, and whoever starts Python by that name needs them all. Their folders
    are left out: what else lies there is none of a job's business.
    """
    program = Path(sys.executable)
    while program.is_symlink():
        yield program
        program = Path(os.path.normpath(program.parent / program.readlink()))


def _folders_of_compilers() -> list[Path]:
    """What CC and CXX name, and what is found on the PATH: kernels and their launchers are compiled in jobs. A compiler
    needs its whole folder, `/opt/gcc` where it is `/opt/gcc/bin/gcc`; most lie in the system's."""
    named = [os.environ.get(variable, "").split(" ")[0] for variable in ("CC", "CXX")]
    found = [Path(path) for name in (*named, "gcc", "g++", "clang", "clang++") if name and (path := shutil.which(name))]
    ways = {path for program in found for path in (program.absolute(), program.resolve())}
    programs = {path for path in ways if not path.is_relative_to("/usr")}
    return [path.parents[1] if path.parent.name == "bin" else path.parent for path in sorted(programs)]
