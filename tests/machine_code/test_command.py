"""`fusionscope machine-code`, as a shell calls it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SNIPPET = """import torch
print("from the snippet")
def f(x):
    return torch.sin(x) * 2
f(torch.randn(64, 64))
"""


def test_a_kernel_is_printed_with_the_lines_of_its_source() -> None:
    command = [sys.executable, "-m", "server.cli", "machine-code", "-", "fused_sin_mul", "--for", "sm_90"]
    ended = subprocess.run(command, cwd=ROOT, input=SNIPPET, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "LDG.E" in ended.stdout and "fused_sin_mul for sm_90:" in ended.stdout
    assert "from the snippet" not in ended.stdout
