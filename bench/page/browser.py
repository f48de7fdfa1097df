"""A browser whose pages note when something is first seen, and how long the main thread was busy without a break."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from bench.service.figures import ROOT

WAITS_MS = 120_000

#: Runs before the page does. `seen` has milliseconds by the browser's clock, `tasks` milliseconds of each long task.
_NOTES = """
window.bench = {wanted: {}, seen: {}, tasks: []};
localStorage.setItem("fusionscope.explore-while-typing", "no");
localStorage.setItem("fusionscope.welcomed", "yes");
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.bench.tasks.push(task.duration);
}).observe({type: "longtask", buffered: true});
const look = () => {
  for (const [name, selector] of Object.entries(window.bench.wanted))
    if (!(name in window.bench.seen) && document.querySelector(selector)) window.bench.seen[name] = performance.now();
};
new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
"""


@contextmanager
def running_browser() -> Iterator[Browser]:
    """The Chromium that `tools/chromium.py` finds."""
    sys.path.insert(0, str(ROOT / "tools"))
    chromium = importlib.import_module("chromium")
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


def longest_task(page: Page) -> float:
    """Milliseconds of the longest task of the main thread; 0 where none took 50."""
    return float(page.evaluate("Math.max(0, ...window.bench.tasks)"))


@contextmanager
def traced(browser: Browser) -> Iterator[list[float]]:
    """Milliseconds of processor time of each task of a page's main thread that begins within, the longest first; there
    once it is over. Other work of the machine stretches the time of a task by the clock, and not this."""
    tasks: list[float] = []
    browser.start_tracing(categories=["toplevel", "devtools.timeline"])
    try:
        yield tasks
    finally:
        events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    of_tasks = (event for event in events if event["name"] in ("RunTask", "ThreadControllerImpl::RunTask"))
    times = (event.get("tdur", 0) / 1000 for event in of_tasks if (event["pid"], event["tid"]) in threads)
    tasks.extend(sorted(times, reverse=True))
