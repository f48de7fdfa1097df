"""One exploration with nothing replaced: the real compiler, behind the real service, seen in the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.serving import serving
from tests.browser.steps import open_view

SNIPPET = """import torch


@torch.compile
def softmax(scores):
    highest = scores.amax(dim=-1, keepdim=True)
    weights = torch.exp(scores - highest)
    return weights / weights.sum(dim=-1, keepdim=True)


softmax(torch.randn(256, 512))
"""
WARM_UP_MS = 600_000


@pytest.fixture(scope="module")
def real_server_url(built_page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("data")) as url:
        yield url


def test_a_softmax_becomes_one_kernel_on_the_page(page: Page, real_server_url: str) -> None:
    page.goto(real_server_url)
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(SNIPPET)
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-action=explore]")).to_contain_text("Stop")
    expect(page.locator("[data-action=explore]")).to_contain_text("Explore", timeout=WARM_UP_MS)
    expect(page.locator("[data-figure=kernels]")).to_contain_text("1 kernel")
    open_view(page, "timeline")
    # Every line of the function's body ends in that kernel. The view may still move under a pointer that is there.
    lit, bar = page.locator(".lit-line"), page.locator(".time-bar[data-ref='kernel:graph_0/0']").first
    for _ in range(20):
        page.mouse.move(0, 0)
        bar.hover()
        page.wait_for_timeout(500)
        if lit.count() == 3:
            break
    expect(lit).to_have_count(3)
    open_view(page, "timing")
    expect(page.locator(".contestant-compiled circle").first).to_be_visible()
