"""The why card: what it says of two nodes, where it stands, and how it opens and closes."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from tests.browser.programs import STORED
from tests.browser.steps import SOURCE, faults_known_to_axe, open_stored, open_view

CARD = "#why-card"
#: The one refusal of the stored report that says what would have to be otherwise.
PAIR = "?why=graph0/buf5,buf6"
REVERSED = next(one for one in STORED.graphs[0].decisions if one.reason == "index.no_common_loops")


#: A box as numbers that Python can hold against others.
BOX = "one => { const {left, top, right, bottom} = one.getBoundingClientRect(); return {left, top, right, bottom}; }"
#: The card stands still.
STILL = """() => {
  const box = document.querySelector('#why-card').getBoundingClientRect();
  const isStill = window.lastBox === `${box.x} ${box.y} ${box.height}`;
  window.lastBox = `${box.x} ${box.y} ${box.height}`;
  return isStill;
}"""


def boxes(page: Page) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Of the card, and of the two nodes that it speaks of."""
    nodes = [page.locator(f".map-svg .node[data-ref='aten:graph0/{name}']").evaluate(BOX) for name in ("div", "add")]
    return page.locator(CARD).evaluate(BOX), nodes


def test_the_card_tells_both_sides_and_what_differs(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look=PAIR)
    card = page.locator(CARD)
    expect(card.get_by_test_id("why-verdict")).to_have_text(f"Not fused: {REVERSED.message}")
    expect(card.locator(".why-sides mark")).to_have_text(["1024 * x0", " + x1", "x0", " + 1024 * x1"])
    expect(card.get_by_test_id("would-fuse-if")).to_contain_text("Would fuse if buf6 read arg0_1")
    expect(card.locator(".why-facts")).to_contain_text("at most 4.19 MB")
    expect(card.locator(".why-facts em").first).to_have_css("font-style", "italic")
    expect(card).to_contain_text("Looked at once, in round 1")
    assert card.evaluate("one => one.getBoundingClientRect().width") >= 480
    assert faults_known_to_axe(page) == []


def test_other_pairs_of_two_kernels_open_by_keyboard_and_give_the_focus_back(page: Page, server_url: str) -> None:
    open_stored(page, server_url, source=f"# more pairs\n{SOURCE}", look="")
    kernels = page.get_by_label("Costliest refusals").get_by_role("listitem").first
    expect(kernels.locator(".kernel-tag")).to_have_text(["K1", "K2"])
    others = kernels.locator("summary")
    expect(others).to_have_text("1 pair of other nodes")
    others.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#why-title")).to_contain_text("buf3")
    expect(page.locator(CARD)).to_be_focused()
    page.keyboard.press("Escape")
    expect(kernels.locator("details button")).to_be_focused()
    assert faults_known_to_axe(page) == []


def test_the_card_stands_beside_what_it_speaks_of_and_gives_the_focus_back(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="")
    opener = page.locator(".map-list li button", has_text="buf6").first
    opener.focus()
    page.keyboard.press("Enter")
    expect(page.locator(CARD)).to_be_focused()
    expect(page.get_by_test_id("why-verdict")).to_be_visible()
    page.wait_for_function(STILL, polling=300)
    card, nodes = boxes(page)
    for node in nodes:
        is_over = (
            card["left"] < node["right"] and card["right"] > node["left"]
            and card["top"] < node["bottom"] and card["bottom"] > node["top"]
        )  # fmt: skip
        assert not is_over, (card, node)
    page.locator(".why-grip").focus()
    page.keyboard.press("ArrowLeft")
    left = "([card, left]) => document.querySelector(card).getBoundingClientRect().left < left"
    page.wait_for_function(left, arg=[CARD, card["left"]])
    page.locator(".why-body").focus()
    page.keyboard.press("Escape")
    expect(page.locator(CARD)).to_have_count(0)
    expect(opener).to_be_focused()


def test_a_reason_is_a_page_whose_example_runs(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look=PAIR)
    page.locator(f"{CARD} .why-rule .reason-name").click()
    reason = page.get_by_role("region", name="The reason index.no_common_loops")
    expect(reason.get_by_role("heading", name="What to do")).to_be_visible()
    example = reason.locator("pre").inner_text()
    assert "torch.compile" in example and faults_known_to_axe(page) == []
    with page.expect_request(lambda request: request.method == "POST" and "/explorations" in request.url) as posted:
        reason.get_by_role("button", name="Run this example").click()
    asked = posted.value.post_data_json
    assert asked is not None and asked["source"].strip() == example.strip()
    expect(page.locator(CARD)).to_have_count(0)


