"""What a release is made of, as CycloneDX documents: `python tools/sbom.py`, which `make sbom` runs.

It writes `dist/fusionscope.cdx.json`, of requirements.lock, and `dist/page.cdx.json`, of what web/package-lock.json has
for use. The first is written by `cyclonedx-py`, in an environment of its own, the second by npm.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools import page

TOOL = "cyclonedx-bom==7.5.0"
FOLDER = page.ROOT / "dist"


def of_the_package(target: Path) -> None:
    """The pinned Python packages. Raises `CalledProcessError` where the tool cannot be installed."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        program = Path(folder, "bin", "cyclonedx-py")
        subprocess.run([str(program.with_name("pip")), "install", "--quiet", TOOL], check=True)
        options = ["--pyproject", "pyproject.toml", "--output-reproducible", "--output-file", str(target)]
        subprocess.run([str(program), "requirements", *options, "requirements.lock"], cwd=page.ROOT, check=True)


def of_the_page(target: Path) -> None:
    """What npm installs for the page, without what only builds it."""
    node = page.require_node()
    command = [*node.npm, "sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--omit", "dev"]
    made = subprocess.run(command, cwd=page.WEB, env=node.environment(), stdout=subprocess.PIPE, check=True)
    target.write_bytes(made.stdout)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for target, write in (("fusionscope", of_the_package), ("page", of_the_page)):
        path = FOLDER / f"{target}.cdx.json"
        write(path)
        print(path.relative_to(page.ROOT))


if __name__ == "__main__":
    main()
