"""The map: where it opens, how one moves and asks on it, and what it shows of rounds and of another compiler."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.steps import SOURCE, faults_in_both_themes, fit_map, open_stored

MAP_ALONE = ""


def test_it_opens_readable_and_names_what_costs_most(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look=MAP_ALONE)
    expect(page.locator(".map-svg .node").first).to_be_visible()
    page.wait_for_function(
        "() => { const shown = [...document.querySelectorAll('.map-svg text')]"
        ".filter(one => one.getBoundingClientRect().width > 0)"
        ".map(one => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a);"
        " return shown.length > 0 && Math.min(...shown) >= 9.99; }"
    )
    costliest = page.get_by_role("region", name="Costliest refusals").locator("li")
    expect(costliest).to_have_count(3)
    costliest.first.get_by_role("button").click()
    expect(page).to_have_url(re.compile(r"why=graph0/buf0,buf1"))
    expect(page.locator(".map-svg .refusal").first).to_be_in_viewport()


def test_a_second_node_with_shift_asks_why_of_both(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look=MAP_ALONE)
    fit_map(page)
    page.locator(".map-svg [data-ref='aten:graph0/mul']").click()
    fit_map(page)
    page.locator(".map-svg [data-ref='aten:graph0/relu']").click(modifiers=["Shift"])
    expect(page).to_have_url(re.compile(r"why=graph0/mul,relu"))
    # The first one stays selected.
    expect(page).to_have_url(re.compile(r"at=aten:graph0/mul"))


def test_the_keyboard_goes_along_edges_selects_and_asks(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look=MAP_ALONE)
    page.locator(".map-svg [data-ref='aten:graph0/mm']").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".map-svg [data-ref='aten:graph0/mul']")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"at=aten:graph0/mul"))
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+Enter")
    expect(page).to_have_url(re.compile(r"why=graph0/mul,mm"))


def test_the_search_goes_from_hit_to_hit(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look=MAP_ALONE)
    expect(page.locator(".map-svg .node").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("buf")
    expect(page.locator(".map-hits")).to_have_text("0")
    page.get_by_role("searchbox", name="Search the map").fill("sum")
    page.keyboard.press("Enter")
    expect(page.locator(".map-hits")).to_have_text(re.compile(r"^1 of \d+$"))
    expect(page.locator(".map-svg [data-lit=focus]").first).to_be_in_viewport()


def test_rounds_move_no_node_and_a_link_restores_the_round(page: Page, server_url: str) -> None:
    identity = open_stored(page, server_url, look=MAP_ALONE)
    first = page.locator(".map-svg [data-ref='aten:graph0/mul']")
    place = first.get_attribute("transform")
    expect(page.locator(".map-svg .blob")).to_have_count(0)
    page.locator("#pane-map").focus()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".round-sentence")).to_be_visible()
    page.get_by_role("slider", name="Round").fill("1")
    expect(page.locator(".map-svg .blob-merged")).to_have_count(1)
    assert first.get_attribute("transform") == place
    page.goto(f"{server_url}/x/{identity}?round=1")
    expect(page.locator(".round-sentence")).to_contain_text("Joined: buf1 + buf3 + buf2.")
    expect(page.locator(".map-svg .blob-merged")).to_have_count(1)
    page.get_by_role("button", name="all rounds").click()
    expect(page.locator(".map-svg .blob")).to_have_count(0)


def test_all_graphs_are_in_one_picture_with_the_break_between_them(page: Page, server_url: str) -> None:
    open_stored(page, server_url, "# two graphs\n" + SOURCE, look=MAP_ALONE)
    expect(page.locator(".map-svg .frame")).to_have_count(2)
    expect(page.locator(".map-svg .between-break")).to_contain_text("graph break, line 4")


def test_the_map_opens_in_the_graph_that_the_selector_names(page: Page, server_url: str) -> None:
    page.set_viewport_size({"width": 1000, "height": 480})
    for look in ("?graph=0", "?graph=1"):
        identity = open_stored(page, server_url, "# two graphs\n" + SOURCE, look=look)
        graph = page.request.get(f"{server_url}/api/v1/explorations/{identity}").json()["graphs"][int(look[-1])]["name"]
        page.wait_for_function(
            "graph => [...document.querySelectorAll(`.map-svg .node[data-graph=${graph}]`)].some(one => {"
            " const box = one.getBoundingClientRect(), map = one.closest('.map-svg').getBoundingClientRect();"
            " return box.top > map.top && box.bottom < map.bottom; })",
            arg=graph,
        )


def test_the_map_has_no_fault_that_axe_knows(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="?round=1&list=open")
    expect(page.locator(".map-svg .blob-merged")).to_have_count(1)
    assert faults_in_both_themes(page) == []


def test_another_compiler_is_shown_in_place_of_ours_and_beside_it(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look=MAP_ALONE)
    kernels = page.get_by_role("group", name="Kernels of")
    kernels.get_by_role("button", name="TorchInductor").click()
    expect(page.locator(".map-svg .blob-peer").first).to_be_visible()
    expect(page.locator(".map-svg .kernel-box")).to_have_count(0)
    kernels.get_by_role("button", name="both").click()
    expect(page.locator(".map-svg .kernel-box").first).to_be_visible()
    expect(page.get_by_role("region", name="Differences from TorchInductor")).to_contain_text("The same in both")
    expect(page).to_have_url(re.compile("compilers=both"))
