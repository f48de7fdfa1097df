"""What a person sees and does, in a real browser, on the real service."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.fixtures import browser, built_page, page, server_url, theme  # noqa: F401
from tests.browser.programs import STORED

SOURCE = STORED.source
SOFTMAX = "tr[data-ref='kernel:1']"


def open_stored(page: Page, server_url: str, source: str = SOURCE, **options: object) -> str:
    """Explores over the API, then opens the link as someone who was sent it; answers with the id."""
    answer = page.request.post(f"{server_url}/api/v1/explorations?wait=30", data={"source": source, **options})
    identity = str(answer.json()["id"])
    page.goto(f"{server_url}/x/{identity}")
    expect(page.locator("#pane-kernels tbody tr, .error-card, .line-message-break").first).to_be_visible()
    return identity


def type_snippet(page: Page, source: str) -> None:
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def faults_known_to_axe(page: Page) -> list[str]:
    return [
        f"{fault['id']}: {node['target']} {node['html'][:160]} {node['failureSummary']}"
        for fault in Axe().run(page).response["violations"]
        for node in fault["nodes"][:4]
    ]


def lit_refs(page: Page, pane: str) -> set[str]:
    elements = page.locator(f"[data-pane='{pane}'] [data-lit]")
    return {str(ref) for ref in elements.evaluate_all("all => all.map(one => one.dataset.ref)")}


def test_the_first_paint_is_a_solved_example_that_fits_the_screen(page: Page, server_url: str) -> None:
    page.goto(server_url)
    expect(page.locator("[data-figure=kernels]")).to_contain_text("3 kernels")
    expect(page.locator(".map-svg .node").first).to_be_visible()
    expect(page.locator("#pane-kernels .code-line").first).to_be_visible()
    expect(page.locator("#pane-bottom tbody tr").first).to_be_visible()
    assert page.locator(".cm-content").inner_text().strip() != ""
    scrolls = "document.documentElement.scrollHeight > innerHeight || document.documentElement.scrollWidth > innerWidth"
    assert page.evaluate(scrolls) is False


def test_the_answer_bar_says_it_in_one_line_and_opens_panes(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    said = " ".join(page.locator(".figures").inner_text().split())
    for figure in ("10 ops", "3 kernels", "79.7 MB", "29.4 MB", "2.7×", "0 breaks", "1.1e-3", "1.4e-3", "CPU"):
        assert figure in said
    page.locator("[data-figure=time]").click()
    expect(page.locator("#bottom-tab-timing")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".contestant-eager circle")).to_have_count(24)


def test_a_figure_that_is_not_known_is_left_out(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# nothing measured\n" + SOURCE)
    expect(page.locator("[data-figure=kernels]")).to_be_visible()
    for unknown in ("bytes", "time", "error", "peer-kernels"):
        expect(page.locator(f"[data-figure={unknown}]")).to_have_count(0)


def test_hovering_a_kernel_lights_its_partners_in_every_pane(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    expect(page.locator(".map-svg .node").first).to_be_visible()
    page.hover(SOFTMAX)
    expect(page.locator(".lit-line")).to_have_count(5)
    assert {"aten:mul", "aten:exp", "aten:div"} <= lit_refs(page, "centre")
    assert "aten:mm" not in lit_refs(page, "centre")
    assert "code:1:0:17" in lit_refs(page, "kernels")
    assert any(ref.startswith("decision:") for ref in lit_refs(page, "bottom"))
    page.mouse.move(700, 20)
    expect(page.locator("[data-lit]")).to_have_count(0)


def test_a_click_pins_and_escape_releases(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator(".map-svg [data-ref='aten:relu']").click()
    page.mouse.move(700, 20)
    expect(page.locator(".map-svg [data-ref='aten:relu']")).to_have_attribute("data-lit", "focus")
    # The kernel that it became opens.
    expect(page.locator("tr[data-ref='kernel:2']")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.locator("[data-lit]")).to_have_count(0)


def test_hovering_a_source_line_lights_what_it_became(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    expect(page.locator(".map-svg .node").first).to_be_visible()
    page.locator(".cm-line", has_text="total = weights.sum").hover()
    expect(page.locator(".map-svg [data-ref='aten:sum_1']")).to_have_attribute("data-lit", "partner")
    assert "code:1:0:17" in lit_refs(page, "kernels")
    assert "aten:mul" not in lit_refs(page, "centre")


def test_the_pointer_may_jump_from_the_editor_to_another_pane(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator(".cm-line", has_text="total = weights.sum").hover()
    page.hover("tr[data-ref='kernel:2']")
    expect(page.locator("tr[data-ref='kernel:2']")).to_have_attribute("data-lit", "focus")
    expect(page.locator(".lit-line")).to_have_count(1)


def test_the_pane_under_the_pointer_is_never_scrolled(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    lines = page.locator(".code-lines")
    page.locator(".code-line").first.hover()
    page.locator("[data-ref='code:1:0:8']").hover()
    page.wait_for_timeout(600)
    assert lines.evaluate("it => it.scrollTop") == 0
    # The line is out of view at first; hovering its operation from another pane brings it in.
    page.locator(".map-svg [data-ref='aten:div']").hover()
    expect(page.locator("[data-ref='code:1:0:21']")).to_be_in_viewport()


def test_stages_fill_in_while_stale_panes_stay_grey(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    type_snippet(page, "# slow\n" + SOURCE)
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-action=explore]")).to_contain_text("Stop")
    expect(page.locator("#pane-kernels [data-stale]")).to_be_visible()
    # The graph arrives before the kernels.
    expect(page.locator("#pane-centre .tab-panel:not([data-stale]) .node").first).to_be_visible()
    expect(page.locator("#pane-kernels [data-stale]")).to_be_visible()
    expect(page.locator("#pane-kernels .kernels:not([data-stale]) tbody tr").first).to_be_visible(timeout=10_000)
    expect(page.locator("[data-action=explore]")).to_contain_text("Explore", timeout=10_000)
    expect(page).to_have_url(re.compile(r"/x/\w+$"))


def test_stop_cancels(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    type_snippet(page, "# slow\n# and stopped\n" + SOURCE)
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-action=explore]")).to_contain_text("Stop")
    expect(page.locator(".verdict")).to_contain_text("done")
    page.locator("[data-action=explore]").click()
    expect(page.locator(".status-chip")).to_have_text("cancelled")
    expect(page.locator("[data-action=explore]")).to_contain_text("Explore")


def test_an_error_stands_under_the_line_that_caused_it(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# fails\n" + SOURCE)
    expect(page.locator(".line-message-error")).to_have_text("ValueError: not this one")
    expect(page.locator(".error-line")).to_have_count(1)
    expect(page.locator(".error-card")).to_contain_text("Try another one.")
    expect(page.locator(".status-chip")).to_have_text("the snippet failed")


def test_a_report_cannot_bring_markup_into_the_page(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# hostile\n" + SOURCE)
    expect(page.locator(".code-text").first).to_contain_text("<img")
    for tab in ("loops", "nodes"):
        page.locator(f"#centre-tab-{tab}").click()
    for tab in ("capture", "notes", "decisions"):
        page.locator(f"#bottom-tab-{tab}").click()
    expect(page.locator("#pane-bottom")).to_contain_text("<script>")
    assert page.evaluate("window.wasFooled") is None
    assert page.locator("#app img, #app script").count() == 0


def test_several_graphs_have_a_selector_and_breaks_stand_in_the_editor(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# two graphs\n" + SOURCE)
    message = page.locator(".line-message-break")
    expect(message).to_have_text("graph break: printing or logging\nPrint after the compiled function.")
    expect(page.locator(".line-message-note", has_text="compiled again: scale was 0.5")).to_be_visible()
    page.locator(".graph-select").select_option("1")
    page.locator("#bottom-tab-capture").click()
    expect(page.locator("#pane-bottom caption")).to_contain_text("after")


def test_a_graph_break_says_its_cause_and_leads_to_the_graphs_around_it(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# two graphs\n" + SOURCE)
    page.locator("#bottom-tab-capture").click()
    (found,) = page.locator(".finding-break").all()
    expect(found).to_contain_text("printing or logging met 2 times")
    expect(found.locator(".remedy")).to_contain_text("Print after the compiled function.")
    expect(found.get_by_role("link")).to_have_attribute("href", re.compile("gb0059"))
    found.get_by_role("button", name="after").click()
    expect(page.locator(".graph-select")).to_have_value("1")
    expect(found.get_by_role("button", name="after")).to_have_attribute("aria-pressed", "true")
    found.hover()
    expect(page.locator(".lit-line")).to_have_count(1)
    again = page.locator(".finding", has_text="compiled again")
    expect(again).to_contain_text("scale was 0.5, and the code there was needs scale == 0.125")
    expect(again).to_contain_text("which leaves open scale")


def test_a_guard_says_what_fails_it_and_lights_its_line(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator("#bottom-tab-capture").click()
    row = page.locator(".guards tbody tr", has_text="scale other than 0.125")
    row.focus()
    expect(page.locator(".lit-line")).to_contain_text("scores * scale")


def test_what_torch_itself_says_is_made_when_it_is_opened(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator("#bottom-tab-capture").click()
    expect(page.locator(".artefact")).to_have_count(0)
    page.get_by_text("More: bytecode").click()
    page.get_by_text("bytecode before and after Dynamo", exact=False).last.click()
    expect(page.get_by_role("region", name="Bytecode after")).to_contain_text("__compiled_fn")
    page.get_by_text("every guard, as the tree").click()
    expect(page.get_by_role("region", name="every guard")).to_contain_text("TREE_GUARD_MANAGER")


def test_the_backward_graph_is_linked_and_says_what_was_saved(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# trained\n" + SOURCE)
    page.locator("#bottom-tab-capture").click()
    training = page.get_by_role("region", name="Saved for the backward pass")
    expect(training.locator("tr[data-ref]")).to_have_count(2)
    wrong = training.locator(".checks tr", has_text="the gradient of k")
    expect(wrong).to_contain_text("wrong")
    expect(training).to_contain_text("1 operator computed again")
    training.get_by_role("button", name="backward").click()
    expect(training).to_contain_text("the backward graph of")
    page.locator("#centre-tab-nodes").click()
    expect(page.locator("#pane-centre .chip", has_text="computed again")).to_have_count(1)
    training.locator("tr[data-ref]").last.hover()
    expect(page.locator("#pane-centre tr[data-lit]").first).to_be_visible()


def test_a_break_is_told_where_no_graph_was_captured(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# no graph\n" + SOURCE)
    page.locator("#bottom-tab-capture").click()
    expect(page.locator(".finding-break")).to_contain_text("Print after the compiled function.")


def test_decisions_are_filtered_and_refusals_come_first(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    rows = page.locator("#pane-bottom tbody tr")
    expect(rows).to_have_count(len(STORED.graphs[0].decisions))
    expect(rows.first).to_contain_text("refused")
    page.get_by_role("button", name=re.compile("^fused")).click()
    expect(rows).to_have_count(4)
    page.get_by_label("Filter decisions").fill("buf4")
    expect(rows).to_have_count(1)


def test_a_pinned_decision_shows_the_numbers_of_both_sides(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    row = page.locator("#pane-bottom tbody tr", has_text="index.no_common_loops")
    row.locator("td.message").click()
    expect(row.locator(".why mark")).to_have_text(["1024 * x0", " + x1", "x0", " + 1024 * x1"])
    expect(row.locator(".why")).to_contain_text("It would fuse if `buf6` read `arg0_1`")


def test_rounds_step_through_the_groups_and_families_filter(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    rows = page.locator("#pane-bottom tbody tr")
    page.get_by_role("slider", name="round").fill("1")
    expect(page.get_by_test_id("groups")).to_contain_text("after round 1: buf1 + buf3 + buf2")
    assert 0 < rows.count() < len(STORED.graphs[0].decisions)
    page.get_by_role("button", name="all rounds").click()
    page.get_by_label("reasons").select_option("kind")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("kind.extern")


def test_why_is_asked_about_two_nodes_by_name(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.get_by_label("First node").fill("buf5")
    page.get_by_label("Second node").fill("buf6")
    page.get_by_role("button", name="Ask why").click()
    answers = page.locator(".answers")
    expect(answers).to_contain_text("index.no_common_loops")
    expect(answers).to_contain_text("It would fuse if `buf6` read `arg0_1`")


def test_each_figure_of_bytes_moved_is_a_sum_whose_terms_are_shown(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator("[data-figure=bytes]").click()
    expect(page.locator("#bottom-tab-traffic")).to_have_attribute("aria-selected", "true")
    rows = page.locator("#pane-bottom tbody tr")
    expect(rows).to_have_count(3)
    expect(page.locator(".traffic-sum")).to_have_text("54.5 MB − 8.4 MB not written − 16.8 MB not read = 29.4 MB")
    page.get_by_role("button", name="eager 79.7 MB").click()
    expect(rows).to_have_count(10)
    # A call leads to the line that made it.
    page.locator("#pane-bottom tr", has_text="aten.exp").hover()
    expect(page.locator(".lit-line")).to_have_count(1)
    page.locator(".traffic-bar", has_text="at least").click()
    expect(rows).to_have_count(4)


def test_an_edge_says_what_it_would_cost_in_memory(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator(".map-svg .edge-register[data-ref='edge:buf1 buf2'] .edge-hit").hover(force=True)
    expect(page.locator(".map-caption")).to_contain_text("stays in a register: neither happens")
    page.mouse.move(700, 20)
    expect(page.locator(".map-caption")).to_have_text("through memory kept out of it")
    page.locator("#bottom-tab-traffic").click()
    page.get_by_role("button", name="each of 10 edges").click()
    # By the keyboard alone: the row is pinned, and the map says the same.
    page.locator("#pane-bottom tr[data-ref='edge:buf0 buf1']").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".map-caption")).to_contain_text("It is written and read.")
    expect(page.locator(".map-svg [data-ref='edge:buf0 buf1']")).to_have_attribute("data-lit", "focus")


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
    page.locator("tr[data-ref='kernel:0']").click()
    page.locator("#rendering-tab-levels").click()
    expect(page.locator(".level").last).to_contain_text("A library call")


def test_the_plan_of_memory_shows_what_is_reused(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator("#bottom-tab-buffers").click()
    pane = page.locator("#pane-bottom")
    expect(pane).to_contain_text("8.4 MB never reach memory")
    expect(page.locator(".plan-bar")).to_have_count(3)
    page.get_by_role("button", name="without fusion").click()
    expect(pane).to_contain_text("buf1 over buf0 in place")
    # Pieces of memory: what takes over another's lies in the same row.
    tops = page.locator(".plan-bar rect").evaluate_all("all => all.map(one => one.getAttribute('y'))")
    assert len(tops) == 7 and len(set(tops)) == 4
    page.locator(".plan-bar[data-ref='buffer:buf3']").hover()
    expect(pane.locator("tr[data-ref='buffer:buf3']")).to_have_attribute("data-lit", "focus")


def test_renderings_of_a_kernel_are_tabs(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator(SOFTMAX).click()
    page.get_by_role("tab", name="Triton sm_90").click()
    expect(page.locator(".code-lines")).to_contain_text("tl.program_id")
    expect(page.locator(".facts")).to_contain_text("registers")
    # The server's Pygments coloured it.
    expect(page.locator(".code-lines .k").first).to_be_visible()


def test_a_sweep_is_asked_for_and_marks_the_sizes_that_flip(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator("#bottom-tab-sweep").click()
    field, ask = page.get_by_label("Sizes to explore", exact=True), page.get_by_role("button", name="Sweep", exact=True)
    page.get_by_role("button", name="N = 64", exact=True).click()
    expect(field).to_have_value("N = 8, 16, 32, 64, 128, 256, 512")
    field.fill("N = 256")
    expect(page.locator("#sweep-help")).to_contain_text("write a size and two or more numbers")
    expect(ask).to_be_disabled()
    field.fill("N = 256, 1024, 4096")
    ask.click()
    rows = page.locator(".sweep-sizes tbody tr")
    expect(rows).to_have_count(3)
    expect(page.locator("#bottom-tab-sweep .badge")).to_have_text("1")
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
    expect(page.locator("#bottom-tab-sweep .badge")).to_have_text("1")
    page.locator("#bottom-tab-sweep").click()
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
    expect(page).to_have_url(re.compile(r"/x/\w+$"))
    was = page.evaluate("document.documentElement.dataset.theme")
    page.get_by_role("button", name=re.compile("theme")).click()
    assert page.evaluate("document.documentElement.dataset.theme") != was


def test_the_keyboard_reaches_help_and_leaves_it(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    page.locator("#pane-kernels").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_an_unknown_link_says_so(browser: Browser, server_url: str) -> None:  # noqa: F811
    # Its own page: the browser rightly complains of the 404, which `page` does not let pass.
    opened = browser.new_page()
    opened.goto(f"{server_url}/x/{'0' * 20}")
    expect(opened.get_by_role("alert")).to_be_visible()
    opened.close()


@pytest.mark.parametrize(
    "tab", ["decisions", "timing", "traffic", "buffers", "capture", "wrapper", "sweep", "what-if", "stages", "notes"]
)
def test_no_accessibility_fault_is_known_to_axe(page: Page, server_url: str, theme: str, tab: str) -> None:  # noqa: F811
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    sweep = {"sweep": {"name": "N", "values": [8, 64, 512]}} if tab == "sweep" else {}
    open_stored(page, server_url, **sweep)
    centre = {"timing": "loops", "buffers": "nodes"}.get(tab, "graph")
    page.locator(f"#centre-tab-{centre}").click()
    page.locator(f"#bottom-tab-{tab}").click()
    if tab in ("traffic", "buffers"):
        page.locator("#rendering-tab-levels").click()
        page.get_by_role("button", name=re.compile("without fusion|edges")).last.click()
    page.mouse.move(700, 20)
    page.wait_for_timeout(300)
    assert faults_known_to_axe(page) == []
