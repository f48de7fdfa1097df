"""Which tier works on this machine: found by trying, never by guessing at versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from server.sandbox.config import CANARY, NoSandbox, SandboxConfig, code_folders
from server.wire.messages import Tier

_PATIENCE_SECONDS = 120.0
_PREFERENCE: tuple[Tier, ...] = ("A", "B")

_ADVICE = (
    "In a container, allow user namespaces and mounts (deploy/seccomp-worker.json and systempaths=unconfined) for tier "
    "A, or use a kernel with Landlock (Linux 5.13 or newer) for tier B. Only where everybody who can reach the service "
    'is trusted, set the tier to "trusted": snippets then run without any confinement.'
)


def choose_tier(wanted: Tier | None, uses_gpu: bool, folder: Path | None = None) -> Tier:
    """The best tier in which a trial job ran and was confined; `wanted` where it is given, and no other. The trial
    leaves nothing in `folder`, or the one for temporary files, unless this process is killed.

    Returns "trusted" only where it was asked for by that name. Raises `NoSandbox`.
    """
    if wanted == "trusted":
        return "trusted"
    problems = []
    for tier in _PREFERENCE if wanted is None else (wanted,):
        found = try_tier(tier, uses_gpu, folder)
        if not found:
            return tier
        problems.append(f"Tier {tier} does not work here: {'; '.join(found).rstrip('.')}.")
    raise NoSandbox(" ".join([*problems, _ADVICE]))


def try_tier(tier: Tier, uses_gpu: bool, within: Path | None = None) -> list[str]:
    """Runs a trial job in a fresh process. What is wrong with the tier here, each as a clause; empty where it works."""
    with tempfile.TemporaryDirectory(prefix="trial-", dir=within) as name:
        outside = Path(name)
        outside.chmod(0o711)
        (outside / CANARY).write_text("Everybody may read this, but no job can.")
        folder = outside / "jobs"
        folder.mkdir()
        config = SandboxConfig(tier=tier, uses_gpu=uses_gpu, folder=folder, readable=code_folders())
        return _run_trial(config)


def _run_trial(config: SandboxConfig) -> list[str]:
    kept = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "server.sandbox.trial"],
            input=config.model_dump_json().encode(),
            env=environment,
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return [f"its trial job did not end in {_PATIENCE_SECONDS:.0f} s"]
    try:
        return [str(problem) for problem in json.loads(ran.stdout)]
    except ValueError:
        last = ran.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return [f"its trial ended with code {ran.returncode}: {''.join(last) or 'it said nothing'}"]
