"""The launcher's way from tensors to a launch, on a pretended GPU: what is launched straight, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler.codegen.triton.render import render_triton
from compiler.devices import H200
from compiler.runtime import triton_launch
from compiler.runtime.triton_launch import TritonLauncher, load_triton
from tests.codegen.triton import groups


class Recorded:
    def __init__(self) -> None:
        self.launches: list[tuple[Any, ...]] = []
        self.dispatched = 0


def pretend(launcher: TritonLauncher, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    seen = Recorded()
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 7, raising=False)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: -1)  # what a CPU tensor calls its device

    def compiled(device: int, tensors: tuple[torch.Tensor, ...]) -> Any:
        launcher._compiled[device] = triton_launch._Compiled(
            lambda *arguments: seen.launches.append(arguments), "function", "metadata", 32, 0, 0
        )
        return launcher._compiled[device]

    def dispatch(device: int, grid: int, arguments: tuple[Any, ...]) -> None:
        seen.dispatched += 1

    monkeypatch.setattr(launcher, "_compile", compiled)
    monkeypatch.setattr(launcher, "_dispatch", dispatch)
    return seen


def test_aligned_tensors_are_launched_straight(monkeypatch: pytest.MonkeyPatch) -> None:
    case = groups.pointwise(torch.float32, 64, 128)
    launcher = load_triton(render_triton(case.group, case.storage, H200))
    seen = pretend(launcher, monkeypatch)
    tensors = [torch.zeros(64 * 128) for _ in launcher.kernel.parameters]
    launcher(*tensors)
    ((grid, _, _, stream, function, _, _, _, _, *arguments),) = seen.launches
    assert (grid, stream, function) == (launcher.kernel.config["grid"][0], 7, "function")  # type: ignore[index]
    assert arguments == [*(t.data_ptr() for t in tensors), launcher.kernel.config["XBLOCK"]]


def test_a_view_that_starts_elsewhere_goes_through_tritons_dispatch(monkeypatch: pytest.MonkeyPatch) -> None:
    case = groups.pointwise(torch.float32, 64, 128)
    launcher = load_triton(render_triton(case.group, case.storage, H200))
    seen = pretend(launcher, monkeypatch)
    launcher(torch.zeros(64 * 128 + 1)[1:], torch.zeros(128), torch.zeros(64 * 128))
    assert seen.dispatched == 1
    assert not seen.launches


def test_nothing_is_launched_for_an_empty_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    case = groups.pointwise(torch.float32, 0, 3)
    launcher = load_triton(render_triton(case.group, case.storage, H200))
    seen = pretend(launcher, monkeypatch)
    launcher(torch.zeros(0), torch.zeros(3), torch.zeros(0))
    assert not seen.launches
    assert not seen.dispatched
