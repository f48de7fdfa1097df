"""What makes an exploration the same as another one: its id.

The id is a hash of everything that the report depends on. Two people who paste the same snippet with the same
options for the same kind of machine get the same id, hence the same link and one stored result; a new version of
torch or another build of this compiler gives new ids, so a stored report is never shown for a compiler that did not
make it. Profiles are declared: an id does not depend on whether a worker is there.
"""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from typing import Any

from compiler.options import Options
from server.wire.messages import WorkerIdentity

ID_LENGTH = 20
ID_PATTERN = rf"^[0-9a-f]{{{ID_LENGTH}}}$"


def compiler_version() -> str:
    """The installed version of the project, or the version in the source tree when it is not installed."""
    try:
        return metadata.version("fusionscope")
    except metadata.PackageNotFoundError:
        import compiler

        return str(getattr(compiler, "__version__", "0.0.0"))


def exploration_id(
    source: str, options: Options, profile: WorkerIdentity, build: str, based_on: str | None = None
) -> str:
    """The first 20 hexadecimal digits of a SHA-256 over source, options, build and device profile, and over the
    exploration that it is based on, which its report names."""
    parts: dict[str, Any] = {
        "source": source,
        "options": options.model_dump(mode="json"),
        "build": build,
        "profile": profile.model_dump(mode="json"),
    }
    if based_on is not None:
        parts["based_on"] = based_on
    # `separators` and `sort_keys` make the text canonical: the same parts always give the same bytes.
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:ID_LENGTH]
