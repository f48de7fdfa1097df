"""Lessons: predicted before told, remembered, linked, embedded; and a question of one's own about an exploration."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import (
    faults_in_both_themes,
    faults_known_to_axe,
    hold_answers,
    open_stored,
    release_answers,
)


def _panel(page: Page) -> Locator:
    return page.locator(".lesson-panel")


def test_a_lesson_asks_before_it_tells_and_remembers(page: Page, server_url: str) -> None:
    page.goto(f"{server_url}/?lesson=round_trips&step=2")
    panel = _panel(page)
    expect(panel.get_by_role("heading", name="What a compiler can do")).to_be_visible()
    expect(panel.get_by_text("It launches 1 kernel.")).to_have_count(0)
    expect(page.locator(".figures")).to_be_hidden()
    expect(page.locator(".map-svg .node").first).to_be_visible()
    expect(page.locator(".map-svg .kernel-box")).to_have_count(0)
    page.get_by_role("toolbar", name="Details").get_by_role("button", name="Loops").click()
    expect(page.locator("#drawer")).to_have_text("This appears after your answer to the question.")
    assert panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth")
    assert faults_in_both_themes(page) == []
    panel.get_by_label("Your guess").fill("7")
    panel.get_by_role("button", name="Answer").click()
    # The stored report is of another program, with 3 kernels: what is right is computed, not written down.
    expect(panel.get_by_text("Not quite: 3 kernels.")).to_be_visible()
    expect(panel.get_by_text("It launches 1 kernel.")).to_be_visible()
    expect(panel.get_by_text("“1 kernel” is 3 here")).to_be_visible()
    expect(page.locator(".figures")).to_be_visible()
    expect(page.locator("#drawer")).to_have_count(0)
    expect(page.locator(".map-svg .kernel-box")).not_to_have_count(0)
    assert "at=kernel:graph_0/0" in page.url and "step=2" in page.url
    assert faults_in_both_themes(page) == []
    page.reload()
    expect(panel.get_by_text("You said 7.")).to_be_visible()
    panel.focus()
    page.keyboard.press("ArrowLeft")
    expect(panel.get_by_role("heading", name="What PyTorch does by itself")).to_be_visible()
    panel.focus()
    page.keyboard.press("ArrowRight")
    expect(panel.get_by_text("You said 7.")).to_be_visible()


def test_a_word_of_the_glossary_tells_its_meaning_on_focus(page: Page, server_url: str) -> None:
    page.goto(f"{server_url}/?lesson=memory_hierarchy")
    expect(page.get_by_label("Example").locator("option:checked")).to_have_text("none of these")
    term = _panel(page).locator(".term").first
    expect(page.get_by_role("tooltip")).to_have_count(0)
    term.focus()
    expect(page.get_by_role("tooltip")).to_be_visible()
    _panel(page).focus()
    expect(page.get_by_role("tooltip")).to_have_count(0)


def test_the_menu_opens_a_lesson_and_closing_it_leaves_the_exploration(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator("summary", has_text="Lessons").click()
    page.get_by_role("button", name="Dead code").click()
    expect(_panel(page).get_by_role("heading", name="Dead code")).to_be_visible()
    expect(page).to_have_url(re.compile("lesson=dead_code"))
    _panel(page).get_by_label("Close the lesson").click()
    expect(_panel(page)).to_have_count(0)
    assert "lesson" not in page.url


def test_a_question_of_ones_own_is_asked_of_who_opens_the_link(page: Page, server_url: str) -> None:
    identity = open_stored(page, server_url)
    page.locator("summary", has_text="Lessons").click()
    page.get_by_role("button", name="Ask a question about this").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("The answer is 3 kernels.")).to_be_visible()
    dialog.get_by_label("Path of the answer").fill("summary.kernel")
    expect(dialog.get_by_text("A Summary has no field 'kernel'")).to_be_visible()
    expect(dialog.get_by_role("button", name="Copy the link")).to_be_disabled()
    assert faults_known_to_axe(page) == []
    question = {"text": "How many kernels?", "kind": "number", "unit": "kernels", "answer": "summary.kernels"}
    for place in ("x", "embed"):
        page.goto(f"{server_url}/{place}/{identity}?ask={quote(json.dumps(question))}")
        panel = _panel(page)
        expect(panel.get_by_text("How many kernels?")).to_be_visible()
        if place == "x":
            panel.get_by_label("Your guess").fill("3")
            panel.get_by_role("button", name="Answer").click()
        expect(panel.get_by_text("Right: 3 kernels.")).to_be_visible()
    page.goto(f"{server_url}/x/{identity}?ask={quote(json.dumps({**question, 'kind': 'riddle'}))}")
    expect(page.locator("[data-figure=kernels]")).to_be_visible()
    expect(_panel(page)).to_have_count(0)


def test_a_guess_that_comes_before_the_exploration_is_kept(page: Page, server_url: str) -> None:
    identity = open_stored(page, server_url)
    question = {"text": "How many kernels?", "kind": "number", "unit": "kernels", "answer": "summary.kernels"}
    hold_answers(page)
    page.goto(f"{server_url}/x/{identity}?ask={quote(json.dumps(question))}")
    guess = _panel(page).get_by_label("Your guess")
    guess.fill("3")
    release_answers(page)
    expect(page.locator(".map-svg .node").first).to_be_visible()
    expect(guess).to_have_value("3")
    # An answer is kept like a guess.
    page.reload()
    guess.fill("4")
    guess.press("Enter")
    release_answers(page)
    expect(_panel(page).get_by_text("Not quite: 3 kernels.")).to_be_visible()
