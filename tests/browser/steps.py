"""What the tests of the page do again and again."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.programs import STORED

SOURCE = STORED.source
#: Its name over its code.
SOFTMAX = "#pane-side [data-ref='kernel:graph0/1']"


#: The softmax's kernel beside the map, the decisions below it.
ALL_OPEN = "?kernel=1&show=decisions"


def open_stored(page: Page, server_url: str, source: str = SOURCE, look: str = ALL_OPEN, **options: object) -> str:
    """Explores over the API, then opens the link as someone who was sent it, with `look` as its query; answers with the
    id."""
    answer = page.request.post(f"{server_url}/api/v1/explorations?wait=30", data={"source": source, **options})
    identity = str(answer.json()["id"])
    while page.request.get(f"{server_url}/api/v1/explorations/{identity}").json()["status"] == "running":
        page.wait_for_timeout(50)
    page.goto(f"{server_url}/x/{identity}{look}")
    # Before the report is there, each figure is a dash, and a click on a dash opens nothing.
    expect(page.locator(".figure[data-state=known], .error-card, .line-message-break").first).to_be_visible()
    return identity


def hold_answers(page: Page) -> None:
    """From the next page on, no answer of the service comes before `release_answers`, as on a slow network."""
    page.add_init_script(
        "const now = fetch; const held = new Promise((done) => { window.release = done; });"
        " fetch = (...of) => held.then(() => now(...of));"
    )


def release_answers(page: Page) -> None:
    page.evaluate("release()")


def open_view(page: Page, view: str) -> None:
    """By its word in the toolbar, where it is not open already."""
    if page.locator(f"#drawer[data-view={view}]").count() == 0:
        page.locator(f".toolbar [data-view={view}]").click()
    expect(page.locator(f"#drawer[data-view={view}]")).to_be_visible()
    expect(page.locator("#drawer [data-loading]")).to_have_count(0)


def fit_map(page: Page) -> None:
    """All of the map in view, for what points at a node that may stand anywhere on it."""
    expect(page.locator(".map-svg .node").first).to_be_visible()
    page.get_by_role("button", name="Fit", exact=True).click()
    # A short movement takes it there, and where it stands still nothing is missed.
    page.wait_for_function(
        "() => { const box = document.querySelector('.map-svg > g').getBoundingClientRect();"
        " const same = box.y === window.lastTop; window.lastTop = box.y; return same; }",
        polling=100,
    )


def type_snippet(page: Page, source: str) -> None:
    page.locator(".cm-content").focus()  # a card may lie over the place where a click would go
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def faults_known_to_axe(page: Page) -> list[str]:
    return _faults(page, {})


#: The one rule of axe whose answer depends on the theme; it takes four fifths of axe's time.
CONTRAST = "color-contrast"


def faults_in_both_themes(page: Page, *colours_within: str) -> list[str]:
    """What axe finds in the light theme, and of contrast in the dark one too: all else is the same there. Contrast is
    looked at in all of the page, or within these elements, where the rest of it is looked at elsewhere."""
    found = [*_faults(page, {"rules": {CONTRAST: {"enabled": False}}})]
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(IS_COLOURED, arg=theme)
        found += _faults(page, {"runOnly": [CONTRAST]}, *colours_within)
    return found


#: Whether the page has a theme, with the colours of code, which are loaded for it, and has gone over to it.
IS_COLOURED = """theme => {
  const link = document.querySelector('#highlight-css');
  return document.documentElement.dataset.theme === theme && (link.sheet?.href === link.href || !navigator.onLine)
    && document.getAnimations().every(
      one => one.playState !== 'running' || one.effect.getTiming().iterations === Infinity);
}"""


def _faults(page: Page, options: dict[str, object], *within: str) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    violations = page.evaluate(
        "([within, options]) => axe.run(within.length ? {include: within.map(one => [one])} : document, options)"
        ".then(found => found.violations)",
        [within, {"resultTypes": ["violations"], **options}],
    )
    return [
        f"{fault['id']}: {node['target']} {node['html'][:160]} {node['failureSummary']}"
        for fault in violations
        for node in fault["nodes"][:4]
    ]


def expect_lit(page: Page, pane: str, *refs: str) -> None:
    """Each pane lights on its own, so one of them says nothing of another."""
    for ref in refs:
        expect(page.locator(f"[data-pane='{pane}'] [data-lit][data-ref='{ref}']").first).to_be_attached()


def lit_refs(page: Page, pane: str) -> set[str]:
    elements = page.locator(f"[data-pane='{pane}'] [data-lit]")
    return {str(ref) for ref in elements.evaluate_all("all => all.map(one => one.dataset.ref)")}
