"""The core does the same without its accelerators: the same kernels, the same results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from compiler.accelerators import ACCELERATORS, SETTING, is_on, without
from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations

ROOT = Path(__file__).resolve().parents[2]


def block(x: Tensor) -> Tensor:
    """Equal layers, a number that the host reads, and random numbers that are multiplied by nothing."""
    for _ in range(2):
        x = nn.functional.layer_norm(x @ x.t(), (8,)).clamp_(-2)
    if x.sum() > 1e6:
        return x - 1
    return x.cos() + 0 * nn.functional.dropout(x, 0.5)


def compiled(needs_gradient: bool, is_dynamic: bool) -> tuple[list[str], list[Tensor]]:
    """The kernels' texts, and the results, gradients among them."""
    torch._dynamo.reset()
    texts: list[str] = []

    def keep(compilation: Built) -> None:
        texts.extend(kernel.source for kernel in compilation.primary.values())

    x = torch.linspace(-1, 1, 64).view(8, 8).requires_grad_(needs_gradient)
    with observed_compilations(keep):
        y = torch.compile(block, backend=fusionscope, dynamic=is_dynamic)(x)
        return texts, [y.detach(), *(torch.autograd.grad(y.sum(), x) if needs_gradient else ())]


@pytest.mark.parametrize("needs_gradient, is_dynamic", [(False, False), (True, True)])
def test_all_may_be_turned_off(needs_gradient: bool, is_dynamic: bool) -> None:
    texts, results = compiled(needs_gradient, is_dynamic)
    with without("all"):
        assert not any(map(is_on, ACCELERATORS))
        plain, expected = compiled(needs_gradient, is_dynamic)
    assert texts == plain and len(texts) > 2
    assert all(map(torch.equal, results, expected))


def test_the_setting_names_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "flat, loops_kept")
    assert not is_on("flat") and not is_on("loops_kept") and is_on("traced_once")
    monkeypatch.setenv(SETTING, "flat,wings")
    with pytest.raises(ValueError, match="names 'wings', which is no accelerator"):
        is_on("flat")


def test_each_is_asked_for_where_it_is_used() -> None:
    texts = [path.read_text() for path in (ROOT / "compiler").rglob("*.py") if path.name != "accelerators.py"]
    asked = {name for text in texts for name in re.findall(r'is_on\("(\w+)"\)', text)}
    captures = {name for text in texts for name in re.findall(r'^    "(\w+)": _?\w+,$', text, re.MULTILINE)}
    assert ACCELERATORS.keys() <= asked | captures
