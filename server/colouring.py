"""Colours for what clients send and snippets wrote, within a time.

Pygments takes the square of a text's length for some texts: a word before six thousand blanks takes two seconds. So
they are made in a process apart, and where they take too long, the text is shown without them.
"""

from __future__ import annotations

from server.apart import ASKING, Apart, Busy, TooLong, WentWrong
from server.highlight import highlight_lines

SECONDS = 3.0
"""How long a text may take; 200 KiB of ordinary code take one. Whoever waits for those before it waits as long."""
# The next ones are shown without colours.
_PAINTER = Apart(1, ("server.highlight",), most=16, patience=SECONDS)
_UNCOLOURED = (Busy, TooLong, WentWrong)


async def coloured_soon(source: str, language: str) -> list[str] | None:
    """As `coloured`, from a loop."""
    try:
        return await _PAINTER.soon(ASKING.get(), len(source), SECONDS, highlight_lines, source, language)
    except _UNCOLOURED:
        return None


def coloured(source: str, language: str) -> list[str] | None:
    """As `highlight_lines`; None where it takes too long."""
    try:
        return _PAINTER.now(SECONDS, highlight_lines, source, language)
    except _UNCOLOURED:
        return None
