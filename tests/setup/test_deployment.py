"""What the images and the compose file promise, as far as it is seen without building them: `tools/images.py` does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unittest.mock
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.settings import unknown_variables
from tools import hashed_locks, seccomp_profile

ROOT = Path(__file__).resolve().parents[2]
BINARIES = Path(sys.executable).parent
COMPOSE_FILES = ("docker-compose.yml", *(f"deploy/{name}.yml" for name in ("gpu", "job-users", "postgres", "tier-a")))
HASHED = {
    "image": hashed_locks.image_pins(),
    "build": hashed_locks.build_pins(),
    "torch-cpu": hashed_locks.torch_pins("+cpu"),
}
TIER_A_CALLS = "clone unshare setns mount umount2 pivot_root sethostname chroot keyctl seccomp landlock_create_ruleset"


def checked(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


def workers() -> list[dict[str, Any]]:
    """What runs the image of the worker: it, and what declares its device."""
    return [service for service in compose()["services"].values() if service["build"]["target"] == "worker"]


def hashed(lock: str) -> dict[str, int]:
    """The lines `name==version` of a lock with hashes, each with the number of its hashes."""
    entries = re.split(r"\n(?=\S)", (ROOT / "deploy" / f"{lock}.lock").read_text().strip())
    return {
        re.split(r"[ ;\\]", entry)[0]: len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry))
        for entry in entries
        if not entry.startswith("#")
    }


def test_hadolint_has_no_objection() -> None:
    checked(str(BINARIES / "hadolint"), "Dockerfile")


def test_every_variable_of_the_compose_files_is_told_of() -> None:
    texts = "".join((ROOT / path).read_text() for path in COMPOSE_FILES)
    told = (ROOT / "docs" / "operators.md").read_text()
    named = set(re.findall(r"\$\{([A-Z_]+)", texts))
    assert len(named) > 5 and [name for name in named if f"| `{name}` |" not in told] == []


@pytest.mark.parametrize("path", COMPOSE_FILES)
def test_the_compose_files_follow_their_schema(path: str) -> None:
    checked(str(BINARIES / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", path)


def test_every_container_is_hardened() -> None:
    services = compose()["services"].values()
    assert len(services) == 3
    for service in services:
        assert service["read_only"] and service["init"] and service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert service["pids_limit"] > 0 and service["mem_limit"] == service["memswap_limit"]
        assert not {"privileged", "devices", "cap_add", "pid", "ipc"} & service.keys()


def test_a_worker_has_neither_a_network_nor_the_store() -> None:
    assert len(workers()) == 2
    for worker in workers():
        assert worker["network_mode"] == "none" and "ports" not in worker
        assert worker["volumes"] == ["socket:/run/fusionscope"]
        assert not [name for name in worker["environment"] if re.search("PASSWORD|TOKEN|DATABASE|SECRET", name)]


def test_tier_a_takes_back_no_more_than_its_three_lines() -> None:
    added = yaml.safe_load((ROOT / "deploy" / "tier-a.yml").read_text())["services"]
    lines = {"seccomp=./deploy/seccomp-worker.json", "systempaths=unconfined", "apparmor=unconfined"}
    assert added == {"worker": {"security_opt": unittest.mock.ANY}}
    assert set(added["worker"]["security_opt"]) == lines


def test_the_service_is_reached_from_this_machine_alone() -> None:
    (port,) = compose()["services"]["web"]["ports"]
    assert port.startswith("127.0.0.1:")


def test_every_setting_that_is_given_is_one() -> None:
    texts = [(ROOT / name).read_text() for name in ("Dockerfile", *COMPOSE_FILES)]
    given = {name for text in texts for name in re.findall(r"FUSIONSCOPE_[A-Z_]+", text)}
    assert len(given) >= 8 and unknown_variables(given) == {}


def test_no_image_runs_as_root() -> None:
    stages = re.split(r"(?m)^FROM ", (ROOT / "Dockerfile").read_text())
    for name in ("web", "worker"):
        (stage,) = (stage for stage in stages if re.match(rf"\S+ AS {name}\n", stage))
        assert re.findall(r"(?m)^USER (\d+):\d+$", stage)[-1] != "0"


@pytest.mark.parametrize("lock", HASHED)
def test_the_locks_with_hashes_pin_what_the_other_locks_pin(lock: str) -> None:
    assert set(map(plain_pin, hashed(lock))) == set(map(plain_pin, HASHED[lock]))
    assert min(hashed(lock).values()) >= 1


def test_torch_is_installed_with_the_libraries_that_were_tested() -> None:
    found = hashed("torch")
    assert set(map(plain_pin, hashed_locks.torch_pins())) <= set(map(plain_pin, found))
    known = hashed_locks.pins("requirements.lock")
    names = {hashed_locks.plain(pin.split("==")[0]): plain_pin(pin) for pin in found}
    assert all(pin == plain_pin(known[name]) for name, pin in names.items() if name in known)
    assert min(found.values()) >= 1


def plain_pin(line: str) -> str:
    name, _, version = line.partition("==")
    return f"{hashed_locks.plain(name)}=={version}"


def test_the_seccomp_profile_allows_what_tier_a_needs_and_nothing_that_is_denied() -> None:
    profile = json.loads((ROOT / "deploy" / "seccomp-worker.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ALLOW"}
    allowed = {name for rule in profile["syscalls"] for name in rule["names"] if not rule.get("args")}
    bounded = {name for rule in profile["syscalls"] for name in rule["names"] if rule.get("args")}
    denied = {name for names in seccomp_profile.DENIED.values() for name in names.split()}
    assert not allowed & denied and not allowed & bounded and "socket" in bounded
    assert set(TIER_A_CALLS.split()) <= allowed


def test_the_seccomp_profile_is_what_its_tool_writes() -> None:
    """But for calls that only one of the two versions of libseccomp knows."""
    written = json.loads((ROOT / "deploy" / "seccomp-worker.json").read_text())
    made = seccomp_profile.profile()
    allowed, now = (set(profile["syscalls"][0].pop("names")) for profile in (written, made))
    assert written == made
    assert len(allowed & now) > 280 and not (allowed - now) & set(seccomp_profile.known_calls())
