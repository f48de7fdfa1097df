"""The frame of the page: its states, keys, addresses, and what it is on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect

from tests.browser.steps import (
    SOURCE,
    faults_in_both_themes,
    faults_known_to_axe,
    fit_map,
    hold_answers,
    open_stored,
    open_view,
    release_answers,
    type_snippet,
)

PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture
def loose_page(browser: Browser) -> Iterator[Page]:
    """A page on which the browser may complain: of a server that does not answer, say."""
    opened = browser.new_page(viewport={"width": 1440, "height": 900})
    opened.set_default_timeout(120_000)
    yield opened
    opened.close()


def overflows(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))


def test_a_failure_keeps_the_version_before_it_grey(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="")
    expect(page.locator(".map-svg .node").first).to_be_visible()
    type_snippet(page, "# fails\n" + SOURCE)
    expect(page.locator(".line-message-error")).to_have_text("ValueError: not this one")
    expect(page.locator(".status-chip")).to_have_text("the snippet failed")
    verdict = "Line 3: not this one. What is grey is from the exploration before."
    expect(page.locator(".verdict")).to_contain_text(verdict)
    expect(page.locator("[data-figure=kernels]")).to_have_attribute("data-state", "stale")
    expect(page.locator("[data-figure=kernels]")).to_contain_text("3 kernels")
    expect(page.locator("#pane-map [data-stale]")).to_be_visible()
    expect(page.get_by_text("from the exploration before", exact=True)).to_be_visible()
    open_view(page, "notes")
    expect(page.locator("#drawer")).not_to_contain_text("ran as written")
    type_snippet(page, "# good again\n" + SOURCE)
    expect(page.locator("[data-figure=kernels]")).to_have_attribute("data-state", "known")
    expect(page.locator("#pane-map [data-stale]")).to_have_count(0)


def test_what_is_typed_is_explored_unless_the_reader_turns_that_off(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="")
    type_snippet(page, "# typed\n" + SOURCE)
    expect(page.locator(".edited")).to_be_visible()
    expect(page.locator(".edited")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/x/\w+$"))
    page.get_by_label("while typing").uncheck()
    page.reload()
    expect(page.get_by_label("while typing")).not_to_be_checked()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    type_snippet(page, "# not explored\n" + SOURCE)
    page.wait_for_timeout(1500)
    assert "POST" not in asked
    expect(page.locator(".edited")).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("The snippet has changed since.")


def test_what_is_typed_before_a_link_is_loaded_stays(page: Page, server_url: str) -> None:
    identity = open_stored(page, server_url, look="")
    page.get_by_label("while typing").uncheck()
    hold_answers(page)
    page.goto(f"{server_url}/x/{identity}")
    type_snippet(page, "# typed early\n" + SOURCE)
    page.get_by_label("With TorchInductor").check()
    expect(page.locator("[data-figure=kernels]")).to_have_attribute("data-state", "unknown")
    release_answers(page)
    expect(page.locator("[data-figure=kernels]")).to_have_attribute("data-state", "known")
    expect(page.locator(".cm-content")).to_contain_text("# typed early")
    expect(page.get_by_label("With TorchInductor")).to_be_checked()
    expect(page.locator(".edited")).to_be_visible()


def test_what_is_written_and_not_explored_outlives_a_reload_and_the_way_back(page: Page, server_url: str) -> None:
    first = open_stored(page, server_url, look="")
    page.get_by_label("while typing").uncheck()
    type_snippet(page, "# half a thought\n" + SOURCE)
    page.reload()
    expect(page.locator("[data-figure=kernels]")).to_have_attribute("data-state", "known")
    expect(page.locator(".cm-content")).to_contain_text("# half a thought")
    expect(page.locator(".edited")).to_be_visible()
    page.goto(server_url)
    expect(page.locator("[data-figure=kernels]")).to_have_attribute("data-state", "known")
    expect(page.locator(".cm-content")).not_to_contain_text("# half a thought")
    page.go_back()
    expect(page.locator(".cm-content")).to_contain_text("# half a thought")
    page.get_by_label("Example").select_option(index=1)
    expect(page).not_to_have_url(re.compile(first))
    expect(page.locator("[data-action=stop]")).to_have_count(0)
    page.go_back()
    expect(page).to_have_url(re.compile(first))
    expect(page.locator(".cm-content")).to_contain_text("# half a thought")
    page.locator("[data-action=explore]").click()
    expect(page).not_to_have_url(re.compile(first))
    expect(page.locator("[data-action=stop]")).to_have_count(0)
    page.go_back()
    expect(page).to_have_url(re.compile(first))
    expect(page.locator(".cm-content")).not_to_contain_text("# half a thought")
    expect(page.locator(".edited")).to_have_count(0)


def test_what_is_written_just_before_the_way_back_is_there_on_the_way_forward(page: Page, server_url: str) -> None:
    first = open_stored(page, server_url, look="")
    type_snippet(page, "# the next\n" + SOURCE)
    expect(page).not_to_have_url(re.compile(first))
    expect(page.locator("[data-action=stop]")).to_have_count(0)
    page.get_by_label("while typing").uncheck()
    for written in ("# half", "# half a thought"):
        type_snippet(page, f"{written}\n{SOURCE}")
    page.go_back()
    expect(page).to_have_url(re.compile(first))
    expect(page.locator(".cm-content")).not_to_contain_text("# half")
    page.go_forward()
    expect(page).not_to_have_url(re.compile(first))
    expect(page.locator(".cm-content")).to_contain_text("# half a thought")
    page.reload()
    expect(page.locator(".cm-content")).to_contain_text("# half a thought")


def test_what_is_typed_is_not_explored_from_where_one_goes_back_to(page: Page, server_url: str) -> None:
    first = open_stored(page, server_url, look="")
    type_snippet(page, "# the one after it\n" + SOURCE)
    expect(page).not_to_have_url(re.compile(first))
    expect(page.locator("[data-action=stop]")).to_have_count(0)
    held: list[Route] = []
    page.route(f"**/api/v1/explorations/{first}", lambda route: held.append(route))
    type_snippet(page, "# never explored\n" + SOURCE)
    page.go_back()
    page.wait_for_timeout(1000)  # longer than the pause after which what is typed is explored
    held[0].continue_()
    expect(page.locator(".cm-content")).not_to_contain_text("# never explored")
    expect(page).to_have_url(re.compile(first))
    page.go_forward()
    expect(page.locator(".cm-content")).to_contain_text("# never explored")


def test_another_version_stops_the_one_before(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="")
    type_snippet(page, "# stuck\n" + SOURCE)
    expect(page.locator(".verdict")).to_contain_text("capture done")
    with page.expect_request(lambda request: request.method == "DELETE"):
        type_snippet(page, "# after it\n" + SOURCE)
    expect(page.locator(".verdict")).to_contain_text("Softmax became one kernel")


def test_a_reload_of_the_start_page_keeps_what_is_looked_at(page: Page, server_url: str) -> None:
    page.goto(server_url)
    expect(page.locator("[data-figure=kernels]")).to_contain_text("3 kernels")
    open_view(page, "timing")
    fit_map(page)
    page.locator(".map-svg [data-ref='aten:graph0/relu']").click()
    expect(page.locator("#pane-side")).to_be_visible()
    address = page.url
    page.reload()
    expect(page.locator("[data-figure=kernels]")).to_contain_text("3 kernels")
    expect(page.locator("#drawer[data-view=timing]")).to_be_visible()
    expect(page.locator("#pane-side")).to_be_visible()
    expect(page).to_have_url(address)


def test_the_way_back_to_the_start_page_is_to_the_example_as_it_was(page: Page, server_url: str) -> None:
    page.goto(server_url)
    expect(page.locator("[data-figure=kernels]")).to_contain_text("3 kernels")
    page.get_by_role("checkbox", name="Measure").uncheck()
    expect(page).to_have_url(re.compile(r"/x/\w+"))
    open_view(page, "timing")
    page.go_back()
    expect(page.get_by_role("checkbox", name="Measure")).to_be_checked()
    expect(page.locator("#drawer")).to_have_count(0)
    expect(page).to_have_url(re.compile(r":\d+/$"))


def test_the_title_names_what_is_explored(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    expect(page).to_have_title("attention_scores · Fusionscope")


def test_earlier_explorations_are_gone_back_to(page: Page, server_url: str) -> None:
    first = open_stored(page, server_url, look="")
    type_snippet(page, "# second version\n" + SOURCE)
    expect(page).not_to_have_url(re.compile(first))
    expect(page.locator("[data-action=stop]")).to_have_count(0)
    page.go_back()
    expect(page).to_have_url(re.compile(first))
    expect(page.locator(".cm-content")).not_to_contain_text("second version")
    page.get_by_text("Earlier").click()
    page.get_by_role("list", name="Earlier explorations").get_by_role("link").first.click()
    expect(page.locator(".cm-content")).to_contain_text("second version")


def test_earlier_explorations_are_there_in_other_tabs_until_they_are_forgotten(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="")
    with page.context.expect_page() as opened:
        page.evaluate("url => void window.open(url, '_blank', 'noopener')", server_url)
    other = opened.value
    other.get_by_text("Earlier").click()
    earlier = other.get_by_role("list", name="Earlier explorations")
    expect(earlier.get_by_role("link")).to_have_count(1)
    type_snippet(page, "# of the first tab\n" + SOURCE)
    expect(page.locator("[data-action=stop]")).to_have_count(0)
    expect(earlier.get_by_role("link")).to_have_count(2)
    earlier.get_by_role("button", name="Forget all").click()
    expect(earlier).to_have_count(0)
    expect(page.get_by_text("Earlier")).to_have_count(0)
    other.reload()
    expect(other.locator(".cm-content")).to_be_visible()
    expect(other.get_by_text("Earlier")).to_have_count(0)


def test_escape_goes_back_one_step_at_a_time(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    expect(page.locator("#pane-side .code-line").first).to_be_visible()
    page.locator(".toolbar [data-view=decisions]").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#pane-side")).to_have_count(0)
    expect(page.locator("#drawer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#drawer")).to_have_count(0)


def test_everything_is_reached_by_the_keyboard(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="")
    content = page.locator(".cm-content")
    content.focus()
    page.keyboard.press("Tab")
    expect(content).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(content).not_to_be_focused()
    page.locator(".toolbar button").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#drawer[data-view=what-if]")).to_be_visible()
    separator = page.get_by_role("separator", name="Resize drawer")
    before = separator.get_attribute("aria-valuenow")
    separator.focus()
    page.keyboard.press("ArrowUp")
    expect(separator).not_to_have_attribute("aria-valuenow", before or "")
    seen = []
    for _ in range(6):
        page.keyboard.press("F6")
        seen.append(page.evaluate("document.activeElement?.closest('[data-pane]')?.dataset.pane"))
    assert {"editor", "map", "drawer"} <= set(seen)
    page.locator("#drawer").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Esc, then Tab")
    assert faults_known_to_axe(page) == []


def test_a_key_goes_round_all_panes_and_arrows_onto_the_map(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="")
    expect(page.locator(".map-svg .node").first).to_be_visible()
    here = "document.activeElement?.closest('[data-pane]')?.dataset.pane"
    seen = []
    for _ in range(4):
        page.keyboard.press("F6")
        seen.append(page.evaluate(here))
    assert seen == ["editor", "map", "toolbar", "editor"]
    page.keyboard.press("F6")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".map-svg .node:focus")).to_have_count(1)
    page.keyboard.press("Shift+F6")
    assert page.evaluate(here) == "editor"


def test_the_way_out_of_the_editor_closes_nothing(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    expect(page.locator("#pane-side .code-line").first).to_be_visible()
    page.locator(".cm-content").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.locator(".cm-content")).not_to_be_focused()
    expect(page.locator("#pane-side")).to_be_visible()
    expect(page.locator("#drawer")).to_be_visible()


def test_a_link_restores_all_that_is_looked_at(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="")
    open_view(page, "traffic")
    page.locator("[data-figure=peer-kernels]").click()
    page.get_by_role("button", name="dynamo").click()
    expect(page).to_have_url(re.compile("show=traffic"))
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("#drawer[data-view=traffic]")).to_be_visible()
    expect(page.locator("#pane-side [aria-pressed=true]", has_text="TorchInductor")).to_be_visible()
    expect(page.get_by_role("button", name="dynamo")).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(address)


def test_a_first_visit_is_told_what_this_is_and_only_once(page: Page, server_url: str) -> None:
    page.goto(server_url)
    welcome = page.get_by_role("region", name="What this is")
    expect(welcome).to_contain_text("became 3 kernels")
    map_box, welcome_box = page.locator("#slot-map").bounding_box(), welcome.bounding_box()
    assert map_box and welcome_box and welcome_box["x"] + welcome_box["width"] <= map_box["x"]
    welcome.get_by_role("button", name="Paste your own code").click()
    expect(welcome).to_have_count(0)
    expect(page.locator(".cm-content")).to_be_focused()
    expect(page.locator(".cm-content")).to_have_text("Paste Python code that calls PyTorch.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_have_text(re.compile("The snippet is empty. Paste PyTorch code"))
    page.reload()
    expect(page.locator("[data-figure=kernels]")).to_contain_text("3 kernels")
    expect(welcome).to_have_count(0)


def test_who_pastes_is_told_no_more_how_to(loose_page: Page, server_url: str) -> None:
    loose_page.goto(server_url)
    welcome = loose_page.get_by_role("region", name="What this is")
    expect(welcome).to_contain_text("became 3 kernels")
    type_snippet(loose_page, "# mine\n" + SOURCE)
    expect(welcome).to_have_count(0)
    expect(loose_page.locator(".cm-content")).to_contain_text("# mine")


def test_the_way_back_from_a_map_to_a_failure_complains_of_nothing(page: Page, server_url: str) -> None:
    failed = open_stored(page, server_url, "# fails\n" + SOURCE, look="")
    type_snippet(page, "# good again\n" + SOURCE)
    expect(page.locator(".map-svg .node").first).to_be_visible()
    expect(page.locator("[data-action=stop]")).to_have_count(0)
    page.go_back()
    expect(page).to_have_url(re.compile(failed))
    expect(page.locator(".map-svg")).to_have_count(0)


def test_a_server_that_does_not_answer_is_asked_again(loose_page: Page, server_url: str) -> None:
    page = loose_page
    open_stored(page, server_url, look="")
    expect(page.locator(".map-svg .node").first).to_be_visible()
    page.context.set_offline(True)
    type_snippet(page, "# offline\n" + SOURCE)
    expect(page.locator(".offline")).to_contain_text("The server does not answer. What is on screen stays.")
    expect(page.locator("[data-figure=kernels]")).to_contain_text("3 kernels")
    expect(page.locator(".map-svg .node").first).to_be_visible()
    assert faults_in_both_themes(page) == []
    page.context.set_offline(False)
    # It asks again by itself too, and the button is then gone.
    page.evaluate("document.querySelector('.offline button')?.click()")
    expect(page.locator(".offline")).to_have_count(0)
    expect(page.locator(".verdict")).to_contain_text("Softmax became one kernel")


#: Whether all of the first is in the box of the second, and how high the first is.
LIES_IN = """([inner, outer]) => {
  const [a, b] = [inner, outer].map(one => document.querySelector(one).getBoundingClientRect());
  return [a.top >= b.top && a.bottom <= b.bottom, a.height];
}"""


def test_in_a_low_window_nothing_lies_over_another(page: Page, server_url: str) -> None:
    page.set_viewport_size({"width": 1024, "height": 700})
    open_stored(page, server_url, look="?kernel=1&show=traffic")
    expect(page.get_by_role("region", name="What this is")).to_be_visible()
    expect(page.locator("#pane-side .code-line").first).to_be_attached()
    expect(page.locator(".map-list-head")).to_be_visible()
    for inner, outer in ((".options", "#slot-editor"), (".map-list-head", ".map-list")):
        assert page.evaluate(LIES_IN, [inner, outer])[0], inner
    # Its text is scrolled to.
    assert page.evaluate(LIES_IN, [".kernel-card", "#pane-side"])[1] >= 200
    page.locator("#pane-side .code-line").first.scroll_into_view_if_needed()
    expect(page.locator("#pane-side .code-line").first).to_be_in_viewport()
    assert faults_known_to_axe(page) == []


def test_what_a_change_did_is_read_in_full_on_a_phone(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="?why=graph0/buf1,buf3")
    page.get_by_role("button", name="Forbid this fusion").click()
    beside = page.get_by_test_id("beside")
    expect(beside).to_be_visible()
    page.set_viewport_size(PHONE)
    assert beside.evaluate("it => it.scrollWidth <= it.clientWidth")


def test_a_phone_shows_one_pane_at_a_time(page: Page, server_url: str) -> None:
    page.set_viewport_size(PHONE)
    open_stored(page, server_url, look="")
    tabs = page.get_by_role("navigation", name="Panes")
    for tab, pane in (("Code", "#pane-editor"), ("Map", "#pane-map"), ("Kernel", "#pane-side"), ("More", ".toolbar")):
        tabs.get_by_role("button", name=tab).click()
        expect(page.locator(pane)).to_be_visible()
        expect(page.locator("#pane-editor, #pane-map, #pane-side, .toolbar").locator("visible=true")).to_have_count(1)
        assert not overflows(page)
        assert faults_in_both_themes(page) == []
    open_view(page, "timing")
    expect(page.locator("#drawer")).to_be_visible()
    assert not overflows(page)
    page.reload()
    expect(page.locator("#drawer[data-view=timing]")).to_be_visible()
    open_view(page, "timeline")
    # What it says of itself is no column of words beside the buttons.
    assert page.locator(".timeline .filters p").evaluate("it => it.clientWidth") > PHONE["width"] / 2


def test_no_accessibility_fault_in_any_state(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="")
    page.get_by_text("Options", exact=True).click()
    assert faults_in_both_themes(page) == []
    page.get_by_text("Options", exact=True).click()
    type_snippet(page, "# stuck\n# in any state\n" + SOURCE)
    expect(page.locator(".verdict")).to_contain_text("capture done")
    assert faults_in_both_themes(page) == []
    page.locator("[data-action=stop]").click()
    expect(page.locator(".status-chip")).to_have_text("stopped")
    assert faults_in_both_themes(page) == []
    type_snippet(page, "# fails\n# in any state\n" + SOURCE)
    expect(page.locator(".status-chip")).to_have_text("the snippet failed")
    page.get_by_text("Earlier").click()
    assert faults_in_both_themes(page) == []
