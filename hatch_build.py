"""Build hook: the page is built into `server/static`, which goes into the wheel and is never committed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Skipped for an editable install (`make` builds the page), and where the page came with the sources."""
        root = Path(self.root)
        came_built = (root / "server" / "static" / "index.html").is_file() and not (root / "web").is_dir()
        if version == "editable" or came_built or os.environ.get("FUSIONSCOPE_SKIP_PAGE"):
            return
        sys.path.insert(0, str(root / "tools"))
        import page

        page.build()
