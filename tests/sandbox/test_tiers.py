"""A tier is found by trying, and none is never mistaken for one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from server.sandbox import NoSandbox, Sandbox, SandboxConfig, choose_tier, code_folders
from server.sandbox.tiers import try_tier

from .harness import PLAIN_USER, ROOT

# What a container's profile or an old kernel does: some calls answer with "not permitted", or are not there.
FORBID = """
import errno, sys
import pyseccomp
from server.sandbox import NoSandbox, choose_tier
found = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
for name in sys.argv[1:]:
    found.add_rule(pyseccomp.ERRNO(errno.EPERM if name != "landlock_create_ruleset" else errno.ENOSYS), name)
found.load()
try:
    print(choose_tier(None, uses_gpu=False))
except NoSandbox as failure:
    print("refused:", failure)
"""


def chosen_where_forbidden(tmp_path: Path, *calls: str, user: int | None = None) -> str:
    command = [sys.executable, "-c", FORBID, *calls]
    if user is not None:
        command = [sys.executable, str(Path(__file__).with_name("as_user.py")), str(user), *command]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "WORKSPACE": str(tmp_path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_every_tier_works_here() -> None:
    """Where one does not, its tests would test nothing."""
    assert (try_tier("A", uses_gpu=False), try_tier("B", uses_gpu=False)) == ([], [])


def test_the_best_tier_is_chosen() -> None:
    assert choose_tier(None, uses_gpu=False) == "A"
    assert choose_tier("B", uses_gpu=False) == "B"


def test_snippets_are_trusted_by_name_alone() -> None:
    assert choose_tier("trusted", uses_gpu=False) == "trusted"


PLAIN = PLAIN_USER if os.geteuid() == 0 else None


def test_without_namespaces_the_second_tier_is_chosen(tmp_path: Path) -> None:
    assert chosen_where_forbidden(tmp_path, "unshare", user=PLAIN) == "B"


def test_without_landlock_the_first_tier_is_chosen(tmp_path: Path) -> None:
    assert chosen_where_forbidden(tmp_path, "landlock_create_ruleset", user=PLAIN) == "A"


@pytest.mark.parametrize("forbidden", ["unshare", "mount", "pivot_root"])
def test_without_either_it_refuses_and_says_why(tmp_path: Path, forbidden: str) -> None:
    answer = chosen_where_forbidden(tmp_path, forbidden, "landlock_create_ruleset", user=PLAIN)
    assert answer.startswith("refused: Tier A does not work here: ")
    assert "Tier B does not work here: " in answer and "Landlock" in answer and '"trusted"' in answer


def test_a_gpu_that_is_not_there_is_said() -> None:
    if Path("/dev/nvidiactl").exists():
        assert choose_tier(None, uses_gpu=True) in ("A", "B")
    else:
        with pytest.raises(NoSandbox, match="CUDA"):
            choose_tier(None, uses_gpu=True)


def test_a_config_goes_to_the_zygote_as_json(tmp_path: Path) -> None:
    config = SandboxConfig(tier="B", folder=tmp_path, readable=(Path("/usr"),))
    assert SandboxConfig.model_validate_json(config.model_dump_json()) == config
    assert "seccomp" in Sandbox(config).layers


def test_a_compiler_outside_of_the_system_can_be_read_by_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "gcc" / "bin" / "gcc"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("CC", str(program))
    assert tmp_path / "gcc" in code_folders()


def test_every_link_to_the_interpreter_can_be_read_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, between = tmp_path / "bin" / "python", tmp_path / "versions" / "python3"
    for link, target in ((named, Path("../versions/python3")), (between, Path(sys.executable))):
        link.parent.mkdir()
        link.symlink_to(target)
    monkeypatch.setattr(sys, "executable", str(named))
    readable = code_folders()
    assert {named, between} <= set(readable)
    assert not {named.parent, between.parent, tmp_path} & set(readable)
