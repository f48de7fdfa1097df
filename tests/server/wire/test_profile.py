"""Build and profile: the same for the same sources and machine, and found without importing torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from server.wire import profile
from server.wire.profile import BUILD_LENGTH, build_id, detected_profile


def test_a_build_is_known_by_every_file_of_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "schedule").mkdir()
    (tmp_path / "schedule" / "rules.py").write_text("x = 1\n")
    first = profile._build_of(tmp_path)
    assert len(first) == BUILD_LENGTH
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "rules.pyc").write_bytes(b"1")
    assert profile._build_of(tmp_path) == first
    (tmp_path / "schedule" / "rules.py").write_text("x = 2\n")
    second = profile._build_of(tmp_path)
    (tmp_path / "schedule" / "rules.py").rename(tmp_path / "rules.py")
    third = profile._build_of(tmp_path)
    (tmp_path / "header.h").write_text("")
    assert len({first, second, third, profile._build_of(tmp_path)}) == 4


def test_both_are_known_without_torch() -> None:
    program = "import sys; from server.wire.profile import *; print(build_id(), detected_profile().model_dump_json())"
    program += "; assert 'torch' not in sys.modules"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.split(maxsplit=1) == [build_id(), detected_profile().model_dump_json() + "\n"]


def test_the_profile_names_the_device_and_the_versions() -> None:
    found = detected_profile()
    assert found.torch and found.python and found.device_name
    assert found.device in ("cpu", "cuda")
