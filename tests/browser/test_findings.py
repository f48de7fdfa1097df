"""What the panes tell of an exploration: capture, decisions, bytes, memory, kernels."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.programs import STORED, WRONG
from tests.browser.steps import SOFTMAX, SOURCE, faults_known_to_axe, fit_map, open_stored, open_view


def test_a_report_cannot_bring_markup_into_the_page(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# hostile\n" + SOURCE)
    expect(page.locator(".code-text").first).to_contain_text("<img")
    for tab in ("loops", "nodes"):
        open_view(page, tab)
    for tab in ("capture", "notes", "decisions"):
        open_view(page, tab)
    expect(page.locator("#drawer")).to_contain_text("<script>")
    assert page.evaluate("window.wasFooled") is None
    assert page.locator("#app img, #app script").count() == 0


def test_a_wrong_result_is_said_first_and_has_no_time_anywhere(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# wrong result\n" + SOURCE)
    first = page.locator(".figures .figure").first
    expect(first).to_contain_text("1 wrong result")
    expect(first).to_have_attribute("data-tone", "bad")
    expect(page.locator(".verdict")).to_have_text(
        re.compile(rf"^\s*Wrong result, so no time is given: {re.escape(WRONG.message)}")
    )
    expect(page.locator("[data-figure='time']")).to_contain_text("a wrong result has no time")
    expect(page.locator("[data-figure='time'] .arrow")).to_have_count(0)
    kernels = page.locator("#pane-side")
    expect(kernels).to_contain_text(WRONG.message)
    expect(kernels.locator(".about-facts")).to_contain_text("for NVIDIA H200")
    expect(kernels.locator(".about-facts")).not_to_contain_text("measured")
    first.click()
    timing = page.locator("#drawer")
    expect(timing).to_contain_text(WRONG.message)
    expect(timing.locator(".contestant-compiled")).to_have_count(0)
    expect(timing.get_by_role("row", name=re.compile("^compiled"))).to_have_count(0)
    assert faults_known_to_axe(page) == []


def test_several_graphs_have_a_selector_and_breaks_stand_in_the_editor(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# two graphs\n" + SOURCE)
    message = page.locator(".line-message-break")
    expect(message).to_have_text("graph break: printing or logging\nPrint after the compiled function.")
    expect(page.locator(".line-message-note", has_text="compiled again: scale was 0.5")).to_be_visible()
    page.locator(".graph-select").select_option("1")
    open_view(page, "capture")
    expect(page.locator("#drawer caption")).to_contain_text("after")


def test_a_graph_break_says_its_cause_and_leads_to_the_graphs_around_it(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# two graphs\n" + SOURCE)
    open_view(page, "capture")
    found = page.locator(".finding-break")
    expect(found).to_have_count(1)
    expect(found).to_contain_text("printing or logging met 2 times")
    expect(found.locator(".remedy")).to_contain_text("Print after the compiled function.")
    expect(found.get_by_role("link")).to_have_attribute("href", re.compile("gb0059"))
    found.get_by_role("button", name="after").click()
    expect(page.locator(".graph-select")).to_have_value("1")
    expect(found.get_by_role("button", name="after")).to_have_attribute("aria-pressed", "true")
    found.hover()
    expect(page.locator(".lit-line")).to_have_count(1)
    again = page.locator(".finding", has_text="compiled again")
    expect(again).to_contain_text("scale was 0.5, and the existing code needs scale == 0.125")
    expect(again).to_contain_text("which leaves open scale")


def test_a_guard_says_what_fails_it_and_lights_its_line(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    open_view(page, "capture")
    row = page.locator(".guards tbody tr", has_text="scale other than 0.125")
    row.focus()
    expect(page.locator(".lit-line")).to_contain_text("scores * scale")


def test_what_torch_itself_says_is_made_when_it_is_opened(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    open_view(page, "capture")
    expect(page.locator(".artefact")).to_have_count(0)
    page.get_by_text("More: bytecode").click()
    page.get_by_text("bytecode before and after Dynamo", exact=False).last.click()
    expect(page.get_by_role("region", name="Bytecode after")).to_contain_text("__compiled_fn")
    page.get_by_text("every guard, as the tree").click()
    expect(page.get_by_role("region", name="every guard")).to_contain_text("TREE_GUARD_MANAGER")


def test_the_backward_graph_is_linked_and_says_what_was_saved(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# trained\n" + SOURCE)
    open_view(page, "capture")
    training = page.get_by_role("region", name="Saved for the backward pass")
    expect(training.locator("tr[data-ref]")).to_have_count(2)
    wrong = training.locator(".checks tr", has_text="the gradient of k")
    expect(wrong).to_contain_text("wrong")
    expect(training).to_contain_text("1 operator computed again")
    training.get_by_role("button", name="backward").click()
    expect(training).to_contain_text("the backward graph of")
    training.locator("tr[data-ref]").last.hover()
    expect(page.locator("#pane-map .node:is([data-lit], [data-lit-too])").first).to_be_visible()
    open_view(page, "nodes")
    expect(page.locator("#drawer .chip", has_text="computed again")).to_have_count(1)


def test_a_break_is_told_where_no_graph_was_captured(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# no graph\n" + SOURCE)
    open_view(page, "capture")
    expect(page.locator(".finding-break")).to_contain_text("Print after the compiled function.")


def test_decisions_are_filtered_and_refusals_come_first(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    rows = page.locator("#drawer tbody tr")
    expect(rows).to_have_count(len(STORED.graphs[0].decisions))
    expect(rows.first).to_contain_text("refused")
    page.get_by_role("group", name="Verdict").get_by_role("button", name=re.compile("^fused")).click()
    expect(rows).to_have_count(4)
    page.get_by_label("Filter decisions").fill("buf4")
    expect(rows).to_have_count(1)


def test_rounds_step_through_the_groups_and_families_filter(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    rows = page.locator("#drawer tbody tr")
    page.get_by_role("slider", name="Round").fill("1")
    expect(page.locator(".round-sentence")).to_contain_text("Joined: buf1 + buf3 + buf2.")
    expect(rows).not_to_have_count(len(STORED.graphs[0].decisions))
    assert 0 < rows.count() < len(STORED.graphs[0].decisions)
    page.get_by_role("button", name="all rounds", exact=True).click()
    page.get_by_label("Family of reasons").select_option("kind")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("kind.extern")


def test_a_pass_shows_what_it_changed_and_its_lines_light_their_partners(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="?show=passes&pass=round-1")
    lines = page.locator("#drawer .text-diff-line")
    expect(page.locator("#drawer .text-diff-line.added")).to_have_text(re.compile(r"added: buf1 \+ buf2 \+ buf3"))
    lines.filter(has_text="buf1 + buf2 + buf3").hover()
    expect(page.locator(".lit-line").first).to_be_visible()
    page.get_by_role("group", name="Pass").get_by_role("button", name="Operators").click()
    expect(lines.filter(has_text="added: mm")).to_have_count(1)
    expect(page).to_have_url(re.compile("pass=operators"))
    assert not faults_known_to_axe(page)


def test_each_figure_of_bytes_moved_is_a_sum_whose_terms_are_shown(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator("[data-figure=bytes]").click()
    expect(page.locator(".toolbar [data-view=traffic]")).to_have_attribute("aria-expanded", "true")
    rows = page.locator("#drawer tbody tr")
    expect(rows).to_have_count(3)
    expect(page.locator(".traffic-sum")).to_have_text("54.54 MB − 8.40 MB not written − 16.79 MB not read = 29.36 MB")
    page.get_by_role("button", name="eager 79.7 MB").click()
    expect(rows).to_have_count(10)
    # A call leads to the line that made it.
    page.locator("#drawer tr", has_text="aten.exp").hover()
    expect(page.locator(".lit-line")).to_have_count(1)
    page.locator(".traffic-bar", has_text="at least").click()
    expect(rows).to_have_count(4)


def test_an_edge_says_what_it_would_cost_in_memory(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    fit_map(page)
    page.locator(".map-svg .edge-register[data-ref='edge:graph0/buf1 buf2'] .edge-hit").hover(force=True)
    expect(page.locator(".map-caption")).to_contain_text("stays in a register: neither happens")
    page.mouse.move(700, 20)
    expect(page.locator(".map-caption")).to_contain_text("through memory, thicker with more bytes")
    open_view(page, "traffic")
    page.get_by_role("button", name="each of 10 edges").click()
    # By the keyboard alone: the row is pinned, and the map says the same.
    page.locator("#drawer tr[data-ref='edge:graph0/buf0 buf1']").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".map-caption")).to_contain_text("It is written and read.")
    expect(page.locator(".map-svg [data-ref='edge:graph0/buf0 buf1']")).to_have_attribute("data-lit", "focus")
    page.locator("#drawer tr[data-ref='edge:graph0/buf0 buf1'] button").click()
    expect(page.get_by_test_id("why-verdict")).to_contain_text("Not fused")


def test_a_kernel_shows_where_its_values_live(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator(SOFTMAX).click()
    page.locator("#rendering-tab-levels").click()
    memory, caches, shared, registers = (page.locator(".level").nth(place) for place in range(4))
    expect(memory).to_contain_text("reads once")
    expect(memory).to_contain_text(re.compile(r"Measured on .*: 8.39 MB in 412 µs, 20 GB/s, 41 % of the peak"))
    expect(caches).to_contain_text("buf0 8.39 MB: 3× in all")
    expect(caches).to_contain_text("Predicted for sm_90")
    expect(shared).to_contain_text("assembled for sm_90")
    expect(shared).to_contain_text("128 B a program")
    expect(registers).to_contain_text("32 a thread, nothing spilled")
    # The tab stays open from one kernel to the next.
    page.get_by_role("button", name="Previous kernel").click()
    expect(page.locator(".level").last).to_contain_text("A library call")


def test_the_plan_of_memory_shows_what_is_reused(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    open_view(page, "buffers")
    pane = page.locator("#drawer")
    expect(pane).to_contain_text("8.4 MB never reach memory")
    expect(page.locator(".plan-bar")).to_have_count(3)
    page.get_by_role("button", name="without fusion").click()
    expect(pane).to_contain_text("buf1 over buf0 in place")
    # Pieces of memory: what takes over another's lies in the same row.
    tops = page.locator(".plan-bar rect").evaluate_all("all => all.map(one => one.getAttribute('y'))")
    assert len(tops) == 7 and len(set(tops)) == 4
    page.locator(".plan-bar[data-ref='buffer:graph0/buf3']").hover()
    expect(pane.locator("tr[data-ref='buffer:graph0/buf3']")).to_have_attribute("data-lit", "focus")


def test_renderings_of_a_kernel_are_tabs(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator(SOFTMAX).click()
    page.get_by_role("tab", name="Triton sm_90").click()
    expect(page.locator(".code-lines")).to_contain_text("tl.program_id")
    expect(page.locator(".about-facts")).to_contain_text("32 registers")
    # The server's Pygments coloured it.
    expect(page.locator(".code-lines .k").first).to_be_visible()