def test_a_row_of_the_decisions_opens_the_card_and_its_reason_is_no_json(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    rows = page.locator("#drawer tbody tr")
    stakes = page.locator("#drawer td.number").nth(0)
    expect(stakes).to_contain_text("4.19 MB")
    head = page.get_by_role("columnheader", name="reason")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(rows.first).to_contain_text("fused.vertical")
    page.get_by_label("group by").select_option("reason")
    expect(page.locator("#drawer .group-row").first).to_contain_text("fused.vertical 4")
    expect(page).to_have_url(re.compile(r"sort=decisions\.reason.*groups=decisions\.reason|groups=.*sort="))
    rows.filter(has_text="index.no_common_loops").last.locator("td.because").click()
    expect(page.get_by_test_id("why-verdict")).to_contain_text(REVERSED.message)
    page.keyboard.press("Escape")
    page.locator("#drawer").get_by_role("button", name="kind.extern").first.click()
    expect(page.get_by_role("region", name="The reason kind.extern")).to_contain_text("A library call")


def test_two_nodes_that_were_never_asked_about_have_an_answer(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.get_by_label("First node").fill("exp")
    page.get_by_label("Second node").fill("relu")
    page.get_by_role("button", name="Ask why").click()
    expect(page.get_by_test_id("why-verdict")).to_contain_text("Not considered:")
    page.get_by_label("First node").fill("nothing_like_it")
    page.get_by_role("button", name="Ask why").click()
    expect(page.get_by_role("alert")).to_have_text("This graph has no node “nothing_like_it”.")


def test_kernels_are_asked_about_by_the_names_that_the_map_gives_them(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.get_by_label("First node").fill("K2")
    page.get_by_label("Second node").fill("K3")
    page.get_by_role("button", name="Ask why").click()
    expect(page.locator("#why-title")).to_have_text("K2 and K3")
    expect(page.get_by_test_id("why-verdict")).to_contain_text("Not fused:")


def test_a_question_about_nodes_that_are_not_there_says_so(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="?why=graph0/buf1,gone")
    expect(page.locator(CARD)).to_contain_text("This exploration has no node “gone”.")
    page.get_by_label("Example").select_option(index=2)
    expect(page.locator(CARD)).to_have_count(0)


def test_a_name_of_several_nodes_lets_the_reader_choose(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="?why=graph0/softmax_rows,buf6")
    choice = page.locator(".why-choice select")
    expect(choice.locator("option")).to_have_count(5)
    chosen = choice.locator("option", has_text="buf1 and buf6")
    choice.select_option(label=chosen.inner_text())
    expect(page.get_by_test_id("why-verdict")).to_contain_text("Not considered:")


def test_on_a_phone_the_card_is_a_sheet_from_below(browser: Browser, server_url: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    open_stored(page, server_url, look=PAIR)
    expect(page.get_by_test_id("why-verdict")).to_be_visible()
    # It comes from below.
    place = "([card]) => { const box = card.getBoundingClientRect(); return [box.left, box.right, box.bottom].join(); }"
    page.wait_for_function(f"cards => ({place})(document.querySelectorAll(cards)) === '0,390,844'", arg=CARD)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults_known_to_axe(page) == []
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.locator(CARD)).to_have_count(0)
    page.close()


def test_comparison_needs_no_common_source(page: Page, server_url: str) -> None:
    other = open_stored(page, server_url, "# another one\n" + SOURCE)
    open_stored(page, server_url, look="?show=compare")
    compare = page.locator(".compare-picker").get_by_role("button", name="Compare", exact=True)
    expect(compare).to_be_disabled()
    page.get_by_label("Link or id of an exploration").fill(f"{server_url}/x/{other}?show=timing")
    compare.click()
    shown = page.locator(".comparison")
    expect(shown.locator(".compare-difference").first).to_contain_text("different snippets")
    expect(shown.locator(".compare-kernels tbody tr")).to_have_count(len(STORED.graphs[0].kernels))
    expect(shown.locator(".text-diff-line.removed")).to_contain_text("# another one")
    expect(page).to_have_url(re.compile(f"with={other}"))
    shown.get_by_role("button", name="Text").nth(1).click()
    expect(shown).to_contain_text("Kernel source: both are the same.")
    assert faults_known_to_axe(page) == []
    page.reload()
    expect(page.locator(".comparison .compare-difference").first).to_contain_text("different snippets")
    here = page.url
    page.get_by_role("button", name="Swap").click()
    expect(page).to_have_url(re.compile(f"/x/{other}"))
    page.go_back()
    expect(page).to_have_url(here)
    open_view(page, "compare")
    page.get_by_label("Link or id of an exploration").fill(here)
    compare.click()
    expect(page.locator("#drawer")).to_contain_text("That is the exploration on screen. Choose another one.")
    page.get_by_role("button", name="Stop comparing").click()
    expect(page.locator(".comparison")).to_have_count(0)
