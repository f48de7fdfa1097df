"""Whether jobs in the sandbox can use a GPU, how soon, and which of the allowances for it are needed.

    python -m bench.sandbox_gpu              every tier, and for A and B each allowance taken away in turn
    python -m bench.sandbox_gpu --tier B     one tier as it is

Prints one JSON object. Each measurement runs in a process of its own, which enters the sandbox, imports torch there,
and forks two jobs; each starts CUDA, multiplies matrices, compares with the CPU, and runs a Triton kernel if told to.
Times are wall time in seconds. Run it as root and as another user: the tiers differ by that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from server.sandbox import (
    GIB,
    JobLimits,
    Sandbox,
    SandboxConfig,
    allowance,
    begin,
    code_folders,
    private_memory,
    syscalls,
)

TIERS = ("A", "B", "trusted")
PATIENCE_SECONDS = 180.0
LIMITS = JobLimits(
    cpu_seconds=120,
    memory_bytes=32 * GIB,
    processes=256,
    open_files=1024,
    file_bytes=GIB,
    disk_bytes=GIB,
    disk_files=8192,
    shared_memory_bytes=GIB,
)


def _without_rule(name: str) -> Callable[[], None]:
    def take_away() -> None:
        rules = syscalls.Rules
        syscalls.Rules = lambda **given: rules(**(given | {name: False}))  # type: ignore[misc, assignment]

    return take_away


def _without_device(name: str) -> Callable[[], None]:
    def take_away() -> None:
        allowance.GPU_DEVICES = tuple(path for path in allowance.GPU_DEVICES if path != name)  # type: ignore[assignment]

    return take_away


def _without_fact(name: str) -> Callable[[], None]:
    def take_away() -> None:
        allowance.GPU_FACTS = tuple(path for path in allowance.GPU_FACTS if path != name)  # type: ignore[assignment]

    return take_away


ALLOWANCES: dict[str, Callable[[], None]] = {
    "mbind and its like": _without_rule("allows_memory_placement"),
    "a local socket of packets": _without_rule("allows_listening"),
    **{name: _without_device(name) for name in allowance.GPU_DEVICES},
    **{name: _without_fact(name) for name in allowance.GPU_FACTS},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", choices=TIERS)
    parser.add_argument("--without", choices=sorted(ALLOWANCES), help="an allowance that is taken away")
    parser.add_argument("--triton", action="store_true", help="compile with TorchInductor in each job as well")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here is not None:
        _measure(asked.tier, asked.without, asked.triton, asked.here)
    print(json.dumps(_all(asked.tier, asked.without, asked.triton), indent=2))


def _all(tier: str | None, without: str | None, triton: bool) -> dict[str, Any]:
    if tier is not None:
        return _in_new_process(tier, without, triton)
    found: dict[str, Any] = {"user": os.geteuid()}
    for name in TIERS:
        found[name] = _in_new_process(name, None, triton)
    for name in ("A", "B"):
        if found[name].get("works"):
            found[f"{name} works without"] = {
                taken: _in_new_process(name, taken, triton=False).get("works", False) for taken in ALLOWANCES
            }
    return found


def _in_new_process(tier: str, without: str | None, triton: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="sandbox-gpu-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        command = [sys.executable, "-m", "bench.sandbox_gpu", "--tier", tier, "--here", name]
        command += ["--without", without] if without else []
        command += ["--triton"] if triton else []
        environment = os.environ | {
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        try:
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            return {"works": False, "problem": f"no answer in {PATIENCE_SECONDS:.0f} s"}
        try:
            found = dict(json.loads(ran.stdout.splitlines()[-1]))
        except (ValueError, IndexError):
            found = {"works": False}
        return found if found["works"] else found | {"output": ran.stderr[-2000:]}


def _measure(tier: str, without: str | None, triton: bool, folder: Path) -> NoReturn:
    if without is not None:
        ALLOWANCES[without]()
    began = time.perf_counter()
    config = SandboxConfig.model_validate(
        # Dynamo reads the source of what it compiles, which is in here.
        {"tier": tier, "uses_gpu": True, "folder": folder, "readable": (*code_folders(), Path(__file__).parent)}
    )
    sandbox = Sandbox(config)
    sandbox.enter()
    entered = time.perf_counter()
    _point_caches_to(sandbox.job_folder)
    import torch

    if triton:
        import torch._dynamo
    imported = time.perf_counter()
    jobs = [_run_job(sandbox, torch, triton) for _ in range(2)]
    found = {
        "works": all(job.get("is_right", False) for job in jobs),
        "layers": sandbox.layers,
        "enter_seconds": entered - began,
        "import_seconds": imported - entered,
        "jobs": jobs,
    }
    print(json.dumps(found), flush=True)
    os._exit(0)


def _run_job(sandbox: Sandbox, torch: Any, triton: bool) -> dict[str, Any]:
    told, tell = os.pipe()
    asked = time.perf_counter()

    def run(folder: Path) -> NoReturn:
        begin(LIMITS, private_memory())
        started = time.perf_counter()
        _point_caches_to(folder)
        torch.ones(1, device="cuda")
        torch.cuda.synchronize()
        ready = time.perf_counter()
        found: dict[str, Any] = {"start_seconds": started - asked, "cuda_seconds": ready - started}
        left, right = torch.rand(512, 512), torch.rand(512, 512)
        product = (left.cuda() @ right.cuda()).cpu()
        found["matmul_seconds"] = time.perf_counter() - ready
        found["is_right"] = bool(torch.allclose(product, left @ right, rtol=1e-2))
        if triton:
            before = time.perf_counter()
            compiled = torch.compile(lambda x: torch.relu(x.sin() + 1))
            values = torch.randn(1 << 20, device="cuda")
            found["is_right"] &= bool(torch.allclose(compiled(values), torch.relu(values.sin() + 1)))
            found["compile_seconds"] = time.perf_counter() - before
        os.write(3, json.dumps(found).encode())
        os._exit(0)

    job = sandbox.fork(LIMITS, {2: 2, 3: tell}, run)
    os.close(tell)
    with os.fdopen(told, "rb") as file:
        text = file.read()
    ended = job.wait()
    found: dict[str, Any] = json.loads(text) if text else {}
    if ended.exit_code != 0:
        found["problem"] = ended.failure or f"ended with code {ended.exit_code}, signal {ended.signal}"
    return found | {"whole_seconds": time.perf_counter() - asked}


def _point_caches_to(folder: Path) -> None:
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TMPDIR"):
        os.environ[name] = str(folder)
    tempfile.tempdir = None


if __name__ == "__main__":
    main()
