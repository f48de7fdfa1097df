"""A snippet that names no device, where its tensors are made on another one: on "meta", as on a GPU."""

from __future__ import annotations

import importlib

import pytest
import torch

from compiler.capture import capture
from compiler.capture.captured import Capture
from compiler.fx.fake_values import device_of
from compiler.options import Options


@pytest.fixture(autouse=True)
def meta_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("compiler.capture.capture")  # the package has a function of that name
    monkeypatch.setattr(module, "is_gpu_wanted", lambda _, device: device.type == "meta")


def captured(source: str) -> Capture:
    return capture(f"import torch\n{source}", Options(), torch.device("meta"))


def test_one_that_ends_there_alone_is_run_on_the_cpu() -> None:
    result = captured(
        "n = int(torch.ones(3).sum())\ndef f(x):\n    return x * n\ny = f(torch.ones(4))\nprint(y.sum())\n"
    )
    assert result.error is None and result.output == "tensor(12.)\n"
    assert [device_of(graph.aten).type for graph in result.graphs] == ["cpu"]
    note = result.notes[0]
    assert note.line == 2 and note.message.startswith("On the GPU the snippet ends with RuntimeError: ")
    assert note.message.endswith(". It names no device, so it was run on the CPU.")


def test_one_that_ends_everywhere_keeps_its_first_error() -> None:
    result = captured("x = torch.ones(3)\nprint(x.device)\nraise ValueError('no')\n")
    assert result.error is not None and result.error.message == "no" and result.output == "meta\n"
    assert not any("CPU" in note.message for note in result.notes)


@pytest.mark.parametrize(
    ("has_gpu", "asked", "where", "said"),
    [
        (False, None, "cuda", "This worker has no GPU: `cuda` in line 2 became the CPU"),
        (False, "cuda", "cpu", "This worker has no GPU: the device cuda became the CPU"),
        (True, "cpu", "cuda", "The device cpu was asked for: `cuda` in line 2 became the CPU"),
    ],
)
def test_what_was_to_be_on_a_gpu_and_is_not_is_told(
    has_gpu: bool, asked: str | None, where: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    source = f"import torch\nx = torch.ones(3, device={where!r})\ndef f(x):\n    return x + 1\nf(x)\n"
    (note,) = capture(source, Options(device=asked), torch.device("cpu")).notes
    assert note.message == f"{said}, and everything was run there."
