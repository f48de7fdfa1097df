"""What is measured of the page."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import httpx2
from playwright.sync_api import Browser, Page, Response

from bench.page.browser import new_page, running_browser, seen, traced
from bench.page.notebook import running_notebook
from bench.service.figures import ROOT, percentile
from bench.service.running import running

FIGURES = "[data-figure=kernels][data-state=known]"
SNIPPETS = ROOT / "tests" / "snippets"
SNIPPET = SNIPPETS / "01_activation.py"
IN_A_NOTEBOOK = (SNIPPET, SNIPPETS / "06_gelu_module.py", SNIPPETS / "12_attention_by_hand.py")

#: A written-out transformer block, so that the graph has its operators and not one fused call each.
LAYERS = """\
import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


model = torch.compile(nn.Sequential(*(Block(64, 4) for _ in range({layers}))).eval())
with torch.no_grad():
    model(torch.randn(2, 32, 64))
"""


@contextmanager
def service_and_browser() -> Iterator[tuple[str, Browser]]:
    with running() as service, running_browser() as browser:
        with httpx2.Client(base_url=service.address) as client:
            service.wait_for("/readyz", client)
        yield service.address, browser


def explore(address: str, source: str, **options: Any) -> dict[str, Any]:
    """The report of `source`, once it is done."""
    asked = {"source": source, **options}
    while True:
        answer = httpx2.post(f"{address}/api/v1/explorations?wait=30", json=asked, timeout=180)
        answer.raise_for_status()
        report: dict[str, Any] = answer.json()
        if report["status"] != "running":
            return report


def first_load(samples: int) -> dict[str, Any]:
    """Bytes that the first load of a stored exploration takes over the wire, and when its first figures are there."""
    with service_and_browser() as (address, browser):
        id = explore(address, SNIPPET.read_text())["id"]
        sizes: dict[str, int] = {}
        times = []
        for _ in range(samples):
            page = new_page(browser, {"figures": FIGURES})
            answers: list[Response] = []

            def keep(answer: Response, known: list[Response] = answers) -> None:
                known.append(answer)

            page.on("response", keep)
            page.goto(f"{address}/x/{id}", wait_until="networkidle")
            times.append(seen(page, "figures"))
            sizes = _sizes(answers) | {"layout engine": sum(_sent(worker.url) for worker in page.workers)}
            page.context.close()
    return {
        "first load": {"bytes": sizes, "first_figures_p50_ms": round(percentile(times, 0.5), 1), "samples": samples}
    }


def _sizes(answers: list[Response]) -> dict[str, int]:
    sizes = {"page": 0, "API": 0}
    for answer in answers:
        sizes["API" if "/api/" in answer.url else "page"] += answer.request.sizes()["responseBodySize"]
    return sizes


def _sent(url: str) -> int:
    """Bytes that a browser is sent for it."""
    with httpx2.stream("GET", url, headers={"accept-encoding": "br, gzip"}) as answer:
        return len(b"".join(answer.iter_raw()))


def snippet(samples: int, pause: float) -> dict[str, Any]:
    """From Ctrl+Enter on a snippet that is not stored to its decisions, to its verdict and to its end. One begins
    `pause` seconds after the other is over: a reader takes some, and the worker warms its next spare meanwhile."""
    times: dict[str, list[float]] = {"decisions": [], "verdict": [], "end": []}
    with service_and_browser() as (address, browser):
        page = _page_at_rest(browser, address)
        for number in range(samples):
            page.wait_for_timeout(1000 * pause)
            for name, taken in _run(page, f"# sample {number}\n{SNIPPET.read_text()}").items():
                times[name].append(taken)
    told = {f"{name}_p50_ms": round(percentile(taken, 0.5), 1) for name, taken in times.items()}
    return {"Ctrl+Enter on snippet 01": {**told, "samples": samples, "pause_s": pause}}


def notebook(samples: int, pause: float) -> dict[str, Any]:
    """From Ctrl+Enter to the end of the exploration on the page, and from the start of a cell of `%%fusion` to its
    result: the same snippets on one service, in turn, none of them stored. `pause` as in `snippet`."""
    told = {}
    with service_and_browser() as (address, browser), running_notebook(address) as cell:
        page = _page_at_rest(browser, address)
        for path in IN_A_NOTEBOOK:
            times: dict[str, list[float]] = {"page": [], "cell": []}
            for number in range(samples):
                page.wait_for_timeout(1000 * pause)
                times["page"].append(_run(page, f"# page {number}\n{path.read_text()}")["end"])
                page.wait_for_timeout(1000 * pause)
                times["cell"].append(cell(f"%%fusion\n# cell {number}\n{path.read_text()}"))
                print(path.stem, *(f"{name} {taken[-1]:.0f} ms" for name, taken in times.items()), file=sys.stderr)
            told[path.stem] = {
                f"{name}_{word}_ms": round(figure(taken), 1)
                for name, taken in times.items()
                for word, figure in (("least", min), ("p50", median))
            }
    return {"a cell of a notebook": {**told, "samples": samples, "pause_s": pause}}


def _page_at_rest(browser: Browser, address: str) -> Page:
    """The page with its example explored."""
    page = new_page(browser, {})
    page.goto(address)
    page.wait_for_selector(FIGURES)
    page.wait_for_selector(".verdict:not([data-running])")
    return page


def _run(page: Page, text: str) -> dict[str, float]:
    """Milliseconds from Ctrl+Enter on `text` to its decisions, its verdict and its end."""
    _type(page, text)
    page.evaluate(
        """() => {
          window.bench.seen = {};
          window.bench.wanted = {decisions: ".stage-times li:nth-child(3):not([data-status=running])"};
        }"""
    )
    started = page.evaluate("performance.now()")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".verdict[data-running]")
    page.evaluate("""() => {
      window.bench.wanted.verdict = ".verdict:not([data-running]):not(.offline)";
      window.bench.wanted.end = ".answer-line:not(:has([data-running]))";
    }""")
    return {name: seen(page, name) - started for name in ("decisions", "verdict", "end")}


def _type(page: Page, text: str) -> None:
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def layers(count: int, openings: int) -> dict[str, Any]:
    """A program of many layers: its report and events over the wire, and the longest task while it is opened: the least
    of several openings, since other work of the machine can only add to it."""
    with service_and_browser() as (address, browser):
        report = explore(address, LAYERS.replace("{layers}", str(count)), timing={"enabled": False})
        path = f"{address}/api/v1/explorations/{report['id']}"
        whole, sent = _wire(path)
        events, events_sent = _wire(f"{path}/events")
        page = _opened(browser, f"{address}/x/{report['id']}")
        longest = []
        for _ in range(openings):
            with traced(browser) as task:
                _opened(browser, f"{address}/x/{report['id']}").context.close()
            longest.append(task)
        told = {
            "status": report["status"],
            "nodes": sum(len(graph["aten"]) for graph in report["graphs"]),
            "report_bytes": whole,
            "report_bytes_sent": sent,
            "events_bytes": events,
            "events_bytes_sent": events_sent,
            "first_figures_ms": round(seen(page, "figures"), 1),
            "map_ms": round(seen(page, "map"), 1),
            "openings": openings,
            "longest_task_ms": round(min(task.clock for task in longest), 1),
            "longest_task_processor_ms": round(min(task.processor for task in longest), 1),
        }
    return {f"{count} layers": told}


def _opened(browser: Browser, url: str) -> Page:
    """A page that has come to rest, its map drawn."""
    page = new_page(browser, {"figures": FIGURES, "map": ".map-svg .node, .map-svg [data-ref]"})
    page.goto(url)
    seen(page, "map")
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(2000)
    return page


def _wire(url: str) -> tuple[int, int]:
    """Bytes of an answer, and bytes of it that were sent to a client that takes gzip."""
    with httpx2.stream("GET", url, headers={"accept-encoding": "gzip"}, timeout=180) as answer:
        answer.raise_for_status()
        sent = b"".join(answer.iter_raw())
    if answer.headers.get("content-encoding") != "gzip":
        return len(sent), len(sent)
    return len(zlib.decompress(sent, 16 + zlib.MAX_WBITS)), len(sent)
