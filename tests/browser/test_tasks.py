"""What newcomers come to find out: each in at most two clicks from a finished exploration, on one screen.

The answers are held against the report that the service gives, not against the page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import open_stored

MOST_CLICKS = 2


@dataclass
class Reader:
    """Someone who clicks, and what the service knows of what they look at."""

    page: Page
    report: dict[str, Any]
    clicks: int = field(default=0)

    def click(self, what: Locator) -> None:
        self.clicks += 1
        what.click()

    def reads(self, what: Locator, *texts: str) -> None:
        """On the screen as it is, without scrolling."""
        for text in texts:
            expect(what).to_contain_text(text)
        expect(what).to_be_in_viewport(ratio=1)
        assert self.clicks <= MOST_CLICKS

    @property
    def decisions(self) -> list[dict[str, Any]]:
        return [one for graph in self.report["graphs"] for one in graph["decisions"]]


@pytest.fixture
def reader(page: Page, server_url: str) -> Reader:
    identity = open_stored(page, server_url, look="")
    expect(page.locator(".map-svg .node").first).to_be_visible()
    return Reader(page, page.request.get(f"{server_url}/api/v1/explorations/{identity}").json())


def test_which_two_operations_were_not_fused_and_why(reader: Reader) -> None:
    refused = [one for one in reader.decisions if one["verdict"] == "refused"]
    costliest = max(refused, key=lambda one: one["score"]["bytes_saved"] if one["score"] else one["shared_bytes"])
    reader.click(reader.page.get_by_label("Costliest refusals").locator("li button").first)
    reader.reads(reader.page.locator("#why-title"), costliest["a"], costliest["b"])
    reader.reads(reader.page.get_by_test_id("why-verdict"), "Not fused:", costliest["message"])


def test_what_would_fuse_them(reader: Reader) -> None:
    (known,) = [one for one in reader.decisions if one["would_fuse_if"]]
    row = reader.page.get_by_label("Costliest refusals").locator("li button", has_text=known["message"])
    reader.click(row)
    reader.reads(reader.page.get_by_test_id("would-fuse-if"), known["would_fuse_if"].replace("`", ""))


def test_what_it_saved(reader: Reader) -> None:
    summary = reader.report["summary"]
    figure = reader.page.locator("[data-figure=bytes]")
    reader.reads(figure, f"{summary['eager_bytes'] / 1e6:.1f} MB", f"{summary['bytes'] / 1e6:.1f} MB")
    reader.click(figure)
    traffic = reader.report["graphs"][0]["traffic"]
    spared = [f"{traffic[name] / 1e6:.2f} MB" for name in ("saved_written_bytes", "saved_read_bytes")]
    reader.reads(reader.page.locator(".traffic-sum"), f"{spared[0]} not written", f"{spared[1]} not read")


def test_whether_it_is_faster_and_by_how_much(reader: Reader) -> None:
    summary = reader.report["summary"]
    time = reader.page.locator("[data-figure=time]")
    reader.reads(
        time, f"{summary['eager_ms']:.1f} ms", f"{summary['compiled_ms']:.1f} ms", f"{summary['speedup']:.1f}×"
    )
    reader.reads(reader.page.locator("[data-figure=device]"), reader.report["environment"]["device_name"])


def test_where_ours_differs_from_the_peer(reader: Reader) -> None:
    ours, theirs = reader.report["graphs"][0]["kernels"], reader.report["peer"]["kernels"]
    views = {"permute", "permute_1"}
    cuts = [{frozenset(set(kernel["origins"]) - views) for kernel in kernels} for kernels in (ours, theirs)]
    reader.click(reader.page.get_by_role("button", name="both", exact=True))
    told = reader.page.get_by_label(f"Differences from {reader.report['peer']['name']}")
    assert cuts[0] == cuts[1]
    reader.reads(told, f"The same in both: {len(ours)} kernels")
