"""An exploration at the address that other sites show in a frame: only to read."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.steps import open_stored


def test_an_embedded_exploration_is_to_read_and_leads_to_the_whole_page(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    id = page.evaluate("location.pathname").rpartition("/")[2]
    page.goto(f"{server_url}/embed/{id}")
    expect(page.locator("[data-figure=kernels]")).to_contain_text("3 kernels")
    expect(page.get_by_role("link", name="Open in Fusionscope")).to_have_attribute("href", f"/x/{id}")
    expect(page.locator("[data-action=explore]")).to_have_count(0)
    page.locator(".cm-content").press("Control+Enter")
    expect(page.get_by_text("Open this exploration in Fusionscope")).to_be_visible()
    assert page.evaluate("location.pathname") == f"/embed/{id}"
