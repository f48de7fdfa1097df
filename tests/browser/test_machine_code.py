"""A kernel down to machine code, in the pane beside the map."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Route, expect

from tests.browser.steps import faults_known_to_axe, open_stored

MACHINE = "?kernel=1&text=machine"


def test_a_line_of_sass_lights_the_kernels_line_and_the_readers_and_back(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look=f"{MACHINE}&for=sm_90&code=sass")
    level, source = page.locator(".machine-level"), page.locator(".machine-source")
    exponential = level.locator(".code-line", has_text="MUFU.EX2")
    exponential.hover()
    expect(page.locator(".lit-line")).to_have_count(2)
    expect(source.locator(".code-line[data-lit] .code-number")).to_have_attribute("data-number", "7")
    expect(page.locator(".map-svg [data-ref='aten:graph0/exp']").first).to_have_attribute("data-lit", "partner")
    page.mouse.move(700, 20)
    expect(page.locator("[data-lit]")).to_have_count(0)
    page.locator(".cm-line", has_text="weights = shifted.exp").hover()
    expect(exponential).to_have_attribute("data-lit", "partner")
    expect(level.locator(".code-line", has_text="LDG")).not_to_have_attribute("data-lit", re.compile("."))


def test_the_address_keeps_level_and_target_and_what_failed_says_why(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look=f"{MACHINE}&for=sm_80")
    expect(page.locator(".machine-facts")).to_contain_text("50 % occupancy, limited by registers")
    expect(page.locator(".machine")).to_contain_text("written for sm_90")
    page.get_by_role("tab", name="SASS").click()
    expect(page.locator(".machine-level .note")).to_have_text("Cut here.")
    assert faults_known_to_axe(page) == []
    page.get_by_role("tab", name="Instructions").click()
    expect(page.locator(".machine-limit")).to_contain_text("this is what limits it")
    page.get_by_role("tab", name=re.compile("Passes")).click()
    expect(page.locator(".pass-in")).to_contain_text("%b = 1")
    page.get_by_label("Compiled for").select_option("gfx942")
    failure = page.locator(".machine-failure")
    expect(failure).to_contain_text("not compiled for gfx942: <img")
    expect(page).to_have_url(re.compile("for=gfx942"))
    expect(page).to_have_url(re.compile("code=passes"))
    page.reload()
    expect(failure).to_be_visible()
    assert page.evaluate("() => window.wasFooled") is None


def test_while_it_is_compiled_the_page_says_so_and_an_answer_that_fails_can_be_asked_for_again(
    page: Page, server_url: str
) -> None:
    def never(_route: Route) -> None:
        """Not answered while the test lasts."""

    def crashed(route: Route) -> None:
        route.fulfill(json={"status": "crashed", "error": {"message": "It crashed."}, "machine_code": None})

    page.route("**/machine-code?*sm_100*", never)
    page.route("**/machine-code?*sm_80*", crashed, times=1)
    open_stored(page, server_url, look=f"{MACHINE}&for=sm_100")
    expect(page.locator(".machine-state")).to_contain_text("Compiling softmax_rows for sm_100")
    page.get_by_label("Compiled for").select_option("sm_80")
    expect(page.locator(".machine-failure")).to_have_text("It crashed.")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".machine-facts")).to_be_visible()
