"""Kernels compiled for each level of instructions that this machine can run."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from compiler.backend import fusionscope
from compiler.runtime.cpp import instruction_sets
from compiler.runtime.cpp.compiler import flags
from compiler.runtime.cpp.instruction_sets import SETTING, UnknownInstructionSet, runnable
from tests.compile_program import compile_program

at_every_level = pytest.mark.parametrize("level", runnable())


@at_every_level
def test_an_array_of_turned_rows_is_read_after_it_was_written(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, level)
    convolution = nn.Conv2d(64, 64, 1, 2, bias=False)
    model, x = nn.Sequential(convolution, nn.BatchNorm2d(64), nn.ReLU()).eval(), torch.randn(2, 64, 4, 4)

    def pooled(x: torch.Tensor) -> torch.Tensor:
        return model(x).mean((2, 3))

    with torch.no_grad():
        compilation = compile_program(pooled, x, target="cpu")
        assert any("fs::transpose(" in kernel.source for kernel in compilation.cpp.values())
        found = torch.compile(pooled, backend=fusionscope)(x)
        torch.testing.assert_close(found, pooled(x))


@at_every_level
def test_the_compiler_is_asked_for_the_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, level)
    assert flags()[-1] == f"-march={level}"
    monkeypatch.delenv(SETTING)
    assert flags()[-1] == "-march=native"


def test_a_level_that_the_machine_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruction_sets, "_features", lambda: {"fp", "sse", *"cx16 lahf_lm popcnt pni".split()})
    runnable.cache_clear()
    monkeypatch.setenv(SETTING, "x86-64-v3")
    with pytest.raises(UnknownInstructionSet, match="which this machine cannot run"):
        flags()
    monkeypatch.undo()
    runnable.cache_clear()
