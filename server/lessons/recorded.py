"""Figures of a lesson's programs that were measured on a GPU.

They are JSON files in `docs/lessons/recorded`, one for each lesson and device, which `tools/record_lessons.py` writes
on a machine that has one. A file names each program by a hash of its source and options, so that a lesson whose program
was changed since shows no figures rather than those of another program.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from server.lessons.models import Figures, Recorded, Step

FOLDER = "recorded"


class RecordedFile(BaseModel):
    """What one file holds: a device, its software, and the figures of each program by its hash."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: str = Field(min_length=1)
    torch: str
    triton: str | None
    programs: dict[str, Figures]


def program_hash(source: str, options: Mapping[str, Any]) -> str:
    """What a program of a lesson goes by: the same as long as its text and its options are."""
    return hashlib.sha256(json.dumps([source, dict(options)], sort_keys=True).encode()).hexdigest()[:20]


def recorded_of(folder: Path, name: str, steps: Sequence[Step]) -> list[Recorded]:
    """All that was recorded of a lesson's programs as they are now, one entry a device."""
    found = []
    for path in sorted((folder / FOLDER).glob(f"{name}.*.json")):
        file = RecordedFile.model_validate_json(path.read_bytes())
        figures = [file.programs.get(program_hash(step.source, step.options)) for step in steps]
        if any(figures):
            found.append(Recorded(device=file.device, torch=file.torch, triton=file.triton, steps=figures))
    return found
