"""What if, on the page: forbidding and forcing in the why card, the form, and both explorations side by side."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from compiler.options import RULES
from tests.browser.steps import SOURCE, faults_known_to_axe, open_stored, open_view, type_snippet


def test_a_fusion_is_forbidden_in_its_card_and_taken_back(page: Page, server_url: str) -> None:
    first = open_stored(page, server_url, look="?why=graph0/buf1,buf3")
    page.get_by_role("button", name="Forbid this fusion").focus()
    page.keyboard.press("Enter")
    # The card stays, and says what changed: counted and measured, each for what it is.
    change = page.locator("#why-card").get_by_test_id("change")
    expect(change).to_contain_text("3 kernels → 4")
    expect(change).to_contain_text("no measurable difference")
    expect(page.locator("[data-figure=kernels] .figure-change")).to_have_text("+1")
    assert first not in page.url
    assert faults_known_to_axe(page) == []
    page.get_by_role("button", name="Take it back").click()
    expect(page).to_have_url(re.compile(f"/x/{first}\\b"))
    expect(page.get_by_role("button", name="Forbid this fusion")).to_be_visible()
    expect(page.locator(".figure-change")).to_have_count(0)


def test_a_change_is_compared_figure_by_figure_and_kernel_by_kernel(page: Page, server_url: str) -> None:
    first = open_stored(page, server_url, look="?why=graph0/buf1,buf3")
    page.get_by_role("button", name="Forbid this fusion").click()
    page.get_by_role("button", name="Compare both").click()
    expect(page.get_by_test_id("why-verdict")).to_have_count(0)
    expect(page.get_by_test_id("comparison-verdict")).to_contain_text("2 generated kernels became 3")
    kernels = page.locator(".comparison tr", has_text="taken_out")
    expect(kernels).to_contain_text("split")
    expect(page.get_by_test_id("beside")).to_contain_text("2 generated kernels became 3")
    expect(page.locator(".comparison tr", has_text="compiled")).to_contain_text("no measurable difference")
    expect(page.locator(".comparison td.predicted").first).to_have_css("font-style", "italic")
    kernels.get_by_role("button", name="Text").click()
    expect(page.locator(".text-diff")).to_contain_text("Kernel source")
    assert faults_known_to_axe(page) == []
    open_view(page, "what-if")
    expect(page.get_by_label("Outcome of each option")).to_contain_text("they stay apart")
    page.get_by_role("link", name="the first exploration").click()
    expect(page).to_have_url(re.compile(f"/x/{first}\\b"))
    expect(page.locator(".what-if")).to_contain_text("Based on this one")
    expect(page.get_by_test_id("beside")).to_have_count(0)


def test_rules_and_limits_are_turned_off_in_a_form(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# what if\n" + SOURCE)
    open_view(page, "what-if")
    offered = page.locator(".what-if-form fieldset label")
    expect(offered).to_have_text([rule.replace("_", " ") for rule in RULES])
    expect(page.get_by_label("vertical")).to_have_accessible_description(re.compile("stays in a register"))
    page.get_by_label("horizontal").uncheck()
    page.get_by_label("largest group").fill("4")
    page.get_by_label("device that decides").select_option("T4")
    with page.expect_request(lambda request: request.method == "POST" and "/explorations" in request.url) as posted:
        page.get_by_role("button", name="Explore and compare").click()
    asked = posted.value.post_data_json
    assert asked is not None
    assert (asked["rules_off"], asked["largest_group"], asked["device_model"]) == (["horizontal"], 4, "T4")
    expect(page.get_by_label("Outcome of each option")).to_contain_text("rules off horizontal done")
    expect(page.get_by_label("horizontal")).not_to_be_checked()


def test_an_illegal_force_is_refused_with_the_reason(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="?why=graph0/buf5,buf6")
    page.get_by_role("button", name="Force this fusion").click()
    tried = page.locator(".why-tried[data-outcome=refused]")
    expect(tried).to_contain_text("Forced, and refused: buf1 is read backwards")
    tried.get_by_role("button", name="index.reversed").click()
    expect(page.get_by_role("region", name="The reason index.reversed")).to_contain_text("backwards")


NOTES_CAPTURE = """() => new MutationObserver(() => {
    const running = document.querySelector('.answer-line [data-running]');
    window.wasCaptured ||= running !== null && running.textContent.includes('capture done');
  }).observe(document.body, {subtree: true, childList: true, characterData: true})"""


def test_a_pair_is_asked_about_once_the_service_knows_it(page: Page, server_url: str) -> None:
    """While an exploration runs, a question about nodes that its report has not told yet would be answered with 404,
    which the browser complains of."""
    open_stored(page, server_url, look="?why=graph0/buf5,buf6")
    # The page itself notes it, since a busy machine may look too late.
    page.evaluate(NOTES_CAPTURE)
    # One that no other test has explored: that would be answered at once.
    type_snippet(page, "# slow\n# asked about\n" + SOURCE)
    page.keyboard.press("Control+Enter")
    page.wait_for_function("() => window.wasCaptured")
    expect(page.get_by_role("status").filter(has_text="Softmax became one kernel")).to_be_attached()
    expect(page.locator("#why-card")).to_contain_text("index.no_common_loops")


def test_an_input_of_the_graph_cannot_be_fused_and_is_told_why(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="?why=graph0/arg0_1,buf6")
    card = page.locator("#why-card")
    expect(card).to_contain_text("arg0_1 is an input of the graph: no kernel computes it")
    expect(card.get_by_role("button", name="Force this fusion")).to_have_count(0)
