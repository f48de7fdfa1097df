"""The compiler's closed list of reasons, for readers of decisions.

The list belongs to the scheduler; here it is only turned into JSON.
"""

from __future__ import annotations

import importlib
from typing import Any

from pydantic import BaseModel


class ReasonEntry(BaseModel):
    """One reason why two nodes were fused or not; `family` groups reasons that are about the same thing."""

    id: str
    family: str
    sentence: str


def reasons() -> dict[str, ReasonEntry]:
    """Every reason by its id."""
    listed: dict[str, Any] = importlib.import_module("compiler.schedule.reasons").REASONS
    return {
        name: ReasonEntry(id=str(reason.id), family=str(reason.family), sentence=str(reason.sentence))
        for name, reason in listed.items()
    }
