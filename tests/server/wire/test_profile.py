"""Build and profile: the same for the same sources and machine, and found without importing torch."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from server.wire import profile
from server.wire.profile import BUILD_LENGTH, build_id, detected_profile


def test_a_build_is_known_by_every_file_of_the_compiler(tmp_path: Path) -> None:
    compiler, docs = tmp_path / "compiler", tmp_path / "docs"
    (compiler / "schedule").mkdir(parents=True)
    (docs / "reasons").mkdir(parents=True)
    (docs / "rewrites.md").write_text("# Rewrites\n")

    def build() -> str:
        return profile._build_of(compiler, docs)

    (compiler / "schedule" / "rules.py").write_text("x = 1\n")
    first = build()
    assert len(first) == BUILD_LENGTH
    (compiler / "__pycache__").mkdir()
    (compiler / "__pycache__" / "rules.pyc").write_bytes(b"1")
    assert build() == first
    (compiler / "schedule" / "rules.py").write_text("x = 2\n")
    second = build()
    (compiler / "schedule" / "rules.py").rename(compiler / "rules.py")
    third = build()
    (docs / "reasons" / "fused.vertical.md").write_text("# fused.vertical\n")
    fourth = build()
    (compiler / "header.h").write_text("")
    assert len({first, second, third, fourth, build()}) == 5
    installed = shutil.copytree(docs, compiler / "reason_pages")
    assert build() == profile._build_of(compiler, installed)


def test_both_are_known_without_torch() -> None:
    program = "import sys; from server.wire.profile import *; print(build_id(), detected_profile().model_dump_json())"
    program += "; assert 'torch' not in sys.modules"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.split(maxsplit=1) == [build_id(), detected_profile().model_dump_json() + "\n"]


def test_the_profile_names_the_device_and_the_versions() -> None:
    found = detected_profile()
    assert found.torch and found.python and found.device_name
    assert found.device in ("cpu", "cuda")
