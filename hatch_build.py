"""Build hook: page and documentation are built into `server/`, which goes into the wheel; they are never committed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build both, unless the target needs none: an editable install (`make` builds them) and the sources."""
        if self.target_name != "wheel" or version == "editable":
            return
        # They are read where they are in a checkout.
        docs = Path(self.root) / "docs"
        shown = {
            "reasons": "compiler/reason_pages/reasons",
            "rewrites.md": "compiler/reason_pages/rewrites.md",
            "lessons": "server/lessons/pages",
            "glossary.md": "server/glossary.md",
        }
        build_data["force_include"] |= {str(docs / name): place for name, place in shown.items()}
        if os.environ.get("FUSIONSCOPE_SKIP_PAGE"):
            return
        sys.path.insert(0, self.root)
        from tools import documentation, page

        # A build that cannot have its page ends here, with one sentence: a service without one helps nobody.
        if code := page.main(["build"]) or documentation.main():
            raise SystemExit(code)
