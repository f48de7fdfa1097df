"""A browser whose pages note when something is first seen; and how long their main thread was busy without a break."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Browser, Page, sync_playwright

WAITS_MS = 120_000

#: Runs before the page does. `seen` has milliseconds by the browser's clock.
_NOTES = """
window.bench = {wanted: {}, seen: {}};
localStorage.setItem("fusionscope.explore-while-typing", "no");
localStorage.setItem("fusionscope.welcomed", "yes");
const look = () => {
  for (const [name, selector] of Object.entries(window.bench.wanted))
    if (!(name in window.bench.seen) && document.querySelector(selector)) window.bench.seen[name] = performance.now();
};
new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
"""


@contextmanager
def running_browser() -> Iterator[Browser]:
    """The Chromium that `tools/chromium.py` finds."""
    from tools import chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find_chromium(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def new_page(browser: Browser, wanted: dict[str, str]) -> Page:
    """A page with an empty cache that notes when each of the `wanted` selectors is first there."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(WAITS_MS)
    page.add_init_script(_NOTES + "".join(f"window.bench.wanted[{name!r}] = {css!r};" for name, css in wanted.items()))
    return page


def seen(page: Page, name: str) -> float:
    """Milliseconds, by the browser's clock, at which it was first there; waits until it is."""
    page.wait_for_function("name => name in window.bench.seen", arg=name)
    return float(page.evaluate("name => window.bench.seen[name]", name))


@dataclass
class LongestTask:
    """Milliseconds of the longest task of a page's main thread. Other work of the machine stretches its time by the
    clock, and hardly that of the processor."""

    clock: float = 0.0
    processor: float = 0.0


@contextmanager
def traced(browser: Browser) -> Iterator[LongestTask]:
    """Of the tasks that begin within; known once it is over."""
    longest = LongestTask()
    browser.start_tracing(categories=["toplevel", "devtools.timeline"])
    try:
        yield longest
    finally:
        events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    names = ("RunTask", "ThreadControllerImpl::RunTask")
    tasks = [event for event in events if event["name"] in names and (event["pid"], event["tid"]) in threads]
    longest.clock = max((event["dur"] for event in tasks if "dur" in event), default=0) / 1000
    longest.processor = max((event.get("tdur", 0) for event in tasks), default=0) / 1000
