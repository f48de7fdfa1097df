"""Everything about the service that a person can set, in one frozen model.

Each setting has a default that suits one person on one machine. It is read from the environment variable named
`FUSIONSCOPE_` plus its name in capitals, and the command line overrides a few of them. `docs/settings.md` lists
every one; a test fails when the two disagree.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

ENVIRONMENT_PREFIX = "FUSIONSCOPE_"
MAX_SOURCE_BYTES = 64 * 1024
"""Largest snippet accepted. Part of the API's contract, so not a setting."""


class Settings(BaseModel):
    """How the service runs. Sizes are in the unit that the name ends in, times in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 lets the system choose one.")
    data: Path | None = Field(
        default=None,
        description="Folder of the store. By default `~/.local/share/fusionscope`, or a temporary folder where the "
        "home folder cannot be written.",
    )
    static: Path | None = Field(
        default=None, description="Folder of the built page. By default `server/static`, where `npm run build` puts it."
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Host names that browsers may call this server by, separated by commas; `*` allows every name. "
        "By default `localhost`, the loopback addresses and `host`. This keeps other web sites from running snippets "
        "here by pointing their own name at this machine.",
    )
    queue_limit: int = Field(default=32, ge=1, description="Explorations that may wait; the next one is answered 503.")
    wall_seconds: float = Field(default=60.0, gt=0, description="Longest time one exploration may run on a CPU.")
    gpu_wall_seconds: float = Field(default=60.0, gt=0, description="Longest time one exploration may run on a GPU.")
    memory_gib: float = Field(default=8.0, gt=0, description="Memory that one process of an exploration may write to.")
    gpu_memory_gib: float = Field(
        default=32.0, gt=0, description="The same where there is a GPU; CUDA reserves a lot of host memory for itself."
    )
    processes: int = Field(default=256, ge=16, description="Processes and threads that one exploration may have.")
    open_files: int = Field(default=1024, ge=64, description="Files that one process of an exploration may hold open.")
    file_mib: int = Field(default=256, ge=1, description="Largest file that an exploration may write.")
    output_kib: int = Field(
        default=1024,
        ge=1,
        description="Raw output (print, warnings, native code) after which an exploration is stopped.",
    )
    report_mib: int = Field(default=32, ge=1, description="Largest report that is accepted from a worker.")
    threads: int = Field(
        default=0, ge=0, description="Threads that torch and our own kernels use on a CPU; 0 means one for each core."
    )
    recent_jobs: int = Field(
        default=32, ge=1, description="Finished explorations whose events are kept in memory, to be sent again."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="How log lines look: coloured text in a terminal and JSON elsewhere, or always one."
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, **overrides: Any) -> Self:
        """Reads every setting from `environment`; an override that is None is no override."""
        environment = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for name in cls.model_fields:
            text = environment.get(ENVIRONMENT_PREFIX + name.upper())
            if text is None:
                continue
            values[name] = (
                tuple(part.strip() for part in text.split(",") if part.strip()) if name == "allowed_hosts" else text
            )
        values.update({name: value for name, value in overrides.items() if value is not None})
        return cls.model_validate(values)

    def data_folder(self) -> Path:
        """The folder of the store, made when missing. Only a folder that was not named falls back to another."""
        if self.data is not None:
            self.data.mkdir(parents=True, exist_ok=True)
            return self.data
        try:
            folder = Path.home() / ".local" / "share" / "fusionscope"
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
        except (OSError, RuntimeError):
            pass
        return Path(tempfile.mkdtemp(prefix="fusionscope-data-"))

    def static_folder(self) -> Path:
        return self.static if self.static is not None else Path(__file__).parent / "static"

    def host_names(self) -> frozenset[str]:
        """The names that the Host header may carry, without port; `*` among them allows all."""
        if self.allowed_hosts:
            return frozenset(name.lower() for name in self.allowed_hosts)
        if self.host in ("0.0.0.0", "::"):
            # Whoever listens on every address means to be reached by names that we cannot know.
            return frozenset({"*"})
        return frozenset({"localhost", "127.0.0.1", "[::1]", self.host.lower()})
