"""Colours for what clients send and snippets wrote, within a time.

Pygments takes the square of a text's length for some texts: a word before six thousand blanks takes two seconds. So
they are made in a process apart, and where they take too long, the text is shown without them.
"""

from __future__ import annotations

from server.apart import ASKING, Apart, Busy, TooLong, WentWrong
from server.highlight import highlight_lines

SECONDS = 3.0
"""How long a text may take; 200 KiB of ordinary code take one. Whoever waits for those before it waits as long."""
_MOST_WAITING = 16
"""So many texts wait for their colours, half of them of one client; the next ones are shown without."""
_UNCOLOURED = (Busy, TooLong, WentWrong)


class Colouring:
    """Colours one text after another. `seconds` are as `SECONDS`."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._apart = Apart(1, ("server.highlight",), most=_MOST_WAITING, patience=seconds)

    async def lines_soon(self, source: str, language: str) -> list[str] | None:
        """As `lines`, from a loop."""
        try:
            return await self._apart.soon(ASKING.get(), len(source), self._seconds, highlight_lines, source, language)
        except _UNCOLOURED:
            return None

    def lines(self, source: str, language: str) -> list[str] | None:
        """As `highlight_lines`; None where it takes too long."""
        try:
            return self._apart.now(self._seconds, highlight_lines, source, language)
        except _UNCOLOURED:
            return None

    def close(self) -> None:
        self._apart.close()


COLOURING = Colouring()
"""The one of this program."""
