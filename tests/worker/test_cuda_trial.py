"""Which imports a process that forks may make itself, where what it forks shall start CUDA."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from server.worker.cuda_trial import begin_trial, has_passed

ROOT = Path(__file__).parents[2]

MODULES = {
    "harmless": "",
    "starts_it": "import builtins\nbuiltins.is_started = True\n",
    "has_a_thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n",
    "fails": "raise ImportError('another release has it elsewhere')\n",
}


def refuse_what_is_started() -> None:
    """As CUDA does: what its parent has started a process cannot use."""
    import builtins

    if hasattr(builtins, "is_started"):
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")


def passes(modules: tuple[str, ...], start: Callable[[], None] = refuse_what_is_started) -> bool:
    trial, ended = begin_trial(modules, start)
    try:
        assert select.select([ended], [], [], 60)[0], "the trial does not end"
        return has_passed(trial)
    finally:
        os.close(ended)


@pytest.mark.parametrize(
    ("names", "may_be_imported"),
    [(("harmless",), True), (("harmless", "starts_it"), False), (("has_a_thread",), False), (("fails",), False)],
)
def test_only_imports_that_leave_cuda_alone_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], may_be_imported: bool
) -> None:
    for name in names:
        (tmp_path / f"{name}.py").write_text(MODULES[name])
    monkeypatch.syspath_prepend(tmp_path)
    assert passes(names) is may_be_imported
    assert not set(names) & sys.modules.keys(), "the process that asks has imported them"


def in_a_new_process(program: str) -> None:
    alone = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment = os.environ | alone
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_peer_is_imported_without_a_question_to_the_gpu() -> None:
    """The library that answers it starts a thread."""
    in_a_new_process("""
import torch

def asked():
    raise AssertionError("a GPU was looked for")

torch.cuda.is_available = asked
import compiler.peer.preload
""")


@pytest.mark.gpu
def test_the_peer_may_be_imported_by_a_process_that_forks() -> None:
    in_a_new_process("""
import select
from server.worker.channel import Program
from server.worker.cuda_trial import begin_trial, has_passed

trial, ended = begin_trial(Program().start_cuda)
select.select([ended], [], [])
raise SystemExit(0 if has_passed(trial) else "spares have to import it")
""")
