"""What the tests of the page do again and again."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.programs import STORED

SOURCE = STORED.source
SOFTMAX = "tr[data-ref='kernel:graph0/1']"


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
