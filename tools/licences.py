"""Writes docs/licences.md: the licence of everything that a release runs on or holds. `python -m tools.licences`

Python packages are those of requirements.lock, as their own metadata has it; those of the page are what
web/package-lock.json has for use, not for building.
"""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "licences.md"
_HEAD = """# Licences of dependencies

Fusionscope is under the Apache License 2.0. This list is written by `python -m tools.licences` from each package's own
metadata. `NOTICE` names what stands inside of a package under another licence. `make sbom` writes what a release is
made of as CycloneDX documents.
"""
_PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
_CLASSIFIER = "License :: "


def page() -> str:
    """The two lists as Markdown. Raises `PackageNotFoundError` where a package is not installed."""
    pinned = _PIN.findall((ROOT / "requirements.lock").read_text())
    python = [(name, version, licence_of(metadata.distribution(name))) for name, version in pinned]
    return "\n".join([_HEAD, _table("Python packages", python), _table("Packages in the page", of_the_page())])


def licence_of(package: metadata.Distribution) -> str:
    """As a package states it: an SPDX expression, else its classifiers, else its short text, else "see its files"."""
    stated = package.metadata
    if expression := _first(stated, "License-Expression"):
        return expression
    classified = [text for text in stated.get_all("Classifier") or [] if text.startswith(_CLASSIFIER)]
    named = [text.rpartition(" :: ")[2] for text in classified if text.count("::") > 1]
    text = " ".join(_first(stated, "License").split())
    return ", ".join(named) or (text if 0 < len(text) < 60 else "see its files")


def _first(stated: metadata.PackageMetadata, field: str) -> str:
    return (stated.get_all(field) or [""])[0]


def of_the_page() -> list[tuple[str, str, str]]:
    """Name, version and licence of what npm installs for use."""
    locked = json.loads((ROOT / "web" / "package-lock.json").read_text())["packages"]
    return [
        (place.rpartition("node_modules/")[2], one["version"], one.get("license", "see its files"))
        for place, one in locked.items()
        if place and not one.get("dev") and not one.get("optional")
    ]


def _table(title: str, rows: list[tuple[str, str, str]]) -> str:
    head = f"## {title}\n\n| package | version | licence |\n|---|---|---|\n"
    return head + "".join(f"| {name} | {version} | {licence} |\n" for name, version, licence in sorted(rows, key=str))


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
    print(DOCUMENT)
