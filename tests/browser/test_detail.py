"""What stands beside and below the map: the kernel, tables, times on an axis, files to take along."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.steps import lit_refs, open_stored, open_view

NODES = "?kernel=1&show=nodes"


def test_a_line_of_ptx_lights_its_triton_node_and_the_readers_line_and_back(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="?kernel=1&text=ptx")
    exponential = page.locator(".code-line", has_text="ex2.approx")
    exponential.hover()
    expect(page.locator(".lit-line")).to_have_count(2)
    expect(page.locator(".map-svg [data-ref='aten:graph0/exp']").first).to_have_attribute("data-lit", "partner")
    page.mouse.move(700, 20)
    expect(page.locator("[data-lit]")).to_have_count(0)
    page.locator(".cm-line", has_text="weights = shifted.exp").hover()
    expect(exponential).to_have_attribute("data-lit", "partner")
    assert "code:graph0/1:2:11" not in lit_refs(page, "side")


def test_kernels_are_stepped_through_and_chosen_from_a_list(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="?kernel=1&text=loops")
    heading = page.locator("#pane-side h2")
    page.get_by_role("button", name="Next kernel").click()
    expect(heading).to_contain_text("add_relu_transposed")
    # The text that is open stays open.
    expect(page.get_by_role("tab", name="Loops")).to_have_attribute("aria-selected", "true")
    page.get_by_role("button", name=re.compile("Kernel 3 of 3")).click()
    rows = page.locator(".kernel-menu tbody tr")
    expect(rows).to_have_count(3)
    page.keyboard.press("Escape")
    expect(rows).to_have_count(0)
    expect(heading).to_be_visible()
    page.get_by_role("button", name=re.compile("Kernel 3 of 3")).click()
    rows.first.click()
    expect(heading).to_contain_text("extern_mm")
    expect(rows).to_have_count(0)


def test_a_table_is_sorted_by_its_head_and_a_link_restores_that(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look=NODES)
    head = page.locator("#drawer th", has_text=re.compile("^bytes"))
    first = page.locator("#drawer tbody tr").first
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    largest = first.text_content() or ""
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(first).not_to_have_text(largest)
    page.reload()
    expect(head).to_have_attribute("aria-sort", "ascending")
    page.get_by_label("group by").select_option("kernel")
    expect(page.locator("#drawer .group-row")).to_have_count(4)


def test_a_table_speaks_of_what_is_selected_until_the_filter_is_removed(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look=NODES + "&at=kernel:graph0/2")
    rows = page.locator("#drawer tbody tr")
    expect(page.locator("#drawer .selection-chip")).to_contain_text("of K3")
    few = rows.count()
    page.get_by_role("button", name=re.compile("Show all")).click()
    expect(rows).not_to_have_count(few)
    page.get_by_role("button", name="Show only those of K3").click()
    expect(rows).to_have_count(few)


def test_the_timeline_never_has_a_prediction_beside_what_was_measured(page: Page, server_url: str) -> None:
    open_stored(page, server_url, look="?show=timeline")
    bars = page.locator("#drawer .time-bar[data-ref^='kernel:']")
    expect(bars).to_have_count(1)
    expect(page.locator("#drawer .basis-predicted")).to_have_count(0)
    page.get_by_role("button", name="predicted time").click()
    expect(bars).to_have_count(3)
    expect(page.locator("#drawer .view")).to_contain_text("nothing here was measured")
    bars.nth(1).hover()
    expect(page.locator(".lit-line")).to_have_count(5)


def test_what_was_measured_can_be_saved_as_a_trace(page: Page, server_url: str, tmp_path: Path) -> None:
    identity = open_stored(page, server_url, look="?show=export")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Trace of the times").click()
    saving.value.save_as(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["dur"] for event in events if event["name"] == "softmax_rows"] == [412]
    for link in page.locator("#drawer .files a").all():
        answer = page.request.get(f"{server_url}{link.get_attribute('href')}")
        assert answer.ok and identity in str(link.get_attribute("href"))


def test_the_roofline_holds_each_device_against_its_own_peaks(page: Page, server_url: str) -> None:
    open_stored(page, server_url)
    open_view(page, "roofline")
    expect(page.locator("#drawer")).to_contain_text("Measured on Intel Xeon")
    expect(page.locator(".roof-point")).to_have_count(1)
    page.get_by_role("button", name="predicted", exact=True).click()
    expect(page.locator("#drawer")).to_contain_text("Predicted for NVIDIA H200")
