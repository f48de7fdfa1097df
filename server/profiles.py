"""Which devices explorations run on, as declared: what ids are made of, whether or not a worker is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from server.wire.messages import WorkerIdentity
from server.wire.profile import detected_profile

_PROFILES = TypeAdapter[list[WorkerIdentity]](list[WorkerIdentity])


class WrongProfiles(Exception):
    """The file of profiles cannot be used; the message says why."""


class Profiles:
    """The declared profiles; the first one is for whoever names no device."""

    def __init__(self, declared: Sequence[WorkerIdentity]) -> None:
        self.declared = tuple(declared)

    @classmethod
    def load(cls, path: Path | None) -> Profiles:
        """From a JSON file, which holds a list or one alone; without one, this machine's. Raises `WrongProfiles`."""
        if path is None:
            return cls([detected_profile()])
        try:
            text = path.read_bytes()
            declared = _PROFILES.validate_json(text if text.lstrip().startswith(b"[") else b"[" + text + b"]")
        except OSError as failure:
            raise WrongProfiles(f"The file of profiles {path} cannot be read: {failure.strerror}.") from None
        except ValidationError as failure:
            error = failure.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, error["loc"])) or "its top"
            raise WrongProfiles(f"The file of profiles {path} is not valid at {where}: {error['msg']}.") from None
        if not declared:
            raise WrongProfiles(f"The file of profiles {path} lists none.")
        return cls(declared)

    def pick(self, device: str | None) -> WorkerIdentity:
        """The first one of that device; where none is, the first of all, whose worker says what it does instead."""
        kind = (device or self.declared[0].device).partition(":")[0]
        return next((one for one in self.declared if one.device == kind), self.declared[0])
