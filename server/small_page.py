"""A small page for a person's browser: no script, and nothing that it loads."""

from __future__ import annotations

from fastapi.responses import HTMLResponse

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Fusionscope: {title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 30rem; margin: 15vh auto; padding: 0 1rem;
  overflow-wrap: anywhere }}
input, button {{ font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; margin: .25rem 0 }}
</style>
<h1>Fusionscope</h1>
{body}
</html>
"""


def small_page(title: str, body: str, status: int, headers: dict[str, str]) -> HTMLResponse:
    """The answer. `title` and `body` are HTML, so who puts text into them escapes it."""
    return HTMLResponse(_PAGE.format(title=title, body=body), status, headers)
