"""What a person sees and does, in a real browser, on the real service."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import a_page
from tests.browser.steps import (
    SOFTMAX,
    SOURCE,
    expect_lit,
    faults_in_both_themes,
    faults_known_to_axe,
    fit_map,
    hold_answers,
    lit_refs,
    open_stored,
    open_view,
    release_answers,
    type_snippet,
)


def test_the_first_paint_is_a_solved_example_that_fits_the_screen(page: Page, server_url: str) -> None:
    page.goto(server_url)
    expect(page.locator("[data-figure=kernels]")).to_contain_text("3 kernels")
    expect(page.locator(".map-svg .node").first).to_be_visible()
    # Nothing opens by itself.
    expect(page.locator("#pane-side, #drawer")).to_have_count(0)
    expect(page.locator(".cm-content")).not_to_be_empty()
    scrolls = "document.documentElement.scrollHeight > innerHeight || document.documentElement.scrollWidth > innerWidth"
    assert page.evaluate(scrolls) is False


def test_what_is_written_while_the_examples_are_on_their_way_stays(page: Page, server_url: str) -> None:
    held: list[Route] = []
    page.route("**/api/v1/examples", lambda route: held.append(route))
    page.goto(server_url)
    page.locator(".cm-content").click()
    page.keyboard.insert_text("written = 1")
    while not held:
        page.wait_for_timeout(50)
    held[0].continue_()
    expect(page.get_by_label("Example").locator("option")).not_to_have_count(1)
    expect(page.locator(".cm-content")).to_have_text("written = 1")


def test_a_paste_takes_the_place_of_what_came_while_all_was_selected(page: Page, server_url: str) -> None:
    hold_answers(page)
    page.goto(server_url)
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    release_answers(page)
    expect(page.locator(".cm-content")).not_to_have_text("Paste Python code that calls PyTorch.")
    expect(page.locator("[data-figure=kernels]")).to_contain_text("3 kernels")
    page.keyboard.insert_text("written = 1")
    expect(page.locator(".cm-content")).to_have_text("written = 1")


def test_a_paste_loses_its_fences_and_one_step_back_gives_it_as_it_was(page: Page, server_url: str) -> None:
    page.goto(server_url)
    code = page.locator(".cm-content")
    expect(code).to_contain_text("import torch")
    code.focus()
    page.keyboard.press("Control+a")
    code.evaluate(
        "(code, text) => { const clipboardData = new DataTransfer(); clipboardData.setData('text/plain', text);"
        " code.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })); }",
        "```python\nx = 1\ny = 2\n```\n",
    )
    expect(code).to_have_text("x = 1\ny = 2\n", use_inner_text=True)
    page.keyboard.press("Control+z")
    expect(code).to_have_text("```python\nx = 1\ny = 2\n```\n", use_inner_text=True)
    page.keyboard.press("Control+y")
    expect(code).to_have_text("x = 1\ny = 2\n", use_inner_text=True)
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    expect(code).to_contain_text("import torch")


def test_the_answer_bar_says_it_in_one_line_and_opens_panes(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    for figure in ("10 → 3 kernels", "± 1.7 %", "79.7 MB", "29.4 MB", "2.7×", "0 breaks", "1.1e-3", "1.4e-3", "CPU"):
        expect(page.locator(".figures")).to_contain_text(figure)
    page.locator("[data-figure=time]").click()
    expect(page.locator(".toolbar [data-view=timing]")).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".contestant-eager circle")).to_have_count(24)


def test_a_figure_that_is_not_known_is_a_dash(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# nothing measured\n" + SOURCE)
    expect(page.locator("[data-figure=kernels]")).to_be_visible()
    expect(page.locator("[data-figure=bytes] .figure-value")).to_have_text("–")
    # It ran, so it is known that nothing was timed and nothing compared.
    expect(page.locator("[data-figure=time] .figure-value")).to_have_text("not timed")
    expect(page.locator("[data-figure=error] .figure-value")).to_have_text("not compared")
    expect(page.locator("[data-figure=peer-kernels]")).to_have_count(0)


def test_what_was_measured_and_what_is_predicted_name_their_devices(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    measured = page.get_by_role("group", name="measured on CPU")
    expect(measured.locator("[data-figure=time]")).to_be_visible()
    predicted = page.get_by_role("group", name="predicted for NVIDIA H200")
    expect(predicted.locator("[data-figure=predicted] em")).to_have_css("font-style", "italic")
    expect(predicted.locator("[data-figure=time]")).to_have_count(0)


def test_hovering_a_kernel_lights_its_partners_in_every_pane(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    expect(page.locator(".map-svg .node").first).to_be_visible()
    page.hover(SOFTMAX)
    expect(page.locator(".lit-line")).to_have_count(5)
    expect_lit(page, "map", "aten:graph0/mul", "aten:graph0/exp", "aten:graph0/div")
    assert "aten:graph0/mm" not in lit_refs(page, "map")
    expect_lit(page, "side", "code:graph0/1:0:17")
    expect(page.locator("[data-pane='drawer'] [data-lit][data-ref^='decision:']").first).to_be_attached()
    page.mouse.move(700, 20)
    expect(page.locator("[data-lit]")).to_have_count(0)


def test_a_click_pins_and_escape_releases(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    fit_map(page)
    page.locator(".map-svg [data-ref='aten:graph0/relu']").click()
    page.mouse.move(700, 20)
    expect(page.locator(".map-svg [data-ref='aten:graph0/relu']")).to_have_attribute("data-lit", "focus")
    # The kernel that it became opens.
    expect(page.locator("#pane-side [data-ref='kernel:graph0/2']")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("[data-lit]")).to_have_count(0)


def test_hovering_a_source_line_lights_what_it_became(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    expect(page.locator(".map-svg .node").first).to_be_visible()
    page.locator(".cm-line", has_text="total = weights.sum").hover()
    expect(page.locator(".map-svg [data-ref='aten:graph0/sum_1']")).to_have_attribute("data-lit", "partner")
    expect_lit(page, "side", "code:graph0/1:0:17")
    assert "aten:graph0/mul" not in lit_refs(page, "map")


def test_the_pointer_may_jump_from_the_editor_to_another_pane(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator(".cm-line", has_text="total = weights.sum").hover()
    expect(page.locator(".lit-line")).to_have_count(1)
    page.hover(SOFTMAX)
    expect(page.locator(SOFTMAX)).to_have_attribute("data-lit", "focus")
    expect(page.locator(".lit-line")).to_have_count(5)


def test_the_pane_under_the_pointer_is_never_scrolled(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    lines = page.locator(".code-lines")
    page.locator(".code-line").first.hover()
    page.locator("[data-ref='code:graph0/1:0:8']").hover()
    page.wait_for_timeout(600)
    assert lines.evaluate("it => it.scrollTop") == 0
    # The line is out of view at first; hovering its operation from another pane brings it in.
    fit_map(page)
    page.locator(".map-svg [data-ref='aten:graph0/div']").hover()
    expect(page.locator("[data-ref='code:graph0/1:0:21']")).to_be_in_viewport()


#: Whether it could be stopped, and whether the graph arrived before the kernels.
NOTES_STAGES = """() => {
  const is = found => document.querySelector(found) !== null;
  new MutationObserver(() => {
    window.couldStop ||= document.querySelector('[data-action=explore]').textContent.includes('Stop');
    window.graphCameFirst ||= is('#pane-side [data-stale]') && is('#pane-map .view:not([data-stale]) .node');
  }).observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
}"""


def test_stages_fill_in_while_stale_panes_stay_grey(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    # The page itself notes what is on it, since a busy machine may look too late.
    page.evaluate(NOTES_STAGES)
    type_snippet(page, "# slow\n" + SOURCE)
    page.keyboard.press("Control+Enter")
    expect(page).to_have_url(re.compile(r"/x/\w+\b"))
    page.wait_for_function("() => window.couldStop && window.graphCameFirst")
    expect(page.locator("#pane-side .kernels:not([data-stale]) .code-line").first).to_be_visible()
    expect(page.locator("[data-action=explore]")).to_contain_text("Explore")


def test_the_verdict_does_not_wait_for_what_depends_on_nothing_in_it(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    type_snippet(page, "# stuck with a verdict\n" + SOURCE)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".answer-line [data-running]")).to_contain_text("measure done · profile next")
    expect(page.locator(".verdict")).to_contain_text("Softmax became one kernel")
    page.locator("[data-action=stop]").click()
    expect(page.locator(".status-chip")).to_have_text("stopped")


def test_stop_cancels(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    type_snippet(page, "# stuck\n" + SOURCE)
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-action=explore]")).to_contain_text("Stop")
    expect(page.locator(".verdict")).to_have_text(re.compile(r"^running \d+ s of 60 · capture done · lower next"))
    expect(page.get_by_role("list", name="Time of each stage")).to_contain_text(re.compile("capture .*lower"))
    page.locator("[data-action=stop]").click()
    expect(page.locator(".status-chip")).to_have_text("stopped")
    expect(page.locator("[data-action=explore]")).to_contain_text("Explore")


def test_an_error_stands_under_the_line_that_caused_it(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# fails\n" + SOURCE)
    expect(page.locator(".line-message-error")).to_have_text("ValueError: not this one")
    expect(page.locator(".error-line")).to_have_count(1)
    expect(page.locator(".error-card .hint")).to_have_text("Try f(x).")
    expect(page.locator("#pane-map")).to_contain_text("Correct the marked line")
    expect(page.locator(".status-chip")).to_have_text("the snippet failed")


def test_an_error_of_no_line_is_told_below_the_snippet(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# nothing to explore\n" + SOURCE)
    expect(page.locator(".error-card")).to_contain_text("ValueError: not this one")
    expect(page.locator(".error-line")).to_have_count(0)
    expect(page.locator("#pane-map")).to_contain_text("The message below the snippet says why.")


def test_a_sweep_is_asked_for_and_marks_the_sizes_that_flip(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    open_view(page, "sweep")
    field, ask = (
        page.get_by_label("Sizes to explore", exact=True),
        page.locator("#drawer").get_by_role("button", name="Sweep", exact=True),
    )
    page.get_by_role("button", name="N = 64", exact=True).click()
    expect(field).to_have_value("N = 8, 16, 32, 64, 128, 256, 512")
    field.fill("N = 256")
    expect(page.locator("#sweep-help")).to_contain_text("write a size and two or more numbers")
    expect(ask).to_be_disabled()
    field.fill("N = 256, 1024, 4096")
    ask.click()
    rows = page.locator(".sweep-sizes tbody tr")
    expect(rows).to_have_count(3)
    expect(page.locator(".toolbar [data-view=sweep] .badge")).to_have_text("1")
    expect(page.locator(".sweep-sizes tr.flipping")).to_have_attribute("data-size", "1024")
    expect(rows.nth(1)).to_contain_text("launches: 1 → 2")
    expect(rows.nth(1)).to_contain_text("and 3 more")
    expect(rows.nth(2)).to_contain_text("MemoryError (line 2): no room")
    expect(page.locator(".flip-mark")).to_have_attribute("data-flip", "1024")
    expect(page.locator(".curve-predicted circle")).to_have_count(2)
    expect(page.locator(".curve-compiled circle")).to_have_count(1)
    pair = page.locator(".sweep-pairs tbody tr")
    expect(pair).to_contain_text("apart")
    expect(pair).to_contain_text("profit.slower")
    assert page.evaluate("window.wasFooled") is None
    page.reload()
    expect(page.locator(".toolbar [data-view=sweep] .badge")).to_have_text("1")
    open_view(page, "sweep")
    expect(field).to_have_value("N = 256, 1024, 4096")
    # Another snippet has other sizes.
    page.get_by_label("Example").select_option(index=2)
    expect(field).to_have_value("")
    expect(page.locator("[data-figure=kernels]")).to_contain_text("3 kernels")


def test_an_example_can_be_chosen_and_the_theme_turned(page: Page, server_url: str) -> None:
    page.goto(server_url)
    expect(page.locator("[data-figure=kernels]")).to_be_visible()
    before = page.locator(".cm-content").inner_text()
    page.get_by_label("Example").select_option(index=1)
    expect(page.locator(".cm-content")).not_to_have_text(before)
    expect(page).to_have_url(re.compile(r"/x/\w+\b"))
    was = page.locator("html").get_attribute("data-theme") or ""
    page.get_by_role("button", name=re.compile("theme")).click()
    expect(page.locator("html")).not_to_have_attribute("data-theme", was)


def test_the_keyboard_reaches_help_and_leaves_it(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator("#pane-side").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_a_report_of_another_version_gives_its_code(browser: Browser, server_url: str) -> None:
    opened = browser.new_page()
    stored = {"version": 1, "id": "f" * 20, "status": "ok", "source": "kept = 'the code'\n", "options": {}}
    opened.route(f"**/api/v1/explorations/{'f' * 20}", lambda route: route.fulfill(json=stored))
    opened.goto(f"{server_url}/x/{'f' * 20}")
    expect(opened.get_by_role("alert")).to_contain_text("another version of Fusionscope")
    expect(opened.locator(".cm-content")).to_contain_text("kept = 'the code'")
    opened.close()


def test_an_unknown_link_says_so(browser: Browser, server_url: str) -> None:
    # Its own page: the browser rightly complains of the 404, which `page` does not let pass.
    opened = browser.new_page()
    opened.goto(f"{server_url}/x/{'0' * 20}")
    expect(opened.get_by_role("alert")).to_contain_text("There is no exploration at this link.")
    expect(opened.get_by_text("Paste PyTorch code on the left, or choose an example.")).to_be_visible()
    assert faults_known_to_axe(opened) == []
    opened.close()


@pytest.fixture(scope="module")
def page_of_tabs(browser: Browser, server_url: str) -> Iterator[Page]:
    """One that stays open for all tabs, which have something to show on it."""
    with a_page(browser) as opened:
        open_stored(opened, server_url, sweep={"name": "N", "values": [8, 64, 512]})
        yield opened


@pytest.mark.parametrize(
    "tab",
    "decisions timing errors timeline roofline traffic buffers replay loops passes nodes capture wrapper sweep what-if "
    "compare stages notes export".split(),
)
def test_no_accessibility_fault_is_known_to_axe(page_of_tabs: Page, tab: str) -> None:
    page = page_of_tabs
    open_view(page, tab)
    if tab in ("traffic", "buffers"):
        page.locator("#rendering-tab-levels").click()
        page.get_by_role("button", name=re.compile("without fusion|edges")).last.click()
    page.mouse.move(700, 20)
    page.wait_for_timeout(300)
    # What is around the tabs has the same colours beside each.
    around = tab == "decisions" or tab in ("traffic", "buffers")
    assert faults_in_both_themes(page, *(() if around else ("#drawer", ".toolbar"))) == []
