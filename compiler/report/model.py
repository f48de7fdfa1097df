"""What all models of a report share: no field but those that are declared, plain JSON only."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class ReportModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


def example(**fields: Any) -> ConfigDict:
    """The configuration of a model whose schema shows such an instance."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [fields]})


#: A size: a number, or a formula of symbols (`64 * s0`) where it differs from call to call.
SizeText = int | str
